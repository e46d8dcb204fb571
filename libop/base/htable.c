/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/htable.h"

#include <errno.h>

#define FIRST_BUCKETS 64

static void push(struct op_htable *table, struct op_hlink *link)
{
	struct op_hlink **bucket = &table->buckets[link->hash & (table->nr_buckets - 1)];

	link->next = *bucket;
	*bucket = link;
}

/* Without memory the table stays as it is. */
static void resize(struct op_htable *table, size_t nr_buckets)
{
	struct op_htable old = *table;
	struct op_hlink **buckets = calloc(nr_buckets, sizeof(struct op_hlink *));

	if (!buckets)
		return;
	table->buckets = buckets;
	table->nr_buckets = nr_buckets;
	for (size_t i = 0; i < old.nr_buckets; i++) {
		struct op_hlink *link = old.buckets[i], *next;

		for (; link; link = next) {
			next = link->next;
			push(table, link);
		}
	}
	free(old.buckets);
}

/* The limit is far from that of growing, so that the size does not swing. Not during a visit. */
static void shrink(struct op_htable *table)
{
	size_t nr_buckets = table->nr_buckets;

	if (table->nr_visits)
		return;
	while (nr_buckets > FIRST_BUCKETS && table->nr_entries < nr_buckets / 8)
		nr_buckets /= 4;
	if (nr_buckets != table->nr_buckets)
		resize(table, (size_t)op_max_u64(nr_buckets, FIRST_BUCKETS));
}

int op_htable_insert(struct op_htable *table, struct op_hlink *link, uint64_t hash)
{
	if (!table->buckets) {
		table->buckets = calloc(FIRST_BUCKETS, sizeof(struct op_hlink *));
		if (!table->buckets)
			return -ENOMEM;
		table->nr_buckets = FIRST_BUCKETS;
	}
	if (table->nr_entries >= table->nr_buckets)
		resize(table, table->nr_buckets * 2);
	link->hash = hash;
	push(table, link);
	table->nr_entries++;
	return 0;
}

void op_htable_remove(struct op_htable *table, struct op_hlink *link)
{
	struct op_hlink **at = &table->buckets[link->hash & (table->nr_buckets - 1)];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	table->nr_entries--;
	shrink(table);
}

void op_htable_visit(struct op_htable *table, void (*visit)(struct op_hlink *link, void *arg), void *arg)
{
	size_t nr_before = table->nr_entries;

	table->nr_visits++;
	for (size_t i = 0; i < table->nr_buckets; i++) {
		struct op_hlink *link = table->buckets[i], *next;

		for (; link; link = next) {
			next = link->next;
			visit(link, arg);
		}
	}
	table->nr_visits--;
	/*
	 * With all entries still counted the visit was for freeing them, and links are not valid
	 * any more.
	 */
	if (table->nr_entries < nr_before)
		shrink(table);
}

void op_htable_free(struct op_htable *table)
{
	if (!table)
		return;
	free(table->buckets);
	*table = (struct op_htable){ 0 };
}
