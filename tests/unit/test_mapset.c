/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Mappings over time: cuts, past mappings, copies after a fork; and a comparison with a model that
 * paints every page.
 */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>

#include "libop/base/compiler.h"
#include "pipeline/jit/mapset.h"

static struct opd_mapset_account whole; /* of sets whose account does not matter */

static void add(struct opd_mapset **set, uint64_t start, uint64_t end, uint64_t key, uint64_t cookie, uint64_t from_ns)
{
	struct opd_mapping m = { .start = start, .end = end, .key = key, .cookie = cookie, .from_ns = from_ns };

	assert_int_equal(opd_mapset_add(set, &m, 0), 0);
}

static uint64_t cookie_at(const struct opd_mapset *set, uint64_t address, uint64_t time_ns)
{
	const struct opd_mapping *m = opd_mapset_find(set, address, time_ns);

	return m ? m->cookie : 0;
}

static void finds_by_address(void **state OP_UNUSED)
{
	struct opd_mapset *set = opd_mapset_new(&whole);

	assert_null(opd_mapset_find(set, 0x1000, 5));
	assert_int_equal(opd_mapset_end(set), 0);
	add(&set, 0x3000, 0x4000, 0, 3, 0);
	add(&set, 0x1000, 0x2000, 0x500, 1, 0);
	assert_int_equal(cookie_at(set, 0xfff, 1), 0);
	assert_int_equal(cookie_at(set, 0x1000, 1), 1);
	assert_int_equal(cookie_at(set, 0x1fff, 1), 1);
	assert_int_equal(cookie_at(set, 0x2000, 1), 0);
	assert_int_equal(cookie_at(set, 0x3000, 1), 3);
	assert_int_equal(opd_mapset_find(set, 0x1010, 1)->key, 0x500);
	assert_int_equal(opd_mapset_end(set), 0x4000);
	opd_mapset_put(set);
}

static void a_later_mapping_cuts(void **state OP_UNUSED)
{
	struct opd_mapset *set = opd_mapset_new(&whole);

	add(&set, 0x1000, 0x9000, 0, 1, 10);
	add(&set, 0x4000, 0x5000, 0, 2, 20);
	assert_int_equal(opd_mapset_count(set), 3);
	assert_int_equal(cookie_at(set, 0x4800, 15), 1);
	assert_int_equal(cookie_at(set, 0x4800, 20), 2);
	assert_int_equal(cookie_at(set, 0x6000, 25), 1);
	/* The part behind the cut has its offset moved along. */
	assert_int_equal(opd_mapset_find(set, 0x6000, 25)->start, 0x5000);
	assert_int_equal(opd_mapset_find(set, 0x6000, 25)->key, 0x4000);
	assert_int_equal(opd_mapset_find(set, 0x4800, 15)->key, 0x3000);
	opd_mapset_put(set);
}

static void the_same_again_changes_nothing(void **state OP_UNUSED)
{
	struct opd_mapset *set = opd_mapset_new(&whole);

	add(&set, 0x1000, 0x2000, 0, 1, 10);
	add(&set, 0x1000, 0x2000, 0, 1, 20);
	assert_int_equal(opd_mapset_find(set, 0x1000, 30)->from_ns, 10);
	opd_mapset_put(set);
}

static void a_child_keeps_its_own(void **state OP_UNUSED)
{
	struct opd_mapset *parent = opd_mapset_new(&whole), *child;

	add(&parent, 0x1000, 0x2000, 0, 1, 10);
	child = opd_mapset_get(parent);
	add(&child, 0x1000, 0x2000, 0, 2, 20);
	assert_ptr_not_equal(parent, child);
	assert_int_equal(cookie_at(parent, 0x1000, 30), 1);
	assert_int_equal(cookie_at(child, 0x1000, 30), 2);
	assert_int_equal(cookie_at(child, 0x1000, 15), 1);
	opd_mapset_put(parent);
	assert_int_equal(cookie_at(child, 0x1000, 30), 2);
	opd_mapset_put(child);
	opd_mapset_put(NULL);
}

static void forgets_behind_the_horizon(void **state OP_UNUSED)
{
	struct opd_mapset *set = opd_mapset_new(&whole);
	struct opd_mapping m = { .start = 0x1000, .end = 0x2000 };

	for (uint64_t i = 1; i <= 100; i++) {
		m.cookie = i;
		m.from_ns = i * 10;
		assert_int_equal(opd_mapset_add(&set, &m, i * 10 > 50 ? i * 10 - 50 : 0), 0);
	}
	assert_int_equal(cookie_at(set, 0x1000, 1005), 100);
	assert_int_equal(cookie_at(set, 0x1000, 985), 98);
	opd_mapset_put(set);
}

