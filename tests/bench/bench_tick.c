/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Does a timer in step with the scheduler's tick sample as much of each program as it ran? Usage:
 * bench_tick [PROGRAMS [SECONDS]], default 60 busy programs on one CPU, sampled for 25 s.
 *
 * Events of 1 ms begin at ten phases within the millisecond, events of other periods beside them.
 * All sample the same programs from their begin to their end. For each event: the samples of a
 * program beside those that its CPU time has room for, the mean of all programs, the least and the
 * most.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "tests/bench/bench.h"
#include "tests/die.h"

#define NR_PHASES    10
#define PHASE_NS     100000u
#define RING_BYTES   (2u << 20)
#define PROGRAMS_MAX 1000
#define SECONDS_MAX  60 /* as much as a ring has room for */
#define MS_NS        1000000u

static const uint64_t periods[] = {
	MS_NS, MS_NS, MS_NS, MS_NS, MS_NS, MS_NS, MS_NS, MS_NS, MS_NS, MS_NS, 937000, 970000, 997000, 1003000, 1013000,
};
static_assert(sizeof(periods) / sizeof(*periods) > NR_PHASES, "other periods come after the phases");

struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
};

struct event {
	int fd;
	struct perf_event_mmap_page *control;
};

struct program {
	pid_t pid;
	uint64_t ran_ns;
	uint64_t samples;
};

static void start_program(struct program *program)
{
	program->pid = fork();
	if (program->pid < 0)
		die("fork", -errno);
	if (!program->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned long i = 0;; i++)
			;
	}
}

static void end_program(struct program *program)
{
	struct rusage usage;

	if (wait4(program->pid, NULL, 0, &usage) < 0)
		die("wait4", -errno);
	program->ran_ns = ((uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
			   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)) * 1000;
}

static void open_event(struct event *event, uint64_t period, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = period,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	void *map;
	int err;

	event->fd = op_sys_perf_event_open(&attr, -1, cpu, -1, 0);
	if (event->fd < 0)
		die("perf_event_open", event->fd);
	err = op_sys_mmap(NULL, (size_t)sysconf(_SC_PAGESIZE) + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0, &map);
	if (err)
		die("mmap of a ring", err);
	event->control = map;
}

static struct program *find(struct program *programs, unsigned int nr, uint32_t pid)
{
	for (unsigned int i = 0; i < nr; i++)
		if ((uint32_t)programs[i].pid == pid)
			return &programs[i];
	return NULL;
}

/* A ring that is not full has all samples from its begin: nobody gives room back. */
static void show(const struct event *event, uint64_t period, struct program *programs, unsigned int nr)
{
	const uint8_t *data = (const uint8_t *)event->control + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&event->control->data_head, __ATOMIC_ACQUIRE), at = 0, first = 0;
	double sum = 0, least = 1e9, most = 0;

	for (unsigned int i = 0; i < nr; i++)
		programs[i].samples = 0;
	while (at < head) {
		const struct sample *sample = (const void *)(data + at);
		struct program *program = find(programs, nr, sample->pid);

		at += sample->header.size;
		if (sample->header.type != PERF_RECORD_SAMPLE)
			continue;
		first = first ? first : sample->time;
		if (program)
			program->samples++;
	}
	for (unsigned int i = 0; i < nr; i++) {
		double ratio = (double)programs[i].samples * (double)period / (double)programs[i].ran_ns;

		sum += ratio;
		least = ratio < least ? ratio : least;
		most = ratio > most ? ratio : most;
	}
	printf("%10.3f ms %12.0f us %14.3f %14.3f %14.3f%s\n", (double)period / MS_NS, (double)(first % MS_NS) / 1000, sum / nr,
	       least, most, head > RING_BYTES - 4096 ? "  (ring full)" : "");
}

int main(int argc, char **argv)
{
	enum { NR = sizeof(periods) / sizeof(*periods) };
	uint64_t nr_programs = 60, seconds = 25, begin;
	static struct program programs[PROGRAMS_MAX];
	struct event events[NR];
	cpu_set_t allowed;

	if (argc > 3 || (argc > 1 && op_parse_u64(argv[1], 1, PROGRAMS_MAX, &nr_programs)) ||
	    (argc > 2 && op_parse_u64(argv[2], 1, SECONDS_MAX, &seconds))) {
		fprintf(stderr, "usage: bench_tick [PROGRAMS [SECONDS]]\n");
		return 1;
	}
	sched_getaffinity(0, sizeof(allowed), &allowed);
	bench_pin_within(&allowed, 0);
	/* Nothing comes between the starts of the events. The programs are of the usual kind. */
	sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &(struct sched_param){ .sched_priority = 1 });
	for (unsigned int i = 0; i < NR; i++)
		open_event(&events[i], periods[i], sched_getcpu());
	begin = bench_now_ns() + MS_NS;
	for (unsigned int i = 0; i < NR; i++) {
		while (bench_now_ns() < begin + i * PHASE_NS)
			bench_relax();
		ioctl(events[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	for (unsigned int i = 0; i < nr_programs; i++)
		start_program(&programs[i]);
	bench_pin_within(&allowed, 1);
	sleep((unsigned int)seconds);
	for (unsigned int i = 0; i < nr_programs; i++)
		kill(programs[i].pid, SIGKILL);
	for (unsigned int i = 0; i < nr_programs; i++)
		end_program(&programs[i]);
	printf("Samples beside CPU time of %u programs on one CPU, %u s\n", (unsigned int)nr_programs, (unsigned int)seconds);
	printf("%13s %15s %14s %14s %14s\n", "period", "phase", "mean", "least", "most");
	for (unsigned int i = 0; i < NR; i++)
		show(&events[i], periods[i], programs, (unsigned int)nr_programs);
	return 0;
}
