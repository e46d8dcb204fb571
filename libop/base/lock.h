/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A file that says who works somewhere: locked by flock(2) as long as its owner lives, and removed when it ends in order. One that is there and locked by nobody was left by
 * somebody who did not. Any thread.
 */
#ifndef OP_LOCK_H
#define OP_LOCK_H

#include <sys/types.h>

#include "libop/base/compiler.h"

/*
 * Takes the lock, which is nobody's but the owner's to open. *ret_was_there: there was a file that nobody held; the pid in it goes. A descriptor, to be closed after the file was removed; -EBUSY: somebody
 * has it; another -errno.
 */
int op_lock_take(int dir_fd, const char *name, bool *ret_was_there) OP_NONNULL OP_MUST_CHECK;

/* Writes the pid into it, for people and for who is refused. 0 or -errno. */
int op_lock_sign(int lock_fd) OP_MUST_CHECK;

/* The pid in it, after a moment when its owner is about to write it; 0: none, or it cannot be read. */
pid_t op_lock_owner(int dir_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

#endif
