/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/peer.h"

#include <stdlib.h>

struct buffer {
	uint64_t written, read; /* records */
	uint64_t nr;
	size_t record_bytes;
	uint8_t *bytes;
};

static void *create(size_t ring_bytes, size_t record_bytes)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	buffer->nr = ring_bytes / record_bytes;
	buffer->record_bytes = record_bytes;
	buffer->bytes = aligned_alloc(4096, ring_bytes);
	if (!buffer->bytes) {
		free(buffer);
		return NULL;
	}
	return buffer;
}

static inline __attribute__((always_inline)) uint64_t copy_in(struct buffer *buffer, uint64_t first, uint64_t nr, size_t nr_bytes)
{
	uint64_t room = buffer->nr - (buffer->written - buffer->read);

	nr = op_min_u64(nr, room);
	for (uint64_t i = 0; i < nr; i++)
		peer_fill(buffer->bytes + (buffer->written++ & (buffer->nr - 1)) * nr_bytes, first + i, nr_bytes);
	return nr;
}

static inline __attribute__((always_inline)) uint64_t copy_out(struct buffer *buffer, struct peer_check *check, size_t nr_bytes)
{
	uint64_t nr = buffer->written - buffer->read, copy[PEER_RECORD_MAX / 8];

	for (uint64_t i = 0; i < nr; i++) {
		memcpy(copy, buffer->bytes + (buffer->read++ & (buffer->nr - 1)) * nr_bytes, nr_bytes);
		peer_check(check, copy, nr_bytes);
	}
	return nr;
}

static uint64_t write_records(void *queue, uint64_t first, uint64_t nr)
{
	struct buffer *buffer = queue;

	return PEER_BY_SIZE(buffer->record_bytes, copy_in, buffer, first, nr);
}

static uint64_t read_records(void *queue, struct peer_check *check)
{
	struct buffer *buffer = queue;

	return PEER_BY_SIZE(buffer->record_bytes, copy_out, buffer, check);
}

static void destroy(void *queue)
{
	struct buffer *buffer = queue;

	free(buffer->bytes);
	free(buffer);
}

const struct peer peer_memcpy = { .create = create, .write = write_records, .read = read_records, .destroy = destroy };
