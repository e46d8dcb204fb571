/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Visits to 64 CPUs with a simulated kernel: it is called by the ioctl that directs an event, sees
 * which thread comes when, and writes what a kernel could write at that moment. During the last
 * swap a new process maps a file, which is reported in the side band of another CPU, and runs in
 * it. A visit that reads the side band before the end of the last swap, or a frozen ring before the
 * side band, files the sample wrong.
 */
#include "pipeline/capture/kernel_source.h"
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "pipeline/drive/visit.h"
#include "tests/unit/memory_ring.h"
#include "tests/unit/pipeline.h"
#include "tests/unit/sideband_records.h"

#define NR_CPUS      64u
#define NR_EVENTS    2u
#define NR_THREADS   8u
#define NR_TURNS     40u
#define FIRST_EVENT  100000 /* descriptors that nobody opened */
#define FIRST_ANCHOR 200000
#define EVENT_ID     17u
#define OLD_PID      4000000u /* above any pid_max, so that /proc has nothing of it */
#define NEW_PID      4100000u
#define HANG_SECONDS 60 /* ends a test that would hang */
#define BROKEN_CPU   5u

static struct opd_pipeline pipeline;
static struct opd_visits visits;
static struct opd_cpu cpus[NR_CPUS];
static struct opd_event events[NR_CPUS][NR_EVENTS];
static const struct op_event kinds[NR_EVENTS] = {
	{ .name = "TIMER", .count = 1000000, .is_timer = true, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK },
	{ .name = "page-faults", .count = 1, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
};
static char dir[BOX_PATH_BYTES];

/* ---- the kernel ---- */

static struct {
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t changed;
	unsigned int inside, most_inside;
	/* threads that must be inside at once before one of them goes on */
	unsigned int wait_for;
	unsigned int nr_calls;
	unsigned int nr_by_caller; /* by the thread that runs the test */
	bool busy[NR_CPUS];        /* a thread swaps this CPU */
	bool shared;               /* two threads swapped one CPU at once */
	bool read_early;           /* a frozen ring was read before the last swap */
	bool hung;
	uint64_t tails; /* sum of the bytes that the reader had given back when the turn began */
	uint64_t nr_written;
	uint32_t next_pid;
	int error; /* of every call for BROKEN_CPU */
	pthread_t caller;
} kernel = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static uint64_t sum_tails(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < NR_CPUS; i++)
		for (size_t r = 0; r < 2; r++)
			sum += __atomic_load_n(&cpus[i].pair.rings[r].k_control->data_tail, __ATOMIC_ACQUIRE);
	return sum;
}

static void write_sample(struct op_ring *ring, uint32_t pid, uint64_t time_ns)
{
	uint64_t words[] = { EVENT_ID, 0x400010, (uint64_t)pid << 32 | pid, time_ns };

	if (memory_ring_record(ring, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, 4))
		kernel.nr_written++;
}

/*
 * A process begins and runs as late as possible: in the ring that is still the write ring of its
 * CPU.
 */
static void run_new_process(unsigned int cpu)
{
	struct op_ring *sideband = &cpus[(cpu + 1) % NR_CPUS].sideband;
	uint32_t pid = kernel.next_pid++;

	sideband_exec(sideband, pid, op_now_ns());
	sideband_mmap(sideband, pid, 0x400000, 0x1000, 0, "/no/new", op_now_ns());
	write_sample(op_ring_pair_write_ring(&cpus[cpu].pair), pid, op_now_ns());
}

/* Waits until as many threads are inside as the test wants. */
static void await_others(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += HANG_SECONDS;
	while (kernel.most_inside < kernel.wait_for && !kernel.hung)
		if (pthread_cond_timedwait(&kernel.changed, &kernel.lock, &end))
			kernel.hung = true;
}

int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg);

int __wrap_op_sys_ioctl(int fd, unsigned long request, void *arg)
{
	unsigned int cpu = (unsigned int)(fd - FIRST_EVENT) / NR_EVENTS, event = (unsigned int)(fd - FIRST_EVENT) % NR_EVENTS;
	int err;

	if (request != PERF_EVENT_IOC_SET_OUTPUT || (intptr_t)arg != cpus[cpu].pair.anchor_fds[!cpus[cpu].pair.write])
		return -EINVAL;
	pthread_mutex_lock(&kernel.lock);
	kernel.shared |= kernel.busy[cpu];
	kernel.busy[cpu] = true;
	kernel.nr_calls++;
	kernel.nr_by_caller += pthread_equal(pthread_self(), kernel.caller) ? 1 : 0;
	if (++kernel.inside > kernel.most_inside)
		kernel.most_inside = kernel.inside;
	pthread_cond_broadcast(&kernel.changed);
	await_others();
	kernel.read_early |= sum_tails() != kernel.tails;
	if (event == NR_EVENTS - 1)
		run_new_process(cpu);
	kernel.inside--;
	kernel.busy[cpu] = false;
	err = cpu == BROKEN_CPU ? kernel.error : 0;
	pthread_mutex_unlock(&kernel.lock);
	return err;
}

