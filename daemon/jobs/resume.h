/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keeps the last START or STOP for the next daemon. A thread waits for the disk. */
#ifndef OPD_RESUME_H
#define OPD_RESUME_H

#include <pthread.h>

#include "daemon/jobs/background.h"
#include "daemon/jobs/queue.h"
#include "libop/base/compiler.h"

struct opd_resume {
	struct opd_background *background;
	struct opd_job_queue *queue;
	int session_fd;
	const char *session_dir;
	pthread_mutex_t lock; /* protects wanted */
	bool wanted;          /* profiling, as the last START or STOP says */
	pthread_mutex_t writing; /* held while the file is written; protects is_unsure */
	bool is_unsure;          /* the file may not have reached the disk */
};

void opd_resume_init(struct opd_resume *resume, int session_fd, const char *session_dir, struct opd_background *background,
		     struct opd_job_queue *queue) OP_NONNULL;
void opd_resume_free(struct opd_resume *resume) OP_NONNULL;

/*
 * Writes it in the background, which gives the job, a START or a STOP, back. When there is no
 * thread for that, the job has the error, and is still the caller's. 0 or -errno. Sync thread.
 */
int opd_resume_keep(struct opd_resume *resume, struct opd_job *job) OP_NONNULL OP_MUST_CHECK;

#endif
