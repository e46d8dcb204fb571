/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Closes samples/current: it becomes samples/NAME, and a new current takes its place. That is one
 * step where the file system can exchange directories. Elsewhere there is no current for a moment,
 * and op_session_open makes a missing one. A kill leaves the samples under one of the two names. An
 * empty directory NAME is no session: the next close of that name reuses it, and a new daemon
 * removes it.
 *
 * The daemon and opcontrol use the same functions. Any thread, one at a time.
 */
#ifndef OP_SESSION_CLOSE_H
#define OP_SESSION_CLOSE_H

#include "libop/base/compiler.h"

#define OP_SESSION_NAME_MAX   200 /* bytes, without the NUL */
#define OP_SESSION_NAME_BYTES (OP_SESSION_NAME_MAX + 1)

/*
 * Why a name is no name of a session, a constant text, or NULL. A name is one component of letters,
 * digits and - _ : , . that does not begin with a dot or a dash and is not "current".
 */
const char *op_session_name_fault(const char *name) OP_NONNULL;

/*
 * The name of a session that is closed by time, from its begin in UTC: "2026-11-21T03:00Z", or with
 * seconds. Such names sort by time.
 */
void op_session_time_name(uint64_t begin_ns, bool with_seconds, char name[OP_SESSION_NAME_BYTES]) OP_NONNULL;

/* Whether a name is one of op_session_time_name, also with a number of op_session_close_timed. */
bool op_session_is_time_name(const char *name) OP_NONNULL;

/*
 * Makes samples/current the session NAME. Replaces only an empty directory; else -EEXIST. Does not
 * sync. 0 or -errno, and then current is as it was. Also 0 when the new current could not be put in
 * place: the next writer makes it.
 */
int op_session_close(int session_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/* The same for a time name. When the session exists, "-02", "-03" ... is added to `name`. */
int op_session_close_timed(int session_fd, char name[OP_SESSION_NAME_BYTES]) OP_NONNULL OP_MUST_CHECK;

/*
 * Removes OP_SESSION_CLOSING: the closed session is on the disk, and a new daemon need not check
 * its files.
 */
void op_session_mark_whole(int dir_fd);

/* Syncs the directories that a close changes. 0 or -errno. */
int op_session_sync_dirs(int session_fd) OP_MUST_CHECK;

#endif
