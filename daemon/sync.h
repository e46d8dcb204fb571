/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sync thread runs the loop that drives the pipeline (pipeline/drive/loop.h). Between visits it
 * does the jobs of the main thread (daemon/jobs/queue.h), one at a time. Only the main thread calls
 * these functions.
 */
#ifndef OPD_SYNC_H
#define OPD_SYNC_H

#include <pthread.h>

#include "daemon/jobs/background.h"
#include "daemon/jobs/queue.h"
#include "daemon/jobs/recording.h"
#include "daemon/jobs/resume.h"
#include "daemon/jobs/retain.h"
#include "daemon/jobs/rotate.h"
#include "daemon/turn.h"
#include "libop/base/compiler.h"
#include "libop/control/protocol.h"
#include "pipeline/drive/loop.h"

struct opd_sync {
	struct opd_job_queue queue;
	pthread_t thread;
	bool thread_runs;
	/* the sync thread's while it runs */
	struct op_config *config;       /* the caller's; OPD_JOB_RELOAD changes it */
	/* the fields of the status that do not change; the caller's */
	const struct op_status *status;
	struct opd_loop loop;
	struct opd_background background;
	struct opd_recording recording;
	struct opd_retention retention;
	struct opd_rotation rotation;
	struct opd_turns turns;
	struct opd_resume resume;
};

/*
 * Starts the thread. The pipeline is open, and is the thread's until opd_sync_stop. was_unclean:
 * the last daemon did not end in order. 0 or -errno. Jobs go through sync->queue.
 */
int opd_sync_start(struct opd_sync *sync, struct opd_pipeline *pipeline, struct op_config *config, const struct op_status *status,
		   bool was_unclean) OP_NONNULL OP_MUST_CHECK;

/* Waits for the end of the thread, after OPD_JOB_QUIT. Jobs in the queue are the caller's. */
void opd_sync_stop(struct opd_sync *sync) OP_NONNULL;

#endif
