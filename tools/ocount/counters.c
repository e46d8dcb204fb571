/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/ocount/counters.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "pipeline/capture/cpus.h"
#include "tools/common/log.h"
#include "tools/events/user_events.h"

#define ANY_CPU  (-1)
#define ANY_TASK (-1)

struct opening {
	struct ocn_counters *counters;
	const struct ocn_options *options;
	struct ocn_numbers tasks; /* that have counters */
};

static int explain(const struct opening *opening, const struct ocn_event *event, int owner, int err)
{
	if (opening->options->mode == OCN_CPUS || opening->options->mode == OCN_SYSTEM) {
		if (opr_event_is_refusal(err))
			return opr_error(err, "not permitted: to count on CPUs needs root, CAP_PERFMON, or "
					      "kernel.perf_event_paranoid=0 or less; 'ocount COMMAND' counts your own program");
	} else if (opr_event_is_refusal(err)) {
		return opr_error(err, "task %d: not permitted: it is of another user, or has more rights than you", owner);
	}
	return opr_error_why(err, op_event_explain(&event->event, err));
}

/* 0; -ESRCH: the task has ended; another -errno after a message. */
static int open_counter(struct opening *opening, const struct ocn_event *event, pid_t pid, int cpu)
{
	struct ocn_counters *counters = opening->counters;
	struct perf_event_attr attr = ocn_event_attr(event);
	int owner = cpu == ANY_CPU ? pid : cpu, fd;

	attr.inherit = opening->options->mode != OCN_THREADS && cpu == ANY_CPU;
	attr.enable_on_exec = attr.disabled = opening->options->mode == OCN_COMMAND;
	if (!op_grow(&counters->counters, &counters->capacity, counters->nr_counters + 1))
		return opr_no_memory();
	fd = op_sys_perf_event_open(&attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return fd == -ESRCH ? fd : explain(opening, event, owner, fd);
	counters->counters[counters->nr_counters++] = (struct ocn_counter){ .fd = fd, .owner = owner };
	if (opening->options->verbose)
		fprintf(stderr, "ocount: %s of %s %d\n", event->shown, cpu == ANY_CPU ? "task" : "CPU", owner);
	return 0;
}

static void drop_counters(struct ocn_counters *counters, size_t nr_kept)
{
	while (counters->nr_counters > nr_kept)
		close(counters->counters[--counters->nr_counters].fd);
}

/* All events, or none with -ESRCH. */
static int open_events(struct opening *opening, pid_t pid, int cpu)
{
	struct ocn_counters *counters = opening->counters;
	size_t nr_before = counters->nr_counters;
	int err = 0;

	for (size_t i = 0; i < counters->events->nr_events && !err; i++)
		err = open_counter(opening, &counters->events->events[i], pid, cpu);
	if (err == -ESRCH)
		drop_counters(counters, nr_before);
	return err;
}

/* ---- tasks ---- */

static bool has_task(const struct opening *opening, int task)
{
	for (size_t i = 0; i < opening->tasks.nr_numbers; i++)
		if (opening->tasks.numbers[i] == task)
			return true;
	return false;
}

static int add_task(struct opening *opening, int task)
{
	int err;

	if (has_task(opening, task))
		return 0;
	err = open_events(opening, task, ANY_CPU);
	if (err == -ESRCH)
		return 0;
	if (!err && !op_grow(&opening->tasks.numbers, &opening->tasks.capacity, opening->tasks.nr_numbers + 1))
		return opr_no_memory();
	if (!err)
		opening->tasks.numbers[opening->tasks.nr_numbers++] = task;
	return err;
}

/* A thread that begins meanwhile inherits the counters of its parent, or the next scan finds it. */
static int add_threads(struct opening *opening, int pid)
{
	char path[64];
	size_t nr_before;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	do {
		DIR *dir = opendir(path);

		nr_before = opening->tasks.nr_numbers;
		for (struct dirent *entry; dir && !err && (entry = readdir(dir));) {
			uint64_t task;

			if (!op_parse_u64(entry->d_name, 1, INT32_MAX, &task))
				err = add_task(opening, (int)task);
		}
		if (dir)
			closedir(dir);
	} while (!err && opening->tasks.nr_numbers != nr_before);
	return err;
}

static int add_tasks(struct opening *opening, const struct ocn_numbers *wanted)
{
	bool are_threads = opening->options->mode == OCN_THREADS;
	int err = 0;

	for (size_t i = 0; i < wanted->nr_numbers && !err; i++) {
		size_t nr_before = opening->tasks.nr_numbers;
		int task = wanted->numbers[i];

		err = are_threads ? add_task(opening, task) : add_threads(opening, task);
		if (!err && opening->tasks.nr_numbers == nr_before && !has_task(opening, task))
			err = opr_error(-ESRCH, "there is no %s %d", are_threads ? "thread" : "process", task);
	}
	return err;
}

/* ---- CPUs ---- */

static int add_cpus(struct opening *opening)
{
	const struct ocn_numbers *wanted = &opening->options->cpus;
	uint32_t *cpus = NULL;
	size_t nr_cpus = 0;
	int err = opd_cpus_read(OPD_CPUS_ONLINE, &cpus, &nr_cpus);

	if (err)
		return opr_error(err, "%s: %s", OPD_CPUS_ONLINE, strerror(-err));
	for (size_t i = 0; i < wanted->nr_numbers && !err; i++)
		err = opd_cpus_has(cpus, nr_cpus, (uint32_t)wanted->numbers[i]) ?
			      open_events(opening, ANY_TASK, wanted->numbers[i]) :
			      opr_error(-ENODEV, "CPU %d is not online", wanted->numbers[i]);
	for (size_t i = 0; opening->options->mode == OCN_SYSTEM && i < nr_cpus && !err; i++)
		err = open_events(opening, ANY_TASK, (int)cpus[i]);
	free(cpus);
	return err;
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit))
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ limit.rlim_max, limit.rlim_max });
}

