/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From CPUs, events and rates to swapping threads, the length of a turn and the size of a ring:
 * examples by hand, and rules that hold for all.
 */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>

#include "libop/base/clock.h"
#include "pipeline/capture/plan.h"
#include "pipeline/capture/ring_memory.h"
#include "pipeline/capture/swappers.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define MS  OP_NS_PER_MS

#define TIMER(period_ns)                                                                                                           \
	{                                                                                                                          \
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .count = (period_ns), .is_timer = true              \
	}
#define FAULTS                                                                                                                     \
	{                                                                                                                          \
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS, .count = 1                                        \
	}
#define CYCLES                                                                                                                     \
	{                                                                                                                          \
		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES, .count = 100000                                    \
	}

static const struct op_event at_1_khz[] = { TIMER(1000000) };
static const struct op_event at_10_khz[] = { TIMER(100000) };
static const struct op_event at_50_khz[] = { TIMER(20000) };
static const struct op_event four[] = { TIMER(100000), FAULTS, CYCLES, CYCLES };
static const struct op_event eight[] = { TIMER(100000), FAULTS, CYCLES, CYCLES, CYCLES, CYCLES, CYCLES, CYCLES };
static const struct op_event too_fast[] = { TIMER(1), TIMER(0) };

#define DEEP_ROW(nr, which, wait_ms, visit_ms, watermark, callgraph)                                                               \
	{                                                                                                                          \
		nr, which, sizeof(which) / sizeof((which)[0]), (wait_ms) * (uint64_t)MS, (visit_ms) * (uint64_t)MS, watermark,     \
			callgraph, 0, 0, 0, 0                                                                      \
	}
#define ROW(nr, which, wait_ms, visit_ms, watermark) DEEP_ROW(nr, which, wait_ms, visit_ms, watermark, 0)

/* need: rate * 40 bytes * (turn + interval) * 2, worked out by hand. */
static const struct {
	struct opd_load load;
	unsigned int nr_threads;
	uint64_t turn_ms, rate_hz, need_bytes, ring_bytes;
} rows[] = {
	/* One CPU is swapped by one thread, however many events it has. */
	{ ROW(1, at_1_khz, 8, 250, 0), 1, 8, 1000, 20640, 128 * KIB },
	{ ROW(1, eight, 8, 250, 0), 1, 64, 80000, 2009600, 2 * MIB },
	{ ROW(2, at_1_khz, 8, 250, 0), 1, 16, 1000, 21280, 128 * KIB },
	{ ROW(2, at_10_khz, 8, 250, 0), 1, 16, 10000, 212800, 256 * KIB },
	{ ROW(2, at_50_khz, 8, 250, 0), 1, 16, 50000, 1064000, 2 * MIB },
	/* Two threads halve the turn: 64 ms of swaps are more than 25. */
	{ ROW(2, four, 8, 250, 0), 2, 32, 40000, 902400, 1 * MIB },
	{ ROW(64, at_10_khz, 8, 250, 0), 16, 32, 10000, 225600, 256 * KIB },
	{ ROW(64, four, 8, 250, 0), 16, 128, 40000, 1209600, 2 * MIB },
	{ ROW(65, four, 8, 250, 0), 16, 160, 40000, 1312000, 2 * MIB },
	{ ROW(256, at_10_khz, 8, 250, 0), 16, 128, 10000, 302400, 512 * KIB },
	{ ROW(256, four, 8, 250, 0), 16, 512, 40000, 2438400, 4 * MIB },
	/* The need is larger than a ring may be. */
	{ ROW(256, eight, 8, 250, 0), 16, 1024, 80000, 8153600, 8 * MIB },
	{ ROW(512, eight, 8, 250, 0), 16, 2048, 80000, 14707200, 8 * MIB },
	{ ROW(4096, eight, 30, 10000, 0), 16, 61440, 80000, 457216000, 8 * MIB },
	{ ROW(2, too_fast, 8, 250, 0), 2, 16, 2000000, 42560000, 8 * MIB },
	/* Longer intervals and grace periods need more. */
	{ ROW(2, at_10_khz, 8, 10, 0), 1, 16, 10000, 20800, 128 * KIB },
	{ ROW(2, at_10_khz, 8, 1000, 0), 1, 16, 10000, 812800, 1 * MIB },
	{ ROW(2, at_10_khz, 100, 250, 0), 2, 100, 10000, 280000, 512 * KIB },
	/* Chains of 8 callers: 184 bytes in the place of 40. */
	{ DEEP_ROW(2, at_10_khz, 8, 250, 0, 8), 1, 16, 10000, 978880, 1 * MIB },
	/* A watermark is at most a quarter. */
	{ ROW(2, at_1_khz, 8, 250, 64 * KIB), 1, 16, 1000, 256 * KIB, 256 * KIB },
	{ ROW(2, at_1_khz, 8, 250, 3 * MIB), 1, 16, 1000, 12 * MIB, 8 * MIB },
};

