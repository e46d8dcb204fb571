/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/opd.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/capture/opener.h"
#include "pipeline/capture/stack_event.h"

#include <errno.h>
#include <popt.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "daemon/journal.h"
#include "daemon/main_thread.h"
#include "daemon/privileges.h"
#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/events/ibs_host.h"
#include "libop/process/guard.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "pipeline/count/image_filter.h"
#include "pipeline/jit/space.h"
#include "pipeline/resolve/proc_scan.h"
#include "pipeline/stacks/helper_kinds.h"
#include "pipeline/stacks/state.h"
#include "pipeline/stacks/tables.h"
#include "pipeline/waits/deep.h"
#include "pipeline/waits/source.h"

#define LOCK_WATCH_USEC        5000000
/* IN_ATTRIB: a link is removed */
#define LOCK_CHANGES           (IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
#define MAX_CLOSED_FILES       16384 /* closed files that are remembered, some hundred bytes each */

/* ---- pipeline ---- */

/* The decoder of IBS needs the model of the CPU. */
static int read_ibs_host(struct opd *opd)
{
	const char *why = "no IBS";
	struct op_ibs_host host;
	bool needed = false;

	for (size_t i = 0; i < opd->events.nr_opened; i++)
		needed |= opd->events.events[i].role == OP_EVENT_SAMPLER;
	if (!needed)
		return 0;
	if (op_ibs_host_read(&host, &why) < 0) {
		op_event_list_free(&opd->events);
		return opd_fail("%s", why);
	}
	opd->pipeline.ibs.cpu = host.cpu;
	return 0;
}

/* Without stacks opd profiles all the same, unless the user asked for what cannot be. */
static int add_stacks(struct opd *opd, struct op_event *events, size_t *nr_events, bool has_pmu, char **ret_why)
{
	int err = opd_stack_event_add(&opd->setup.stacks, &opd->config, has_pmu, events, nr_events, ret_why);

	if (!err || err == -ENOMEM || err == -EINVAL)
		return err;
	op_log(OP_LOG_WARNING, "no stacks are taken: %s", *ret_why ? *ret_why : strerror(-err));
	free(*ret_why);
	*ret_why = NULL;
	return 0;
}

static int init_opener(struct opd *opd)
{
	opd_opener_use(opd->config.control_socket);
	return 0;
}

static void note_no_waits(struct opd *opd, const char *why)
{
	snprintf(opd->status.no_waits, sizeof(opd->status.no_waits), "%s", why);
}

static void note_no_deep(struct opd *opd, const char *why)
{
	snprintf(opd->status.no_deep, sizeof(opd->status.no_deep), "%s", why);
}

static bool wants_stacks(const struct opd *opd)
{
	enum op_stack_mode mode = opd->setup.stacks.mode;

	return mode == OP_STACKS_CONFIGURED ? opd->config.stacks : mode != OP_STACKS_OFF;
}

/* Why a program that adds to stacks is not wanted; `key` turns it off. NULL: it is wanted. */
static const char *why_unwanted(const struct opd *opd, bool is_on, const char *key)
{
	if (!is_on)
		return key;
	if (!opd->config.bpf)
		return "Bpf=no";
	return wants_stacks(opd) ? NULL : "no stacks are taken";
}

static void note_no_runtimes(struct opd *opd, const char *why)
{
	snprintf(opd->status.no_runtimes, sizeof(opd->status.no_runtimes), "%s", why);
}

/* Why a part is missing that is wanted; "": it is there. */
static const char *why_missing(const struct opd *opd, const char *why_unwanted, uint32_t part, const char *why_nothing)
{
	const char *why;

	if (why_unwanted)
		return why_unwanted;
	if (!opd->wait_program)
		return why_nothing;
	why = opd_wait_program_why_not(opd->wait_program, part);
	return why ? why : "";
}

