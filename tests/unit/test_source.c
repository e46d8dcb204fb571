/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Memory pairs in place of the kernel's: a generated load with a known result goes through the code
 * of the sync thread, and each sample is filed where it belongs or is lost under a name.
 */
#include "pipeline/capture/memory_source.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/kernel_list.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "daemon/sync.h"
#include "tests/bench/sim.h"
#include "tests/unit/passing_clock.h"

#define NR_CPUS      4u
#define NR_SAMPLES   40000u
#define STEP_NS      10000u
#define SAMPLE_BYTES 40u
#define NEVER_MS     1000000u
#define PATIENCE_NS  (60u * (uint64_t)OP_NS_PER_S)
/* a turn comes at least as often: QUIET_NS of pipeline/drive/loop.c */
#define QUIET_SECONDS 5

static const struct sim_config small = {
	.load = {
		.seed = 1,
		.nr_cpus = NR_CPUS,
		.nr_programs = 5,
		.nr_processes = 20,
		.nr_mappings = 8,
		.nr_libraries = 20,
		.change_every = 37,
		.kernel_percent = 20,
	},
	.ring_bytes = 4096,
	.sideband_bytes = 1 << 20,
	.max_open_files = 1000,
};

static struct sim sim;
static struct opd_sync sync_thread;
static struct op_config config;
static struct op_status status;

static int sim_setup(void **state OP_UNUSED)
{
	memset(&status, 0, sizeof(status));
	return sim_open(&small, &sim);
}

static int sim_teardown(void **state OP_UNUSED)
{
	sim_close(&sim);
	return 0;
}

static const struct opd_event *event_of(uint32_t cpu)
{
	return &sim.pipeline.capture.cpus[cpu].events[0];
}

static void expect_all_right(void)
{
	struct sim_check check;
	uint64_t sum_received = 0, sum_lost = 0;
	struct opd_counts counts;

	for (uint32_t i = 0; i < NR_CPUS; i++) {
		const struct opd_event *event = event_of(i);

		opd_capture_counts(&sim.pipeline.capture, event, &counts);
		sum_received += event->received;
		sum_lost += counts.lost;
		assert_int_equal(event->received, event->stored);
		assert_int_equal(event->unattributed, 0);
	}
	assert_int_equal(sum_received, load_samples(sim.load));
	assert_int_equal(sum_lost, sim_dropped(&sim));
	assert_int_equal(sim_check(&sim, &check), 0);
	assert_int_equal(check.wrong_samples, 0);
	assert_int_equal(check.wrong_places, 0);
	assert_int_equal(check.nr_samples, load_samples(sim.load));
}

/* One sample; `ring` is the CPU's write ring, entered. */
static int write_in(uint32_t cpu, struct op_mring_writer *ring, uint64_t *time_ns)
{
	*time_ns += STEP_NS;
	return load_sample(sim.load, cpu, ring, *time_ns);
}

static int write_sample(uint32_t cpu, uint64_t *time_ns)
{
	int err = write_in(cpu, op_mring_pair_enter(&sim.cpus[cpu].writer), time_ns);

	op_mring_pair_leave(&sim.cpus[cpu].writer);
	return err;
}

/*
 * Every CPU is visited often enough, so nothing is lost. Processes change all the time, and their
 * records are in the side bands of other CPUs.
 */
static void every_sample_lies_where_it_belongs(void **state OP_UNUSED)
{
	uint64_t time_ns = 1000000;

	assert_int_equal(load_begin(sim.load, 1), 0);
	for (uint32_t i = 0; i < NR_SAMPLES; i++) {
		assert_int_equal(write_sample(i % NR_CPUS, &time_ns), 0);
		if (i % 100 == 99)
			for (uint32_t cpu = 0; cpu < NR_CPUS; cpu++)
				assert_int_equal(sim_visit(&sim, cpu, time_ns), 0);
	}
	for (uint32_t cpu = 0; cpu < NR_CPUS; cpu++)
		assert_int_equal(sim_visit(&sim, cpu, time_ns), 0);
	assert_int_equal(load_samples(sim.load), NR_SAMPLES);
	expect_all_right();
	assert_true(sim.pipeline.capture.cpus[0].memory.reader.baton.swap.swaps > 100);
}

