/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Closing the current session and beginning another: at wall-clock boundaries (SessionInterval=), and when the user asks (opcontrol --save). Sampling goes
 * on. What was read from the rings before is in the session that is closed, what is read afterwards in the new one, by one thread, so that a sample is in exactly
 * one of them, and their ledgers add up to that of the daemon.
 *
 * Boundaries are multiples of the interval since 1970, UTC. A session that begins at one is closed at the next; after a step forward, a suspend, or a daemon
 * that was not there, as soon as the time is past it. A clock that steps back brings the boundary nearer, so that no session lasts longer than the
 * interval by the clock of then. A session that takes too much of the disk (opd_file_limit_bytes) is closed at once, unless all
 * sessions take too much: then it goes on until some have been removed (retain.h).
 *
 * Sync thread only, between two turns.
 */
#ifndef OPD_ROTATE_H
#define OPD_ROTATE_H

#include "libop/base/compiler.h"

struct opd_sync;
struct opd_job;

struct opd_rotation {
	uint64_t due_ns;   /* wall clock; 0: not known yet */
	int64_t offset_ns; /* of the wall clock to the one that never steps, when last looked at */
	uint64_t retry_ns; /* op_now_ns(): not before, after a failure */
	uint64_t held_ns;  /* op_now_ns(): since when the session is too large, and goes on; 0: it is not */
	bool held_told;    /* of this session */
	uint64_t nr_closed, nr_failed;
};

/* Closes the session when a boundary is past; a failure is logged and tried again, and nothing is lost by it. */
void opd_rotate_if_due(struct opd_sync *sync, uint64_t now_ns) OP_NONNULL;

/*
 * OPD_JOB_SAVE: takes what is in the rings, closes the session under the job's name and has it written to the disk by a thread that gives the job back. -EEXIST,
 * -ENODATA: nothing was taken in it; another -errno; then the job is the caller's, and the session as it was.
 */
int opd_rotate_save(struct opd_sync *sync, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* The first boundary after a time. All in ns since 1970. */
uint64_t opd_rotate_boundary(uint64_t wall_ns, uint64_t interval_ns);

#endif