int ocn_counters_open(struct ocn_counters *counters, const struct ocn_options *options, const struct ocn_events *events, pid_t pid)
{
	struct opening opening = { .counters = counters, .options = options };
	int err = -EINVAL;

	counters->events = events;
	raise_descriptor_limit();
	switch (options->mode) {
	case OCN_COMMAND:
		err = open_events(&opening, pid, ANY_CPU);
		break;
	case OCN_PROCESSES:
		err = add_tasks(&opening, &options->processes);
		break;
	case OCN_THREADS:
		err = add_tasks(&opening, &options->threads);
		break;
	case OCN_CPUS:
	case OCN_SYSTEM:
		err = add_cpus(&opening);
		break;
	}
	free(opening.tasks.numbers);
	counters->begin_ns = op_now_ns();
	return err;
}

bool ocn_any_task(const struct ocn_options *options)
{
	const struct ocn_numbers *tasks = options->mode == OCN_THREADS ? &options->threads : &options->processes;

	for (size_t i = 0; i < tasks->nr_numbers; i++)
		if (!kill(tasks->numbers[i], 0) || errno != ESRCH)
			return true;
	return false;
}

int ocn_counters_read(struct ocn_counters *counters)
{
	for (size_t i = 0; i < counters->nr_counters; i++) {
		struct ocn_counter *counter = &counters->counters[i];
		struct ocn_reading reading;
		ssize_t nr = op_sys_read(counter->fd, &reading, sizeof(reading));

		if (nr != (ssize_t)sizeof(reading))
			return opr_error(nr < 0 ? (int)nr : -EIO, "cannot read a counter: %s",
					 nr < 0 ? strerror((int)-nr) : "it is off");
		counter->now = (struct ocn_reading){ reading.count - counter->last.count,
						     reading.enabled_ns - counter->last.enabled_ns,
						     reading.running_ns - counter->last.running_ns };
		counter->last = reading;
	}
	return 0;
}

void ocn_counters_close(struct ocn_counters *counters)
{
	drop_counters(counters, 0);
	free(counters->counters);
	counters->counters = NULL;
}
