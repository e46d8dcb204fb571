/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/sync.h"
#include "daemon/capture/kernel_source.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/count/jit_objects.h"
#include "libop/base/log.h"
#include "daemon/keep/stats_dir.h"
#include "daemon/unwritten.h"
#include "libop/base/clock.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/base/sys.h"

#define WAKE_TAG        UINT64_MAX
#define EVENTS_PER_WAIT 64
#define LEDGER_FAILED   "cannot write the session's ledger"

/* ---- jobs ---- */

static int fail(struct opd_job *job, int err, const char *what)
{
	job->error = err;
	snprintf(job->message, sizeof(job->message), "%s: %s", what, strerror(-err));
	return err;
}

static void set_running(struct opd_sync *sync, struct opd_job *job, bool on)
{
	struct opd_capture *capture = &sync->pipeline->capture;
	uint64_t now_ns;
	int err;

	if (capture->enabled == on)
		return;
	if (on)
		opd_ledger_begin(&sync->pipeline->ledger);
	err = opd_capture_enable(capture, on);
	now_ns = op_now_ns();
	if (capture->enabled)
		sync->running_since_ns = now_ns;
	else if (!on)
		sync->running_ns += now_ns - sync->running_since_ns;
	if (err)
		fail(job, err, on ? "cannot enable sampling" : "cannot disable sampling");
}

/* An event that is stopped while it is throttled gets no record of the end. */
static void end_throttling(struct opd_capture *capture, uint64_t now_ns)
{
	for (size_t c = 0; c < capture->nr_cpus; c++) {
		for (size_t e = 0; e < capture->nr_events; e++) {
			struct opd_event *event = &capture->cpus[c].events[e];

			if (event->throttled_since_ns && now_ns > event->throttled_since_ns)
				event->throttled_ns += now_ns - event->throttled_since_ns;
			event->throttled_since_ns = 0;
		}
	}
}

static void stop(struct opd_sync *sync, struct opd_job *job)
{
	set_running(sync, job, false);
	opd_visit_until_quiet(&sync->visits);
	end_throttling(&sync->pipeline->capture, op_now_ns());
}

/* What could not be written, as far as something else is in the place of it. */
static const char *name_failure(const struct opd_sync *sync, char text[256])
{
	const char *path = opd_ledger_in_the_way(&sync->pipeline->ledger);

	snprintf(text, 256, "%s", LEDGER_FAILED);
	if (path)
		snprintf(text, 256, "%s, %s", LEDGER_FAILED, path);
	return text;
}

static int write_book(struct opd_sync *sync, enum op_session_end ended)
{
	static struct op_rate rate;
	char text[256];
	struct op_session_ledger ledger;
	int err;

	sync->pipeline->ledger.hides_kernel = !sync->pipeline->resolver.kernel.text_start;
	err = opd_ledger_sum(&sync->pipeline->ledger, ended, &ledger);
	if (!err) {
		err = opd_ledger_write(&sync->pipeline->ledger, &ledger);
		op_session_ledger_free(&ledger);
	}
	if (err)
		op_log_failure(&rate, op_now_ns(), name_failure(sync, text), err);
	return err;
}

int opd_sync_write_book(struct opd_sync *sync, enum op_session_end ended)
{
	/* A daemon that never sampled leaves nothing behind. */
	if (!sync->running_since_ns)
		return 0;
	opd_count_flush(&sync->pipeline->count);
	return write_book(sync, ended);
}

/* What is written all the same does not hide that the ledger was not. */
static void write_book_or_fail(struct opd_sync *sync, struct opd_job *job)
{
	int err = opd_sync_write_book(sync, job->kind == OPD_JOB_QUIT ? OP_SESSION_stopped : OP_SESSION_open);
	char text[256];

	if (err)
		fail(job, err == -ENOENT ? -ESTALE : err, name_failure(sync, text)); /* the daemon is there */
}

/* What is left goes on to be the session's, and of it is said where it is. */
static void keep_rest(struct opd_sync *sync, struct opd_job *job, int err, const char *path)
{
	struct opd_count *count = &sync->pipeline->count;
	int limit_err = opd_file_limit_recount(&count->limit, count->session_fd);

	opd_ledger_reset_to_rest(&sync->pipeline->ledger);
	write_book(sync, OP_SESSION_open);
	job->error = err;
	snprintf(job->message, sizeof(job->message),
		 "cannot empty the current session: " OP_SESSION_CURRENT
		 "/%s: %s; %llu sample files%s are left and go on to be counted in, all else is "
		 "removed: remove them by hand (lsattr shows what is immutable), or try again",
		 path ? path : "", strerror(-err), (unsigned long long)count->limit.nr, limit_err ? " or more" : "");
}

