/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The session directory: opening it, its lock, and the requests that it keeps for the next daemon.
 */
#ifndef OP_SESSION_DIRECTORY_H
#define OP_SESSION_DIRECTORY_H

#include <sys/types.h>

#include "libop/base/compiler.h"

#define OP_SESSION_OWNER "opd" /* the user and the group of a new session directory */

/*
 * Makes SESSION-DIR, mode 0750, and the missing directories above it. It belongs to the owner of
 * the directory above it. Where that is root, root gives it to the user and the group
 * OP_SESSION_OWNER, if they exist. 0, also when it exists already: then it keeps its owner and its
 * mode. -errno.
 */
int op_session_make(const char *session_dir) OP_NONNULL OP_MUST_CHECK;

/*
 * The mode of directories in a session directory: the group and others may read them if they may
 * read the session directory.
 */
mode_t op_session_dir_mode(int session_fd);

/* Sets the umask of the process so that new files and directories are readable in the same way. */
void op_session_adopt_mode(int session_fd);

/*
 * Opens SESSION-DIR for the daemon. Makes it and the directories in it where they are missing,
 * adopts its mode, and writes the abi file. Returns a descriptor or -errno.
 */
int op_session_open(const char *session_dir) OP_NONNULL OP_MUST_CHECK;

/* The same with an open directory, whatever its path leads to by now. 0 or -errno. */
int op_session_prepare(int session_fd) OP_MUST_CHECK;

/*
 * Why op_session_open failed: the name in SESSION-DIR of a directory that stands where a file is
 * written. NULL: the reason is another one.
 */
const char *op_session_in_the_way(const char *session_dir) OP_NONNULL OP_MUST_CHECK;

/* Opens the directory of the current session without following a link. A descriptor or -errno. */
int op_session_open_current(int session_fd) OP_MUST_CHECK;

/* ---- the lock ---- */

/*
 * Whether a daemon works in the session directory. A caller who may not open the lock gets true.
 * The check takes a shared lock for a moment only.
 */
bool op_session_is_locked(const char *session_dir) OP_NONNULL;
bool op_session_is_locked_at(int session_fd);

/*
 * Takes the daemon's lock: the lock file, and the open directory as long as it is open, so that no
 * second daemon starts there when somebody removes the file. *ret_was_there: the lock of a daemon
 * that was killed is there. Returns a descriptor; -EBUSY: a daemon holds the lock; another -errno.
 */
int op_session_take_lock(int session_fd, bool *ret_was_there) OP_NONNULL OP_MUST_CHECK;

/*
 * True when session_dir is another directory than the open one, or its lock file another one than
 * lock_fd: somebody has removed or replaced them, and another daemon may start there.
 */
bool op_session_has_lost_lock(const char *session_dir, int session_fd, int lock_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * Keeps daemons out while a tool works, and adopts the mode of the directory. When the lock of a
 * killed daemon is there, OP_SESSION_UNCLEAN is made for the next daemon. Returns a descriptor for
 * op_session_unlock; -EBUSY: a daemon is there; another -errno.
 */
int op_session_lock(int session_fd) OP_MUST_CHECK;

/* Removes the lock and closes its descriptor. */
void op_session_unlock(int session_fd, int lock_fd);

/* Whether the last daemon was killed. Valid only while no daemon runs. */
bool op_session_is_unclean_at(int session_fd) OP_MUST_CHECK;

/* Makes the next daemon check the session as after a kill. 0 or -errno. */
int op_session_leave_unclean(int session_fd) OP_MUST_CHECK;

/* ---- for the next daemon ---- */

/* Whether profiling is on by the last request; `preset` without one, or when it cannot be read. */
bool op_session_wants_profiling(int session_fd, bool preset) OP_MUST_CHECK;

/* Keeps a request to turn profiling on or off. 0 or -errno. */
int op_session_want_profiling(int session_fd, bool on) OP_MUST_CHECK;

/* Makes the next daemon, and only that one, start paused. 0 or -errno. */
int op_session_pause_once(int session_fd) OP_MUST_CHECK;

/* Removes that request. 0; -ENOENT: there is none; another -errno: it is still there. */
int op_session_take_pause(int session_fd);

#endif