static void a_full_set_keeps_files_and_the_newest(void **state OP_UNUSED)
{
	struct opd_mapset *set = opd_mapset_new(&whole);
	struct opd_mapping region = { .cookie = 2 };

	add(&set, 0x1000, 0x2000, 0, 1, 1); /* a file */
	for (uint64_t i = 1; i <= 3 * OPD_MAPSET_MAX; i++) {
		region.start = 0x10000000 + i * 0x2000;
		region.end = region.region_end = region.start + 0x1000;
		region.from_ns = 1 + i;
		assert_int_equal(opd_mapset_add(&set, &region, 0), 0);
	}
	assert_in_range(opd_mapset_count(set), OPD_MAPSET_MAX / 2, OPD_MAPSET_MAX + 2);
	assert_int_equal(cookie_at(set, 0x1000, UINT64_MAX), 1);
	assert_int_equal(cookie_at(set, region.start, UINT64_MAX), 2);
	assert_int_equal(cookie_at(set, 0x10002000, UINT64_MAX), 0);
	/* Mappings of the same addresses again and again fill the past, not the present. */
	for (uint64_t i = 0; i <= 3 * OPD_MAPSET_MAX; i++) {
		region.cookie = 3 + i % 2;
		region.from_ns++;
		assert_int_equal(opd_mapset_add(&set, &region, 0), 0);
	}
	assert_int_equal(cookie_at(set, region.start, region.from_ns - 1), 3 + 1);
	opd_mapset_put(set);
}

/* The model: every page of a small address space at every time. */
#define PAGES 32
#define STEPS 200

static void agrees_with_a_painted_model(void **state OP_UNUSED)
{
	static uint64_t painted[STEPS + 1][PAGES];

	srandom(20261121);
	for (int round = 0; round < 20; round++) {
		struct opd_mapset *set = opd_mapset_new(&whole);

		for (size_t page = 0; page < PAGES; page++)
			painted[0][page] = 0;
		for (uint64_t t = 1; t <= STEPS; t++) {
			size_t first = (size_t)random() % PAGES, nr = 1 + (size_t)random() % (PAGES - first);

			for (size_t page = 0; page < PAGES; page++)
				painted[t][page] = page >= first && page < first + nr ? t : painted[t - 1][page];
			add(&set, first << 12, (first + nr) << 12, 0, t, t);
		}
		for (uint64_t t = 1; t <= STEPS; t++)
			for (size_t page = 0; page < PAGES; page++)
				if (painted[t][page])
					assert_int_equal(cookie_at(set, page << 12, t), painted[t][page]);
		opd_mapset_put(set);
	}
}

static void what_a_set_cannot_keep_is_counted(void **state OP_UNUSED)
{
	struct opd_mapset_account account = { 0 };
	struct opd_mapset *set = opd_mapset_new(&account);

	for (uint64_t i = 0; i < OPD_MAPSET_MAX + 10; i++)
		add(&set, 0x1000 * (2 * i + 1), 0x1000 * (2 * i + 2), 0, i + 1, i + 1);
	assert_true(opd_mapset_count(set) <= OPD_MAPSET_MAX);
	assert_int_equal(opd_mapset_count(set) + account.mappings.nr_dropped, OPD_MAPSET_MAX + 10);
	/* The oldest went, the newest are there. */
	assert_int_equal(cookie_at(set, 0x1000, UINT64_MAX), 0);
	assert_int_equal(cookie_at(set, 0x1000 * (2 * (OPD_MAPSET_MAX + 9) + 1), UINT64_MAX), OPD_MAPSET_MAX + 10);
	opd_mapset_put(set);
	assert_int_equal(account.mappings.nr_rows, 0);
	assert_null(account.sets);
}

/* A crowd of nr sets, each with nr_maps mappings and as many past ones. */
static void fill(struct opd_mapset_account *account, struct opd_mapset **sets, size_t nr, size_t nr_maps)
{
	for (size_t i = 0; i < nr; i++) {
		sets[i] = opd_mapset_new(account);
		for (uint64_t j = 0; j < 2 * nr_maps; j++) {
			add(&sets[i], 0x1000 * (2 * (j / 2) + 1), 0x1000 * (2 * (j / 2) + 2), 0, j + 1, j + 1);
			assert_true(account->mappings.nr_rows <= OPD_MAPPINGS_MAX);
		}
	}
}

static void put_all(struct opd_mapset **sets, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		opd_mapset_put(sets[i]);
}

