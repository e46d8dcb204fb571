/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/peer.h"

#include <stdlib.h>

#include "libop/ring_memory.h"

/* At once: a reader that gives back only at the end makes the writer of a full ring wait for all of it. */
#define RECORDS_GIVEN_BACK 64

struct queue {
	struct op_mring ring;
	size_t record_bytes;
	_Alignas(128) struct op_mring_writer writer;
	_Alignas(128) struct op_ring reader;
};

static void *create(size_t ring_bytes, size_t record_bytes)
{
	struct queue *queue = aligned_alloc(128, sizeof(*queue));

	if (!queue)
		return NULL;
	memset(queue, 0, sizeof(*queue));
	queue->record_bytes = record_bytes;
	if (op_mring_create(ring_bytes, 0, 0, &queue->ring) < 0) {
		free(queue);
		return NULL;
	}
	if (op_mring_writer_open(&queue->ring, &queue->writer) < 0) {
		op_mring_destroy(&queue->ring);
		free(queue);
		return NULL;
	}
	op_mring_reader(&queue->ring, &queue->reader);
	return queue;
}

static inline __attribute__((always_inline)) uint64_t reserve_and_commit(struct queue *queue, uint64_t first, uint64_t nr,
								       size_t nr_bytes)
{
	struct perf_event_header *record;

	for (uint64_t i = 0; i < nr; i++) {
		if (op_mring_reserve(&queue->writer, nr_bytes, &record) < 0)
			return i;
		record->type = PERF_RECORD_SAMPLE;
		record->misc = PERF_RECORD_MISC_USER;
		peer_fill(record, first + i, nr_bytes);
		op_mring_commit(&queue->writer);
	}
	return nr;
}

static inline __attribute__((always_inline)) uint64_t drain(struct queue *queue, struct peer_check *check, size_t nr_bytes)
{
	const struct perf_event_header *record;
	uint64_t nr = 0;

	if (!op_ring_begin(&queue->reader))
		return 0;
	while ((record = op_ring_next(&queue->reader))) {
		if (record->type != PERF_RECORD_SAMPLE)
			continue; /* LOST: the writer tries again */
		peer_check(check, record, nr_bytes);
		if (!(++nr % RECORDS_GIVEN_BACK))
			op_ring_end(&queue->reader);
	}
	op_ring_end(&queue->reader);
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

	op_ring_unmap(&queue->reader);
	op_mring_writer_close(&queue->writer);
	op_mring_destroy(&queue->ring);
	free(queue);
}

const struct peer peer_ring = { .create = create, .write = write_records, .read = read_records, .destroy = destroy };
