/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sync thread: owns the pipeline from the rings to the sample files. It visits the CPUs on a timer, and one whenever its write
 * ring passes the watermark (daemon/pipeline/visit.h). Between visits it does the jobs that the main thread gives it (jobs.h), one at a time.
 *
 *   call                          main thread   sync thread   dump threads
 *   opd_sync_start, _stop              x
 *   opd_sync_submit, _take_done        x
 *   job->... between submit and done                 x             x
 */
#ifndef OPD_SYNC_H
#define OPD_SYNC_H

#include <pthread.h>

#include "daemon/keep/event_sums.h"
#include "daemon/jobs.h"
#include "daemon/retain.h"
#include "daemon/rotate.h"
#include "daemon/pipeline/visit.h"
#include "libop/base/compiler.h"
#include "libop/control/protocol.h"

/* What OPD_JOB_PULSE gives: sums over all events. */
struct opd_pulse {
	uint64_t now_ns; /* op_now_ns() */
	uint64_t taken, stored, filtered, lost_kernel, lost;
	uint32_t nr_cpus; /* online */
	bool profiling;
};

struct opd_sync {
	struct opd_pipeline *pipeline;
	struct op_config *config; /* the caller's; what OPD_JOB_RELOAD changes in it belongs to `lock` */
	struct op_status *status; /* what of the status does not change; owned by the caller */
	pthread_t thread;
	bool thread_runs;
	int epoll_fd, wake_fd, done_fd;
	pthread_mutex_t lock; /* protects what follows up to the next line, nests inside nothing */
	struct opd_job *submitted, *done;
	unsigned int nr_dumps_under_way;
	struct opd_write_out *writing; /* what dumps have taken and not ended with, oldest first: dumps end in this order */
	uint64_t nr_write_failures;
	bool write_failed;  /* a dump could not write: everything is to be written again */
	bool pages_gone;    /* and what the kernel could not write it may have dropped: every file is to be made anew */
	bool files_removed; /* a dump did not find what it was to write */
	struct opd_write_out *unwritten; /* closed sessions that are to be written again (unwritten.h) */
	uint64_t nr_unwritten;           /* also those that are under way */
	bool retaining;     /* retention's thread runs; it is among nr_dumps_under_way */
	uint64_t nr_resets;
	bool wants_profiling; /* for the next daemon, as START or STOP said last */
	pthread_cond_t dump_ended;
	/* sync thread only */
	struct opd_visits visits;
	uint64_t begin_ns, running_since_ns, running_ns, next_turn_ns, next_prune_ns, next_rate_check_ns;
	uint64_t horizon_ns, turn_begin_ns;
	uint64_t next_trim_ns, nr_freed; /* address spaces, when memory was given back last */
	bool trim_again;
	uint64_t dumps, nr_closings;
	uint64_t nr_settle_failures; /* of the settler, when a dump looked last */
	struct opd_rotation rotation;
	struct opd_retention retention; /* but for due_ns its thread's while that runs */
	uint64_t next_book_ns;
	struct opd_losses reported; /* what the log has said */
	uint64_t max_sample_rate;   /* kernel.perf_event_max_sample_rate when last looked at */
	bool quit;
};

/* Starts the thread. The pipeline is open and not used by others until opd_sync_stop; was_unclean: the last daemon did not end in order. 0 or -errno. */
int opd_sync_start(struct opd_sync *sync, struct opd_pipeline *pipeline, struct op_config *config, struct op_status *status,
		   bool was_unclean) OP_NONNULL OP_MUST_CHECK;

/* Hands a job over; jobs.h says in which order they are done. A dump's writing to the disk does not hold up the next. */
void opd_sync_submit(struct opd_sync *sync, struct opd_job *job) OP_NONNULL;

/* Becomes readable when jobs are done; an eventfd. */
int opd_sync_done_fd(const struct opd_sync *sync) OP_NONNULL;

/* The jobs that are done, oldest first, linked by next; NULL for none. */
struct opd_job *opd_sync_take_done(struct opd_sync *sync) OP_NONNULL OP_MUST_CHECK;

/* Waits for the end of the thread, which a job OPD_JOB_QUIT asks for, and frees what opd_sync_start made. */
void opd_sync_stop(struct opd_sync *sync) OP_NONNULL;

/* ---- between the files of the sync thread ---- */

/* A visit to all CPUs, and what is to be done now and then (turn.c). */
void opd_sync_turn(struct opd_sync *sync) OP_NONNULL;

/* Has the thread wake for a CPU: its anchors have its index as tag, its side band a tag beyond all indices. 0 or -errno. */
int opd_sync_watch_cpu(const struct opd_sync *sync, size_t index) OP_NONNULL OP_MUST_CHECK;

/* The payload of STATUS (status.c). 0 or -ENOMEM. */
int opd_sync_make_status(struct opd_sync *sync, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* The payload of PULSE (status.c). 0 or -ENOMEM. */
int opd_sync_make_pulse(struct opd_sync *sync, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* Keeps for the next daemon whether there is profiling, in a thread that gives the job back. 0, or -errno and the job is not taken (resume.c). */
int opd_sync_keep_profiling(struct opd_sync *sync, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* What START or STOP answers when that cannot be kept; what it does itself is done (resume.c). */
void opd_sync_fail_keeping(const struct opd_sync *sync, struct opd_job *job, int err) OP_NONNULL;

/*
 * Writes what changed to the disk in a thread of its own, then gives the job back (dump.c). 0, or -errno and the job is not
 * taken.
 */
int opd_sync_write_out(struct opd_sync *sync, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/*
 * The same in steps: what changed is taken, and with `closing` the session is closed between begin and go. `job` may be NULL. The write-out is gone
 * after go or drop, with which everything counts as changed again; after a failed go, the job is the caller's again.
 */
struct opd_write_out;
int opd_write_out_begin(struct opd_sync *sync, struct opd_job *job, bool closing, struct opd_write_out **ret_out)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;
int opd_write_out_go(struct opd_write_out *out) OP_NONNULL OP_MUST_CHECK;
void opd_write_out_drop(struct opd_write_out *out) OP_NONNULL;

/* Starts a detached thread; opd_sync_stop waits for those in nr_dumps_under_way. 0 or -errno. */
int opd_sync_start_thread(void *(*start)(void *arg), void *arg) OP_NONNULL OP_MUST_CHECK;

/* Counts such a thread, before its start, and not any more, as the last that it does. */
void opd_sync_thread_begins(struct opd_sync *sync) OP_NONNULL;
void opd_sync_thread_ends(struct opd_sync *sync) OP_NONNULL;

/* opd_count_look before the ledger is summed up, thorough where there is time: after it the ledger says what the files have, also of those that an earlier daemon made (turn.c). */
void opd_sync_look(struct opd_sync *sync, bool thorough) OP_NONNULL;

/* Brings the session's ledger and stats/ up to date. Nothing when there were never samples. 0, or -errno, and that is logged. */
int opd_sync_write_book(struct opd_sync *sync, enum op_session_end ended) OP_NONNULL;

/* Gives a job back to the main thread; a message about the session says what to do. Any thread. */
void opd_sync_give_back(struct opd_sync *sync, struct opd_job *job) OP_NONNULL;

#endif
