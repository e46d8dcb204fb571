/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Samples that wait for a name: which name they get, when they get none, and how many may wait. */
#include "tests/unit/cmocka_all.h"

#include "libop/base/clock.h"
#include "pipeline/jit/waiting.h"

#define BASE UINT64_C(0x7f0000000000)
#define S    ((uint64_t)OP_NS_PER_S)

struct world {
	uint64_t counters[OP_NR_JIT];
	struct opd_jit_waits waits;
	struct opd_jit_waiting *waiting;
	struct opd_jit_map map;
};

static struct world world;

static int world_setup(void **state OP_UNUSED)
{
	world = (struct world){ .waits = { .table = op_dcookie_table_new(), .counters = world.counters } };
	world.map = (struct opd_jit_map){ .counters = world.counters, .keeps_added = true };
	world.waiting = opd_jit_waiting_new(&world.waits, 1, 1000, "jit-1");
	return world.waiting ? 0 : -1;
}

static int world_teardown(void **state OP_UNUSED)
{
	opd_jit_waiting_free(world.waiting);
	opd_jit_map_free(&world.map);
	op_dcookie_table_free(world.waits.table);
	assert_int_equal(world.counters[OP_JIT_waiting], 0);
	assert_int_equal(world.counters[OP_JIT_bytes], 0);
	assert_int_equal(world.counters[OP_JIT_code_bytes], 0);
	return 0;
}

static void sample(uint64_t at, uint64_t time_ns)
{
	assert_true(opd_jit_waiting_add(world.waiting, BASE + at, time_ns, false));
}

static void function(uint64_t at, uint64_t bytes, const char *name, uint64_t from_ns, bool is_exact)
{
	const struct opd_jit_code code = {
		.start = BASE + at, .bytes = bytes, .name = name, .from_ns = from_ns, .is_exact = is_exact, .code_at = is_exact
	};

	assert_int_equal(opd_jit_map_add(&world.map, &code, 0), 0);
}

static void name_all(void)
{
	struct opd_jit_allowance allowance = { .bytes = UINT64_MAX, .limit_ns = UINT64_MAX };

	opd_jit_waiting_name(world.waiting, &world.map, &allowance);
	assert_int_equal(world.map.nr_added, 0);
}

static bool is_late(uint64_t at)
{
	return opd_jit_map_is_late(&world.map, BASE + at);
}

static enum opd_jit_place place(uint64_t at, uint64_t time_ns)
{
	uint64_t offset;

	return opd_jit_map_find(&world.map, BASE + at, time_ns, &offset);
}

/* A perf map has no times: it came after the samples. */
static void the_first_map_names_what_ran_before(void **state OP_UNUSED)
{
	sample(0x10, 1 * S);
	sample(0x10, 2 * S);
	sample(0x150, 2 * S);
	sample(0x300, 2 * S);
	function(0, 0x100, "f", 3 * S, false);
	function(0x100, 0x100, "g", 3 * S, false);
	function(0x200, 0x100, "never_ran", 3 * S, false);
	name_all();
	assert_true(is_late(0) && is_late(0xff) && is_late(0x1ff));
	assert_false(is_late(0x200) || is_late(0x300));
	assert_int_equal(place(0x20, 4 * S), OPD_JIT_AT_ADDRESS);
	assert_int_equal(place(0x220, 4 * S), OPD_JIT_IN_RANGE);
	assert_int_equal(world.counters[OP_JIT_named_late], 3);
	assert_int_equal(world.counters[OP_JIT_waiting], 1);
}

