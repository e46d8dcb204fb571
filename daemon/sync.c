/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/sync.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/cpus.h"
#include "daemon/jit_write.h"
#include "daemon/log.h"
#include "daemon/proc_scan.h"
#include "daemon/sideband.h"
#include "daemon/stats_dir.h"

#define WAKE_TAG               UINT64_MAX
#define EVENTS_PER_WAIT        64
#define QUIET_ROUNDS           8 /* visits to an emptied CPU until it is believed to be quiet */
#define PRUNE_INTERVAL_NS      OPD_NS_PER_S
#define RESCAN_INTERVAL_NS     OPD_NS_PER_S
#define RATE_CHECK_INTERVAL_NS (10u * (uint64_t)OPD_NS_PER_S)
#define LOG_INTERVAL_NS        (60u * (uint64_t)OPD_NS_PER_S)
#define MAX_SAMPLE_RATE_PATH   "/proc/sys/kernel/perf_event_max_sample_rate"

/* ---- visiting CPUs ---- */

static void report(struct opd_rate *rate, uint64_t now_ns, const char *what, int err)
{
	uint64_t suppressed;

	if (opd_rate_allows(rate, now_ns, LOG_INTERVAL_NS, &suppressed))
		opd_log(SD_WARNING, "%s: %s (%llu more since the last line)", what, strerror(-err), (unsigned long long)suppressed);
}

static bool is_gone(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return access(path, F_OK) < 0;
}

/* The kernel had to drop side-band records: /proc tells what is true now. At most once a second, however long the storm. */
static void rescan(struct opd_sync *sync, uint64_t now_ns)
{
	static struct opd_rate rate;
	struct opd_resolver *resolver = &sync->pipeline->resolver;
	int err;

	if (!sync->rescan_wanted || now_ns < sync->next_rescan_ns)
		return;
	report(&rate, now_ns, "the side-band ring was full, reading /proc again (SidebandSize= makes it larger)", -ENOBUFS);
	err = opd_proc_scan_all(&resolver->processes, resolver->table, now_ns);
	if (err)
		report(&rate, now_ns, "reading /proc", err);
	else
		opd_processes_resync(&resolver->processes, now_ns, is_gone);
	sync->rescan_wanted = false;
	sync->next_rescan_ns = now_ns + RESCAN_INTERVAL_NS;
}

/* The side band up to now. */
static void drain_sideband(struct opd_sync *sync)
{
	static struct opd_rate rate;
	struct opd_pipeline *pipeline = sync->pipeline;
	uint64_t now_ns = opd_now_ns();
	bool lost = false;
	int err;

	pipeline->resolver.now_ns = pipeline->count.now_ns = now_ns;
	err = opd_sideband_drain(&pipeline->capture, &pipeline->resolver, now_ns, &lost);
	if (err)
		report(&rate, now_ns, "side band", err);
	sync->rescan_wanted |= lost;
	rescan(sync, now_ns);
}

/* One CPU: nothing to do while it is idle, else swap and drain what was the write ring. */
static void visit(struct opd_sync *sync, struct opd_cpu *cpu)
{
	static struct opd_rate rate;
	int err;

	if (!cpu->online)
		return;
	if (!op_ring_pending(op_ring_pair_write_ring(&cpu->pair)) && !op_ring_pending(op_ring_pair_read_ring(&cpu->pair)))
		return;
	err = op_ring_pair_swap(&cpu->pair);
	if (err)
		report(&rate, opd_now_ns(), "swapping rings", err);
	drain_sideband(sync);
	opd_drain_ring(sync->pipeline, cpu, op_ring_pair_read_ring(&cpu->pair));
}

static void visit_all(struct opd_sync *sync)
{
	struct opd_capture *capture = &sync->pipeline->capture;

	for (size_t i = 0; i < capture->nr_cpus; i++)
		visit(sync, &capture->cpus[i]);
	drain_sideband(sync);
}

/* Sampling is off: until both rings of every CPU stay empty. */
static void drain_to_the_end(struct opd_sync *sync)
{
	for (size_t i = 0; i < QUIET_ROUNDS; i++)
		visit_all(sync);
}

/* ---- CPUs that come and go ---- */