/* While opd has CAP_BPF. What cannot be is said, and opd profiles all the same. */
static int init_wait_program(struct opd *opd)
{
	const char *no_waits = why_unwanted(opd, opd->config.waits, "Waits=no");
	const char *no_deep = why_unwanted(opd, opd->config.deep_stack_budget, "DeepStackBudget=0");
	const char *no_runtimes = why_unwanted(opd, opd->config.runtimes, "Runtimes=no");
	struct op_text why = { 0 };
	int err = 0;

	opd->wants_waits = !no_waits;
	if (!no_waits || !no_deep || !no_runtimes)
		err = opd_wait_program_load(!no_waits, &opd->wait_program, &why);
	if (err == -ENOMEM && !why.length)
		op_text_add(&why, "no memory");
	note_no_waits(opd, why_missing(opd, no_waits, OPD_PART_waits, op_text_get(&why)));
	note_no_deep(opd, why_missing(opd, no_deep, OPD_PART_deep, op_text_get(&why)));
	note_no_runtimes(opd, why_missing(opd, no_runtimes, OPD_PART_interpreters, op_text_get(&why)));
	op_text_free(&why);
	return 0;
}

static void fini_wait_program(struct opd *opd)
{
	opd_wait_program_free(opd->wait_program);
	opd->wait_program = NULL;
}

/* Waits have stacks as STACKS has. */
static void add_waits(struct opd *opd, struct op_event *events, size_t *nr_events)
{
	uint32_t stack_bytes = 0;
	struct op_event event;

	for (size_t i = 0; i < *nr_events; i++)
		stack_bytes = (uint32_t)op_max_u64(stack_bytes, events[i].stack_bytes);
	if (opd->wait_program && !stack_bytes) {
		note_no_waits(opd, "no stacks are copied");
		note_no_deep(opd, "no stacks are copied");
		note_no_runtimes(opd, "no stacks are copied");
		fini_wait_program(opd);
	}
	if (!opd->wait_program || !opd_wait_program_has_waits(opd->wait_program))
		return;
	op_event_make_waits(&event);
	event.stack_bytes = stack_bytes;
	event.with_cgroup = opd_stack_event_knows_cgroups();
	events[(*nr_events)++] = event;
}

static int init_events(struct opd *opd)
{
	size_t nr_events = op_max_u64(opd->setup.nr_events, 1);
	struct op_event *events = calloc(nr_events + 2, sizeof(*events));
	char *why = NULL;
	bool has_pmu;
	int err = -ENOMEM;

	op_event_default(&opd->default_event, &has_pmu);
	opd->status.has_pmu = has_pmu;
	if (!events)
		goto out;
	memcpy(events, opd->setup.nr_events ? opd->setup.events : &opd->default_event, nr_events * sizeof(*events));
	err = add_stacks(opd, events, &nr_events, has_pmu, &why);
	if (err)
		goto out;
	add_waits(opd, events, &nr_events);
	if (opd->setup.callgraph)
		op_event_take_calls_of_stacks(events, nr_events);
	err = op_event_list_make(events, nr_events, &opd->events, &why);
out:
	free(events);
	if (!err)
		return read_ibs_host(opd);
	opd_fail("%s", why ? why : "no memory");
	free(why);
	return -1;
}

static void fini_events(struct opd *opd)
{
	op_event_list_free(&opd->events);
}

static int init_capture(struct opd *opd)
{
	char *why = NULL;

	if (opd_capture_open(&opd->pipeline.capture, &opd->config, opd->events.events, opd->events.nr_events,
			     opd->setup.separate_cgroup, (uint32_t)opd->setup.callgraph, &why) < 0) {
		opd_fail("%s", why ? why : "cannot start capturing");
		free(why);
		return -1;
	}
	if (opd->wait_program)
		opd_capture_run_before_stacks(&opd->pipeline.capture, opd_wait_program_of_samples(opd->wait_program));
	return 0;
}

static void fini_capture(struct opd *opd)
{
	opd_capture_close(&opd->pipeline.capture);
}

static const char *vmlinux_of(const struct opd *opd)
{
	return opd->setup.vmlinux ? opd->setup.vmlinux : opd->config.vmlinux;
}

static int init_filter(struct opd *opd)
{
	if (!opd->setup.image_filter)
		return 0;
	opd->image_filter = opd_image_filter_new(opd->setup.image_filter);
	return opd->image_filter ? 0 : opd_fail("no memory");
}

static void fini_filter(struct opd *opd)
{
	opd_image_filter_free(opd->image_filter);
}

