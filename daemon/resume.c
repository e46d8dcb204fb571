/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the user asked for last, profiling or not, is kept for the next daemon; the disk is waited for by a thread of its own. */
#include <errno.h>

#include "daemon/sync.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"

struct keeping {
	struct opd_sync *sync;
	struct opd_job *job;
};

/*
 * Of two that run at once the later one must not write what the earlier one was asked for. What the file says already is not
 * written again, unless it may not have come to the disk.
 */
static int keep_latest(struct opd_sync *sync)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	static bool is_unsure;
	int session_fd = sync->pipeline->count.session_fd, err = 0;
	bool on;

	pthread_mutex_lock(&one_at_a_time);
	pthread_mutex_lock(&sync->lock);
	on = sync->wants_profiling;
	pthread_mutex_unlock(&sync->lock);
	if (is_unsure || op_session_wants_profiling(session_fd, !on) != on)
		err = op_session_want_profiling(session_fd, on);
	is_unsure = err && (is_unsure || op_session_wants_profiling(session_fd, !on) == on);
	pthread_mutex_unlock(&one_at_a_time);
	return err;
}

void opd_sync_fail_keeping(const struct opd_sync *sync, struct opd_job *job, int err)
{
	bool on = job->kind == OPD_JOB_START;

	job->error = err;
	job->is_of_session = true;
	snprintf(job->message, sizeof(job->message),
		 "profiling has %s, but the next opd may begin %s it: cannot write %s/" OP_SESSION_PROFILING ": %s",
		 on ? "begun" : "stopped", on ? "without" : "with", sync->status->session_dir, strerror(-err));
}

static void *run(void *arg)
{
	struct keeping keeping = *(struct keeping *)arg;
	int err;

	free(arg);
	pthread_setname_np(pthread_self(), "opd-keep");
	err = keep_latest(keeping.sync);
	if (err)
		opd_sync_fail_keeping(keeping.sync, keeping.job, err);
	opd_sync_give_back(keeping.sync, keeping.job);
	opd_sync_thread_ends(keeping.sync);
	return NULL;
}

int opd_sync_keep_profiling(struct opd_sync *sync, struct opd_job *job)
{
	struct keeping *keeping = malloc(sizeof(*keeping));
	int err;

	if (!keeping)
		return -ENOMEM;
	*keeping = (struct keeping){ sync, job };
	pthread_mutex_lock(&sync->lock);
	sync->wants_profiling = job->kind == OPD_JOB_START;
	pthread_mutex_unlock(&sync->lock);
	opd_sync_thread_begins(sync);
	err = opd_sync_start_thread(run, keeping);
	if (err) {
		opd_sync_thread_ends(sync);
		free(keeping);
	}
	return err;
}
