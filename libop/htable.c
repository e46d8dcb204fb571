/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/htable.h"

#include <errno.h>

#define FIRST_BUCKETS 64

static void push(struct op_htable *table, struct op_hlink *link)
{
	struct op_hlink **bucket = &table->buckets[link->hash & (table->nr_buckets - 1)];

	link->next = *bucket;
	*bucket = link;
}

static void grow(struct op_htable *table)
{
	struct op_htable old = *table;
	struct op_hlink **buckets = calloc(old.nr_buckets * 2, sizeof(struct op_hlink *));

	if (!buckets)
		return;
	table->buckets = buckets;
	table->nr_buckets = old.nr_buckets * 2;
	for (size_t i = 0; i < old.nr_buckets; i++) {
		struct op_hlink *link = old.buckets[i], *next;

		for (; link; link = next) {
			next = link->next;
			push(table, link);
		}
	}
	free(old.buckets);
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
		grow(table);
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
}

void op_htable_visit(struct op_htable *table, void (*visit)(struct op_hlink *link, void *arg), void *arg)
{
	for (size_t i = 0; i < table->nr_buckets; i++) {
		struct op_hlink *link = table->buckets[i], *next;

		for (; link; link = next) {
			next = link->next;
			visit(link, arg);
		}
	}
}

void op_htable_free(struct op_htable *table)
{
	if (!table)
		return;
	free(table->buckets);
	*table = (struct op_htable){ 0 };
}