/* For struct opd_sync_hook. */
static void sync_later(void *host, struct op_odb_pending *pending)
{
	opd_syncer_add(host, pending);
}

static int init_pipeline(struct opd *opd)
{
	const struct op_config *config = &opd->config;
	const struct op_setup *setup = &opd->setup;
	struct opd_resolver *resolver = &opd->pipeline.resolver;
	const struct opd_pipeline_config pipeline = {
		.session_fd = opd->session_fd,
		.vmlinux = vmlinux_of(opd),
		.max_images = config->max_images,
		.build_ids = config->build_ids,
		.lookers = opd->lookers,
		.tables = opd->tables,
		.separate_lib = setup->separate_lib,
		.separate_kernel = setup->separate_kernel,
		.separate_thread = setup->separate_thread,
		.separate_cpu = setup->separate_cpu,
		.separate_cgroup = setup->separate_cgroup,
		.separate_name = setup->separate_name,
		.separate_user = setup->separate_user,
		.events = opd->events.events,
		.nr_events = opd->events.nr_events,
		.filter = opd->image_filter,
		.sync = { .later = sync_later, .host = opd->syncer },
		.max_open = opd_count_max_open(config->max_open_files),
		.max_closed = MAX_CLOSED_FILES,
		.max_files = config->max_sample_files,
		.max_bytes = config->session_max_use,
		.max_stack_bytes = config->stack_max_use,
		.runtimes = config->runtimes,
	};
	int err = opd_pipeline_open(&opd->pipeline, &pipeline);

	if (err == -ENOMEM)
		return opd_fail("no memory");
	if (err)
		return opd_fail("cannot count the sample files of the session: %s", strerror(-err));
	opd_tables_set_images(opd->tables, opd->pipeline.cookie_file.table);
	resolver->jit->max_fd = opd_capture_spare_descriptors(&opd->pipeline.capture, OPD_JIT_DESCRIPTORS_MAX);
	opd_kernel_map_learn(&resolver->kernel, &opd->bpf_code);
	if (setup->separate_cgroup && !resolver->cgroups.mount_path)
		op_log(OP_LOG_WARNING, "no cgroup file system is mounted: cgroups that are older than opd have no name");
	return 0;
}

static void fini_pipeline(struct opd *opd)
{
	opd_pipeline_close(&opd->pipeline);
	opd_interpreters_free(opd->interpreters);
	opd->interpreters = NULL;
}

static int init_waits(struct opd *opd)
{
	int err = 0;

	if (opd->wants_waits && *opd->status.no_waits)
		op_log(OP_LOG_INFO, "no waits are sampled: %s", opd->status.no_waits);
	else if (opd->wait_program && opd_wait_program_has_waits(opd->wait_program))
		err = opd_waits_new(&opd->pipeline, opd->wait_program, opd->config.wait_budget, &opd->pipeline.waits);
	return err ? opd_fail("no memory") : 0;
}

static void fini_waits(struct opd *opd)
{
	opd_waits_free(opd->pipeline.waits);
	opd->pipeline.waits = NULL;
}

static bool has_stacks(const struct opd_capture *capture)
{
	for (size_t i = 0; i < capture->nr_opened; i++)
		if (capture->events[i].role == OP_EVENT_STACKS)
			return true;
	return false;
}

/* Also without a budget, for the notes about interpreters. */
static int init_deep(struct opd *opd)
{
	bool can_take = has_stacks(&opd->pipeline.capture);
	int err = 0;

	if (!*opd->status.no_deep && !can_take)
		note_no_deep(opd, "there is no event STACKS");
	if (!*opd->status.no_runtimes && !can_take)
		note_no_runtimes(opd, "there is no event STACKS");
	if (opd->wait_program && can_take && (!*opd->status.no_deep || !*opd->status.no_runtimes))
		err = opd_deep_new(&opd->pipeline, opd->wait_program, opd->config.deep_stack_budget, &opd->pipeline.deep);
	return err ? opd_fail("no memory") : 0;
}