static void reset(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_pipeline *pipeline = sync->pipeline;
	int current_fd = op_session_open_current(pipeline->count.session_fd), err;
	bool was_running = pipeline->capture.enabled;
	char *path = NULL;

	if (current_fd < 0 && current_fd != -ENOENT) {
		fail(job, current_fd, "nothing is removed: cannot look into " OP_SESSION_CURRENT);
		return;
	}
	stop(sync, job);
	pthread_mutex_lock(&sync->lock);
	sync->nr_resets++; /* a dump that still writes finds its files gone, and that is right */
	pthread_mutex_unlock(&sync->lock);
	opd_count_close_files(&pipeline->count);
	if (pipeline->count.cookie_file)
		opd_cookie_file_reset(pipeline->count.cookie_file);
	opd_jit_forget_changed(pipeline->resolver.jit);
	err = current_fd < 0 ? 0 : op_session_clear(current_fd, &path);
	if (current_fd >= 0)
		close(current_fd);
	opd_capture_reset_ledger(&pipeline->capture);
	if (err)
		keep_rest(sync, job, err, path);
	else
		opd_ledger_reset(&sync->pipeline->ledger);
	free(path);
	pipeline->resolver.cgroups.not_split = pipeline->resolver.cgroups.of_unknown = 0;
	memset(pipeline->count.arcs, 0, sizeof(pipeline->count.arcs));
	sync->reported = (struct opd_losses){ 0 };
	sync->visits.counts = (struct opd_visit_counts){ 0 };
	if (!was_running)
		return;
	set_running(sync, job, true);
	opd_sync_write_book(sync, OP_SESSION_open);
}

static void fail_save(struct opd_job *job, int err)
{
	job->error = err == -ENOENT ? -ESTALE : err;
	if (err == -EEXIST)
		snprintf(job->message, sizeof(job->message), "there is a session %s already: nothing was saved", job->name);
	else if (err == -ENODATA)
		snprintf(job->message, sizeof(job->message), "the current session has no samples: nothing was saved");
	else
		snprintf(job->message, sizeof(job->message), "cannot save the session as %s: %s", job->name, strerror(-err));
}

/* SIGHUP: what of the configuration takes effect at once. */
static void reload(struct opd_sync *sync, const struct op_config *fresh)
{
	if (fresh) {
		pthread_mutex_lock(&sync->lock);
		op_config_adopt(sync->config, fresh);
		pthread_mutex_unlock(&sync->lock);
		sync->pipeline->count.max_open = opd_count_max_open(sync->config->max_open_files);
		sync->pipeline->count.limit.max = sync->config->max_sample_files;
		opd_file_limit_give(&sync->pipeline->count.limit, sync->config->session_max_use);
		sync->rotation.due_ns = 0;
		sync->retention.due_ns = 0;
	}
	opd_count_release_files(&sync->pipeline->count);
}

/* True: the job is given back by somebody else. */
static bool switch_profiling(struct opd_sync *sync, struct opd_job *job)
{
	int err;

	if (job->kind == OPD_JOB_START) {
		set_running(sync, job, true);
	} else {
		stop(sync, job);
		opd_jit_write(sync->pipeline->resolver.jit, &sync->pipeline->count, op_now_ns(), true);
	}
	opd_sync_write_book(sync, OP_SESSION_open);
	if (job->error || !job->keep)
		return false;
	err = opd_sync_keep_profiling(sync, job);
	if (err)
		opd_sync_fail_keeping(sync, job, err);
	return !err;
}

