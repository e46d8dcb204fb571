/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Jobs of the sync thread, and the order in which it does those that wait. Lists are linked by next, oldest first; whoever calls
 * holds what protects the list.
 *
 * Whoever asks for work does not hold up what keeps the daemon alive or ends it: PULSE is done first, then what changes
 * something, in the order in which it was asked for (START, STOP, SAVE, RESET, RELOAD, QUIT: only root's), then what members of
 * the group may ask for. All STATUS that wait get the answer of one, and so do all DUMPs, since one that begins now has what each
 * of them was to write; those that wait beside QUIT share its answer, for it writes the same. Two requests that wait at the same
 * time are of two clients, each of whom can see no order between them.
 */
#ifndef OPD_JOBS_H
#define OPD_JOBS_H

#include <limits.h>

#include "libop/base/compiler.h"
#include "libop/session/close.h"

enum opd_job_kind {
	OPD_JOB_STATUS, /* payload: what the control protocol says of STATUS */
	OPD_JOB_START,  /* sampling on */
	OPD_JOB_STOP,   /* sampling off; what was taken is in the sample files */
	OPD_JOB_DUMP,   /* all that was taken before the job is in the sample files and on the disk */
	OPD_JOB_SAVE,   /* DUMP, and the current session is closed under the name in the job */
	OPD_JOB_RESET,  /* the current session is emptied and the ledger begins anew */
	OPD_JOB_RELOAD, /* the payload, a struct op_config, takes effect; sample files are closed and opened again when needed */
	OPD_JOB_PULSE,  /* payload: a struct opd_pulse, the sign that the thread is alive */
	OPD_JOB_QUIT,   /* STOP and DUMP, then the thread ends */
};

#define OPD_JOB_MESSAGE_BYTES (PATH_MAX + 512) /* a path is in it */

/* A job: made by the caller of opd_sync_submit, who gets it back from opd_sync_take_done and frees it. */
struct opd_job {
	enum opd_job_kind kind;
	void *arg;                           /* the caller's */
	char name[OP_SESSION_NAME_BYTES];    /* SAVE */
	bool keep;                           /* START, STOP: the next daemon begins so, too */
	bool is_of_session;                  /* the error is that of a file of the session */
	bool is_shared;                      /* the answer is that of another job */
	int error;                           /* 0 or -errno */
	char message[OPD_JOB_MESSAGE_BYTES]; /* what went wrong, and what to do about it */
	void *payload;                       /* malloc'd */
	size_t payload_bytes;
	struct opd_job *sharers; /* that get the same answer; linked by next */
	struct opd_job *next;
};

void opd_jobs_append(struct opd_job **list, struct opd_job *job) OP_NONNULL;

/* Takes the job that is to be done next from those that wait, with those that share its answer; NULL for none. */
struct opd_job *opd_jobs_take(struct opd_job **waiting) OP_NONNULL OP_MUST_CHECK;

/*
 * Of a job that is done: its sharers with a copy of its answer, or an error of their own without memory for it, then the job
 * itself; a list of jobs that have no sharers.
 */
struct opd_job *opd_job_spread(struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

/* With their args and payloads. NULL is allowed. */
void opd_jobs_free(struct opd_job *jobs);

#endif
