/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/operf/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/control/config.h"
#include "libop/events/ibs_host.h"
#include "libop/perf/chain.h"
#include "libop/process/guard.h"
#include "libop/process/nursery.h"
#include "pipeline/capture/cpus.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/drive/sources.h"
#include "pipeline/files/lookers.h"
#include "pipeline/jit/space.h"
#include "pipeline/resolve/proc_scan.h"
#include "pipeline/stacks/helper_kinds.h"
#include "pipeline/stacks/tables.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/operf/attach.h"
#include "tools/operf/events.h"

#define VISIT_NS           (250u * (uint64_t)OP_NS_PER_MS)
#define MAX_IMAGES         100000u
#define MAX_CLOSED_FILES   16384u
#define SPARE_THREADS      16u /* that may begin while the others are attached */
#define SIGNAL_TAG         OPD_LOOP_HOST_TAG
#define PID_TAG            (OPD_LOOP_HOST_TAG + 1)
/* at the end, for row tables that are being made */
#define TABLES_WAIT_NS (30u * (uint64_t)OP_NS_PER_S)

/* ---- opening ---- */

static int open_command(struct opf_profile *profile)
{
	const struct opf_options *options = profile->options;

	if (options->pid && !opf_count_threads(options->pid))
		return opr_error(-ESRCH, "--pid=%d: there is no such process", (int)options->pid);
	return options->command.nr_words ? opr_workload_start(&profile->command, &options->command) : 0;
}

static void close_command(struct opf_profile *profile)
{
	opr_workload_end(&profile->command);
}

static const struct op_helper_kind helper_kinds[] = OPD_HELPER_KINDS("operf-looker", NULL, opd_tabler_begin);

/*
 * Before there are threads and much memory: helpers inherit none of it. An ordinary user looks at
 * no stranger's files.
 */
static int open_lookers(struct opf_profile *profile)
{
	bool is_root = !geteuid();
	int err = 0;

	if (profile->options->stacks)
		opd_tabler_find_program();
	if (is_root || profile->options->stacks)
		err = op_nursery_start(helper_kinds, op_array_size(helper_kinds), &profile->nursery);
	if (!err && is_root)
		err = opd_lookers_new(profile->nursery, OPD_HELPER_LOOKER, &profile->lookers);
	return err ? opr_error(err, "cannot start a process: %s", strerror(-err)) : 0;
}

/* For whole stacks; in memory only. */
static int open_tables(struct opf_profile *profile)
{
	const struct opd_tables_config config = {
		.nursery = profile->nursery,
		.lookers = profile->lookers,
		.host_prefix = opd_host()->prefix,
	};
	int err = profile->options->stacks ? opd_tables_new(&config, &profile->tables) : 0;

	return err ? opr_error(err, "cannot make row tables: %s", strerror(-err)) : 0;
}

static void close_tables(struct opf_profile *profile)
{
	opd_tables_free(profile->tables);
}

static void close_lookers(struct opf_profile *profile)
{
	opd_lookers_free(profile->lookers);
	op_nursery_stop(profile->nursery);
}