static int watch(const struct opd_sync *sync, int fd, uint64_t tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(sync->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* A CPU's anchors have its index as tag, its side band a tag beyond all indices. */
static int watch_cpu(const struct opd_sync *sync, size_t index)
{
	const struct opd_cpu *cpu = &sync->pipeline->capture.cpus[index];
	int err = watch(sync, cpu->pair.anchor_fds[0], index);

	if (!err)
		err = watch(sync, cpu->pair.anchor_fds[1], index);
	return err ? err : watch(sync, cpu->sideband_fd, sync->pipeline->capture.nr_cpus + index);
}

/* What a CPU left behind: the kernel has stopped writing, both rings are read as they are. */
static void take_leave(struct opd_sync *sync, struct opd_cpu *cpu)
{
	drain_sideband(sync);
	opd_drain_ring(sync->pipeline, cpu, op_ring_pair_read_ring(&cpu->pair));
	opd_drain_ring(sync->pipeline, cpu, op_ring_pair_write_ring(&cpu->pair));
	opd_capture_cpu_close(&sync->pipeline->capture, cpu);
	opd_log(SD_NOTICE, "CPU %u went offline: its samples are taken", cpu->cpu);
}

/* What happened on the CPU before its side band was open is in /proc. */
static void welcome(struct opd_sync *sync, size_t index)
{
	static struct opd_rate rate;
	struct opd_resolver *resolver = &sync->pipeline->resolver;
	struct opd_cpu *cpu = &sync->pipeline->capture.cpus[index];
	uint64_t now_ns = opd_now_ns(), suppressed;
	char *why = NULL;
	int err = opd_capture_cpu_open(&sync->pipeline->capture, cpu, sync->config, &why);

	if (!err)
		err = watch_cpu(sync, index);
	if (!err)
		err = opd_proc_scan_all(&resolver->processes, resolver->table, opd_now_ns());
	if (!err)
		opd_log(SD_NOTICE, "CPU %u came online", cpu->cpu);
	else if (opd_rate_allows(&rate, now_ns, LOG_INTERVAL_NS, &suppressed))
		opd_log(SD_WARNING, "CPU %u came online: %s", cpu->cpu, why ? why : strerror(-err));
	free(why);
}

static void check_hotplug(struct opd_sync *sync)
{
	struct opd_capture *capture = &sync->pipeline->capture;
	uint32_t *online;
	size_t nr_online;

	if (opd_cpus_online(&online, &nr_online) < 0)
		return;
	for (size_t i = 0; i < capture->nr_cpus; i++) {
		bool is_online = opd_cpus_has(online, nr_online, capture->cpus[i].cpu);

		if (capture->cpus[i].online && !is_online)
			take_leave(sync, &capture->cpus[i]);
		else if (!capture->cpus[i].online && is_online)
			welcome(sync, i);
	}
	free(online);
}

/* The kernel lowers its limit when interrupts take long; samples are then throttled, and the user should know why. */
static void check_sample_rate(struct opd_sync *sync)
{
	FILE *file = fopen(MAX_SAMPLE_RATE_PATH, "re");
	unsigned long long rate;

	if (!file)
		return;
	if (fscanf(file, "%llu", &rate) == 1) {
		if (sync->max_sample_rate && rate < sync->max_sample_rate)
			opd_log(SD_WARNING,
				"the kernel lowered kernel.perf_event_max_sample_rate from %llu to %llu: interrupts took long",
				(unsigned long long)sync->max_sample_rate, rate);
		sync->max_sample_rate = rate;
	}
	fclose(file);
}

/* Somebody removed sample files while they were counted in: they are made anew with the next sample. */
static void release_removed_files(struct opd_sync *sync)
{
	bool removed;

	pthread_mutex_lock(&sync->lock);
	removed = sync->files_removed;
	sync->files_removed = false;
	pthread_mutex_unlock(&sync->lock);
	if (removed)
		opd_count_give_up_files(&sync->pipeline->count);
}

/* A daemon that loses samples says so, with the reason and what helps, once a minute. */
static void report_losses(struct opd_sync *sync, uint64_t now_ns)
{
	static struct opd_rate rates[OP_NR_LOSS + 1];
	struct opd_losses losses;
	uint64_t suppressed;

	opd_sync_sum_losses(&sync->pipeline->capture, &losses);
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		if (losses.lost[i] > sync->reported.lost[i] && opd_rate_allows(&rates[i], now_ns, LOG_INTERVAL_NS, &suppressed)) {
			opd_log(SD_WARNING, "%llu samples lost (lost_%s): %s, session directory %s",
				(unsigned long long)(losses.lost[i] - sync->reported.lost[i]), op_loss_name((enum op_loss)i),
				op_loss_meaning((enum op_loss)i), sync->status->session_dir);
			sync->reported.lost[i] = losses.lost[i];
		}
	if (losses.kernel > sync->reported.kernel && opd_rate_allows(&rates[OP_NR_LOSS], now_ns, LOG_INTERVAL_NS, &suppressed)) {
		opd_log(SD_WARNING,
			"%llu samples lost (lost_kernel): the rings were full, a larger RingSize= or a longer period helps",
			(unsigned long long)(losses.kernel - sync->reported.kernel));
		sync->reported.kernel = losses.kernel;
	}
}

/* One module may take the place of another before an address lies nowhere. */
static void refresh_modules(struct opd_sync *sync, uint64_t now_ns)
{
	static struct opd_rate rate;
	struct opd_kernel_map *map = &sync->pipeline->resolver.kernel;

	if (map->text_start && opd_kernel_map_refresh(map, now_ns) < 0)
		report(&rate, now_ns, "reading the list of modules", -ENOMEM);
}

/*
 * All CPUs, and what is to be done now and then. What was taken before the turn before last began has been read, late
 * commits included: the horizon of what resolving has to remember.
 */
static void turn(struct opd_sync *sync)
{
	struct opd_resolver *resolver = &sync->pipeline->resolver;
	uint64_t now_ns = opd_now_ns(), last_begin_ns = sync->turn_begin_ns;

	sync->turn_begin_ns = now_ns;
	release_removed_files(sync);
	check_hotplug(sync);
	visit_all(sync);
	if (now_ns >= sync->next_prune_ns) {
		opd_processes_prune(&resolver->processes, sync->horizon_ns, is_gone);
		refresh_modules(sync, now_ns);
		opd_kernel_map_prune(&resolver->kernel, sync->horizon_ns);
		opd_jit_write(resolver->jit, &sync->pipeline->count, now_ns, false);
		report_losses(sync, now_ns);
		sync->next_prune_ns = now_ns + PRUNE_INTERVAL_NS;
	}
	sync->horizon_ns = last_begin_ns;
	if (now_ns >= sync->next_rate_check_ns) {
		check_sample_rate(sync);
		sync->next_rate_check_ns = now_ns + RATE_CHECK_INTERVAL_NS;
	}
	sync->next_turn_ns = now_ns + sync->config->visit_ms * OPD_NS_PER_MS;
}

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
	err = opd_capture_enable(capture, on);
	now_ns = opd_now_ns();
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
	drain_to_the_end(sync);
	end_throttling(&sync->pipeline->capture, opd_now_ns());
}

static void write_stats(struct opd_sync *sync)
{
	static struct opd_rate rate;
	int err;

	/* A daemon that never sampled leaves nothing behind. */
	if (!sync->running_since_ns)
		return;
	err = opd_stats_dir_write(&sync->stats, &sync->pipeline->capture, sync->pipeline->count.session_fd,
				  !sync->pipeline->resolver.kernel.text_start);

	if (err)
		report(&rate, opd_now_ns(), "cannot write the session's stats directory", err);
}

static void reset(struct opd_sync *sync, struct opd_job *job)
{
	struct opd_pipeline *pipeline = sync->pipeline;
	bool was_running = pipeline->capture.enabled;
	int err;

	stop(sync, job);
	pthread_mutex_lock(&sync->lock);
	sync->nr_resets++; /* a dump that still writes finds its files gone, and that is right */
	pthread_mutex_unlock(&sync->lock);
	opd_count_close_files(&pipeline->count);
	err = opd_stats_dir_clear_session(&sync->stats, pipeline->count.session_fd);
	if (err)
		fail(job, err, "cannot empty the current session");
	opd_capture_reset_ledger(&pipeline->capture);
	sync->reported = (struct opd_losses){ 0 };
	if (was_running)
		set_running(sync, job, true);
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
		set_running(sync, job, true);
		break;
	case OPD_JOB_STOP:
		stop(sync, job);
		opd_jit_write(sync->pipeline->resolver.jit, &sync->pipeline->count, opd_now_ns(), true);
		write_stats(sync);
		break;
	case OPD_JOB_DUMP:
	case OPD_JOB_QUIT:
		if (job->kind == OPD_JOB_QUIT) {
			stop(sync, job);
			sync->quit = true;
		} else {
			visit_all(sync);
		}
		write_stats(sync);
		opd_jit_write(sync->pipeline->resolver.jit, &sync->pipeline->count, opd_now_ns(), true);
		err = opd_sync_write_out(sync, job);
		if (!err)
			return; /* the thread that writes gives it back */
		fail(job, err, "cannot write the samples out");
		break;
	case OPD_JOB_RESET:
		reset(sync, job);
		break;
	case OPD_JOB_REOPEN:
		opd_count_release_files(&sync->pipeline->count);
		break;
	}
	opd_sync_give_back(sync, job);
}

