/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/sync.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/jobs/status.h"
#include "libop/base/clock.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "pipeline/count/jit_objects.h"
#include "pipeline/drive/sources.h"
#include "pipeline/stacks/state.h"
#include "pipeline/waits/source.h"

#define NS_PER_US      1000u
/* A span that is being collected: a few MB. */
#define TIMELINE_NODES 65536u

/* ---- jobs ---- */

static void fail(struct opd_job *job, int err, const char *what)
{
	if (!err)
		return;
	job->error = err;
	snprintf(job->message, sizeof(job->message), "%s: %s", what, strerror(-err));
}

/* Files that could not be removed stay in the session. The message says where they are. */
static void report_incomplete_reset(struct opd_sync *sync, struct opd_job *job, int err, const char *path)
{
	struct opd_pipeline *pipeline = sync->recording.pipeline;
	struct opd_count *count = &pipeline->count;
	int limit_err = opd_file_limit_recount(&count->limit, count->session_fd);

	opd_ledger_reset_to_rest(&pipeline->ledger);
	opd_recording_write_ledger(&sync->recording, OP_SESSION_open, true);
	job->error = err;
	snprintf(job->message, sizeof(job->message),
		 "cannot empty the current session: " OP_SESSION_CURRENT "/%s: %s; %llu sample files%s are left and still count "
		 "samples, all other files are removed: remove them by hand (lsattr shows immutable files), or try again",
		 path ? path : "", strerror(-err), (unsigned long long)count->limit.nr, limit_err ? " or more" : "");
}

static void reset(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_recording *recording = &sync->recording;
	struct opd_pipeline *pipeline = recording->pipeline;
	int current_fd = op_session_open_current(pipeline->count.session_fd), err;
	bool was_running = pipeline->capture.enabled;
	char *path = NULL;

	if (current_fd < 0 && current_fd != -ENOENT) {
		fail(job, current_fd, "nothing is removed: cannot look into " OP_SESSION_CURRENT);
		return;
	}
	fail(job, opd_recording_stop(recording), "cannot disable sampling");
	opd_dump_note_reset(&recording->dumps);
	opd_timeline_reset(&sync->recording.timeline);
	opd_count_close_files(&pipeline->count);
	opd_sources_begin_session(pipeline, true);
	if (pipeline->count.cookie_file)
		opd_cookie_file_reset(pipeline->count.cookie_file);
	opd_jit_forget_changed(pipeline->resolver.jit);
	opd_minutes_reset(&recording->minutes);
	err = current_fd < 0 ? 0 : op_session_clear(current_fd, &path);
	if (current_fd >= 0)
		close(current_fd);
	opd_capture_reset_ledger(&pipeline->capture);
	if (err)
		report_incomplete_reset(sync, job, err, path);
	else
		opd_ledger_reset(&pipeline->ledger);
	free(path);
	pipeline->resolver.cgroups.not_split = pipeline->resolver.cgroups.of_unknown = 0;
	memset(pipeline->count.arcs, 0, sizeof(pipeline->count.arcs));
	sync->turns.reported = (struct opd_losses){ 0 };
	recording->visits.counts = (struct opd_visit_counts){ 0 };
	if (!was_running)
		return;
	fail(job, opd_recording_switch(recording, true), "cannot enable sampling");
	opd_recording_write_ledger(recording, OP_SESSION_open, false);
}

/* False: the job is given back by the background. */
static bool save(struct opd_sync *sync, struct opd_job *job)
{
	int err = opd_rotate_save(&sync->rotation, job);

	if (!err)
		return false;
	job->error = err == -ENOENT ? -ESTALE : err;
	if (err == -EEXIST)
		snprintf(job->message, sizeof(job->message), "there is a session %s already: nothing was saved", job->name);
	else if (err == -ENODATA)
		snprintf(job->message, sizeof(job->message), "the current session has no samples: nothing was saved");
	else
		snprintf(job->message, sizeof(job->message), "cannot save the session as %s: %s", job->name, strerror(-err));
	return true;
}

/* Sessions are closed at a quarter of SessionMaxUse=. An endless timeline gets as much. */
static void keep_minutes(struct opd_sync *sync)
{
	const struct opd_minutes_keep keep = {
		.session_fd = sync->recording.pipeline->count.session_fd,
		.keep_ns = sync->config->timeline_keep_us * NS_PER_US,
		.max_bytes = sync->config->session_max_use / 4,
	};

	opd_minutes_set_keep(&sync->recording.minutes, &keep);
}

