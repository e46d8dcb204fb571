/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A queue of records between two threads, as the benchmark uses it: each peer writes the same
 * records, in place where possible, and the same check reads them. A peer makes its functions for
 * each record size, so that the size is a constant in every copy.
 */
#ifndef PEER_H
#define PEER_H

#include <string.h>

#include "libop/base/compiler.h"

#define PEER_RECORD_MAX 256

struct peer_check {
	uint64_t expect; /* number of the next record */
	uint64_t wrong;	 /* records that were not the next one */
	uint64_t sum;	 /* of all words: they are all read */
};

struct peer {
	/*
	 * A queue of ring_bytes for records of record_bytes (32, 64 or 256); NULL without memory.
	 */
	void *(*create)(size_t ring_bytes, size_t record_bytes);
	/*
	 * Writes records first, first + 1, ... up to nr of them or until there is no room. Returns
	 * how many. Called by the writer's thread.
	 */
	uint64_t (*write)(void *queue, uint64_t first, uint64_t nr);
	/* Reads what is there; how many. Reader's thread. */
	uint64_t (*read)(void *queue, struct peer_check *check);
	void (*destroy)(void *queue);
};

/* no queue between threads: the bytes go in and out of a buffer of the same size */
extern const struct peer peer_memcpy;
extern const struct peer peer_ring;   /* libop/ring/memory.h */
extern const struct peer peer_pair;   /* libop/ring/memory_pair.h: two rings of half the size */
extern const struct peer peer_pair_fence; /* the same, OP_MRING_FENCE */

/*
 * As with a writer of another process: the reader copies each record, and the pair's writer uses
 * fences.
 */
extern const struct peer peer_ring_copy;
extern const struct peer peer_pair_copy;

/* Only where their libraries were installed at build time. */
extern const struct peer peer_ck __attribute__((weak));
extern const struct peer peer_wfcqueue __attribute__((weak));

extern uint64_t peer_source[PEER_RECORD_MAX / 8];

/* The body of a record, behind its first word, which is the header's. */
static inline __attribute__((always_inline)) void peer_fill(void *record, uint64_t number, size_t nr_bytes)
{
	uint8_t *at = record;

	memcpy(at + 8, &number, 8);
	memcpy(at + 16, peer_source, nr_bytes - 16);
}

static inline __attribute__((always_inline)) void peer_check(struct peer_check *check, const void *record, size_t nr_bytes)
{
	const uint64_t *words = record;
	uint64_t sum = 0;

	check->wrong += words[1] != check->expect;
	check->expect++;
	for (size_t i = 1; i < nr_bytes / 8; i++)
		sum += words[i];
	check->sum += sum;
}

/* Calls `function`, inlined, with the size as a constant. */
#define PEER_BY_SIZE(nr_bytes, function, ...)                                                                                      \
	((nr_bytes) == 32 ? function(__VA_ARGS__, 32) : (nr_bytes) == 64 ? function(__VA_ARGS__, 64) : function(__VA_ARGS__, 256))

#endif