static void what_finds_no_room_is_lost_by_number(void **state OP_UNUSED)
{
	uint64_t time_ns = 1000000;
	uint32_t dropped = 0;

	assert_int_equal(load_begin(sim.load, 1), 0);
	for (uint32_t i = 0; i < NR_SAMPLES; i++) {
		dropped += write_sample(i % NR_CPUS, &time_ns) == -ENOSPC;
		if (i % 1000 == 999)
			assert_int_equal(sim_visit(&sim, i / 1000 % NR_CPUS, time_ns), 0);
	}
	/* The next sample that finds room reports the last losses. */
	for (uint32_t cpu = 0; cpu < NR_CPUS; cpu++) {
		assert_int_equal(sim_visit(&sim, cpu, time_ns), 0);
		assert_int_equal(write_sample(cpu, &time_ns), 0);
		assert_int_equal(sim_visit(&sim, cpu, time_ns), 0);
	}
	assert_true(dropped > 1000);
	assert_int_equal(dropped, sim_dropped(&sim));
	assert_int_equal(load_samples(sim.load) + dropped, NR_SAMPLES + NR_CPUS);
	expect_all_right();
	opd_capture_reset_ledger(&sim.pipeline.capture);
	for (uint32_t i = 0; i < NR_CPUS; i++) {
		struct opd_counts counts;

		opd_capture_counts(&sim.pipeline.capture, event_of(i), &counts);
		assert_int_equal(counts.lost, 0);
	}
}

static void a_writer_inside_is_waited_for(void **state OP_UNUSED)
{
	struct opd_cpu *cpu = &sim.pipeline.capture.cpus[0];
	const struct op_mring_swap *swap = &cpu->memory.reader.baton.swap;
	uint64_t time_ns = 1000000;
	struct op_mring_writer *ring;

	assert_int_equal(load_begin(sim.load, 1), 0);
	assert_int_equal(write_sample(0, &time_ns), 0);
	ring = op_mring_pair_enter(&sim.cpus[0].writer);
	assert_int_equal(swap->late, 0);
	assert_int_equal(sim_visit(&sim, 0, time_ns), -EAGAIN);
	assert_int_equal(swap->late, 1);
	assert_int_equal(event_of(0)->received, 0);
	/*
	 * Committed after the swap to the ring that is read: it is visible once the writer has
	 * left.
	 */
	assert_int_equal(write_in(0, ring, &time_ns), 0);
	assert_int_equal(sim_visit(&sim, 0, time_ns), -EAGAIN);
	op_mring_pair_leave(&sim.cpus[0].writer);
	assert_int_equal(write_sample(0, &time_ns), 0);
	assert_int_equal(cpu->source->swap(cpu), -EBUSY);
	opd_drain_ring(&sim.pipeline, cpu, cpu->source->read_ring(cpu));
	assert_int_equal(sim_visit(&sim, 0, time_ns), 0);
	assert_int_equal(swap->late, 1);
	expect_all_right();
}

/*
 * The writer leaves after the side band has been read: its records cannot be resolved yet, and stay
 * for the next visit.
 */
static struct opd_visits visits;
static uint64_t entered_ns;
static struct op_mring_writer *entered;

static struct op_ring *read_ring_late(struct opd_cpu *cpu)
{
	if (entered && visits.sideband_ns > entered_ns) {
		assert_int_equal(load_begin(sim.load, 0), 0);
		assert_int_equal(load_sample(sim.load, 0, entered, 0), 0);
		op_mring_pair_leave(&sim.cpus[0].writer);
		entered = NULL;
	}
	return opd_source_memory.read_ring(cpu);
}

