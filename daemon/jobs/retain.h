/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Retention: removes old sessions, by SessionKeep=, SessionMaxUse= and SessionKeepFree=. It removes
 * only sessions that SessionInterval= has closed, the oldest first; never the current one, nor one
 * that a user saved, nor one of another program. A thread in the background does it, since it may
 * take long. The age goes by a clock that no step can fool (daemon/jobs/trusted_clock.h).
 *
 * A session that TimelineKeep= is over for gets hours in place of its minutes; after 90 days it
 * loses these, too. The hours go with their session: they say nothing without its table of images.
 *
 * Retention also limits the current session. A session above a quarter of SessionMaxUse is closed
 * early, so that it can be removed in its turn. But closing may be faster than removing, or
 * removing may fail. While all sessions together take more than SessionMaxUse, none is closed for
 * its size. The current session then goes on within what the others leave of SessionMaxUse, and at
 * least within half of it; near that limit it gets no new files (pipeline/count/file_limit.h). So
 * all sessions together take at most half as much again, unless boundaries come faster than
 * sessions can be removed. Without SessionInterval= the current session may take all of
 * SessionMaxUse.
 *
 *   call                                                         sync thread   background
 *   opd_retain_if_due, _note_closed, _may_close, opd_retention_*      x
 *   opd_retain                                                                      x
 */
#ifndef OPD_RETAIN_H
#define OPD_RETAIN_H

#include <pthread.h>

#include "daemon/jobs/background.h"
#include "daemon/jobs/session_sizes.h"
#include "daemon/jobs/trusted_clock.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "pipeline/count/file_limit.h"

struct opd_retention {
	/* sync thread only */
	const struct op_config *config;
	struct opd_file_limit *limit; /* of the current session */
	struct opd_background *background;
	uint64_t due_ns;       /* op_now_ns(); 0: at once */
	uint64_t closed_bytes; /* of sessions that were closed since the thread was started last */
	uint64_t others_bytes; /* all but the current session take at most this, once is_known */
	bool is_known;
	pthread_mutex_t lock; /* protects runs */
	bool runs;
	/* the thread's while it runs, else the sync thread's */
	struct op_config thread_config;
	struct opd_session_sizes sizes;
	uint64_t kept_bytes; /* of all but the current session, after the removal */
	bool has_looked;     /* kept_bytes is new to the sync thread */
	uint64_t nr_removed;
	struct opd_trusted_clock age;
	uint64_t merge_due_ns; /* op_now_ns(): the disk refused hours, they are tried again then */
};

void opd_retention_init(struct opd_retention *retention, int session_fd, const struct op_config *config,
			struct opd_file_limit *limit, struct opd_background *background) OP_NONNULL;
void opd_retention_free(struct opd_retention *retention) OP_NONNULL;

/* Makes the thread end soon, for the end of the daemon. */
void opd_retention_stop(struct opd_retention *retention) OP_NONNULL;

/* Takes the thread's sizes. Starts it when it is time or the session has grown by much. */
void opd_retain_if_due(struct opd_retention *retention, uint64_t now_ns) OP_NONNULL;

/* The current session is closed, and its files are still counted in the limit. */
void opd_retain_note_closed(struct opd_retention *retention) OP_NONNULL;

/*
 * Whether the current session may be closed for its size: all sessions together take at most
 * SessionMaxUse, or the others at most half of it. False as long as that is not known.
 */
bool opd_retain_may_close(const struct opd_retention *retention) OP_NONNULL OP_MUST_CHECK;

/*
 * Removes what is too old or too much. A session is first renamed into tmp/, so a reader sees all
 * of it or nothing. What is left in tmp/ is removed by the next call, and counts until then. A
 * session that cannot be removed is logged once; the next oldest is removed instead. 0 or the first
 * -errno.
 */
int opd_retain(struct opd_retention *retention, const struct op_config *config) OP_NONNULL OP_MUST_CHECK;

#endif
