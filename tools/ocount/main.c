/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ocount: counts events of a command, of tasks, of CPUs or of the whole system. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "tools/common/log.h"
#include "tools/common/workload.h"
#include "tools/ocount/results.h"

#define CHECK_TASKS_MS 200 /* how often the end of tasks is looked for */

struct run {
	const struct ocn_options *options;
	struct opr_workload command;
	struct ocn_events events;
	struct ocn_counters counters;
	struct ocn_results results;
	char *path;              /* of the command */
	int signal_fd, timer_fd; /* timer_fd -1: no intervals */
	uint64_t nr_intervals;   /* so far */
	bool quit;
};

static void note_user_only(void)
{
	opr_note("kernel.perf_event_paranoid: ocount counts user-space code only (root, or a value of 1, adds the kernel)");
}

/* The command was forked before, so it finds its signals as the caller left them. */
static int open_signals(struct run *run)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < 5; i++)
		sigaddset(&set, (int[]){ SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD }[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 ? opr_error(-errno, "cannot wait for signals: %s", strerror(errno)) : 0;
}

static int open_timer(struct run *run)
{
	const uint64_t ns = run->options->interval.ns;
	const struct timespec interval = { .tv_sec = (time_t)(ns / OP_NS_PER_S), .tv_nsec = (long)(ns % OP_NS_PER_S) };
	const struct itimerspec timer = { interval, interval };

	if (!ns)
		return 0;
	run->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (run->timer_fd < 0 || timerfd_settime(run->timer_fd, 0, &timer, NULL) < 0)
		return opr_error(-errno, "cannot make a timer: %s", strerror(errno));
	return 0;
}

static int open_output(struct run *run)
{
	const char *file = run->options->output_file;

	run->results = (struct ocn_results){ .out = stdout, .options = run->options, .counters = &run->counters };
	if (!file)
		return 0;
	run->results.out = fopen(file, "we");
	return run->results.out ? 0 : opr_error(-errno, "%s: %s", file, strerror(errno));
}

/* With the real directory; the file keeps its name, also when it is a link. NULL: not known. */
static char *full_path(char *path)
{
	char *slash = strrchr(path, '/'), *dir, *full = NULL;

	if (!slash)
		return NULL;
	*slash = '\0';
	dir = realpath(*path ? path : "/", NULL);
	*slash = '/';
	if (dir && asprintf(&full, "%s%s", strcmp(dir, "/") ? dir : "", slash) < 0)
		full = NULL;
	free(dir);
	return full;
}

static int begin(struct run *run)
{
	const struct ocn_options *options = run->options;
	int err = 0;

	if (options->mode == OCN_COMMAND)
		err = opr_workload_start(&run->command, &options->command);
	if (err)
		return err;
	err = open_signals(run);
	if (err)
		return err;
	err = ocn_events_make(options, &run->events);
	if (err)
		return err;
	err = open_output(run);
	if (err)
		return err;
	err = ocn_counters_open(&run->counters, options, &run->events, run->command.pid);
	if (err)
		return err;
	if (run->events.user_only)
		note_user_only();
	run->path = run->command.path ? full_path(run->command.path) : NULL;
	run->results.command = run->path;
	err = open_timer(run);
	if (err)
		return err;
	if (options->mode == OCN_COMMAND)
		return opr_workload_go(&run->command, options->command.words[0]);
	fprintf(stderr, "ocount: Press Ctrl-c or 'kill -SIGINT %d' to stop counting\n", (int)getpid());
	return 0;
}

/* ---- the loop ---- */

static int write_counts(struct run *run)
{
	struct timespec now;
	int err = ocn_counters_read(&run->counters);

	if (err)
		return err;
	if (run->options->interval.ns) {
		clock_gettime(CLOCK_REALTIME, &now);
		ocn_results_write_time(&run->results, (uint64_t)now.tv_sec * OP_NS_PER_S + (uint64_t)now.tv_nsec);
	}
	ocn_results_write(&run->results, op_now_ns() - run->counters.begin_ns);
	return fflush(run->results.out) == EOF ? opr_error(-EIO, "cannot write the counts: %s", strerror(errno)) : 0;
}

/* A command decides itself what a signal does; without one it ends the run. */
static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (op_sys_read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			opr_workload_check(&run->command);
		else if (run->options->mode == OCN_COMMAND)
			opr_workload_pass(&run->command, &info);
		else
			run->quit = true;
	}
	run->quit |= run->command.ended;
}

/* The last of a number of intervals also ends the command, as in oprofile; that is no failure. */
static int take_tick(struct run *run)
{
	uint64_t nr_ticks;
	int err;

	if (run->timer_fd < 0 || op_sys_read(run->timer_fd, &nr_ticks, sizeof(nr_ticks)) != sizeof(nr_ticks))
		return 0;
	err = write_counts(run);
	if (++run->nr_intervals != run->options->interval.nr_intervals)
		return err;
	run->quit = true;
	if (run->command.pid && !run->command.ended) {
		kill(run->command.pid, SIGKILL);
		opr_workload_end(&run->command);
	}
	return err;
}

static int wait_and_count(struct run *run)
{
	const bool has_tasks = run->options->mode == OCN_PROCESSES || run->options->mode == OCN_THREADS;
	struct pollfd fds[] = { { .fd = run->signal_fd, .events = POLLIN }, { .fd = run->timer_fd, .events = POLLIN } };
	int err = 0;

	while (!run->quit && !err) {
		poll(fds, op_array_size(fds), has_tasks ? CHECK_TASKS_MS : -1);
		take_signals(run);
		if (has_tasks && !ocn_any_task(run->options))
			run->quit = true;
		if (!run->quit)
			err = take_tick(run);
	}
	if (!err && (!run->options->interval.nr_intervals || run->nr_intervals < run->options->interval.nr_intervals))
		err = write_counts(run);
	return err;
}

static void end(struct run *run)
{
	if (run->results.out && run->results.out != stdout)
		fclose(run->results.out);
	ocn_counters_close(&run->counters);
	ocn_events_free(&run->events);
	opr_workload_end(&run->command);
	if (run->signal_fd >= 0)
		close(run->signal_fd);
	if (run->timer_fd >= 0)
		close(run->timer_fd);
	free(run->path);
}

/* The exit code of the command, else that of ocount. */
static int count(const struct ocn_options *options)
{
	struct run run = { .options = options, .command = { .go_fd = -1, .error_fd = -1 }, .signal_fd = -1, .timer_fd = -1 };
	int err = begin(&run), exit_code;

	if (!err)
		err = wait_and_count(&run);
	exit_code = run.command.exit_code;
	end(&run);
	return exit_code ? exit_code : err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
	struct ocn_options options = { 0 };
	enum opr_request request;
	int exit_code;

	opr_log_init("ocount");
	opr_workload_note_signals();
	exit_code = ocn_options_parse(&options, argc, argv, &request) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (!exit_code && request == OPR_RUN)
		exit_code = count(&options);
	ocn_options_free(&options);
	return exit_code;
}