/* What takes effect at once of a configuration that is read again; NULL: nothing. */
static void reload(struct opd_sync *sync, const struct op_config *fresh)
{
	struct opd_count *count = &sync->recording.pipeline->count;

	if (fresh) {
		op_config_adopt(sync->config, fresh);
		count->max_open = opd_count_max_open(sync->config->max_open_files);
		count->limit.max = sync->config->max_sample_files;
		opd_file_limit_give(&count->limit, sync->config->session_max_use);
		count->stacks.max_bytes = sync->config->stack_max_use;
		sync->recording.timeline.interval_ns = sync->config->timeline_interval_us * NS_PER_US;
		keep_minutes(sync);
		sync->rotation.due_ns = 0;
		sync->retention.due_ns = 0;
	}
	opd_count_release_files(count);
}

/* False: the job is given back by the background. */
static bool switch_profiling(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_recording *recording = &sync->recording;

	if (job->kind == OPD_JOB_START) {
		fail(job, opd_recording_switch(recording, true), "cannot enable sampling");
	} else {
		fail(job, opd_recording_stop(recording), "cannot disable sampling");
		opd_visits_write_objects(&recording->visits);
	}
	opd_recording_write_ledger(recording, OP_SESSION_open, false);
	return job->error || !job->keep || opd_resume_keep(&sync->resume, job) < 0;
}

/* Goes on when the ledger cannot be written. False: the background gives the job back. */
static bool dump(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_recording *recording = &sync->recording;
	bool is_last = job->kind == OPD_JOB_QUIT;
	char text[256];
	int err;

	if (is_last)
		fail(job, opd_recording_stop(recording), "cannot disable sampling");
	else
		opd_visit_all(&recording->visits);
	if (!is_last && recording->pipeline->waits)
		opd_waits_tell(recording->pipeline->waits);
	opd_visits_write_objects(&recording->visits);
	sync->loop.quit = is_last;
	opd_recording_check_files(recording, is_last);
	err = opd_recording_write_ledger(recording, is_last ? OP_SESSION_stopped : OP_SESSION_open, false);
	if (err) {
		opd_recording_explain_ledger(recording, text);
		/* -ENOENT means that there is no daemon */
		fail(job, err == -ENOENT ? -ESTALE : err, text);
	}
	if (is_last)
		opd_turn_report_losses(&sync->turns, op_now_ns(), true);
	err = opd_dump_start(&recording->dumps, job);
	fail(job, err, "cannot write the samples out");
	return err;
}

static void do_job(struct opd_sync *sync, struct opd_job *job)
{
	bool is_done = true;

	switch (job->kind) {
	case OPD_JOB_STATUS:
		sync->loop.is_watched = true;
		fail(job, opd_status_make(&sync->recording, sync->config, sync->status, job), "cannot make the status");
		break;
	case OPD_JOB_PULSE:
		fail(job, opd_pulse_make(&sync->recording.pipeline->capture, job), "cannot sum up");
		break;
	case OPD_JOB_START:
	case OPD_JOB_STOP:
		is_done = switch_profiling(sync, job);
		break;
	case OPD_JOB_SAVE:
		is_done = save(sync, job);
		break;
	case OPD_JOB_DUMP:
	case OPD_JOB_QUIT:
		is_done = dump(sync, job);
		break;
	case OPD_JOB_RESET:
		reset(sync, job);
		break;
	case OPD_JOB_RELOAD:
		reload(sync, job->payload);
		break;
	}
	if (is_done)
		opd_job_queue_give_back(&sync->queue, job);
}

/* ---- the thread ---- */

/* One job only: the rings are looked at before the next one. */
static void do_next_job(void *host, uint64_t tag)
{
	struct opd_sync *sync = host;
	struct opd_job *job = opd_job_queue_next(&sync->queue);

	(void)tag;
	if (job)
		do_job(sync, job);
}

static void look(void *host, uint64_t now_ns)
{
	struct opd_sync *sync = host;

	(void)now_ns;
	opd_turn_check_cpus(&sync->turns);
}

static void begin_turn(void *host, uint64_t now_ns)
{
	struct opd_sync *sync = host;

	(void)now_ns;
	opd_recording_forget_removed(&sync->recording);
}

static void prune(void *host, uint64_t now_ns)
{
	struct opd_sync *sync = host;

	opd_turn_report_losses(&sync->turns, now_ns, false);
}

static void end_turn(void *host, uint64_t now_ns)
{
	struct opd_sync *sync = host;

	opd_turn_end(&sync->turns, now_ns);
	/* the configuration may have been read again */
	sync->loop.visit_ns = sync->config->visit_ms * OP_NS_PER_MS;
}

static void write_ledger(void *host)
{
	struct opd_recording *recording = &((struct opd_sync *)host)->recording;

	if (recording->pipeline->capture.enabled)
		opd_recording_write_ledger(recording, OP_SESSION_open, false);
}