static void do_job(struct opd_sync *sync, struct opd_job *job)
{
	int err;

	switch (job->kind) {
	case OPD_JOB_STATUS:
		err = opd_sync_make_status(sync, job);
		if (err)
			fail(job, err, "cannot make the status");
		break;
	case OPD_JOB_START:
	case OPD_JOB_STOP:
		if (switch_profiling(sync, job))
			return;
		break;
	case OPD_JOB_PULSE:
		err = opd_sync_make_pulse(sync, job);
		if (err)
			fail(job, err, "cannot sum up");
		break;
	case OPD_JOB_SAVE:
		err = opd_rotate_save(sync, job);
		if (!err)
			return; /* the thread that writes gives it back */
		fail_save(job, err);
		break;
	case OPD_JOB_DUMP:
	case OPD_JOB_QUIT:
		if (job->kind == OPD_JOB_QUIT) {
			stop(sync, job);
			sync->quit = true;
		} else {
			opd_visit_all(&sync->visits);
		}
		opd_sync_look(sync, sync->quit);
		write_book_or_fail(sync, job);
		opd_jit_write(sync->pipeline->resolver.jit, &sync->pipeline->count, op_now_ns(), true);
		err = opd_sync_write_out(sync, job);
		if (!err)
			return; /* the thread that writes gives it back */
		fail(job, err, "cannot write the samples out");
		break;
	case OPD_JOB_RESET:
		reset(sync, job);
		break;
	case OPD_JOB_RELOAD:
		reload(sync, job->payload);
		break;
	}
	opd_sync_give_back(sync, job);
}

static void notify(int fd)
{
	uint64_t one = 1;

	/* An eventfd takes 2^64 - 2 of these before it would block. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* One, so that the rings are looked at before the next. */
static void do_next_job(struct opd_sync *sync)
{
	struct opd_job *job;
	uint64_t wakes;
	bool more;

	if (read(sync->wake_fd, &wakes, sizeof(wakes)) < 0)
		return;
	pthread_mutex_lock(&sync->lock);
	job = opd_jobs_take(&sync->submitted);
	more = sync->submitted;
	pthread_mutex_unlock(&sync->lock);
	if (more)
		notify(sync->wake_fd);
	if (job)
		do_job(sync, job);
}

static const char *remedy_of(int session_fd, int err)
{
	struct stat st;

	if (!op_sys_fstat(session_fd, &st) && !st.st_nlink)
		return "; somebody removed the session directory: opcontrol --shutdown and --start make another one";
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "; make room: rm, or opcontrol --reset";
	case -EISDIR:
	case -ENOTDIR:
	case -ELOOP:
	case -ENXIO: /* a pipe */
		return "; something else is in its place: remove that";
	default:
		return "";
	}
}

static void add_remedy(const struct opd_sync *sync, struct opd_job *job)
{
	size_t length = strlen(job->message);

	if (job->error && job->error != -EEXIST && job->error != -ENODATA)
		snprintf(job->message + length, sizeof(job->message) - length, "%s",
			 remedy_of(sync->pipeline->count.session_fd, job->error));
}

void opd_sync_give_back(struct opd_sync *sync, struct opd_job *job)
{
	static const bool is_of_session[] = {
		[OPD_JOB_DUMP] = true, [OPD_JOB_SAVE] = true, [OPD_JOB_RESET] = true, [OPD_JOB_QUIT] = true
	};

	if (job->is_of_session || is_of_session[job->kind])
		add_remedy(sync, job);
	job = opd_job_spread(job);
	pthread_mutex_lock(&sync->lock);
	opd_jobs_append(&sync->done, job);
	pthread_mutex_unlock(&sync->lock);
	notify(sync->done_fd);
}

void opd_sync_submit(struct opd_sync *sync, struct opd_job *job)
{
	pthread_mutex_lock(&sync->lock);
	opd_jobs_append(&sync->submitted, job);
	pthread_mutex_unlock(&sync->lock);
	notify(sync->wake_fd);
}

int opd_sync_done_fd(const struct opd_sync *sync)
{
	return sync->done_fd;
}

struct opd_job *opd_sync_take_done(struct opd_sync *sync)
{
	struct opd_job *jobs;
	uint64_t wakes;

	if (read(sync->done_fd, &wakes, sizeof(wakes)) < 0 && errno != EAGAIN)
		return NULL;
	pthread_mutex_lock(&sync->lock);
	jobs = sync->done;
	sync->done = NULL;
	pthread_mutex_unlock(&sync->lock);
	return jobs;
}

/* ---- the thread ---- */

