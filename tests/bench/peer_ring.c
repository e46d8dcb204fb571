/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory ring and the memory pair. The writer waits for room instead of losing records, as with
 * the other queues.
 */
#include "tests/bench/peer.h"

#include <stdlib.h>

#include "libop/ring/memory_pair.h"

/*
 * Bytes after which the reader returns space. A reader that returns it only at the end makes the
 * writer of a full ring wait for the whole ring.
 */
#define BYTES_GIVEN_BACK (16 * 1024)

/*
 * The reader of a pair swaps when half of the ring is full, or after so many checks that found no
 * new record.
 */
#define LOOKS_TO_SWAP 32

struct queue {
	struct op_mring_pair pair; /* or the first of its rings alone */
	size_t record_bytes;
	uint64_t worth; /* bytes */
	uint64_t waiting;
	unsigned int nr_looks;
	_Alignas(128) struct op_mring_pair_writer writer;
	_Alignas(128) struct op_mring_pair_reader reader;
};

static struct queue *make_queue(size_t record_bytes)
{
	struct queue *queue = aligned_alloc(128, sizeof(*queue));

	if (!queue)
		return NULL;
	memset(queue, 0, sizeof(*queue));
	queue->record_bytes = record_bytes;
	return queue;
}

static void *create_ring_with(unsigned int flags, size_t ring_bytes, size_t record_bytes)
{
	struct queue *queue = make_queue(record_bytes);

	if (!queue)
		return NULL;
	if (op_mring_create(ring_bytes, 0, flags, &queue->pair.rings[0]) < 0)
		goto no_ring;
	if (op_mring_writer_open(&queue->pair.rings[0], &queue->writer.writers[0]) < 0 ||
	    op_mring_reader(&queue->pair.rings[0], &queue->reader.rings[0]) < 0)
		goto no_end;
	return queue;

no_end:
	op_mring_destroy(&queue->pair.rings[0]);
no_ring:
	free(queue);
	return NULL;
}

static void *create_ring(size_t ring_bytes, size_t record_bytes)
{
	return create_ring_with(OP_MRING_OWN_WRITER, ring_bytes, record_bytes);
}

static void *create_ring_copy(size_t ring_bytes, size_t record_bytes)
{
	return create_ring_with(0, ring_bytes, record_bytes);
}

static void *create_pair_with(unsigned int flags, size_t ring_bytes, size_t record_bytes)
{
	struct queue *queue = make_queue(record_bytes);

	if (!queue)
		return NULL;
	queue->worth = ring_bytes / 4;
	if (op_mring_pair_create(ring_bytes / 2, flags, &queue->pair) < 0)
		goto no_pair;
	if (op_mring_pair_reader_open(&queue->pair, &queue->reader) < 0)
		goto no_reader;
	if (op_mring_pair_writer_open(&queue->pair, &queue->writer) < 0)
		goto no_writer;
	return queue;

no_writer:
	op_mring_pair_reader_close(&queue->reader);
no_reader:
	op_mring_pair_destroy(&queue->pair);
no_pair:
	free(queue);
	return NULL;
}

static void *create_pair(size_t ring_bytes, size_t record_bytes)
{
	return create_pair_with(OP_MRING_OWN_WRITER, ring_bytes, record_bytes);
}

static void *create_pair_fence(size_t ring_bytes, size_t record_bytes)
{
	return create_pair_with(OP_MRING_OWN_WRITER | OP_MRING_FENCE, ring_bytes, record_bytes);
}

static void *create_pair_copy(size_t ring_bytes, size_t record_bytes)
{
	return create_pair_with(OP_MRING_FENCE, ring_bytes, record_bytes);
}

/* True when the record was written. */
static inline __attribute__((always_inline)) bool put(struct op_mring_writer *writer, uint64_t number, size_t nr_bytes)
{
	struct perf_event_header *record;

	if (!op_mring_has_room(writer, nr_bytes, false) || op_mring_reserve(writer, nr_bytes, &record) < 0)
		return false;
	record->type = PERF_RECORD_SAMPLE;
	record->misc = PERF_RECORD_MISC_USER;
	peer_fill(record, number, nr_bytes);
	op_mring_commit(writer);
	return true;
}

