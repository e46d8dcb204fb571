/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Dumps. The sync thread collects what changed. A thread in the background writes it to the disk
 * (write_out.h) and then returns the job, because a disk may take seconds and the rings cannot
 * wait. Dumps end in the order in which they began.
 *
 *   call                               sync thread   background
 *   opd_dump_note_removed                   x             x
 *   all others                              x
 */
#ifndef OPD_DUMP_H
#define OPD_DUMP_H

#include <pthread.h>

#include "daemon/jobs/background.h"
#include "daemon/jobs/queue.h"
#include "daemon/jobs/unwritten.h"
#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"

struct opd_dump;

struct opd_dumps {
	struct opd_pipeline *pipeline;
	struct opd_background *background;
	struct opd_job_queue *queue;
	struct opd_unwritten unwritten; /* closed sessions that could not be written */
	/* sync thread only */
	uint64_t nr_done, nr_closings;
	uint64_t nr_syncer_failures; /* of the syncer, at the last dump */
	pthread_mutex_t lock;        /* protects everything below; takes no other lock */
	pthread_cond_t ended;
	struct opd_dump *under_way;  /* oldest first */
	uint64_t nr_failures, nr_resets;
	bool write_failed;  /* a dump could not write: the next one writes everything */
	/* the kernel may also have dropped data: the next dump replaces every file by a copy */
	bool pages_dropped;
	bool files_removed; /* sample files were removed */
};

void opd_dumps_init(struct opd_dumps *dumps, struct opd_pipeline *pipeline, struct opd_background *background,
		    struct opd_job_queue *queue) OP_NONNULL;

/* No thread is in the background any more. */
void opd_dumps_free(struct opd_dumps *dumps) OP_NONNULL;

/* Writes what changed and gives the job back. 0, or -errno and the job stays the caller's. */
int opd_dump_start(struct opd_dumps *dumps, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/*
 * The same in steps, for a session that is closed: _begin takes what changed, then the caller
 * closes the session, then _go writes. `job` may be NULL. _drop marks everything as changed again.
 * The dump is gone after _go and _drop; after a failed _go the job is the caller's again.
 */
int opd_dump_begin(struct opd_dumps *dumps, struct opd_job *job, bool closing, struct opd_dump **ret_dump)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;
int opd_dump_go(struct opd_dump *dump) OP_NONNULL OP_MUST_CHECK;
void opd_dump_drop(struct opd_dump *dump) OP_NONNULL;

/* The session is emptied: for a dump that still writes, missing files are no error. */
void opd_dump_note_reset(struct opd_dumps *dumps) OP_NONNULL;

/* Somebody removed sample files; and whether that was noted since the last call. */
void opd_dump_note_removed(struct opd_dumps *dumps) OP_NONNULL;
bool opd_dump_take_removed(struct opd_dumps *dumps) OP_NONNULL OP_MUST_CHECK;

#endif