static void begin_turn(unsigned int wait_for)
{
	pthread_mutex_lock(&kernel.lock);
	kernel.inside = kernel.most_inside = kernel.nr_calls = kernel.nr_by_caller = 0;
	kernel.wait_for = wait_for;
	kernel.tails = sum_tails();
	pthread_mutex_unlock(&kernel.lock);
}

/* Something to read on a CPU. */
static void make_due(unsigned int cpu)
{
	write_sample(op_ring_pair_write_ring(&cpus[cpu].pair), OLD_PID, op_now_ns());
}

static void make_all_due(void)
{
	for (unsigned int i = 0; i < NR_CPUS; i++)
		make_due(i);
}

/* ---- the daemon ---- */

static int make_cpu(unsigned int index)
{
	struct opd_cpu *cpu = &cpus[index];

	*cpu = (struct opd_cpu){
		.cpu = index, .online = true, .source = &opd_source_kernel, .events = events[index], .sideband_fd = -1
	};
	memory_ring_init(&cpu->pair.rings[0]);
	memory_ring_init(&cpu->pair.rings[1]);
	memory_ring_init(&cpu->sideband);
	cpu->pair.anchor_fds[0] = FIRST_ANCHOR + (int)index * 2;
	cpu->pair.anchor_fds[1] = FIRST_ANCHOR + (int)index * 2 + 1;
	cpu->pair.event_fds = calloc(NR_EVENTS, sizeof(int));
	if (!cpu->pair.event_fds)
		return -1;
	cpu->pair.nr_events = NR_EVENTS;
	for (unsigned int e = 0; e < NR_EVENTS; e++) {
		cpu->pair.event_fds[e] = FIRST_EVENT + (int)(index * NR_EVENTS + e);
		events[index][e] = (struct opd_event){ .fd = -1, .id = EVENT_ID + e };
	}
	return 0;
}

static int cpus_setup(void **state OP_UNUSED)
{
	for (unsigned int i = 0; i < NR_CPUS; i++)
		if (make_cpu(i) < 0)
			return -1;
	pipeline = (struct opd_pipeline){
		.capture = { .events = kinds,
			     .nr_events = NR_EVENTS,
			     .nr_opened = NR_EVENTS,
			     .cpus = cpus,
			     .nr_cpus = NR_CPUS,
			     .nr_online = NR_CPUS },
	};
	if (pipeline_begin(&pipeline, dir) < 0)
		return -1;
	pipeline.count.separate_lib = pipeline.count.separate_kernel = false;
	kernel.nr_written = 0;
	kernel.next_pid = NEW_PID;
	kernel.shared = kernel.read_early = kernel.hung = false;
	kernel.error = 0;
	kernel.caller = pthread_self();
	sideband_exec(&cpus[0].sideband, OLD_PID, op_now_ns());
	sideband_mmap(&cpus[0].sideband, OLD_PID, 0x400000, 0x1000, 0, "/no/old", op_now_ns());
	return opd_visits_init(&visits, &pipeline, NR_THREADS);
}

static int cpus_teardown(void **state OP_UNUSED)
{
	opd_visits_free(&visits);
	for (size_t i = 0; i < NR_CPUS; i++) {
		memory_ring_free(&cpus[i].pair.rings[0]);
		memory_ring_free(&cpus[i].pair.rings[1]);
		memory_ring_free(&cpus[i].sideband);
		free(cpus[i].pair.event_fds);
	}
	return pipeline_end(&pipeline, dir);
}

static struct opd_event sum_events(void)
{
	struct opd_event sum = { 0 };

	for (size_t i = 0; i < NR_CPUS; i++) {
		sum.received += events[i][0].received;
		sum.stored += events[i][0].stored;
		sum.unattributed += events[i][0].unattributed;
	}
	return sum;
}