static inline __attribute__((always_inline)) uint64_t fill_ring(struct queue *queue, uint64_t first, uint64_t nr, size_t nr_bytes)
{
	uint64_t i = 0;

	while (i < nr && put(&queue->writer.writers[0], first + i, nr_bytes))
		i++;
	return i;
}

/* Goes in and out for each record. */
static inline __attribute__((always_inline)) uint64_t fill_pair(struct queue *queue, uint64_t first, uint64_t nr, size_t nr_bytes)
{
	bool good = true;
	uint64_t i;

	for (i = 0; i < nr; i++) {
		good = put(op_mring_pair_enter(&queue->writer), first + i, nr_bytes);
		op_mring_pair_leave(&queue->writer);
		if (!good)
			break;
	}
	return i;
}

static inline __attribute__((always_inline)) uint64_t drain(struct op_ring *ring, struct peer_check *check, size_t nr_bytes)
{
	const struct perf_event_header *record;
	uint64_t from = check->expect;

	if (!op_ring_begin(ring))
		return 0;
	while ((record = op_ring_next(ring))) {
		peer_check(check, record, nr_bytes);
		if (!(check->expect % (BYTES_GIVEN_BACK / nr_bytes)))
			op_ring_end(ring);
	}
	return check->expect - from;
}

static bool worth_a_swap(struct queue *queue)
{
	uint64_t waiting = op_mring_pair_waiting(&queue->reader);

	queue->nr_looks = waiting == queue->waiting ? queue->nr_looks + 1 : 0;
	queue->waiting = waiting;
	return waiting >= queue->worth || (waiting && queue->nr_looks >= LOOKS_TO_SWAP);
}

static inline __attribute__((always_inline)) uint64_t drain_pair(struct queue *queue, struct peer_check *check, size_t nr_bytes)
{
	struct op_ring *ring = op_mring_pair_read_ring(&queue->reader);
	uint64_t nr;

	if (!ring)
		return 0;
	nr = drain(ring, check, nr_bytes);
	op_ring_end(ring);
	/* It cannot be refused: the ring is quiet and empty. */
	if (worth_a_swap(queue) && op_mring_pair_swap(&queue->reader) < 0)
		check->wrong++;
	return nr;
}

static uint64_t write_ring(void *handle, uint64_t first, uint64_t nr)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, fill_ring, queue, first, nr);
}

static uint64_t write_pair(void *handle, uint64_t first, uint64_t nr)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, fill_pair, queue, first, nr);
}

static uint64_t read_ring(void *handle, struct peer_check *check)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, drain, &queue->reader.rings[0], check);
}

static uint64_t read_pair(void *handle, struct peer_check *check)
{
	struct queue *queue = handle;

	return PEER_BY_SIZE(queue->record_bytes, drain_pair, queue, check);
}

static void destroy_ring(void *handle)
{
	struct queue *queue = handle;

	op_mring_writer_close(&queue->writer.writers[0]);
	op_ring_unmap(&queue->reader.rings[0]);
	op_mring_destroy(&queue->pair.rings[0]);
	free(queue);
}

static void destroy_pair(void *handle)
{
	struct queue *queue = handle;

	op_mring_pair_writer_close(&queue->writer);
	op_mring_pair_reader_close(&queue->reader);
	op_mring_pair_destroy(&queue->pair);
	free(queue);
}

const struct peer peer_ring = { .create = create_ring, .write = write_ring, .read = read_ring, .destroy = destroy_ring };
const struct peer peer_ring_copy = { .create = create_ring_copy, .write = write_ring, .read = read_ring, .destroy = destroy_ring };
const struct peer peer_pair = { .create = create_pair, .write = write_pair, .read = read_pair, .destroy = destroy_pair };
const struct peer peer_pair_fence = {
	.create = create_pair_fence,
	.write = write_pair,
	.read = read_pair,
	.destroy = destroy_pair,
};
const struct peer peer_pair_copy = {
	.create = create_pair_copy,
	.write = write_pair,
	.read = read_pair,
	.destroy = destroy_pair,
};
