/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rotation: closes the current session and begins another, at wall-clock boundaries
 * (SessionInterval=) or when a user asks for it (opcontrol --save). Sampling goes on. One thread
 * reads the rings: what it read before is in the closed session, what it reads afterwards in the
 * new one. So each sample is in exactly one session, and the ledgers of the sessions add up to the
 * daemon's.
 *
 * Boundaries are multiples of the interval since 1970, UTC. A session is closed at the first
 * boundary after its begin, or as soon as the time is past it after a step forward, a suspend or a
 * daemon that was down. A clock that steps back brings the boundary nearer, so no session lasts
 * longer than the interval. A session that takes too much of the disk is closed early, unless all
 * sessions together take too much (retain.h).
 *
 * Sync thread only, between two turns.
 */
#ifndef OPD_ROTATE_H
#define OPD_ROTATE_H

#include "daemon/jobs/recording.h"
#include "daemon/jobs/retain.h"
#include "libop/base/compiler.h"
#include "libop/control/config.h"

struct opd_rotation {
	struct opd_recording *recording;
	struct opd_retention *retention;
	const struct op_config *config;
	uint64_t due_ns;   /* wall clock; 0: not known yet */
	int64_t offset_ns; /* of the wall clock to the clock that never steps, at the last look */
	uint64_t retry_ns; /* op_now_ns(): not before, after a failure */
	/* op_now_ns(): the session became too large but cannot be closed; 0: it is not too large */
	uint64_t too_large_ns;
	bool is_reported;      /* the log says so */
	uint64_t nr_closed, nr_failed;
};

/* Closes the session when a boundary is past. A failure is logged and tried again. */
void opd_rotate_if_due(struct opd_rotation *rotation, uint64_t now_ns) OP_NONNULL;

/*
 * OPD_JOB_SAVE: reads the rings, closes the session under the name in the job and writes it to the
 * disk in the background, which gives the job back. -EEXIST; -ENODATA: the session has no samples;
 * another -errno. Then the job is the caller's, and the session as it was.
 */
int opd_rotate_save(struct opd_rotation *rotation, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

#endif
