/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From CPUs, events and rates to swapping threads, the length of a turn and the size of a ring:
 * examples by hand, and rules that hold for all.
 */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>

#include "daemon/capture/plan.h"
#include "daemon/capture/swappers.h"
#include "libop/base/clock.h"

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
			callgraph                                                                                                  \
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
				check_sane(&(struct opd_load){ cpus, eight, events, waits_ns[i], 250 * MS, 0, 0 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_was_worked_out),
		cmocka_unit_test(side_band_rings_are_smaller_where_there_are_many),
		cmocka_unit_test(holds_for_every_machine),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
