/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What sessions are kept: SessionKeep=, SessionMaxUse= and SessionKeepFree=. Only sessions that SessionInterval= has closed are removed, the oldest first: neither
 * the current one, nor what a user has saved, nor what another program has made. Looking and removing may take long and is done in a thread of its own.
 *
 * What is too old is decided by a clock that no step can fool (daemon/keep/trusted_clock.h).
 *
 * The current session is weighed as well. When it takes more than a quarter of SessionMaxUse it is closed before its time, so that it, too, can be removed when
 * its turn comes, and most of what is kept is not of one day. But what is closed must be removed, which may take longer than closing, or fail: as long as all sessions
 * together take more than SessionMaxUse none is closed for its size. The current one goes on, within what the others leave of SessionMaxUse, but at least half of it: as
 * it comes near to that it gets no new files (daemon/count/file_limit.h). So they never take more than half as much again, unless boundaries of SessionInterval come faster than
 * sessions can be removed. Where sessions are not closed by time, that is all of SessionMaxUse.
 *
 *   call                                            sync thread   retention's thread
 *   opd_retain_if_due, _note_closed, _may_close, _free   x
 *   opd_retain                                                              x
 */
#ifndef OPD_RETAIN_H
#define OPD_RETAIN_H

#include "daemon/keep/trusted_clock.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "libop/session/close.h"

struct opd_sync;

struct opd_retained {
	char name[OP_SESSION_NAME_BYTES];
	bool may_go;
	uint64_t end_ns; /* 0: unknown */
	uint64_t disk_bytes;
	bool is_whole; /* and no smaller later */
	bool told;     /* that it cannot be removed */
};

struct opd_retention {
	uint64_t due_ns; /* op_now_ns(); 0: at once */
	uint64_t taken_bytes; /* by the current session, by its own account, when the thread was started last */
	uint64_t nr_begun;    /* sessions, then */
	uint64_t closed_bytes; /* of sessions that were closed since */
	uint64_t others_bytes; /* that all but the current session take at most, once is_known */
	bool is_known;
	/* the thread's while it runs; a session that is closed and whole does not change, so it is weighed once */
	struct opd_retained *sessions;
	size_t nr_sessions;
	uint64_t current_bytes;
	uint64_t kept_bytes; /* of all others, after what had to go */
	bool weighed; /* since the sync thread has taken that */
	uint64_t nr_removed;
	struct opd_trusted_clock age;
};

/* Takes what the thread found the current session to weigh; starts it now and then, and when the session has grown by much, unless it runs. */
void opd_retain_if_due(struct opd_sync *sync, uint64_t now_ns) OP_NONNULL;

/* The current session is closed, but its files are counted still. */
void opd_retain_note_closed(struct opd_sync *sync) OP_NONNULL;

/*
 * Whether the current session may be closed for its size: all sessions together take no more than SessionMaxUse, or the others no more than half of it. False as long as it is not
 * known what they take.
 */
bool opd_retain_may_close(const struct opd_sync *sync) OP_NONNULL OP_MUST_CHECK;

/*
 * Removes what is too old or too much. Sessions go by a rename to tmp/, so that a reader sees them whole or not at all; what a kill leaves there is removed by the
 * next call, and what cannot be removed from there goes on weighing. A session that cannot go is told of once and passed over: the next oldest goes. 0 or the
 * first -errno.
 */
int opd_retain(struct opd_retention *retention, int session_fd, const struct op_config *config) OP_NONNULL OP_MUST_CHECK;

void opd_retention_free(struct opd_retention *retention) OP_NONNULL;

#endif