/* Two functions of a jitdump that were at one address, each in its time. */
static void code_that_took_the_place_of_other_code_has_no_name(void **state OP_UNUSED)
{
	sample(0x10, 1 * S);
	sample(0x10, 5 * S);
	sample(0x110, 1 * S);
	sample(0x210, 5 * S);
	for (uint64_t at = 0; at < 0x300; at += 0x100) {
		function(at, 0x80, "before", S / 2, true);
		function(at, 0x80, "after", 3 * S, true);
	}
	name_all();
	assert_false(is_late(0x10));
	assert_int_equal(place(0x10, 6 * S), OPD_JIT_IN_RANGE);
	assert_true(is_late(0x110) && is_late(0x210));
	assert_int_equal(place(0x110, 2 * S), OPD_JIT_AT_ADDRESS);
	assert_int_equal(place(0x110, 6 * S), OPD_JIT_IN_RANGE); /* its address has a name */
	assert_int_equal(place(0x210, 6 * S), OPD_JIT_AT_ADDRESS);
	assert_int_equal(world.counters[OP_JIT_named_late], 2);
}

static void a_function_with_a_time_does_not_name_what_ran_before(void **state OP_UNUSED)
{
	sample(0x10, 1 * S);
	sample(0x110, 2 * S);
	function(0, 0x80, "f", 2 * S, true);
	function(0x100, 0x80, "g", 2 * S + OP_NS_PER_MS, true);
	name_all();
	assert_false(is_late(0x10));
	assert_true(is_late(0x110)); /* the record came a little late */
}

/* The same function again is no other one. */
static void a_function_that_is_written_twice_is_one(void **state OP_UNUSED)
{
	sample(0x10, 1 * S);
	sample(0x10, 5 * S);
	function(0, 0x80, "f", S / 2, true);
	function(0, 0x80, "f", 3 * S, true);
	name_all();
	assert_true(is_late(0x10));
}

static void neighbours_in_a_line_have_their_own_names(void **state OP_UNUSED)
{
	sample(0x05, 1 * S);
	sample(0x25, 1 * S);
	function(0, 0x20, "f", 2 * S, false);
	name_all();
	assert_true(is_late(0x05));
	assert_int_equal(world.counters[OP_JIT_waiting], 1);
	function(0x20, 0x20, "g", 3 * S, false);
	name_all();
	assert_true(is_late(0x25));
	assert_int_equal(world.counters[OP_JIT_waiting], 0);
	assert_int_equal(world.counters[OP_JIT_named_late], 2);
}

static void what_has_no_name_at_the_end_is_counted(void **state OP_UNUSED)
{
	sample(0x10, 1 * S);
	sample(0x10, 2 * S);
	opd_jit_waiting_free(world.waiting);
	world.waiting = NULL;
	assert_int_equal(world.counters[OP_JIT_unnamed_samples], 2);
}

static void a_process_and_a_user_have_limits(void **state OP_UNUSED)
{
	struct opd_jit_waiting *others[OPD_JIT_LINES_USER_MAX / OPD_JIT_LINES_MAX], *of_another_user;
	uint64_t i;

	for (i = 0; i < OPD_JIT_LINES_MAX; i++)
		sample(i * OPD_JIT_LINE_BYTES, S);
	assert_false(opd_jit_waiting_add(world.waiting, BASE + i * OPD_JIT_LINE_BYTES, S, false));
	assert_true(opd_jit_waiting_add(world.waiting, BASE, 2 * S, false));
	assert_int_equal(world.counters[OP_JIT_refused_waiting], 1);
	for (size_t k = 0; k < op_array_size(others); k++) {
		others[k] = opd_jit_waiting_new(&world.waits, 2, 1000, "jit-2");
		assert_non_null(others[k]);
		for (i = 0; i < OPD_JIT_LINES_MAX; i++)
			assert_int_equal(opd_jit_waiting_add(others[k], BASE + i * OPD_JIT_LINE_BYTES, S, false),
					 k + 1 < op_array_size(others));
	}
	of_another_user = opd_jit_waiting_new(&world.waits, 3, 1001, "jit-3");
	assert_true(opd_jit_waiting_add(of_another_user, BASE, S, false));
	opd_jit_waiting_free(of_another_user);
	for (size_t k = 0; k < op_array_size(others); k++)
		opd_jit_waiting_free(others[k]);
	function(0, 64u << 20, "all_of_it", 3 * S, false);
	name_all();
	assert_int_equal(world.counters[OP_JIT_waiting], 0);
}

