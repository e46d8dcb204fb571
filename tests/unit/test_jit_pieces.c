/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Pieces of JIT functions over time: a comparison with a model that keeps every addition, and the
 * number of steps for hostile additions.
 */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>

#include "libop/base/compiler.h"
#include "pipeline/jit/pieces.h"

#define WIDE  (64u << 20)
#define FIRST UINT64_C(0x7f0000000000)

struct table {
	struct opd_jit_functions functions;
	struct opd_jit_pieces pieces;
};

static void add(struct table *table, uint64_t start, uint64_t bytes, uint64_t from_ns, uint64_t horizon_ns)
{
	const struct opd_jit_function function = { .offset = OPD_JIT_NO_OFFSET, .start = start, .bytes = (uint32_t)bytes };
	struct opd_jit_piece piece = { .start = start, .end = start + bytes, .from_ns = from_ns };

	assert_int_equal(opd_jit_functions_add(&table->functions, &function, "f", &piece.function), 0);
	assert_int_equal(opd_jit_pieces_add(&table->pieces, &table->functions, &piece, horizon_ns), 0);
}

static size_t nr_known(const struct table *table)
{
	return table->functions.nr_rows - table->functions.nr_free;
}

static void free_table(struct table *table)
{
	opd_jit_pieces_free(&table->pieces);
	opd_jit_functions_free(&table->functions);
}

/* ---- the model ---- */

#define NR_ADDED 6000
#define SPACE    20000

struct added {
	uint64_t start, end, from_ns;
};

/* The last addition that held at that time, else the last one. */
static const struct added *find_added(const struct added *added, size_t nr, uint64_t address, uint64_t time_ns)
{
	const struct added *last = NULL;

	for (size_t i = nr; i > 0; i--) {
		const struct added *row = &added[i - 1];

		if (address < row->start || address >= row->end)
			continue;
		if (row->from_ns <= time_ns)
			return row;
		last = last ? last : row;
	}
	return last;
}

/* Returns whether the piece is known. What is known is right; what holds now is always known. */
static bool compare(const struct table *table, const struct added *added, size_t nr, uint64_t address, uint64_t time_ns)
{
	const struct added *wanted = find_added(added, nr, address, time_ns);
	const struct opd_jit_piece *found = opd_jit_pieces_find(&table->pieces, address, time_ns);

	if (!found) {
		assert_true(!wanted || time_ns != UINT64_MAX);
		return !wanted;
	}
	assert_non_null(wanted);
	assert_int_equal(found->from_ns, wanted->from_ns);
	assert_int_equal(found->at + (address - found->start), address - wanted->start);
	return true;
}

/*
 * One function in twenty is large, and covers whole chunks: what was there before is unknown.
 * Returns the share of questions about the past that have an answer.
 */
static double compare_with_model(unsigned int seed, uint64_t most_bytes, uint64_t horizon_behind_ns)
{
	static struct added added[NR_ADDED];
	struct table table = { 0 };
	size_t nr_asked = 0, nr_answers = 0;

	srandom(seed);
	for (size_t i = 0; i < NR_ADDED; i++) {
		uint64_t from_ns = 10 * (i + 1) + (uint64_t)random() % 5;
		uint64_t horizon_ns = from_ns - op_min_u64(from_ns, horizon_behind_ns);
		uint64_t start = (uint64_t)random() % SPACE;
		uint64_t bytes = 1 + (uint64_t)random() % (random() % 20 ? most_bytes : SPACE / 4);

		added[i] = (struct added){ start, start + bytes, from_ns };
		add(&table, start, bytes, from_ns, horizon_ns);
		for (int question = 0; question < 20; question++) {
			uint64_t address = (uint64_t)random() % (SPACE + SPACE / 4);

			assert_true(compare(&table, added, i + 1, address, UINT64_MAX));
			nr_answers += compare(&table, added, i + 1, address, horizon_ns + (uint64_t)random() % horizon_behind_ns);
			nr_asked++;
		}
	}
	assert_int_equal(nr_known(&table) + table.functions.nr_forgotten, NR_ADDED);
	assert_in_range(nr_known(&table), 1, NR_ADDED / 2);
	free_table(&table);
	return (double)nr_answers / (double)nr_asked;
}

static void as_in_the_model(void **state OP_UNUSED)
{
	assert_true(compare_with_model(1, 20, 100) > 0.97);
	assert_true(compare_with_model(2, 20, 1000) > 0.8);
	assert_true(compare_with_model(3, 400, 100) > 0.97);
	compare_with_model(4, 400, 5000);
}

/* ---- hostile additions ---- */

#define STEPS_EACH 100u /* on average: the past of a chunk, and the rows of one */
#define STEPS_MOST 600u /* of one addition, beside the chunks that it covers */