static void what_is_written_after_the_side_band_waits(void **state OP_UNUSED)
{
	struct opd_cpu *cpu = &sim.pipeline.capture.cpus[0];
	struct opd_source late = opd_source_memory;
	struct perf_event_header *unknown;

	late.read_ring = read_ring_late;
	cpu->source = &late;
	assert_int_equal(opd_visits_init(&visits, &sim.pipeline, 1), 0);
	load_set_clock(sim.load, op_now_ns);
	entered_ns = op_now_ns();
	entered = op_mring_pair_enter(&sim.cpus[0].writer);
	assert_int_equal(op_mring_reserve(entered, sizeof(*unknown), &unknown), 0);
	unknown->type = UINT32_MAX;
	op_mring_commit(entered);
	opd_visit_all(&visits);
	assert_non_null(entered);
	assert_int_equal(event_of(0)->received, 0);
	opd_visit_all(&visits);
	assert_null(entered);
	cpu->source = &opd_source_memory;
	opd_visits_free(&visits);
	expect_all_right();
}

static void events_that_are_counted_elsewhere_are_refused(void **state OP_UNUSED)
{
	static const uint64_t id = LOAD_EVENT_ID;
	struct op_event event = sim.event;
	struct opd_memory_cpu from = { .pair = &sim.cpus[0].pair, .sideband = &sim.cpus[0].sideband, .ids = &id };
	struct opd_capture capture;

	event.every_event = true;
	assert_int_equal(opd_capture_open_memory(&capture, &event, 1, &from, 1), -EINVAL);
}

void *__real_aligned_alloc(size_t alignment, size_t nr_bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t nr_bytes);

static unsigned int nr_until_no_memory; /* with the one that fails; 0: none does */

void *__wrap_aligned_alloc(size_t alignment, size_t nr_bytes)
{
	if (nr_until_no_memory && !--nr_until_no_memory)
		return NULL;
	return __real_aligned_alloc(alignment, nr_bytes);
}

/* Not by a ring that looks damaged later. Nothing stays allocated: the leak sanitizer checks. */
static void no_memory_is_said_when_a_cpu_opens(void **state OP_UNUSED)
{
	static const uint64_t id = LOAD_EVENT_ID;
	struct opd_memory_cpu from = { .pair = &sim.cpus[0].pair, .sideband = &sim.cpus[0].sideband, .ids = &id };
	struct opd_capture *own = &sim.pipeline.capture, capture;

	for (unsigned int i = 1; i <= 3; i++) { /* two rings and a side band */
		nr_until_no_memory = i;
		assert_int_equal(opd_capture_open_memory(&capture, &sim.event, 1, &from, 1), -ENOMEM);
		assert_int_equal(nr_until_no_memory, 0);
		nr_until_no_memory = i;
		assert_int_equal(opd_capture_add_memory(own, &from), -ENOMEM);
		assert_int_equal(nr_until_no_memory, 0);
		assert_int_equal(own->nr_cpus, NR_CPUS);
	}
	assert_int_equal(opd_capture_open_memory(&capture, &sim.event, 1, &from, 1), 0);
	opd_capture_close(&capture);
}

/* ---- with the sync thread ---- */

static void do_job(enum opd_job_kind kind, void **ret_payload)
{
	struct opd_job *job = calloc(1, sizeof(*job)), *done;
	struct pollfd wait = { .fd = sync_thread.queue.done_fd, .events = POLLIN };

	assert_non_null(job);
	job->kind = kind;
	opd_job_queue_submit(&sync_thread.queue, job);
	while (!(done = opd_job_queue_take_done(&sync_thread.queue)))
		poll(&wait, 1, -1);
	assert_ptr_equal(done, job);
	assert_int_equal(job->error, 0);
	if (ret_payload)
		*ret_payload = job->payload;
	else
		free(job->payload);
	free(job);
}

