/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/peer.h"

#include <stdlib.h>

#include "libop/ring_memory_pair.h"

struct queue {
	struct op_mring_pair pair;
	size_t record_bytes;
	_Alignas(128) struct op_mring_pair_writer writer;
	_Alignas(128) struct op_mring_pair_reader reader;
};

static void *create(size_t ring_bytes, size_t record_bytes)
{
	struct queue *queue = aligned_alloc(128, sizeof(*queue));

	if (!queue)
		return NULL;
	memset(queue, 0, sizeof(*queue));
	queue->record_bytes = record_bytes;
	if (op_mring_pair_create(ring_bytes / 2, 0, &queue->pair) < 0) {
		free(queue);
		return NULL;
	}
	if (op_mring_pair_writer_open(&queue->pair, &queue->writer) < 0) {
		op_mring_pair_destroy(&queue->pair);
		free(queue);
		return NULL;
	}
	op_mring_pair_reader_open(&queue->pair, &queue->reader);
	return queue;
}

static inline __attribute__((always_inline)) uint64_t reserve_and_commit(struct queue *queue, uint64_t first, uint64_t nr,
								       size_t nr_bytes)
{
	struct perf_event_header *record;

	for (uint64_t i = 0; i < nr; i++) {
		if (op_mring_pair_reserve(&queue->writer, nr_bytes, &record) < 0)
			return i;
		record->type = PERF_RECORD_SAMPLE;
		record->misc = PERF_RECORD_MISC_USER;
		peer_fill(record, first + i, nr_bytes);
		op_mring_pair_commit(&queue->writer);
	}
	return nr;
}

/* The frozen ring, when it is quiet, and then the swap. */
static inline __attribute__((always_inline)) uint64_t drain(struct queue *queue, struct peer_check *check, size_t nr_bytes)
{
	struct op_ring *ring = op_mring_pair_read_ring(&queue->reader);
	const struct perf_event_header *record;
	uint64_t nr = 0;

	if (!ring)
		return 0;
	op_ring_begin(ring);
	while ((record = op_ring_next(ring))) {
		if (record->type != PERF_RECORD_SAMPLE)
			continue; /* LOST: the writer tries again */
		peer_check(check, record, nr_bytes);
		nr++;
	}
	op_ring_end(ring);
	/* It cannot be refused: the ring is quiet and empty. */
	if (op_mring_pair_swap(&queue->reader) < 0)
		check->wrong++;
	return nr;
}

static uint64_t write_records(void *handle, uint64_t first, uint64_t nr)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, reserve_and_commit, queue, first, nr);
}

static uint64_t read_records(void *handle, struct peer_check *check)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, drain, queue, check);
}

static void destroy(void *handle)
{
	struct queue *queue = handle;

	op_mring_pair_reader_close(&queue->reader);
	op_mring_pair_writer_close(&queue->writer);
	op_mring_pair_destroy(&queue->pair);
	free(queue);
}

const struct peer peer_pair = { .create = create, .write = write_records, .read = read_records, .destroy = destroy };