/* Signals are read in the loop. The threads that swap inherit the mask. */
static int open_signals(struct opf_profile *profile)
{
	static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD };
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (size_t i = 0; i < op_array_size(numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	profile->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	err = profile->signal_fd < 0 ? -errno : op_guard_install();
	return err ? opr_error(err, "cannot wait for signals: %s", strerror(-err)) : 0;
}

static void close_signals(struct opf_profile *profile)
{
	if (profile->signal_fd >= 0)
		close(profile->signal_fd);
}

static int open_events(struct opf_profile *profile)
{
	int err = opf_events_make(profile->options, &profile->events, &profile->user_only);
	const char *why = "no IBS";
	struct op_ibs_host host;

	for (size_t i = 0; !err && i < profile->events.nr_opened; i++) {
		if (profile->events.events[i].role != OP_EVENT_SAMPLER)
			continue;
		err = op_ibs_host_read(&host, &why);
		if (err)
			return opr_error(err, "%s", why);
		profile->pipeline.ibs.cpu = host.cpu;
	}
	return err;
}

static void close_events(struct opf_profile *profile)
{
	op_event_list_free(&profile->events);
}

static int open_wide(struct opf_profile *profile, uint32_t callgraph, char **ret_why)
{
	struct op_config config;
	int err = op_config_init(&config);

	if (err)
		return err;
	err = opd_capture_open(&profile->pipeline.capture, &config, profile->events.events, profile->events.nr_events, false,
			       callgraph, ret_why);
	op_config_free(&config);
	return err;
}

static int open_capture(struct opf_profile *profile)
{
	const struct opf_options *options = profile->options;
	struct opd_capture *capture = &profile->pipeline.capture;
	struct opd_task_options tasks = {
		.callgraph = options->callgraph ? (uint32_t)op_min_u64(OP_CHAIN_DEPTH_MAX, op_chain_max_stack() - 1) : 0,
		.visit_ns = VISIT_NS,
		.on_exec = !options->pid,
		.nr_tasks = options->pid ? opf_count_threads(options->pid) + SPARE_THREADS : 1,
	};
	char *why = NULL;
	bool is_told = false;
	int err = options->system_wide
			  ? open_wide(profile, tasks.callgraph, &why)
			  : opd_capture_open_tasks(capture, profile->events.events, profile->events.nr_events, &tasks, &why);

	if (!err && options->pid) {
		err = opf_attach(capture, &tasks, options->pid);
		is_told = true;
	} else if (!err && !options->system_wide) {
		err = opd_capture_add_task(capture, &tasks, profile->command.pid, &why);
	}
	return is_told ? err : opr_error_why(err, why);
}

static void close_capture(struct opf_profile *profile)
{
	opd_capture_close(&profile->pipeline.capture);
}

static int open_session(struct opf_profile *profile)
{
	const char *dir = profile->options->session_dir;

	return opf_session_open(&profile->session, dir ? dir : OPF_SESSION_DIR, profile->options->append);
}

/* An incomplete session is checked by the next operf. */
static void close_session(struct opf_profile *profile)
{
	opf_session_close(&profile->session, !profile->write_error);
}

static bool samples_kernel(const struct op_event_list *events)
{
	for (size_t i = 0; i < events->nr_events; i++)
		if (events->events[i].kernel)
			return true;
	return false;
}

/* And the timeline, which begins with what the ledger has. */
static int open_ledger(struct opf_profile *profile)
{
	struct opd_pipeline *pipeline = &profile->pipeline;
	int err = opd_ledger_open(&pipeline->ledger, profile->session.fd, &pipeline->capture, profile->session.was_unclean);

	return err ? err : opd_by_time_open(&profile->by_time, &pipeline->count, profile->tables, &pipeline->ledger);
}

static int open_pipeline(struct opf_profile *profile)
{
	const struct opf_options *options = profile->options;
	struct opd_pipeline *pipeline = &profile->pipeline;
	struct opd_pipeline_config config = {
		.session_fd = profile->session.fd,
		.vmlinux = options->vmlinux,
		.max_images = MAX_IMAGES,
		.user_only = !samples_kernel(&profile->events),
		.build_ids = true,
		.lookers = profile->lookers,
		.runtimes = OP_RUNTIMES_ALL,
		.tables = profile->tables,
		.separate_lib = true,
		.separate_kernel = true,
		.separate_thread = options->separate_thread,
		.separate_cpu = options->separate_cpu,
		.events = profile->events.events,
		.nr_events = profile->events.nr_events,
		.max_open = opd_count_max_open(0),
		.max_closed = MAX_CLOSED_FILES,
	};
	uint64_t keep_free;
	int err = opr_session_limits(&config.max_files, &keep_free, &config.max_stack_bytes);

	if (err)
		return err;
	err = opd_pipeline_open(pipeline, &config);
	profile->is_counting = !err;
	if (!err) {
		if (profile->tables)
			opd_tables_set_images(profile->tables, pipeline->cookie_file.table);
		pipeline->resolver.jit->max_fd = opd_capture_spare_descriptors(&pipeline->capture, OPD_JIT_DESCRIPTORS_MAX);
		err = opd_visits_init(&profile->visits, pipeline, pipeline->capture.plan.nr_threads);
	}
	if (!err)
		err = open_ledger(profile);
	pipeline->count.ledger = err ? NULL : &pipeline->ledger;
	return err ? opr_error(err, "cannot count in %s: %s", profile->session.dir, strerror(-err)) : 0;
}

static void close_pipeline(struct opf_profile *profile)
{
	if (!profile->is_counting)
		return;
	opd_visits_free(&profile->visits);
	profile->pipeline.count.ledger = NULL;
	opd_ledger_close(&profile->pipeline.ledger);
	opd_pipeline_close(&profile->pipeline);
	opd_by_time_close(&profile->by_time); /* the last samples are handed over */
}

/* The side band is open and reports changes from now on. What was there before is in /proc. */
static int scan_processes(struct opf_profile *profile)
{
	struct opd_resolver *resolver = &profile->pipeline.resolver;
	int err = 0;

	if (profile->options->system_wide)
		err = opd_proc_scan_all(&resolver->processes, resolver->table, op_now_ns());
	else if (profile->options->pid)
		err = opd_proc_scan_pid(&resolver->processes, resolver->table, (uint32_t)profile->options->pid, op_now_ns());
	return err && err != -ENOENT ? opr_error(err, "cannot read /proc: %s", strerror(-err)) : 0;
}

static int watch_all(struct opf_profile *profile)
{
	int err = opd_loop_open(&profile->loop);

	if (!err)
		err = opd_loop_watch(&profile->loop, profile->signal_fd, SIGNAL_TAG);
	return err ? err : opd_loop_watch(&profile->loop, profile->pid_fd, PID_TAG);
}

static int write_ledger(struct opf_profile *profile, enum op_session_end ended)
{
	struct opd_pipeline *pipeline = &profile->pipeline;
	struct op_session_ledger ledger;
	int err;

	opd_count_flush(&pipeline->count);
	pipeline->ledger.hides_kernel = samples_kernel(&profile->events) && !pipeline->resolver.kernel.text_start;
	err = opd_ledger_sum(&pipeline->ledger, ended, &ledger);
	if (err)
		return err;
	err = opd_ledger_write(&pipeline->ledger, &ledger);
	op_session_ledger_free(&ledger);
	return err;
}

/* A process that has just ended is no error: there is nothing to sample. */
static int open_pid(struct opf_profile *profile)
{
	pid_t pid = profile->options->pid;

	if (!pid)
		return 0;
	profile->pid_fd = op_sys_pidfd_open(pid);
	if (profile->pid_fd == -ESRCH) {
		profile->loop.quit = true;
		return 0;
	}
	return profile->pid_fd < 0
		       ? opr_error(profile->pid_fd, "--pid=%d: %s", (int)pid,
				   profile->pid_fd == -EINVAL || profile->pid_fd == -ENOENT ? "that is a thread: name its process"
											    : strerror(-profile->pid_fd))
		       : 0;
}

/* The ledger is there from the begin on: a kill leaves a session that can be read. */
static int begin(struct opf_profile *profile)
{
	struct opd_pipeline *pipeline = &profile->pipeline;
	int err = open_pid(profile);

	if (err)
		return err;
	err = scan_processes(profile);
	if (err)
		return err;
	err = watch_all(profile);
	if (err)
		return opr_error(err, "cannot wait for samples: %s", strerror(-err));
	if (profile->user_only)
		opf_note_user_only();
	opd_ledger_begin(&pipeline->ledger);
	err = write_ledger(profile, OP_SESSION_open);
	if (err)
		return opr_error(err, "cannot write to %s: %s: make room there, or name another place with --session-dir",
				 profile->session.dir, strerror(-err));
	if (profile->command.pid)
		return opr_workload_go(&profile->command, profile->options->command.words[0]);
	err = opd_capture_enable(&pipeline->capture, true);
	if (err)
		return opr_error(err, "cannot begin to sample: %s", strerror(-err));
	/* The line that scripts for oprofile's operf look for. */
	printf("operf: Press Ctl-c or 'kill -SIGINT %d' to stop profiling\n", (int)getpid());
	fflush(stdout);
	if (profile->options->pid)
		fprintf(stderr, "operf: profiling process %d until it ends, or until Ctrl-C\n", (int)profile->options->pid);
	else
		fputs("operf: profiling all processes until Ctrl-C\n", stderr);
	return 0;
}

static void close_loop(struct opf_profile *profile)
{
	opd_loop_close(&profile->loop);
	if (profile->pid_fd >= 0)
		close(profile->pid_fd);
}

/* ---- the loop ---- */

/*
 * A child that ended may be the command. Without a command every other signal ends the profile; a
 * command decides itself what a signal does.
 */
static void take_signals(struct opf_profile *profile)
{
	struct signalfd_siginfo info;

	while (op_sys_read(profile->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			opr_workload_check(&profile->command);
		else if (profile->command.pid)
			opr_workload_pass(&profile->command, &info);
		else
			profile->loop.quit = true;
	}
	profile->loop.quit |= profile->command.ended;
}

/*
 * The kernel ends all events of a process that runs a set-user-ID program or one that its user may
 * not read (begin_new_exec in fs/exec.c). Such a process also hides its executable.
 */
static void check_refusal(struct opf_profile *profile)
{
	const struct opd_cpu *cpu = &profile->pipeline.capture.cpus[0];
	struct pollfd hangup = { .fd = cpu->events[0].fd };
	char path[64], target[1];

	if (!profile->command.pid || profile->is_refused || poll(&hangup, 1, 0) != 1 || !(hangup.revents & POLLHUP))
		return;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)profile->command.pid);
	profile->is_refused = op_sys_readlinkat(AT_FDCWD, path, target, sizeof(target)) == -EACCES;
}