/* All records of the kernel are stored where they belong, and no rule was broken. */
static void check_all_is_stored(void)
{
	struct opd_event sum = sum_events();

	assert_false(kernel.hung);
	assert_false(kernel.shared);
	assert_false(kernel.read_early);
	assert_int_equal(sum.received, kernel.nr_written);
	assert_int_equal(sum.stored, kernel.nr_written);
	assert_int_equal(sum.unattributed, 0);
}

static unsigned int nr_own_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned int nr = 0;

	assert_non_null(tasks);
	for (const struct dirent *entry; (entry = readdir(tasks));)
		nr += entry->d_name[0] != '.';
	closedir(tasks);
	return nr;
}

/* ---- tests ---- */

static void swaps_overlap_and_the_side_band_comes_after_the_last(void **state OP_UNUSED)
{
	make_all_due();
	begin_turn(NR_THREADS);
	opd_visit_all(&visits);
	assert_int_equal(kernel.most_inside, NR_THREADS);
	assert_int_equal(kernel.nr_calls, NR_CPUS * NR_EVENTS);
	assert_int_equal(kernel.nr_written, 2 * NR_CPUS);
	check_all_is_stored();
	assert_int_equal(visits.counts.nr_turns, 1);
	for (size_t i = 0; i < NR_CPUS; i++) {
		assert_int_equal(cpus[i].pair.counts.swaps, 1);
		assert_int_equal(cpus[i].pair.counts.records, 2);
		assert_int_equal(cpus[i].pair.counts.last_bytes, 2 * 40);
		assert_int_equal(cpus[i].pair.counts.late, 0);
		assert_int_equal(cpus[i].pair.write, 1);
	}
}

static void many_turns_lose_nothing(void **state OP_UNUSED)
{
	for (unsigned int turn = 0; turn < NR_TURNS; turn++) {
		for (unsigned int i = turn % 3; i < NR_CPUS; i += turn % 5 + 1)
			make_due(i);
		begin_turn(0);
		opd_visit_all(&visits);
		check_all_is_stored();
	}
	assert_int_equal(visits.counts.nr_turns, NR_TURNS);
}

static void an_idle_cpu_is_left_alone(void **state OP_UNUSED)
{
	begin_turn(0);
	opd_visit_all(&visits);
	assert_int_equal(kernel.nr_calls, 0);
	assert_int_equal(visits.counts.nr_turns, 0);
	for (unsigned int i = 0; i < NR_CPUS; i += 2)
		make_due(i);
	cpus[0].online = false;
	opd_visit_all(&visits);
	assert_int_equal(kernel.nr_calls, (NR_CPUS / 2 - 1) * NR_EVENTS);
	for (size_t i = 0; i < NR_CPUS; i++)
		assert_int_equal(cpus[i].pair.counts.swaps, i && i % 2 == 0);
}

static void one_cpu_is_swapped_by_the_caller(void **state OP_UNUSED)
{
	unsigned int nr_threads = nr_own_threads();

	make_due(7);
	begin_turn(0);
	opd_visits_add(&visits, &cpus[7]);
	opd_visits_add(&visits, &cpus[7]); /* both of its anchors woke */
	opd_visits_add(&visits, &cpus[8]); /* idle */
	opd_visits_run(&visits);
	assert_int_equal(kernel.nr_calls, NR_EVENTS);
	assert_int_equal(kernel.nr_by_caller, NR_EVENTS);
	assert_int_equal(nr_own_threads(), nr_threads);
	check_all_is_stored();
	/* With three, two threads are needed beside the caller. */
	for (unsigned int i = 20; i < 23; i++)
		make_due(i);
	begin_turn(3);
	opd_visit_all(&visits);
	assert_int_equal(kernel.most_inside, 3);
	assert_int_equal(nr_own_threads(), nr_threads + 2);
	check_all_is_stored();
}

/*
 * Its writer chose the ring before a swap and commits after the frozen records were read: the
 * record waits until the ring is read again.
 */
static void a_late_commit_is_counted_once(void **state OP_UNUSED)
{
	struct op_swap_counts *counts = &cpus[3].pair.counts;
	uint64_t picked_ns = op_now_ns();

	make_due(3);
	begin_turn(0);
	opd_visit_all(&visits);
	write_sample(op_ring_pair_read_ring(&cpus[3].pair), OLD_PID, picked_ns);
	for (unsigned int turn = 2; turn <= 4; turn++) {
		make_due(3);
		begin_turn(0);
		opd_visit_all(&visits);
		assert_int_equal(counts->swaps, turn);
		assert_int_equal(counts->late, turn >= 3);
	}
	assert_int_equal(counts->records, kernel.nr_written);
	assert_int_equal(counts->most_records, 3);
	assert_int_equal(counts->last_records, 2);
	check_all_is_stored();
}