/* Four users with all that they may have leave nothing for a fifth. */
static void all_have_a_limit(void **state OP_UNUSED)
{
	struct opd_jit_waiting *others[OPD_JIT_LINES_ALL_MAX / OPD_JIT_LINES_MAX];
	size_t nr_of_user = OPD_JIT_LINES_USER_MAX / OPD_JIT_LINES_MAX;

	for (size_t k = 0; k < op_array_size(others); k++) {
		others[k] = opd_jit_waiting_new(&world.waits, 2, (uint32_t)(2000 + k / nr_of_user), "jit-2");
		assert_non_null(others[k]);
		for (uint64_t i = 0; i < OPD_JIT_LINES_MAX; i++)
			assert_true(opd_jit_waiting_add(others[k], BASE + i * OPD_JIT_LINE_BYTES, S, false));
	}
	assert_false(opd_jit_waiting_add(world.waiting, BASE, S, false));
	assert_int_equal(world.counters[OP_JIT_refused_waiting], 1);
	for (size_t k = 0; k < op_array_size(others); k++)
		opd_jit_waiting_free(others[k]);
	sample(0, S);
}

/* Of the user's processes, three never describe their code. They make room, the oldest first. */
static void processes_without_a_file_make_room(void **state OP_UNUSED)
{
	struct opd_jit_waiting *others[OPD_JIT_LINES_USER_MAX / OPD_JIT_LINES_MAX];

	for (size_t k = 0; k < op_array_size(others); k++) {
		others[k] = opd_jit_waiting_new(&world.waits, 2, 1000, "jit-2");
		assert_non_null(others[k]);
		others[k]->has_file = !k;
		for (uint64_t i = 0; i < OPD_JIT_LINES_MAX; i++)
			assert_true(opd_jit_waiting_add(others[k], BASE + i * OPD_JIT_LINE_BYTES, (9 - k) * S, false));
	}
	assert_false(opd_jit_waiting_add(world.waiting, BASE, S, true));
	assert_int_equal(world.counters[OP_JIT_refused_waiting], 0);
	assert_false(opd_jit_waiting_add(world.waiting, BASE, S, false));
	assert_int_equal(world.counters[OP_JIT_refused_waiting], 1);
	world.waiting->has_file = true;
	sample(0, S);
	assert_int_equal(others[op_array_size(others) - 1]->lines.nr_entries, 0);
	assert_int_equal(others[1]->lines.nr_entries, OPD_JIT_LINES_MAX);
	assert_int_equal(others[0]->lines.nr_entries, OPD_JIT_LINES_MAX);
	assert_int_equal(world.counters[OP_JIT_unnamed_samples], OPD_JIT_LINES_MAX);
	for (size_t k = 0; k < op_array_size(others); k++)
		opd_jit_waiting_free(others[k]);
}

/* The work is limited by the allowance, however large the functions are; the next call goes on. */
static void naming_goes_on_in_the_next_visit(void **state OP_UNUSED)
{
	struct opd_jit_allowance spent = { .bytes = 0 };

	sample(0x10, S);
	function(0, 0x80, "f", 2 * S, false);
	opd_jit_waiting_name(world.waiting, &world.map, &spent);
	assert_true(spent.is_spent);
	assert_false(is_late(0x10));
	assert_int_equal(world.map.nr_added, 1);
	name_all();
	assert_true(is_late(0x10));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_first_map_names_what_ran_before),
		TEST(code_that_took_the_place_of_other_code_has_no_name),
		TEST(a_function_with_a_time_does_not_name_what_ran_before),
		TEST(a_function_that_is_written_twice_is_one),
		TEST(neighbours_in_a_line_have_their_own_names),
		TEST(what_has_no_name_at_the_end_is_counted),
		TEST(a_process_and_a_user_have_limits),
		TEST(all_have_a_limit),
		TEST(processes_without_a_file_make_room),
		TEST(naming_goes_on_in_the_next_visit),
	};

	return cmocka_run_group_tests_name("jit_waiting", tests, NULL, NULL);
}