/* Events of tasks are on the CPUs that were online at the begin. */
static void check_cpus(struct opf_profile *profile)
{
	const struct opd_capture *capture = &profile->pipeline.capture;
	uint32_t *online;
	size_t nr_online;

	if (profile->missed_cpus || opd_cpus_read(OPD_CPUS_ONLINE, &online, &nr_online) < 0)
		return;
	for (size_t i = 0; i < nr_online && !profile->missed_cpus; i++) {
		bool has = false;

		for (size_t c = 0; c < capture->nr_cpus; c++)
			has |= capture->cpus[c].cpu == online[i] && capture->cpus[c].online;
		profile->missed_cpus = !has;
	}
	free(online);
	if (profile->missed_cpus)
		opr_warn("a CPU came online: what runs on it is not sampled by this run of operf");
}

static void take_event(void *host, uint64_t tag)
{
	struct opf_profile *profile = host;

	if (tag == SIGNAL_TAG)
		take_signals(profile);
	else
		profile->loop.quit = true; /* the process of --pid has ended */
}

static void look(void *host, uint64_t now_ns)
{
	(void)now_ns;
	check_refusal(host);
	check_cpus(host);
}

/* The last one reports a failure. */
static void keep_ledger(void *host)
{
	(void)!write_ledger(host, OP_SESSION_open);
}

