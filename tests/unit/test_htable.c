/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The hash table: entries are found after any additions and removals, and the table takes room for
 * its entries only.
 */
#include "tests/unit/cmocka_all.h"

#include "libop/base/htable.h"

#define NR          100000u
#define NR_LEFT     50u
#define MAX_BUCKETS 1024u /* for NR_LEFT */

struct entry {
	struct op_hlink link;
	uint64_t key;
	unsigned int nr_visits;
};

struct emptying {
	struct op_htable *table;
	uint64_t keep_below;
};

static struct entry entries[NR];

static struct entry *find(const struct op_htable *table, uint64_t key)
{
	for (struct op_hlink *link = op_htable_first(table, op_hash_u64(key)); link; link = op_htable_next(link))
		if (op_container_of(link, struct entry, link)->key == key)
			return op_container_of(link, struct entry, link);
	return NULL;
}

static void fill(struct op_htable *table)
{
	for (uint64_t key = 0; key < NR; key++) {
		entries[key] = (struct entry){ .key = key };
		assert_int_equal(op_htable_insert(table, &entries[key].link, op_hash_u64(key)), 0);
	}
	assert_true(table->nr_buckets >= NR);
}

static void check_left(const struct op_htable *table)
{
	assert_int_equal(table->nr_entries, NR_LEFT);
	assert_in_range(table->nr_buckets, NR_LEFT, MAX_BUCKETS);
	for (uint64_t key = 0; key < NR; key++)
		assert_ptr_equal(find(table, key), key < NR_LEFT ? &entries[key] : NULL);
}

static void it_shrinks_with_what_is_removed(void **state OP_UNUSED)
{
	struct op_htable table = { 0 };

	for (int round = 0; round < 2; round++) {
		fill(&table);
		for (uint64_t key = NR_LEFT; key < NR; key++)
			op_htable_remove(&table, &entries[key].link);
		check_left(&table);
		for (uint64_t key = 0; key < NR_LEFT; key++)
			op_htable_remove(&table, &entries[key].link);
		assert_int_equal(table.nr_entries, 0);
	}
	op_htable_free(&table);
}

static void remove_visited(struct op_hlink *link, void *arg)
{
	struct entry *entry = op_container_of(link, struct entry, link);
	const struct emptying *emptying = arg;

	entry->nr_visits++;
	if (entry->key >= emptying->keep_below)
		op_htable_remove(emptying->table, link);
}

static void it_shrinks_when_a_visit_is_over(void **state OP_UNUSED)
{
	struct op_htable table = { 0 };
	struct emptying emptying = { &table, NR_LEFT };

	fill(&table);
	op_htable_visit(&table, remove_visited, &emptying);
	for (uint64_t key = 0; key < NR; key++)
		assert_int_equal(entries[key].nr_visits, 1);
	check_left(&table);
	op_htable_free(&table);
}

/*
 * Between its sizes for growing and shrinking the table does neither, so one entry more or less
 * does not move all entries.
 */
static void it_does_not_go_to_and_fro(void **state OP_UNUSED)
{
	struct op_htable table = { 0 };
	unsigned int nr_resizes = 0;

	fill(&table);
	for (uint64_t key = 1000; key < NR; key++)
		op_htable_remove(&table, &entries[key].link);
	for (unsigned int i = 0; i < 1000; i++) {
		struct op_hlink **buckets = table.buckets;

		op_htable_remove(&table, &entries[i].link);
		nr_resizes += table.buckets != buckets;
		buckets = table.buckets;
		assert_int_equal(op_htable_insert(&table, &entries[i].link, entries[i].link.hash), 0);
		nr_resizes += table.buckets != buckets;
	}
	assert_in_range(nr_resizes, 0, 1);
	op_htable_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_shrinks_with_what_is_removed),
		cmocka_unit_test(it_shrinks_when_a_visit_is_over),
		cmocka_unit_test(it_does_not_go_to_and_fro),
	};

	return cmocka_run_group_tests_name("htable", tests, NULL, NULL);
}
