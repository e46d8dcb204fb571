/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Closing samples/current: it becomes samples/NAME, and another current takes its place, in one step where the file system can exchange two directories; else there
 * is no current for a moment. At any moment of it a kill leaves the samples under one of the two names; what is missing then the next op_session_open makes, and an
 * empty directory that is left is no session: whoever closes one of its name takes it, and a daemon that starts removes it. The same functions for the daemon, which has its sample files open, and for opcontrol when
 * no daemon runs. Any thread, one at a time.
 */
#ifndef OP_SESSION_CLOSE_H
#define OP_SESSION_CLOSE_H

#include "libop/base/compiler.h"

#define OP_SESSION_NAME_MAX   200 /* bytes, without the NUL */
#define OP_SESSION_NAME_BYTES (OP_SESSION_NAME_MAX + 1)

#define OP_SESSION_CLOSING "closing" /* empty, in the directory of a session that was closed and may not be on the disk */

/*
 * Whether a session may be called so: one component of letters, digits and - _ : , . that does not begin with a dot and is not "current". NULL, or why not,
 * a constant text.
 */
const char *op_session_name_fault(const char *name) OP_NONNULL;

/* The name of a session that began then and is closed by time: "2026-11-21T03:00Z", in UTC; with seconds when they matter. Such names sort by time. */
void op_session_time_name(uint64_t begin_ns, bool with_seconds, char name[OP_SESSION_NAME_BYTES]) OP_NONNULL;

/* True for a name as op_session_time_name makes it, also with the number that op_session_close_timed adds. */
bool op_session_is_time_name(const char *name) OP_NONNULL;

/*
 * Makes samples/current the session NAME, session_fd being the session directory. Nothing is replaced but an empty directory: -EEXIST. The directories are not synced.
 * 0 or -errno, and then current is as it was; but 0 when only the new current could not be put in place, whoever writes next makes it.
 */
int op_session_close(int session_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/* The same for a time name; where there is a session of that name (the clock went back), "-02", "-03" ... is added, and `name` is what came out. */
int op_session_close_timed(int session_fd, char name[OP_SESSION_NAME_BYTES]) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes the room away that the sample files of a closed session have for what will never come, dir_fd being its directory (op_odb_compact). What cannot be made smaller stays as it is. Before
 * op_session_mark_whole: a power cut in the middle is mended by the daemon that looks at a marked session.
 */
void op_session_compact(int dir_fd);

/*
 * All of a closed session is on the disk, dir_fd being its directory. Until this is called it is marked (OP_SESSION_CLOSING), and a daemon that starts looks at
 * every file of it.
 */
void op_session_mark_whole(int dir_fd);

/* Sees to it that a power cut does not undo it. 0 or -errno. */
int op_session_sync_dirs(int session_fd) OP_MUST_CHECK;

#endif