/* Runtimes write their notes with those of deep stacks. */
static int init_runtimes(struct opd *opd)
{
	struct opd_interpreter_control *control;
	int images_fd, err;

	if (opd->config.runtimes && *opd->status.no_runtimes)
		op_log(OP_LOG_INFO, "functions of Python, PHP, Perl and Ruby have no names: %s", opd->status.no_runtimes);
	if (!opd->config.runtimes || !opd->pipeline.deep || !opd->pipeline.stacks->runtimes)
		return 0;
	err = opd_interpreters_new(opd->config.runtimes, opd_runtimes_names(opd->pipeline.stacks->runtimes), &opd->interpreters);
	if (err)
		return opd_fail("no memory");
	control = opd_wait_program_interpreters(opd->wait_program, &images_fd);
	opd_interpreters_set_maps(opd->interpreters, images_fd, control);
	opd->pipeline.interpreters = opd->pipeline.stacks->interpreters = opd->interpreters;
	return 0;
}

static void fini_deep(struct opd *opd)
{
	opd_deep_free(opd->pipeline.deep);
	opd->pipeline.deep = NULL;
}

/* The side band is open and reports changes from now on. What was there before is in /proc. */
static int init_processes(struct opd *opd)
{
	struct opd_resolver *resolver = &opd->pipeline.resolver;
	int err = opd_proc_scan_all(&resolver->processes, resolver->table, op_now_ns());

	return err ? opd_fail("cannot read /proc: %s", strerror(-err)) : 0;
}

/* ---- main thread ---- */

/* The side band is open and reports new programs from now on. */
static int init_bpf_code(struct opd *opd)
{
	return opd_bpf_code_read(&opd->bpf_code) < 0 ? opd_fail("no memory") : 0;
}

static void fini_bpf_code(struct opd *opd)
{
	opd_bpf_code_free(&opd->bpf_code);
}

/* The capabilities for the socket and the session directory are not needed any more. */
static int init_privileges(struct opd *opd)
{
	int err = opd_privileges_drop(opd->session_fd);

	return err ? opd_fail("cannot give up capabilities: %s", strerror(-err)) : 0;
}

static const struct op_helper_kind helper_kinds[] =
	OPD_HELPER_KINDS("opd-looker", opd_privileges_of_looker, opd_privileges_of_tabler);

#define NURSERY_WORD "--nursery" /* the only argument of a program that is a nursery */

static _Noreturn void be_nursery(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	opd_host();
	opd_tabler_find_program();
	op_nursery_serve(helper_kinds, op_array_size(helper_kinds));
}

/* The memory of opd is not for helpers, so this program is executed anew. */
static pid_t start_nursery_again(int fd)
{
	pid_t pid = fork();

	if (!pid) {
		opd_privileges_pass_on();
		if (dup2(fd, OP_HELPER_SOCKET_FD) >= 0) {
			closefrom(OP_HELPER_SOCKET_FD + 1);
			execl("/proc/self/exe", "opd", NURSERY_WORD, NULL);
		}
		_exit(1);
	}
	op_log(OP_LOG_WARNING, "all processes that start helpers were killed, or do not answer: helpers now have only the "
			       "rights of opd, and may miss files of containers and removed files; restart opd");
	return pid;
}

/*
 * Before there is a lock, a thread, or much memory: helpers inherit none of it. They inherit the
 * capabilities, which opd itself needs no longer.
 */