/*
 * The rings of a CPU that went offline: a late commit in its read ring, and samples in its write
 * ring of a process that only the unread side band of another CPU reports. Nobody swaps the CPU any
 * more.
 */
static void a_cpu_that_went_leaves_both_rings(void **state OP_UNUSED)
{
	struct opd_cpu *cpu = &cpus[3];
	uint64_t picked_ns = op_now_ns();

	for (unsigned int turn = 0; turn < 2; turn++) {
		make_due(3);
		begin_turn(0);
		opd_visit_all(&visits);
	}
	cpu->online = false;
	write_sample(op_ring_pair_read_ring(&cpu->pair), OLD_PID, picked_ns);
	make_due(3);
	run_new_process(3);
	opd_visit_offline_cpu(&visits, cpu);
	check_all_is_stored();
	assert_false(cpu->source->pending(cpu));
	assert_int_equal(kernel.nr_calls, NR_EVENTS);
	assert_int_equal(cpu->pair.counts.swaps, 2);
	assert_int_equal(cpu->pair.counts.records, kernel.nr_written);
	assert_int_equal(cpu->pair.counts.late, 1);
}

/* The kernel wakes the reader after so many bytes, whether they were read meanwhile or not. */
static void a_ring_that_woke_with_little_in_it_waits(void **state OP_UNUSED)
{
	struct opd_capture *capture = &visits.pipeline->capture;

	make_due(3);
	capture->watermark_bytes = cpus[3].source->pending(&cpus[3]) + 1;
	capture->may_leave_woken = true;
	opd_visits_add_woken(&visits, &cpus[3]);
	assert_int_equal(visits.nr_due, 0);
	capture->may_leave_woken = false;
	opd_visits_add_woken(&visits, &cpus[3]);
	assert_int_equal(visits.nr_due, 1);
	capture->may_leave_woken = true;
	make_due(4);
	capture->watermark_bytes = cpus[4].source->pending(&cpus[4]);
	opd_visits_add_woken(&visits, &cpus[4]);
	assert_int_equal(visits.nr_due, 2);
	cpus[5].online = false;
	opd_visits_add_woken(&visits, &cpus[5]);
	assert_int_equal(visits.nr_due, 2);
	cpus[5].online = true;
	capture->watermark_bytes = 0;
	capture->may_leave_woken = false;
	begin_turn(0);
	opd_visits_run(&visits);
	check_all_is_stored();
}

static void a_swap_that_fails_stops_no_other(void **state OP_UNUSED)
{
	struct opd_swap swaps[3] = { { .pair = &cpus[BROKEN_CPU - 1].pair },
				     { .pair = &cpus[BROKEN_CPU].pair },
				     { .pair = &cpus[BROKEN_CPU + 1].pair } };

	kernel.error = -EIO;
	make_all_due();
	begin_turn(0);
	opd_visit_all(&visits);
	assert_int_equal(kernel.nr_calls, NR_CPUS * NR_EVENTS);
	check_all_is_stored();
	opd_swappers_swap(visits.swappers, swaps, op_array_size(swaps));
	assert_int_equal(swaps[0].err, 0);
	assert_int_equal(swaps[1].err, -EIO);
	assert_int_equal(swaps[2].err, 0);
}

static void threads_that_never_worked_end(void **state OP_UNUSED)
{
	struct opd_swappers *swappers;
	struct opd_swap none;

	assert_int_equal(opd_swappers_new(OPD_SWAPPERS_MAX, &swappers), 0);
	opd_swappers_swap(swappers, &none, 0);
	opd_swappers_free(swappers);
	opd_swappers_free(NULL);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, cpus_setup, cpus_teardown)
	const struct CMUnitTest tests[] = {
		T(swaps_overlap_and_the_side_band_comes_after_the_last),
		T(many_turns_lose_nothing),
		T(an_idle_cpu_is_left_alone),
		T(one_cpu_is_swapped_by_the_caller),
		T(a_late_commit_is_counted_once),
		T(a_cpu_that_went_leaves_both_rings),
		T(a_ring_that_woke_with_little_in_it_waits),
		T(a_swap_that_fails_stops_no_other),
		T(threads_that_never_worked_end),
	};

	return cmocka_run_group_tests_name("visit", tests, NULL, NULL);
}