static void gives_what_was_worked_out(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(rows); i++) {
		struct opd_plan plan;

		opd_plan_make(&rows[i].load, &plan);
		if (plan.nr_threads != rows[i].nr_threads || plan.turn_ns != rows[i].turn_ms * MS ||
		    plan.samples_per_second != rows[i].rate_hz || plan.need_bytes != rows[i].need_bytes ||
		    plan.ring_bytes != rows[i].ring_bytes)
			fail_msg("row %zu: %u threads, turn %llu ns, %llu Hz, %llu needed, ring %llu", i, plan.nr_threads,
				 (unsigned long long)plan.turn_ns, (unsigned long long)plan.samples_per_second,
				 (unsigned long long)plan.need_bytes, (unsigned long long)plan.ring_bytes);
		assert_int_equal(plan.wait_ns, rows[i].load.wait_ns);
	}
}

/* Few CPUs get more than they need where the kernel allows it, and many do not. */
static void few_cpus_have_spare_rings(void **state OP_UNUSED)
{
	static const struct {
		size_t nr_cpus;
		uint64_t given, ring_bytes, spare_bytes;
	} wanted[] = {
		/* 16 times that at most */
		{ 1, 0, 128 * KIB, 2 * MIB },
		{ 2, 0, 128 * KIB, 2 * MIB },
		{ 3, 0, 128 * KIB, 1 * MIB },
		{ 8, 0, 128 * KIB, 512 * KIB },
		{ 9, 0, 128 * KIB, 256 * KIB },
		{ 16, 0, 128 * KIB, 256 * KIB },
		{ 17, 0, 128 * KIB, 128 * KIB },
		{ 4096, 0, 128 * KIB, 128 * KIB },
		{ 2, 64 * KIB, 64 * KIB, 64 * KIB },
	};

	for (size_t i = 0; i < op_array_size(wanted); i++) {
		struct opd_load load = ROW(wanted[i].nr_cpus, at_1_khz, 0, 250, 0);
		struct opd_plan plan;

		load.ring_bytes = wanted[i].given;
		opd_plan_make(&load, &plan);
		assert_int_equal(plan.ring_bytes, wanted[i].ring_bytes);
		assert_int_equal(plan.spare_ring_bytes, wanted[i].spare_bytes);
	}
}

static void side_band_rings_are_smaller_where_there_are_many(void **state OP_UNUSED)
{
	static const struct {
		size_t nr_cpus;
		uint64_t sideband_bytes;
	} wanted[] = { { 1, 1 * MIB }, { 4, 1 * MIB }, { 5, 512 * KIB }, { 8, 512 * KIB }, { 9, 256 * KIB }, { 4096, 256 * KIB } };

	for (size_t i = 0; i < op_array_size(wanted); i++) {
		struct opd_load load = ROW(wanted[i].nr_cpus, at_1_khz, 8, 250, 0);
		struct opd_plan plan;

		opd_plan_make(&load, &plan);
		assert_int_equal(plan.sideband_bytes, wanted[i].sideband_bytes);
	}
}

/* ---- stacks ---- */

#define STACKS(rate_hz)                                                                                                            \
	{                                                                                                                          \
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .count = OP_NS_PER_S / (rate_hz), .is_timer = true, \
		.role = OP_EVENT_STACKS, .stack_bytes = 8192                                                                       \
	}

/* A record of 9,032 bytes: 40, a kernel chain of 64 words, 33 registers, the copy, three words. */
static const struct op_event with_stacks[] = { TIMER(1000000), STACKS(99) };
static const struct op_event with_fast_stacks[] = { TIMER(1000000), STACKS(1000) };
static const struct op_event carrying[] = { { .type = PERF_TYPE_SOFTWARE,
					      .config = PERF_COUNT_SW_PAGE_FAULTS,
					      .count = 100,
					      .stack_bytes = 8192 } };

#define STACK_ROW(nr, which, ring_size, max_use)                                                                                   \
	{                                                                                                                          \
		.nr_cpus = (nr), .events = (which), .nr_events = op_array_size(which), .wait_ns = 8 * MS, .visit_ns = 250 * MS,    \
		.ring_bytes = (ring_size), .stack_ring_max_use = (max_use)                                                         \
	}