static const struct opd_chores chores = {
	.look = look, .ledger = keep_ledger, .event = take_event,
};

/* The command waits from the first step on; it finds the process as operf's caller left it. */
static const struct {
	int (*open)(struct opf_profile *profile);
	void (*close)(struct opf_profile *profile);
} steps[] = {
	{ open_command, close_command },   { open_lookers, close_lookers },
	{ open_signals, close_signals },   { open_events, close_events },
	{ open_capture, close_capture },   { open_session, close_session },
	{ open_tables, close_tables },     { open_pipeline, close_pipeline },
	{ begin, close_loop },
};

int opf_profile_open(struct opf_profile *profile, const struct opf_options *options)
{
	int err = 0;

	*profile = (struct opf_profile){
		.options = options,
		.command = { .go_fd = -1, .error_fd = -1 },
		.session = { .fd = -1, .lock_fd = -1 },
		.signal_fd = -1,
		.pid_fd = -1,
		.loop = {
			.chores = &chores,
			.host = profile,
			.pipeline = &profile->pipeline,
			.visits = &profile->visits,
			.visit_ns = VISIT_NS,
		},
	};
	for (size_t i = 0; i < op_array_size(steps) && !err; i++)
		err = steps[i].open(profile);
	return err;
}

void opf_profile_close(struct opf_profile *profile)
{
	for (size_t i = op_array_size(steps); i; i--)
		steps[i - 1].close(profile);
}

void opf_profile_run(struct opf_profile *profile)
{
	opd_loop_run(&profile->loop);
}

/* ---- the end ---- */

static int write_cookies(struct opd_pipeline *pipeline)
{
	return opd_cookie_file_publish(&pipeline->cookie_file, opd_cookie_file_begin(&pipeline->cookie_file));
}

/* The samples are complete without it. */
static void write_timeline(struct opf_profile *profile)
{
	uint64_t ago_ns = op_now_ns() - profile->by_time.newest_ns;
	int err = opd_by_time_write(&profile->by_time, profile->session.fd, op_sys_wall_ns() - ago_ns);

	if (err)
		opr_warn("%s/samples/current has no timeline of this run: %s", profile->session.dir, strerror(-err));
}

void opf_profile_finish(struct opf_profile *profile)
{
	struct opd_pipeline *pipeline = &profile->pipeline;
	struct op_session_files files;
	int err = opd_capture_enable(&pipeline->capture, false), cookie_err;

	if (err)
		opr_warn("cannot end to sample: %s", strerror(-err));
	opd_visit_until_quiet(&profile->visits);
	opd_sources_finish(pipeline, TABLES_WAIT_NS);
	opd_visits_write_objects(&profile->visits);
	opd_count_flush(&pipeline->count);
	write_timeline(profile);
	if (!opd_count_note_files(&pipeline->count, &files))
		pipeline->ledger.files = &files;
	opd_count_close_files(&pipeline->count);
	cookie_err = write_cookies(pipeline);
	err = write_ledger(profile, OP_SESSION_stopped);
	pipeline->ledger.files = NULL;
	profile->write_error = cookie_err ? cookie_err : err;
	if (profile->write_error)
		opr_error(profile->write_error, "cannot complete %s/samples/current: %s: make room there and run operf again",
			  profile->session.dir, strerror(-profile->write_error));
}
