/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ck_ring for one writer and one reader, with the records by value: written in place, read by
 * copying out.
 */
#include "tests/bench/peer.h"

#include <ck_ring.h>
#include <stdlib.h>

struct queue {
	struct ck_ring ring;
	size_t record_bytes;
	void *slots;
};

#define BY_VALUE(size)                                                                                                             \
	struct record##size {                                                                                                      \
		uint64_t words[(size) / 8];                                                                                        \
	};                                                                                                                         \
	CK_RING_PROTOTYPE(record##size, record##size)                                                                              \
                                                                                                                                   \
	static uint64_t write##size(struct queue *queue, uint64_t first, uint64_t nr)                                              \
	{                                                                                                                          \
		for (uint64_t i = 0; i < nr; i++) {                                                                                \
			struct record##size *slot = ck_ring_enqueue_reserve_spsc_record##size(&queue->ring, queue->slots);     \
                                                                                                                                   \
			if (!slot)                                                                                                 \
				return i;                                                                                          \
			peer_fill(slot, first + i, size);                                                                          \
			ck_ring_enqueue_commit_spsc(&queue->ring);                                                                 \
		}                                                                                                                  \
		return nr;                                                                                                         \
	}                                                                                                                          \
                                                                                                                                   \
	static uint64_t read##size(struct queue *queue, struct peer_check *check)                                                  \
	{                                                                                                                          \
		struct record##size record;                                                                                        \
		uint64_t nr = 0;                                                                                                   \
                                                                                                                                   \
		while (ck_ring_dequeue_spsc_record##size(&queue->ring, queue->slots, &record)) {                               \
			peer_check(check, &record, size);                                                                          \
			nr++;                                                                                                      \
		}                                                                                                                  \
		return nr;                                                                                                         \
	}

BY_VALUE(32)
BY_VALUE(64)
BY_VALUE(256)

static void *create(size_t ring_bytes, size_t record_bytes)
{
	size_t nr_lines = (sizeof(struct queue) + CK_MD_CACHELINE - 1) / CK_MD_CACHELINE;
	struct queue *queue = aligned_alloc(CK_MD_CACHELINE, nr_lines * CK_MD_CACHELINE);

	if (!queue)
		return NULL;
	queue->record_bytes = record_bytes;
	queue->slots = aligned_alloc(4096, ring_bytes);
	if (!queue->slots) {
		free(queue);
		return NULL;
	}
	ck_ring_init(&queue->ring, (unsigned int)(ring_bytes / record_bytes));
	return queue;
}

static uint64_t write_records(void *handle, uint64_t first, uint64_t nr)
{
	struct queue *queue = handle;

	return queue->record_bytes == 32 ? write32(queue, first, nr) :
	       queue->record_bytes == 64 ? write64(queue, first, nr) :
					   write256(queue, first, nr);
}

static uint64_t read_records(void *handle, struct peer_check *check)
{
	struct queue *queue = handle;

	return queue->record_bytes == 32 ? read32(queue, check) :
	       queue->record_bytes == 64 ? read64(queue, check) :
					   read256(queue, check);
}

static void destroy(void *handle)
{
	struct queue *queue = handle;

	free(queue->slots);
	free(queue);
}

const struct peer peer_ck = { .create = create, .write = write_records, .read = read_records, .destroy = destroy };