static void do_jobs(struct opd_sync *sync)
{
	struct opd_job *jobs, *next;
	uint64_t wakes;

	if (read(sync->wake_fd, &wakes, sizeof(wakes)) < 0)
		return;
	pthread_mutex_lock(&sync->lock);
	jobs = sync->submitted;
	sync->submitted = NULL;
	pthread_mutex_unlock(&sync->lock);
	for (; jobs; jobs = next) {
		next = jobs->next;
		jobs->next = NULL;
		do_job(sync, jobs);
	}
}

static void append(struct opd_job **list, struct opd_job *job)
{
	while (*list)
		list = &(*list)->next;
	*list = job;
}

static void notify(int fd)
{
	uint64_t one = 1;

	/* An eventfd takes 2^64 - 2 of these before it would block. */
	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void opd_sync_give_back(struct opd_sync *sync, struct opd_job *job)
{
	pthread_mutex_lock(&sync->lock);
	append(&sync->done, job);
	pthread_mutex_unlock(&sync->lock);
	notify(sync->done_fd);
}

void opd_sync_submit(struct opd_sync *sync, struct opd_job *job)
{
	pthread_mutex_lock(&sync->lock);
	append(&sync->submitted, job);
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

static int wait_ms(const struct opd_sync *sync)
{
	uint64_t now_ns = opd_now_ns();

	return now_ns >= sync->next_turn_ns ? 0 : (int)((sync->next_turn_ns - now_ns) / OPD_NS_PER_MS + 1);
}

static void *run(void *arg)
{
	struct opd_sync *sync = arg;
	struct opd_capture *capture = &sync->pipeline->capture;

	pthread_setname_np(pthread_self(), "opd-sync");
	while (!sync->quit) {
		struct epoll_event events[EVENTS_PER_WAIT];
		int nr = epoll_wait(sync->epoll_fd, events, EVENTS_PER_WAIT, wait_ms(sync));

		for (int i = 0; i < nr && !sync->quit; i++) {
			if (events[i].data.u64 == WAKE_TAG)
				do_jobs(sync);
			else if (events[i].data.u64 < capture->nr_cpus)
				visit(sync, &capture->cpus[events[i].data.u64]);
			else
				drain_sideband(sync);
		}
		if (!sync->quit && opd_now_ns() >= sync->next_turn_ns)
			turn(sync);
	}
	return NULL;
}

static int watch_all(const struct opd_sync *sync)
{
	const struct opd_capture *capture = &sync->pipeline->capture;
	int err = watch(sync, sync->wake_fd, WAKE_TAG);

	for (size_t i = 0; i < capture->nr_cpus && !err; i++)
		if (capture->cpus[i].online)
			err = watch_cpu(sync, i);
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
	pthread_mutex_destroy(&sync->lock);
	pthread_cond_destroy(&sync->dump_ended);
}

int opd_sync_start(struct opd_sync *sync, struct opd_pipeline *pipeline, const struct op_config *config, struct op_status *status)
{
	int err = 0;

	*sync = (struct opd_sync){
		.pipeline = pipeline,
		.config = config,
		.status = status,
		.begin_ns = opd_now_ns(),
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};
	pthread_mutex_init(&sync->lock, NULL);
	pthread_cond_init(&sync->dump_ended, NULL);
	if (sync->epoll_fd < 0 || sync->wake_fd < 0 || sync->done_fd < 0)
		err = -EMFILE;
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