static void a_crowd_of_sets_stays_below_the_limit(void **state OP_UNUSED)
{
	static struct opd_mapset *sets[3000];
	struct opd_mapset_account account = { 0 };
	struct opd_mapset *other = opd_mapset_new(&account);
	uint64_t nr_kept = 0;

	for (uint64_t i = 0; i < 20; i++)
		add(&other, 0x1000 * (2 * i + 1), 0x1000 * (2 * i + 2), 0, i + 1, i + 1);
	fill(&account, sets, op_array_size(sets), 600);
	for (size_t i = 0; i < op_array_size(sets); i++)
		nr_kept += opd_mapset_count(sets[i]);
	assert_in_range(nr_kept, op_array_size(sets) * 40, OPD_MAPPINGS_MAX);
	/* Past mappings were dropped as well as present ones. */
	assert_in_range(account.mappings.nr_dropped, 2 * op_array_size(sets) * 600 - OPD_MAPPINGS_MAX,
			2 * op_array_size(sets) * 600 - nr_kept);
	/* A set with few mappings keeps them, and each set has its newest ones. */
	assert_int_equal(opd_mapset_count(other), 20);
	assert_int_equal(cookie_at(other, 0x1000, UINT64_MAX), 1);
	for (size_t i = 0; i < op_array_size(sets); i++)
		assert_int_equal(cookie_at(sets[i], 0x1000 * (2 * 599 + 1), UINT64_MAX), 1200);
	put_all(sets, op_array_size(sets));
	/* The room is free again. */
	fill(&account, sets, 8, OPD_MAPSET_MAX / 2);
	assert_int_equal(opd_mapset_count(sets[7]), OPD_MAPSET_MAX / 2);
	put_all(sets, 8);
	opd_mapset_put(other);
	assert_int_equal(account.mappings.nr_rows, 0);
}

static void the_limit_holds_for_any_number_of_sets(void **state OP_UNUSED)
{
	size_t nr = 130000;
	struct opd_mapset **sets = calloc(nr, sizeof(*sets));
	struct opd_mapset_account account = { 0 };
	struct opd_mapset *late;

	assert_non_null(sets);
	fill(&account, sets, nr, 3);
	for (size_t i = 0; i < nr; i++)
		assert_true(opd_mapset_count(sets[i]) >= 1);
	put_all(sets, nr);
	free(sets);
	/* No set can give up a mapping. */
	account = (struct opd_mapset_account){ .mappings.nr_rows = OPD_MAPPINGS_MAX };
	late = opd_mapset_new(&account);
	add(&late, 0x1000, 0x2000, 0, 1, 1);
	assert_int_equal(opd_mapset_count(late), 0);
	assert_int_equal(account.mappings.nr_dropped, 1);
	opd_mapset_put(late);
}

static void the_past_goes_before_the_present(void **state OP_UNUSED)
{
	static struct opd_mapset *sets[32];
	struct opd_mapset_account account = { 0 };
	struct opd_mapset *last = opd_mapset_new(&account);
	struct opd_mapping m = { .start = 0x1000, .end = 0x2000 };

	fill(&account, sets, op_array_size(sets), 5000);
	assert_int_equal(account.mappings.nr_dropped, 0);
	/* No sample is older than 10001: no set loses a mapping that still holds. */
	for (m.from_ns = 10001; m.from_ns < 10001 + OPD_MAPSET_MAX / 2; m.from_ns++) {
		m.start = m.from_ns << 13;
		m.end = m.start + 0x1000;
		assert_int_equal(opd_mapset_add(&last, &m, 10001), 0);
		assert_int_equal(opd_mapset_add(&sets[0], &m, 10001), 0);
	}
	assert_int_equal(account.mappings.nr_dropped, 0);
	put_all(sets, op_array_size(sets));
	opd_mapset_put(last);
}

static void add_up(uint64_t cookie, void *arg)
{
	*(uint64_t *)arg += cookie;
}

static void cookies_are_visited_once_a_round(void **state OP_UNUSED)
{
	struct opd_mapset *set = opd_mapset_new(&whole);
	uint64_t sum = 0;

	add(&set, 0x1000, 0x4000, 0, 1, 10);
	add(&set, 0x2000, 0x3000, 0, 100, 20);
	opd_mapset_visit_cookies(set, 1, add_up, &sum);
	assert_int_equal(sum, 1 + 100 + 1 + 1); /* two parts that are left, and the past one */
	opd_mapset_visit_cookies(set, 1, add_up, &sum);
	assert_int_equal(sum, 103);
	opd_mapset_visit_cookies(set, 2, add_up, &sum);
	assert_int_equal(sum, 206);
	opd_mapset_put(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_address),
		cmocka_unit_test(a_later_mapping_cuts),
		cmocka_unit_test(the_same_again_changes_nothing),
		cmocka_unit_test(a_child_keeps_its_own),
		cmocka_unit_test(forgets_behind_the_horizon),
		cmocka_unit_test(a_full_set_keeps_files_and_the_newest),
		cmocka_unit_test(what_a_set_cannot_keep_is_counted),
		cmocka_unit_test(a_crowd_of_sets_stays_below_the_limit),
		cmocka_unit_test(the_limit_holds_for_any_number_of_sets),
		cmocka_unit_test(the_past_goes_before_the_present),
		cmocka_unit_test(cookies_are_visited_once_a_round),
		cmocka_unit_test(agrees_with_a_painted_model),
	};

	return cmocka_run_group_tests_name("mapset", tests, NULL, NULL);
}
