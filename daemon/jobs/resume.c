/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/resume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libop/session/directory.h"
#include "libop/session/layout.h"

void opd_resume_init(struct opd_resume *resume, int session_fd, const char *session_dir, struct opd_background *background,
		     struct opd_job_queue *queue)
{
	*resume = (struct opd_resume){
		.background = background, .queue = queue, .session_fd = session_fd, .session_dir = session_dir
	};
	pthread_mutex_init(&resume->lock, NULL);
	pthread_mutex_init(&resume->writing, NULL);
}

void opd_resume_free(struct opd_resume *resume)
{
	pthread_mutex_destroy(&resume->lock);
	pthread_mutex_destroy(&resume->writing);
}

/*
 * Two may run at once: both write the latest request, one after the other. What the file says
 * already is not written again, unless it may not have reached the disk.
 */
static int write_latest(struct opd_resume *resume)
{
	int session_fd = resume->session_fd, err = 0;
	bool on;

	pthread_mutex_lock(&resume->writing);
	pthread_mutex_lock(&resume->lock);
	on = resume->wanted;
	pthread_mutex_unlock(&resume->lock);
	if (resume->is_unsure || op_session_wants_profiling(session_fd, !on) != on)
		err = op_session_want_profiling(session_fd, on);
	resume->is_unsure = err && (resume->is_unsure || op_session_wants_profiling(session_fd, !on) == on);
	pthread_mutex_unlock(&resume->writing);
	return err;
}

/* The switch itself has succeeded. */
static void fail(const struct opd_resume *resume, struct opd_job *job, int err)
{
	bool on = job->kind == OPD_JOB_START;

	job->error = err;
	job->is_of_session = true;
	snprintf(job->message, sizeof(job->message),
		 "profiling has %s, but the next opd may start %s it, because opd cannot write %s/" OP_SESSION_PROFILING ": %s",
		 on ? "begun" : "stopped", on ? "without" : "with", resume->session_dir, strerror(-err));
}

static void run(void *context, void *arg)
{
	struct opd_resume *resume = context;
	struct opd_job *job = arg;
	int err = write_latest(resume);

	if (err)
		fail(resume, job, err);
	opd_job_queue_give_back(resume->queue, job);
}

int opd_resume_keep(struct opd_resume *resume, struct opd_job *job)
{
	int err;

	pthread_mutex_lock(&resume->lock);
	resume->wanted = job->kind == OPD_JOB_START;
	pthread_mutex_unlock(&resume->lock);
	err = opd_background_start(resume->background, "opd-keep", run, resume, job);
	if (err)
		fail(resume, job, err);
	return err;
}