static int watch(const struct opd_sync *sync, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event event = { .events = events, .data.u64 = tag };

	if (fd < 0)
		return 0;
	return epoll_ctl(sync->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int opd_sync_watch_cpu(const struct opd_sync *sync, size_t index)
{
	const struct opd_cpu *cpu = &sync->pipeline->capture.cpus[index];
	uint32_t events = cpu->source->epoll_events;
	struct opd_source_fds fds;
	int err;

	cpu->source->fds(cpu, &fds);
	err = watch(sync, fds.samples[0], events, index);
	if (!err)
		err = watch(sync, fds.samples[1], events, index);
	return err ? err : watch(sync, fds.sideband, events, sync->pipeline->capture.nr_cpus + index);
}

static int wait_ms(const struct opd_sync *sync)
{
	uint64_t now_ns = op_now_ns();

	return now_ns >= sync->next_turn_ns ? 0 : (int)((sync->next_turn_ns - now_ns) / OP_NS_PER_MS + 1);
}

static void *run(void *arg)
{
	struct opd_sync *sync = arg;
	struct opd_capture *capture = &sync->pipeline->capture;

	pthread_setname_np(pthread_self(), "opd-sync");
	while (!sync->quit) {
		struct epoll_event events[EVENTS_PER_WAIT];
		int nr = epoll_wait(sync->epoll_fd, events, EVENTS_PER_WAIT, wait_ms(sync));
		bool sideband = false;

		for (int i = 0; i < nr && !sync->quit; i++) {
			if (events[i].data.u64 == WAKE_TAG)
				do_next_job(sync);
			else if (events[i].data.u64 < capture->nr_cpus)
				opd_visits_add(&sync->visits, &capture->cpus[events[i].data.u64]);
			else
				sideband = true;
		}
		if (sync->quit)
			break;
		if (sideband && !sync->visits.nr_due)
			opd_visit_sideband(&sync->visits);
		opd_visits_run(&sync->visits);
		if (op_now_ns() >= sync->next_turn_ns)
			opd_sync_turn(sync);
	}
	return NULL;
}

static int watch_all(const struct opd_sync *sync)
{
	const struct opd_capture *capture = &sync->pipeline->capture;
	int err = watch(sync, sync->wake_fd, EPOLLIN, WAKE_TAG);

	for (size_t i = 0; i < capture->nr_cpus && !err; i++)
		if (capture->cpus[i].online)
			err = opd_sync_watch_cpu(sync, i);
	return err;
}

static void release(struct opd_sync *sync)
{
	if (sync->epoll_fd >= 0)
		close(sync->epoll_fd);
	if (sync->wake_fd >= 0)
		close(sync->wake_fd);
	if (sync->done_fd >= 0)
		close(sync->done_fd);
	sync->epoll_fd = sync->wake_fd = sync->done_fd = -1;
	opd_visits_free(&sync->visits);
	sync->pipeline->count.ledger = NULL;
	opd_ledger_close(&sync->pipeline->ledger);
	opd_retention_free(&sync->retention);
	opd_unwritten_free(sync);
	pthread_mutex_destroy(&sync->lock);
	pthread_cond_destroy(&sync->dump_ended);
}

int opd_sync_start(struct opd_sync *sync, struct opd_pipeline *pipeline, struct op_config *config, struct op_status *status,
		   bool was_unclean)
{
	int err = 0;

	*sync = (struct opd_sync){
		.pipeline = pipeline,
		.config = config,
		.status = status,
		.begin_ns = op_now_ns(),
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	pthread_mutex_init(&sync->lock, NULL);
	pthread_cond_init(&sync->dump_ended, NULL);
	if (sync->epoll_fd < 0 || sync->wake_fd < 0 || sync->done_fd < 0)
		err = -EMFILE;
	if (!err)
		err = opd_visits_init(&sync->visits, pipeline, pipeline->capture.plan.nr_threads);
	if (!err)
		err = opd_ledger_open(&sync->pipeline->ledger, pipeline->count.session_fd, &pipeline->capture, was_unclean);
	pipeline->count.ledger = &sync->pipeline->ledger;
	if (!err && sync->pipeline->ledger.is_mended)
		write_book(sync, OP_SESSION_stopped);
	if (!err)
		err = watch_all(sync);
	if (!err)
		err = -pthread_create(&sync->thread, NULL, run, sync);
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
	pthread_mutex_lock(&sync->lock);
	while (sync->nr_dumps_under_way)
		pthread_cond_wait(&sync->dump_ended, &sync->lock);
	pthread_mutex_unlock(&sync->lock);
	release(sync);
	sync->thread_runs = false;
}
