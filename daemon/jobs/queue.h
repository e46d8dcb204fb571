/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Jobs: requests of the main thread to the sync thread, the order in which they are done, and the
 * queue between the two threads.
 *
 * A request of a client must not delay the watchdog or the end of the daemon. So the order is:
 *
 *   1 PULSE
 *   2 the jobs that change something and that only root may send: START, STOP, SAVE, RESET, RELOAD,
 *     QUIT, in the order of their requests
 *   3 the jobs that members of the group may send: STATUS, DUMP
 *
 * All waiting STATUS share one answer, and so do all waiting DUMPs: a DUMP that begins now writes
 * what all of them should write. DUMPs that wait together with QUIT share the answer of QUIT, which
 * writes the same. Waiting requests come from different clients, which cannot see their order.
 *
 *   call                              main thread   sync thread   background
 *   opd_job_queue_open, _close             x
 *   opd_job_queue_submit, _take_done       x
 *   opd_job_queue_next                                   x
 *   opd_job_queue_give_back                              x             x
 */
#ifndef OPD_JOBS_H
#define OPD_JOBS_H

#include <limits.h>
#include <pthread.h>

#include "libop/base/compiler.h"
#include "libop/session/close.h"

enum opd_job_kind {
	OPD_JOB_STATUS, /* payload: the reply of the control protocol to STATUS */
	OPD_JOB_START,  /* sampling on */
	OPD_JOB_STOP,   /* sampling off; all samples so far are in the sample files */
	OPD_JOB_DUMP,   /* all samples so far are in the sample files and on the disk */
	OPD_JOB_SAVE,   /* DUMP, and the current session is closed under the name in the job */
	OPD_JOB_RESET,  /* the current session is emptied and the ledger begins anew */
	/* the payload, a struct op_config or NULL, takes effect; files are reopened */
	OPD_JOB_RELOAD,
	OPD_JOB_PULSE,  /* payload: a struct opd_pulse; it proves that the thread is alive */
	OPD_JOB_QUIT,   /* STOP and DUMP, then the thread ends */
};

#define OPD_JOB_MESSAGE_BYTES (PATH_MAX + 512) /* a path is in it */

/* Belongs to the caller of opd_job_queue_submit, who gets it back from _take_done. */
struct opd_job {
	enum opd_job_kind kind;
	void *arg;                           /* the caller's */
	char name[OP_SESSION_NAME_BYTES];    /* SAVE */
	bool keep;                           /* START, STOP: the next daemon begins in this state */
	bool is_of_session;                  /* the error is about a file of the session */
	bool is_shared;                      /* the answer is a copy of another job's */
	int error;                           /* 0 or -errno */
	char message[OPD_JOB_MESSAGE_BYTES]; /* what went wrong */
	void *payload;                       /* malloc'd */
	size_t payload_bytes;
	struct opd_job *sharers; /* jobs that get the same answer; linked by next */
	struct opd_job *next;
};

/* ---- lists, linked by next, oldest first; the caller holds the lock ---- */

void opd_jobs_append(struct opd_job **list, struct opd_job *job) OP_NONNULL;

/* Takes the next job from the waiting ones, with those that share its answer; NULL for none. */
struct opd_job *opd_jobs_take(struct opd_job **waiting) OP_NONNULL OP_MUST_CHECK;

/*
 * Copies the answer of a job that is done to its sharers; without memory a sharer gets an error of
 * its own. Returns the list of the sharers and, last, the job.
 */
struct opd_job *opd_job_spread(struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* Frees a list with its args and payloads; NULL is allowed. */
void opd_jobs_free(struct opd_job *jobs);

/* ---- the queue ---- */

struct opd_job_queue {
	int wake_fd; /* an eventfd, readable while jobs wait */
	int done_fd; /* an eventfd, readable when jobs are done */
	pthread_mutex_t lock; /* protects submitted and done */
	struct opd_job *submitted, *done;
};

/* 0, or -EMFILE and nothing is open. */
int opd_job_queue_open(struct opd_job_queue *queue) OP_NONNULL OP_MUST_CHECK;

/* Jobs in the lists are still the caller's. */
void opd_job_queue_close(struct opd_job_queue *queue) OP_NONNULL;

void opd_job_queue_submit(struct opd_job_queue *queue, struct opd_job *job) OP_NONNULL;

/* The job to be done next; NULL for none. wake_fd stays readable when there are more. */
struct opd_job *opd_job_queue_next(struct opd_job_queue *queue) OP_NONNULL OP_MUST_CHECK;

/* Gives a job, and those that share its answer, back to the main thread. */
void opd_job_queue_give_back(struct opd_job_queue *queue, struct opd_job *job) OP_NONNULL;

/* The jobs that are done, oldest first, linked by next; NULL for none. */
struct opd_job *opd_job_queue_take_done(struct opd_job_queue *queue) OP_NONNULL OP_MUST_CHECK;

#endif