static void stacks_have_room(void **state OP_UNUSED)
{
	static const struct {
		struct opd_load load;
		uint32_t wanted_hz, rate_hz;
		uint64_t ring_bytes, stack_ring_bytes;
	} wanted[] = {
		/* 2 * 894,168 bytes/s * 266 ms */
		{ STACK_ROW(2, with_stacks, 0, 64 * MIB), 99, 99, 128 * KIB, 512 * KIB },
		{ STACK_ROW(2, with_fast_stacks, 0, 64 * MIB), 1000, 1000, 128 * KIB, 8 * MIB },
		/* 512 KiB / (2 * 9,032 * 314 ms) */
		{ STACK_ROW(64, with_stacks, 0, 64 * MIB), 99, 92, 128 * KIB, 512 * KIB },
		/* 128 KiB / (2 * 9,032 * 506 ms) */
		{ STACK_ROW(256, with_stacks, 0, 64 * MIB), 99, 14, 128 * KIB, 128 * KIB },
		{ STACK_ROW(256, with_fast_stacks, 0, 64 * MIB), 1000, 14, 128 * KIB, 128 * KIB },
		{ STACK_ROW(256, with_stacks, 0, 256 * MIB), 99, 57, 128 * KIB, 512 * KIB },
		/* Nothing for stacks: the smallest rings, and at least one sample in a second. */
		{ STACK_ROW(256, with_stacks, 0, 0), 99, 14, 128 * KIB, 128 * KIB },
		{ STACK_ROW(4096, with_stacks, 0, 64 * MIB), 99, 1, 512 * KIB, 128 * KIB },
		/* RingSize= is not of these rings. */
		{ STACK_ROW(2, with_stacks, 16 * KIB, 64 * MIB), 99, 99, 16 * KIB, 512 * KIB },
		/* Samples by count do not become fewer. */
		{ STACK_ROW(2, carrying, 0, 64 * MIB), 0, 0, 8 * MIB, 0 },
		{ STACK_ROW(256, carrying, 0, 64 * MIB), 0, 0, 256 * KIB, 0 },
	};

	for (size_t i = 0; i < op_array_size(wanted); i++) {
		struct op_event events[2];
		struct opd_plan plan;

		opd_plan_make(&wanted[i].load, &plan);
		if (plan.stack_wanted_hz != wanted[i].wanted_hz || plan.stack_rate_hz != wanted[i].rate_hz ||
		    plan.ring_bytes != wanted[i].ring_bytes || plan.stack_ring_bytes != wanted[i].stack_ring_bytes)
			fail_msg("row %zu: %u of %u Hz, ring %llu, for stacks %llu", i, plan.stack_rate_hz, plan.stack_wanted_hz,
				 (unsigned long long)plan.ring_bytes, (unsigned long long)plan.stack_ring_bytes);
		memcpy(events, wanted[i].load.events, wanted[i].load.nr_events * sizeof(*events));
		opd_plan_apply(&plan, events, wanted[i].load.nr_events);
		if (plan.stack_rate_hz)
			assert_int_equal(events[1].count, OP_NS_PER_S / plan.stack_rate_hz);
		assert_int_equal(events[0].count, wanted[i].load.events[0].count);
	}
}

/*
 * Cycles have no period here: the kernel chooses one after the other for the rate. The plan is that
 * of the clock, and the kernel is asked for the rate that fits.
 */
static void stacks_by_frequency(void **state OP_UNUSED)
{
	static const struct {
		size_t nr_cpus;
		uint32_t rate_hz;
	} wanted[] = { { 2, 99 }, { 64, 92 }, { 256, 14 } };

	for (size_t i = 0; i < op_array_size(wanted); i++) {
		struct op_event events[2] = { TIMER(1000000) };
		struct opd_load load = STACK_ROW(wanted[i].nr_cpus, events, 0, 64 * MIB);
		struct perf_event_attr attr = { 0 };
		struct opd_plan plan;

		op_event_make_stacks(true, 99, 8192, &events[1]);
		opd_plan_make(&load, &plan);
		assert_int_equal(plan.stack_wanted_hz, 99);
		assert_int_equal(plan.stack_rate_hz, wanted[i].rate_hz);
		opd_plan_apply(&plan, events, op_array_size(events));
		op_event_attr(&events[1], &attr);
		assert_int_equal(attr.config, PERF_COUNT_HW_CPU_CYCLES);
		assert_true(attr.freq);
		assert_int_equal(attr.sample_freq, wanted[i].rate_hz);
	}
}

static void check_same_ring(const struct opd_load *without_stacks, const struct opd_plan *plan)
{
	struct opd_plan flat;

	opd_plan_make(without_stacks, &flat);
	assert_int_equal(flat.ring_bytes, plan->ring_bytes);
	assert_int_equal(flat.stack_ring_bytes, 0);
}