static void expect_status(void)
{
	struct op_ledger_event *event;
	struct op_ledger_cpu *cpu;
	void *payload;

	do_job(OPD_JOB_STATUS, &payload);
	event = (void *)((struct op_status *)payload + 1);
	cpu = (void *)(event + 1);
	assert_true(event->taken == event->received + event->lost_kernel && op_ledger_adds_up(event));
	assert_int_equal(event->received, load_samples(sim.load));
	assert_int_equal(event->stored, event->received);
	assert_int_equal(event->lost_kernel, sim_dropped(&sim));
	for (uint32_t i = 0; i < NR_CPUS; i++) {
		assert_int_equal(cpu[i].online, 1);
		assert_true(cpu[i].swaps > 0);
		assert_int_equal(cpu[i].damaged, 0);
		assert_int_equal(cpu[i].sideband_lost, 0);
	}
	free(payload);
}

/* A sample every ten microseconds, at most. */
static uint64_t pause_after(uint64_t before_ns)
{
	uint64_t now_ns;

	do {
		now_ns = op_now_ns();
	} while (now_ns < before_ns + STEP_NS);
	return now_ns;
}

/*
 * Writes while the thread reads. When there is no room, the thread has been woken and makes room.
 */
static void write_beside(bool drop)
{
	uint64_t time_ns = op_now_ns();

	load_set_clock(sim.load, op_now_ns);
	assert_int_equal(load_begin(sim.load, time_ns), 0);
	for (uint32_t i = 0; i < NR_SAMPLES; i++) {
		uint32_t cpu = i % NR_CPUS;

		time_ns = pause_after(time_ns);
		while (!drop && sim_room(&sim, cpu) < 2 * SAMPLE_BYTES) {
			assert_true(op_now_ns() < time_ns + PATIENCE_NS);
			sched_yield();
		}
		assert_true(write_sample(cpu, &time_ns) != -ENOBUFS);
	}
}

static void start(uint64_t visit_ms)
{
	config.visit_ms = visit_ms;
	for (uint32_t i = 0; i < NR_CPUS; i++)
		op_mring_pair_wake_every(&sim.cpus[i].pair, small.ring_bytes / 4, false);
	assert_int_equal(opd_sync_start(&sync_thread, &sim.pipeline, &config, &status, false), 0);
}

static void the_thread_is_woken_and_loses_nothing(void **state OP_UNUSED)
{
	start(NEVER_MS);
	write_beside(false);
	do_job(OPD_JOB_DUMP, NULL);
	expect_status();
	do_job(OPD_JOB_QUIT, NULL);
	opd_sync_stop(&sync_thread);
	assert_int_equal(load_samples(sim.load), NR_SAMPLES);
	assert_int_equal(sim_dropped(&sim), 0);
	expect_all_right();
}

static void the_thread_keeps_the_ledger_when_it_is_slow(void **state OP_UNUSED)
{
	uint64_t time_ns = 0;

	start(30);
	for (uint32_t i = 0; i < NR_CPUS; i++)
		op_mring_pair_wake_every(&sim.cpus[i].pair, 0, false);
	write_beside(true);
	do_job(OPD_JOB_DUMP, NULL);
	for (uint32_t cpu = 0; cpu < NR_CPUS; cpu++)
		assert_int_equal(write_sample(cpu, &time_ns), 0);
	do_job(OPD_JOB_DUMP, NULL);
	expect_status();
	do_job(OPD_JOB_RESET, NULL);
	do_job(OPD_JOB_QUIT, NULL);
	opd_sync_stop(&sync_thread);
	assert_int_equal(load_samples(sim.load) + sim_dropped(&sim), NR_SAMPLES + NR_CPUS);
}

/* Without records of processes there is a turn every five seconds, not every 10 ms. */
static void turns_are_rare_when_nothing_happens(void **state OP_UNUSED)
{
	uint64_t start_ns = op_now_ns(), end_ns;

	start(10);
	usleep(1000000);
	end_ns = op_now_ns();
	do_job(OPD_JOB_QUIT, NULL);
	opd_sync_stop(&sync_thread);
	assert_true(end_ns - sync_thread.loop.begin_ns > 100 * OP_NS_PER_MS ||
		    sync_thread.loop.begin_ns - start_ns > QUIET_SECONDS * (uint64_t)OP_NS_PER_S);
}

