/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An intrusive hash table: an entry contains its link, and the table allocates only buckets. It
 * doubles when it is full and shrinks when it is nearly empty. op_htable_first and op_htable_next
 * give the entries of one hash; the caller compares keys. One thread.
 */
#ifndef OP_HTABLE_H
#define OP_HTABLE_H

#include <string.h>

#include "libop/base/compiler.h"

struct op_hlink {
	struct op_hlink *next;
	uint64_t hash;
};

struct op_htable {
	struct op_hlink **buckets; /* NULL until the first entry */
	size_t nr_buckets;	   /* power of two */
	size_t nr_entries;
	unsigned int nr_visits;	   /* op_htable_visit calls that are running */
};

#define op_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* Mixes a value: every bit of the result depends on every bit of the value. */
static inline uint64_t op_hash_u64(uint64_t value)
{
	value *= 0x9e3779b97f4a7c15u;
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93u;
	return value ^ (value >> 32);
}

/* Adds a value to a running hash. */
static inline uint64_t op_hash_add(uint64_t hash, uint64_t value)
{
	return op_hash_u64(hash ^ value) + (hash << 6) + (hash >> 2);
}

static inline uint64_t op_hash_bytes(uint64_t hash, const void *bytes, size_t nr_bytes)
{
	const uint8_t *b = bytes;
	uint64_t word;
	size_t i;

	for (i = 0; i + sizeof(word) <= nr_bytes; i += sizeof(word)) {
		memcpy(&word, b + i, sizeof(word));
		hash = (hash ^ word) * 0xd6e8feb86659fd93u;
		hash ^= hash >> 32;
	}
	for (; i < nr_bytes; i++)
		hash = (hash ^ b[i]) * 0x100000001b3u;
	return op_hash_u64(hash ^ nr_bytes);
}

/*
 * Adds an entry. 0, or -ENOMEM for the first entry only: a table that cannot grow gets longer
 * chains.
 */
int op_htable_insert(struct op_htable *table, struct op_hlink *link, uint64_t hash) OP_NONNULL OP_MUST_CHECK;

/*
 * Removes an entry of the table. The table may shrink: fetch the next entry before you remove this
 * one.
 */
void op_htable_remove(struct op_htable *table, struct op_hlink *link) OP_NONNULL;

static inline struct op_hlink *op_htable_same(struct op_hlink *link, uint64_t hash)
{
	while (link && link->hash != hash)
		link = link->next;
	return link;
}

static inline struct op_hlink *op_htable_first(const struct op_htable *table, uint64_t hash)
{
	return table->buckets ? op_htable_same(table->buckets[hash & (table->nr_buckets - 1)], hash) : NULL;
}

static inline struct op_hlink *op_htable_next(const struct op_hlink *link)
{
	return op_htable_same(link->next, link->hash);
}

/* Calls `visit` for every entry. It may remove and free that entry, and no other one. */
void op_htable_visit(struct op_htable *table, void (*visit)(struct op_hlink *link, void *arg), void *arg) OP_NONNULL_ARGS(1, 2);

/* Frees the buckets; the entries are the caller's. */
void op_htable_free(struct op_htable *table);

#endif