typedef uint64_t (*start_of)(uint64_t i);

/* Adds functions of one size; each has a later time when `bytes` is odd. Returns the steps. */
static uint64_t steps_of(uint64_t nr, uint64_t bytes, start_of start)
{
	struct table table = { 0 };
	uint64_t nr_steps, most = 0;

	for (uint64_t i = 0; i < nr; i++) {
		uint64_t before = table.pieces.account.nr_steps, nr_covered = table.pieces.nr_ranges;

		add(&table, start(i), bytes, bytes & 1 ? i + 1 : 0, 0);
		nr_covered -= op_min_u64(nr_covered, table.pieces.nr_ranges);
		most = op_max_u64(most, table.pieces.account.nr_steps - before - nr_covered);
	}
	nr_steps = table.pieces.account.nr_steps;
	assert_true(most <= STEPS_MOST);
	assert_true(opd_jit_pieces_bytes(&table.pieces) <= nr * 1000);
	free_table(&table);
	return nr_steps;
}

static uint64_t same(uint64_t i OP_UNUSED)
{
	return FIRST;
}

static uint64_t upwards(uint64_t i)
{
	return FIRST + i;
}

static uint64_t downwards(uint64_t i)
{
	return FIRST + (1 << 24) - i;
}

static uint64_t by_pages(uint64_t i)
{
	return FIRST + i * 4096 % (WIDE / 2);
}

static uint64_t anywhere(uint64_t i)
{
	return FIRST + i * UINT64_C(0x9e3779b97f4a7c15) % WIDE;
}

static void hostile_functions_cost_no_more(void **state OP_UNUSED)
{
	static const start_of starts[] = { same, upwards, downwards, by_pages, anywhere };
	static const uint64_t sizes[] = { 1, 2, 4096, 4097, WIDE - 1, WIDE };

	for (size_t i = 0; i < op_array_size(starts); i++) {
		for (size_t k = 0; k < op_array_size(sizes); k++) {
			assert_true(steps_of(10000, sizes[k], starts[i]) <= 10000 * STEPS_EACH);
			assert_true(steps_of(40000, sizes[k], starts[i]) <= 40000 * STEPS_EACH);
		}
	}
}

/* Many small functions are covered by one, again and again. They are freed with later additions. */
static void covered_functions_go_bit_by_bit(void **state OP_UNUSED)
{
	struct table table = { 0 };
	uint64_t before, bytes;

	for (uint64_t round = 0; round < 5; round++) {
		for (uint64_t i = 0; i < 20000; i++)
			add(&table, FIRST + 16 * i, 16, 0, 0);
		before = table.pieces.account.nr_steps;
		bytes = opd_jit_pieces_bytes(&table.pieces);
		add(&table, FIRST, WIDE, 0, 0);
		assert_in_range(table.pieces.account.nr_steps - before, 300, 1500);
		assert_true(nr_known(&table) > 19000);
		for (uint64_t i = 0; i < 1000; i++)
			add(&table, FIRST, WIDE, 0, 0);
		assert_true(nr_known(&table) < 200);
		assert_true(opd_jit_pieces_bytes(&table.pieces) < bytes / 100);
	}
	free_table(&table);
}

/* Samples from before a function that covers whole chunks have no name, rather than its name. */
static void what_was_covered_is_unknown(void **state OP_UNUSED)
{
	struct table table = { 0 };

	for (uint64_t i = 0; i < 2000; i++)
		add(&table, FIRST + 16 * i, 16, 10, 0);
	add(&table, FIRST, WIDE, 20, 0);
	assert_null(opd_jit_pieces_find(&table.pieces, FIRST + 16000, 15));
	assert_int_equal(opd_jit_pieces_find(&table.pieces, FIRST + 16000, 20)->from_ns, 20);
	free_table(&table);
}

/* A function with samples keeps its number and its name. */
static void sampled_functions_stay(void **state OP_UNUSED)
{
	struct table table = { 0 };

	add(&table, FIRST, 16, 0, 0);
	table.functions.rows[0].offset = 0;
	for (uint64_t i = 0; i < 1000; i++)
		add(&table, FIRST, 16, 0, 0);
	assert_int_equal(nr_known(&table), 2);
	assert_int_equal(table.functions.rows[0].offset, 0);
	assert_string_equal(table.functions.rows[0].name, "f");
	free_table(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_in_the_model),
		cmocka_unit_test(hostile_functions_cost_no_more),
		cmocka_unit_test(covered_functions_go_bit_by_bit),
		cmocka_unit_test(what_was_covered_is_unknown),
		cmocka_unit_test(sampled_functions_stay),
	};

	return cmocka_run_group_tests_name("jit_pieces", tests, NULL, NULL);
}