/* ---- the loop alone; a second passes with each look ---- */

static unsigned int nr_looks;

static void look(void *host OP_UNUSED, uint64_t now_ns OP_UNUSED)
{
	nr_looks++;
	passed_s++;
}

static void quit_in_turn(void *host, uint64_t now_ns OP_UNUSED)
{
	struct opd_loop *loop = host;

	loop->quit = true;
}

static void write_no_ledger(void *host OP_UNUSED)
{
}

/* Runs it until the next full turn. Returns when that began, after the last one. */
static uint64_t run_to_turn(bool is_watched)
{
	static const struct opd_chores chores = { .look = look, .end = quit_in_turn, .ledger = write_no_ledger };
	uint64_t last_ns = op_now_ns();
	struct opd_loop loop = { .chores = &chores,
				 .host = &loop,
				 .pipeline = &sim.pipeline,
				 .visits = &visits,
				 .visit_ns = 10 * OP_NS_PER_MS,
				 .is_watched = is_watched,
				 .begin_ns = last_ns };

	nr_looks = 0;
	assert_int_equal(opd_visits_init(&visits, &sim.pipeline, 1), 0);
	assert_int_equal(opd_loop_open(&loop), 0);
	opd_loop_run(&loop);
	opd_loop_close(&loop);
	opd_visits_free(&visits);
	assert_false(loop.is_watched);
	return loop.begin_ns - last_ns;
}

static void a_turn_can_wait_for_five_seconds(void **state OP_UNUSED)
{
	assert_true(run_to_turn(false) >= QUIET_SECONDS * (uint64_t)OP_NS_PER_S);
	assert_in_range(nr_looks, 2, 1 + QUIET_SECONDS);
}

/* Figures are as of the last turn, so who asks again soon gets new ones. */
static void the_turn_after_a_question_is_a_full_one(void **state OP_UNUSED)
{
	run_to_turn(true);
	assert_int_equal(nr_looks, 1);
	start(NEVER_MS);
	do_job(OPD_JOB_PULSE, NULL);
	do_job(OPD_JOB_PULSE, NULL); /* the first turn is over */
	do_job(OPD_JOB_STATUS, NULL);
	do_job(OPD_JOB_QUIT, NULL);
	opd_sync_stop(&sync_thread);
	assert_true(sync_thread.loop.is_watched);
}

static void expect_lost(uint64_t wanted)
{
	struct opd_counts counts;

	opd_capture_counts(&sim.pipeline.capture, event_of(1), &counts);
	assert_int_equal(counts.lost, wanted);
}

/*
 * It has no descriptor with counts: the reported losses since the start of the ledger are added up.
 */
static void a_pair_has_lost_what_records_tell(void **state)
{
	struct opd_event *event = &sim.pipeline.capture.cpus[1].events[0];

	(void)state;
	event->lost_records = 2;
	event->lost_samples = 3;
	expect_lost(5);
	opd_capture_reset_ledger(&sim.pipeline.capture);
	expect_lost(0);
	event->lost_samples += 4;
	expect_lost(4);
	event->lost_records += 6;
	expect_lost(10);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, sim_setup, sim_teardown)
	const struct CMUnitTest tests[] = {
		T(every_sample_lies_where_it_belongs),    T(what_finds_no_room_is_lost_by_number),
		T(a_writer_inside_is_waited_for),         T(what_is_written_after_the_side_band_waits),
		T(events_that_are_counted_elsewhere_are_refused),
		T(no_memory_is_said_when_a_cpu_opens),    T(a_pair_has_lost_what_records_tell),
		T(turns_are_rare_when_nothing_happens),   T(a_turn_can_wait_for_five_seconds),
		T(the_turn_after_a_question_is_a_full_one),
		T(the_thread_is_woken_and_loses_nothing), T(the_thread_keeps_the_ledger_when_it_is_slow),
	};

	return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