static int init_lookers(struct opd *opd)
{
	int err;

	opd_host();
	opd_tabler_find_program();
	/* Helpers of a nursery that was killed are then children of opd, which waits for none. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	signal(SIGCHLD, SIG_IGN);
	err = op_nursery_start(helper_kinds, op_array_size(helper_kinds), &opd->nursery);
	if (err)
		return opd_fail("cannot start a process: %s", strerror(-err));
	op_nursery_set_last_resort(opd->nursery, start_nursery_again);
	err = opd_privileges_leave_to_lookers();
	if (!err)
		err = opd_lookers_new(opd->nursery, OPD_HELPER_LOOKER, &opd->lookers);
	if (!err)
		return 0;
	op_nursery_stop(opd->nursery);
	return opd_fail("cannot leave the files of processes to lookers: %s", strerror(-err));
}

static void fini_lookers(struct opd *opd)
{
	opd_lookers_free(opd->lookers);
	op_nursery_stop(opd->nursery);
}

static int init_tables(struct opd *opd)
{
	const struct opd_tables_config config = {
		.nursery = opd->nursery,
		.lookers = opd->lookers,
		.host_prefix = opd_host()->prefix,
		.cache_dir = opd->config.table_dir,
		.max_use = opd->config.table_max_use,
	};
	int err = opd_tables_new(&config, &opd->tables);

	return err ? opd_fail("cannot keep the tables of images: %s", strerror(-err)) : 0;
}

static void fini_tables(struct opd *opd)
{
	opd_tables_free(opd->tables);
}

static int on_signal(sd_event_source *source OP_UNUSED, const struct signalfd_siginfo *info, void *arg)
{
	struct opd *opd = arg;

	if (info->ssi_signo == SIGHUP)
		opd_reload(opd);
	else
		opd_quit(opd);
	return 0;
}

static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

static int init_loop(struct opd *opd)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (size_t i = 0; i < op_array_size(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL); /* before there are threads: they inherit the mask */
	signal(SIGPIPE, SIG_IGN);
	err = op_guard_install();
	if (err >= 0)
		err = sd_event_new(&opd->loop);
	for (size_t i = 0; i < op_array_size(signals) && err >= 0; i++)
		err = sd_event_add_signal(opd->loop, NULL, signals[i], on_signal, opd);
	if (err >= 0)
		return 0;
	opd->loop = sd_event_unref(opd->loop);
	return opd_fail("cannot make the event loop: %s", strerror(-err));
}

static void fini_loop(struct opd *opd)
{
	opd->loop = sd_event_unref(opd->loop);
}

static int on_jobs_done(sd_event_source *source OP_UNUSED, int fd OP_UNUSED, uint32_t revents OP_UNUSED, void *arg)
{
	struct opd *opd = arg;
	struct opd_job *next;

	for (struct opd_job *job = opd_job_queue_take_done(&opd->sync.queue); job; job = next) {
		next = job->next;
		opd_job_done(opd, job);
		free(job->payload);
		free(job);
	}
	return 0;
}

static void fill_status(struct opd *opd)
{
	struct op_status *status = &opd->status;

	status->pid = (uint32_t)getpid();
	status->separate_lib = opd->setup.separate_lib;
	status->separate_kernel = opd->setup.separate_kernel;
	status->separate_thread = opd->setup.separate_thread;
	status->separate_cpu = opd->setup.separate_cpu;
	status->separate_cgroup = opd->setup.separate_cgroup;
	status->separate_name = opd->setup.separate_name;
	status->separate_user = opd->setup.separate_user;
	status->callgraph = opd->setup.callgraph;
	snprintf(status->session_dir, sizeof(status->session_dir), "%s", opd->session_dir);
	snprintf(status->vmlinux, sizeof(status->vmlinux), "%s", vmlinux_of(opd) ? vmlinux_of(opd) : "");
	snprintf(status->image_filter, sizeof(status->image_filter), "%s", opd->setup.image_filter ? opd->setup.image_filter : "");
}

/* The loop has ended before OPD_JOB_QUIT came back. Its error decides the exit code of opd. */
static void take_result(struct opd *opd)
{
	for (struct opd_job *job = opd->sync.queue.done; job; job = job->next) {
		if (job->kind != OPD_JOB_QUIT)
			continue;
		free(job->arg);
		job->arg = NULL;
		opd_job_done(opd, job);
	}
}

/* After an error in the start-up list OPD_JOB_QUIT is not submitted yet. */
static void fini_sync(struct opd *opd)
{
	opd_quit(opd);
	opd_sync_stop(&opd->sync);
	take_result(opd);
	opd_jobs_free(opd->sync.queue.submitted);
	opd_jobs_free(opd->sync.queue.done);
	opd_jobs_free(opd->quit_job);
}

static int init_sync(struct opd *opd)
{
	int err;

	fill_status(opd);
	/* now, since memory may be short at the end */
	opd->quit_job = opd_job_new(OPD_JOB_QUIT, NULL);
	if (!opd->quit_job)
		return opd_fail("no memory");
	err = opd_sync_start(&opd->sync, &opd->pipeline, &opd->config, &opd->status, opd->was_unclean);
	if (err) {
		opd_jobs_free(opd->quit_job);
		return opd_fail("cannot start the sync thread: %s", strerror(-err));
	}
	err = sd_event_add_io(opd->loop, NULL, opd->sync.queue.done_fd, EPOLLIN, on_jobs_done, opd);
	if (err >= 0)
		return 0;
	fini_sync(opd);
	return opd_fail("cannot watch the sync thread: %s", strerror(-err));
}