static const struct opd_chores chores = {
	.look = look, .begin = begin_turn, .prune = prune, .end = end_turn, .ledger = write_ledger, .event = do_next_job,
};

static void *run(void *arg)
{
	struct opd_sync *sync = arg;

	pthread_setname_np(pthread_self(), "opd-sync");
	opd_loop_run(&sync->loop);
	return NULL;
}

static void release(struct opd_sync *sync)
{
	struct opd_pipeline *pipeline = sync->recording.pipeline;

	opd_loop_close(&sync->loop);
	opd_job_queue_close(&sync->queue);
	opd_visits_free(&sync->recording.visits);
	pipeline->count.ledger = NULL;
	opd_ledger_close(&pipeline->ledger);
	opd_retention_free(&sync->retention);
	opd_dumps_free(&sync->recording.dumps);
	opd_resume_free(&sync->resume);
	opd_timeline_close(&sync->recording.timeline);
	opd_minutes_free(&sync->recording.minutes);
	opd_background_free(&sync->background);
}

static void connect_parts(struct opd_sync *sync, struct opd_pipeline *pipeline)
{
	int session_fd = pipeline->count.session_fd;

	opd_background_init(&sync->background);
	sync->recording = (struct opd_recording){ .pipeline = pipeline, .begin_ns = op_now_ns() };
	opd_dumps_init(&sync->recording.dumps, pipeline, &sync->background, &sync->queue);
	opd_minutes_init(&sync->recording.minutes, &sync->background);
	keep_minutes(sync);
	opd_retention_init(&sync->retention, session_fd, sync->config, &pipeline->count.limit, &sync->background);
	sync->rotation = (struct opd_rotation){
		.recording = &sync->recording, .retention = &sync->retention, .config = sync->config
	};
	sync->turns = (struct opd_turns){
		.recording = &sync->recording,
		.rotation = &sync->rotation,
		.config = sync->config,
		.session_dir = sync->status->session_dir,
		.loop = &sync->loop,
	};
	sync->loop = (struct opd_loop){
		.chores = &chores,
		.host = sync,
		.pipeline = pipeline,
		.visits = &sync->recording.visits,
		.visit_ns = sync->config->visit_ms * OP_NS_PER_MS,
	};
	opd_resume_init(&sync->resume, session_fd, sync->status->session_dir, &sync->background, &sync->queue);
}

static int start_timeline(struct opd_sync *sync, struct opd_pipeline *pipeline)
{
	sync->recording.timeline = (struct opd_timeline){
		.count = &pipeline->count,
		.ledger = &pipeline->ledger,
		.tables = pipeline->stacks ? pipeline->stacks->tables : NULL,
		.is_sampling = &pipeline->capture.enabled,
		.host = opd_minutes_host(&sync->recording.minutes),
		.interval_ns = sync->config->timeline_interval_us * NS_PER_US,
		.max_nodes = TIMELINE_NODES,
	};
	return opd_timeline_open(&sync->recording.timeline);
}

static int start_thread(struct opd_sync *sync, struct opd_pipeline *pipeline, bool was_unclean)
{
	int err = opd_visits_init(&sync->recording.visits, pipeline, pipeline->capture.plan.nr_threads);

	pipeline->count.ledger = &pipeline->ledger;
	if (err)
		return err;
	err = opd_ledger_open(&pipeline->ledger, pipeline->count.session_fd, &pipeline->capture, was_unclean);
	if (err)
		return err;
	if (pipeline->ledger.is_mended)
		opd_recording_write_ledger(&sync->recording, OP_SESSION_stopped, true);
	err = start_timeline(sync, pipeline);
	if (err)
		return err;
	err = opd_loop_open(&sync->loop);
	if (err)
		return err;
	err = opd_loop_watch(&sync->loop, sync->queue.wake_fd, OPD_LOOP_HOST_TAG);
	return err ? err : -pthread_create(&sync->thread, NULL, run, sync);
}

int opd_sync_start(struct opd_sync *sync, struct opd_pipeline *pipeline, struct op_config *config, const struct op_status *status,
		   bool was_unclean)
{
	int err;

	*sync = (struct opd_sync){ .config = config, .status = status };
	err = opd_job_queue_open(&sync->queue);
	if (err)
		return err;
	connect_parts(sync, pipeline);
	err = start_thread(sync, pipeline, was_unclean);
	if (err)
		release(sync);
	sync->thread_runs = !err;
	return err;
}

void opd_sync_stop(struct opd_sync *sync)
{
	if (!sync->thread_runs)
		return;
	pthread_join(sync->thread, NULL);
	opd_timeline_end_session(&sync->recording.timeline);
	opd_retention_stop(&sync->retention);
	opd_background_wait(&sync->background);
	release(sync);
	sync->thread_runs = false;
}