/* For every machine: the bound of the memory, and rings that hold what the rate needs. */
static void stacks_keep_their_bound(void **state OP_UNUSED)
{
	for (size_t cpus = 1; cpus <= 8192; cpus = cpus * 3 / 2 + 1) {
		for (uint64_t max_use = 0; max_use <= 1024 * MIB; max_use = max_use * 4 + MIB) {
			struct opd_load load = STACK_ROW(cpus, with_stacks, 0, max_use);
			struct opd_plan plan;
			uint64_t each_bytes;

			opd_plan_make(&load, &plan);
			each_bytes = 2 * 9032 * ((plan.turn_ns + load.visit_ns) / 1000) / 1000000;
			assert_true(2 * cpus * plan.stack_ring_bytes <= max_use || plan.stack_ring_bytes == OPD_PLAN_RING_MIN);
			assert_in_range(plan.stack_rate_hz, 1, 99);
			assert_true(plan.stack_rate_hz == 1 || plan.stack_rate_hz * each_bytes <= plan.stack_ring_bytes);
			if (plan.stack_rate_hz < 99)
				assert_true((plan.stack_rate_hz + 2) * each_bytes > plan.stack_ring_bytes);
			/* The other samples have the rings that they have without stacks. */
			load.nr_events = 1;
			load.wait_ns *= 2; /* as long a turn */
			check_same_ring(&load, &plan);
		}
	}
}

static void check_sane(const struct opd_load *load)
{
	struct opd_plan plan;

	opd_plan_make(load, &plan);
	assert_in_range(plan.nr_threads, 1, OPD_SWAPPERS_MAX);
	assert_true(plan.nr_threads <= load->nr_cpus);
	assert_in_range(plan.ring_bytes, OPD_PLAN_RING_MIN, OPD_PLAN_RING_MAX);
	assert_int_equal(plan.ring_bytes & (plan.ring_bytes - 1), 0);
	assert_true(plan.ring_bytes >= plan.need_bytes || plan.ring_bytes == OPD_PLAN_RING_MAX);
	assert_true(plan.ring_bytes < 2 * plan.need_bytes || plan.ring_bytes == OPD_PLAN_RING_MIN);
	assert_true(plan.turn_ns >= load->nr_events * load->wait_ns);
	assert_true(plan.turn_ns <= load->nr_cpus * load->nr_events * load->wait_ns);
}

static void holds_for_every_machine(void **state OP_UNUSED)
{
	static const uint64_t waits_ns[] = { 1, 100000, 4 * MS, 8400000, 23 * MS, 500 * MS };

	for (size_t cpus = 1; cpus <= 8192; cpus = cpus * 3 / 2 + 1)
		for (size_t events = 1; events <= op_array_size(eight); events++)
			for (size_t i = 0; i < op_array_size(waits_ns); i++)
				check_sane(&(struct opd_load){ cpus, eight, events, waits_ns[i], 250 * MS, 0, 0, 0, 0, 0, 0 });
}

/* Halves rings until they take `bytes`, and says how large they are then, in KiB. */
static void fits(size_t bytes, size_t flat, size_t stacks, size_t sideband, const size_t expected[3])
{
	size_t sizes[] = { flat * KIB, stacks * KIB, sideband * KIB };
	const struct opd_ring_sizes rings = { &sizes[0], &sizes[1], sideband ? &sizes[2] : NULL };

	while (2 * (sizes[0] + sizes[1]) + sizes[2] > bytes)
		assert_true(opd_ring_memory_shrink(&rings));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(sizes[i] / KIB, expected[i]);
}

/* On each of 2 CPUs: 8 MiB, 64 KiB and kernel.perf_event_mlock_kb; and less and less. */
static void flat_samples_have_most(void **state OP_UNUSED)
{
	size_t tiny[] = { 16 * KIB, 16 * KIB, 16 * KIB };

	fits(4612 * KIB, 2048, 512, 1024, (const size_t[]){ 1024, 512, 1024 });
	fits(548 * KIB, 2048, 512, 1024, (const size_t[]){ 128, 64, 128 });
	fits(2048 * KIB, 2048, 512, 0, (const size_t[]){ 512, 256, 0 });
	fits(548 * KIB, 2048, 0, 1024, (const size_t[]){ 128, 0, 128 });
	fits(80 * KIB, 2048, 512, 1024, (const size_t[]){ 16, 16, 16 });
	assert_false(opd_ring_memory_shrink(&(struct opd_ring_sizes){ &tiny[0], &tiny[1], &tiny[2] }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_was_worked_out),
		cmocka_unit_test(few_cpus_have_spare_rings),
		cmocka_unit_test(side_band_rings_are_smaller_where_there_are_many),
		cmocka_unit_test(stacks_have_room),
		cmocka_unit_test(stacks_by_frequency),
		cmocka_unit_test(stacks_keep_their_bound),
		cmocka_unit_test(holds_for_every_machine),
		cmocka_unit_test(flat_samples_have_most),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