static int init_service(struct opd *opd)
{
	int err = opd_service_open(&opd->service, opd->loop, &opd->sync.queue);

	return err ? opd_fail("cannot start the watchdog timer: %s", strerror(-err)) : 0;
}

static void fini_service(struct opd *opd)
{
	opd_service_close(&opd->service);
}

/* ---- the lock ---- */

/*
 * The directory stays locked until opd has ended, and what is removed takes no new files. So the
 * end of opd writes nothing where another daemon has begun.
 */
static void check_lock(struct opd *opd)
{
	if (opd->has_lost_lock || !op_session_has_lost_lock(opd->session_dir, opd->session_fd, opd->lock_fd))
		return;
	opd->has_lost_lock = true;
	opd_fail("session directory %s, or its file " OP_SESSION_LOCK ", was removed or replaced; exiting. Counts in removed "
		 "files are lost, and later samples without a file are lost_io_error. Start opd again",
		 opd->session_dir);
	opd_quit(opd);
}

static int on_lock_time(sd_event_source *source, uint64_t usec OP_UNUSED, void *arg)
{
	check_lock(arg);
	sd_event_source_set_time_relative(source, LOCK_WATCH_USEC);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

static int on_lock_change(sd_event_source *source OP_UNUSED, const struct inotify_event *change OP_UNUSED, void *arg)
{
	check_lock(arg);
	return 0;
}

/*
 * The kernel tells of most changes at once. A directory above that is renamed, and a file system
 * that does not tell, wait for the timer.
 */
static int init_lock_watch(struct opd *opd)
{
	char path[PATH_MAX];
	int err = sd_event_add_time_relative(opd->loop, &opd->lock_watch, CLOCK_MONOTONIC, LOCK_WATCH_USEC, LOCK_WATCH_USEC / 10,
					     on_lock_time, opd);

	if (err < 0)
		return opd_fail("cannot watch the time: %s", strerror(-err));
	snprintf(path, sizeof(path), "%s/" OP_SESSION_LOCK, opd->session_dir);
	/* Users have few watches. Without them the timer is enough. */
	(void)sd_event_add_inotify(opd->loop, &opd->lock_changes, path, LOCK_CHANGES, on_lock_change, opd);
	(void)sd_event_add_inotify(opd->loop, &opd->dir_changes, opd->session_dir, IN_MOVE_SELF, on_lock_change, opd);
	return 0;
}

static void fini_lock_watch(struct opd *opd)
{
	opd->lock_watch = sd_event_source_disable_unref(opd->lock_watch);
	opd->lock_changes = sd_event_source_disable_unref(opd->lock_changes);
	opd->dir_changes = sd_event_source_disable_unref(opd->dir_changes);
}

/* ---- the list ---- */

static const struct {
	const char *name;
	int (*init)(struct opd *opd); /* 0, or -1 after a line in the log */
	void (*fini)(struct opd *opd);
} steps[] = {
	{ "config", opd_init_config, opd_fini_config },
	{ "setup", opd_init_setup, opd_fini_setup },
	{ "opener", init_opener, NULL }, /* before events are opened */
	{ "wait-program", init_wait_program, fini_wait_program }, /* with CAP_BPF */
	{ "events", init_events, fini_events },
	{ "socket", opd_init_socket, opd_fini_socket },
	{ "capture", init_capture, fini_capture },
	{ "session", opd_init_session, opd_fini_session },
	{ "bpf-code", init_bpf_code, fini_bpf_code }, /* before capabilities are given up */
	{ "privileges", init_privileges, NULL }, /* before there are threads */
	{ "lookers", init_lookers, fini_lookers }, /* likewise, and before the lock */
	{ "lock", opd_init_lock, opd_fini_lock },
	{ "recovery", opd_init_recovery, NULL },
	{ "loop", init_loop, fini_loop }, /* blocks signals: before there are threads */
	{ "syncer", opd_init_syncer, opd_fini_syncer },
	{ "filter", init_filter, fini_filter },
	{ "tables", init_tables, fini_tables },
	{ "pipeline", init_pipeline, fini_pipeline },
	{ "waits", init_waits, fini_waits },
	{ "deep", init_deep, fini_deep },
	{ "runtimes", init_runtimes, NULL },
	{ "processes", init_processes, NULL },
	{ "sync", init_sync, fini_sync },
	{ "service", init_service, fini_service },
	{ "server", opd_init_server, opd_fini_server },
	{ "lock-watch", init_lock_watch, fini_lock_watch },
};

/* A request for a paused daemon is for one start only. */
static bool wants_profiling(const struct opd *opd)
{
	int err = op_session_take_pause(opd->session_fd);

	if (err && err != -ENOENT)
		op_log(OP_LOG_WARNING, "cannot remove %s/" OP_SESSION_PAUSED ": %s; the next opd will start paused, too",
			opd->session_dir, strerror(-err));
	return err == -ENOENT && op_session_wants_profiling(opd->session_fd, opd->config.profile_on_start);
}

/* When opd is to profile, it is ready when every CPU samples. */
static int begin(struct opd *opd)
{
	struct opd_job *job;

	if (!wants_profiling(opd)) {
		opd_ready(opd, false);
		return 0;
	}
	job = opd_job_new(OPD_JOB_START, NULL);
	if (!job)
		return opd_fail("no memory");
	opd->starting = true;
	opd_job_queue_submit(&opd->sync.queue, job);
	return 0;
}

static int run(struct opd *opd)
{
	size_t nr_started = 0;
	int err = 0;

	while (nr_started < op_array_size(steps) && !(err = steps[nr_started].init(opd)))
		nr_started++;
	if (!err)
		err = begin(opd);
	if (!err)
		err = sd_event_loop(opd->loop);
	while (nr_started--)
		if (steps[nr_started].fini)
			steps[nr_started].fini(opd);
	if (opd->has_lost_lock)
		return EXIT_FAILURE; /* another one begins anew */
	if (opd->is_unwritten)
		return OPD_EXIT_UNWRITTEN;
	return err < 0 ? EXIT_FAILURE : err;
}

static int parse_options(struct opd *opd, int argc, char **argv, bool *ret_done)
{
	int version = 0;
	struct poptOption options[] = {
		{ "config", 'c', POPT_ARG_STRING, &opd->config_path, 0, "configuration file (default " OP_CONFIG_PATH_DEFAULT ")",
		  "FILE" },
		{ "session-dir", 0, POPT_ARG_STRING, &opd->session_dir_option, 0, "where the samples go", "DIR" },
		{ "version", 'v', POPT_ARG_NONE, &version, 0, "show the version", NULL },
		POPT_AUTOHELP POPT_TABLEEND,
	};
	poptContext context = poptGetContext("opd", argc, (const char **)(void *)argv, options, 0);
	int result = poptGetNextOpt(context);
	const char *rest = poptPeekArg(context);

	if (result < -1)
		opd_fail("%s: %s (see opd --help)", poptBadOption(context, POPT_BADOPTION_NOALIAS), poptStrerror(result));
	else if (rest)
		opd_fail("%s: opd takes no arguments (see opd --help)", rest);
	else if (version)
		printf("opd " PACKAGE_VERSION "\n");
	*ret_done = version;
	result = result < -1 || rest ? -1 : 0;
	poptFreeContext(context);
	return result;
}

int opd_main(int argc, char **argv)
{
	struct opd opd = { .session_fd = -1, .lock_fd = -1, .socket_lock_fd = -1, .listen_fd = -1 };
	bool done;
	int result = EXIT_FAILURE;

	if (argc == 2 && !strcmp(argv[1], NURSERY_WORD))
		be_nursery();
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the call, EFBIG */
	op_sys_use_one_heap();
	opd_journal_use();
	if (!parse_options(&opd, argc, argv, &done))
		result = done ? EXIT_SUCCESS : run(&opd);
	free(opd.config_path);
	free(opd.session_dir_option);
	return result;
}
