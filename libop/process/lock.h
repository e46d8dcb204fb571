/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lock files. The owner holds flock(2) as long as it lives and removes the file when it ends in
 * order. An unlocked file was left by an owner that did not. Any thread.
 */
#ifndef OP_LOCK_H
#define OP_LOCK_H

#include <sys/stat.h>
#include <sys/types.h>

#include "libop/base/compiler.h"

/*
 * Takes the lock and clears the pid in the file. *ret_was_there: a previous owner had left the
 * file. A descriptor, to be closed after the file was removed; -EBUSY: another process holds the
 * lock; another -errno.
 */
int op_lock_take(int dir_fd, const char *name, bool *ret_was_there) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes the lock of a file that an owner has left, to remove the file. A descriptor; -ENOENT: there
 * is no such file, or another one took its place; -EWOULDBLOCK: an owner holds it; another -errno.
 */
int op_lock_take_stale(int dir_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Writes the pid into the file, for messages of processes that do not get the lock. 0 or -errno. */
int op_lock_write_pid(int lock_fd) OP_MUST_CHECK;

/*
 * The pid in the file. Waits a moment for an owner that is about to write it. 0: none, or
 * unreadable.
 */
pid_t op_lock_owner(int dir_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether a process holds flock(2) on a file for itself alone, by the kernel's list, which every
 * user may read. The list names the inode, but not always the device that stat(2) shows: a lock of
 * another file may count.
 */
bool op_lock_is_listed(const struct stat *st) OP_NONNULL OP_MUST_CHECK;

/*
 * Locks a directory beside its lock file, which may be removed. Any user who may read the
 * directory can lock it, too: only locks of root and of this user count. -EBUSY: such a process has
 * locked it; else 0, also where a directory cannot be locked. The lock belongs to the open
 * directory, and ends with it.
 */
int op_lock_take_dir(int dir_fd) OP_MUST_CHECK;
void op_lock_leave_dir(int dir_fd);

#endif
