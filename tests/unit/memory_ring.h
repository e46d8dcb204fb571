/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Helpers for tests of rings: a ring in ordinary memory that the test writes in place of the
 * kernel, and memory rings and pairs with their writers and readers.
 */
#ifndef MEMORY_RING_H
#define MEMORY_RING_H

#include <stdlib.h>
#include <string.h>

#include "libop/ring/reader.h"
#include "libop/ring/memory_pair.h"
#include "tests/unit/pair.h"
#include "tests/unit/cmocka_all.h"

#define MEMORY_RING_BYTES 4096u

static inline void memory_ring_init(struct op_ring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->k_control = calloc(1, sizeof(*ring->k_control));
	ring->k_data = calloc(1, MEMORY_RING_BYTES);
	ring->bounce = aligned_alloc(8, OP_RECORD_BYTES_MAX);
	ring->data_bytes = MEMORY_RING_BYTES;
}

static inline void memory_ring_free(struct op_ring *ring)
{
	free(ring->k_control);
	free(ring->k_data);
	free(ring->bounce);
}

/* Appends bytes; false when the ring has no room. */
static inline bool memory_ring_write(struct op_ring *ring, const void *bytes, size_t nr_bytes)
{
	uint64_t head = ring->k_control->data_head;

	if (head + nr_bytes - ring->k_control->data_tail > ring->data_bytes)
		return false;
	for (size_t i = 0; i < nr_bytes; i++)
		ring->k_data[(head + i) & (ring->data_bytes - 1)] = ((const uint8_t *)bytes)[i];
	__atomic_store_n(&ring->k_control->data_head, head + nr_bytes, __ATOMIC_RELEASE);
	return true;
}

/* A record of a type with a body of 64-bit words. */
static inline bool memory_ring_record(struct op_ring *ring, uint32_t type, uint16_t misc, const uint64_t *words, size_t nr_words)
{
	uint64_t record[64];
	struct perf_event_header header = { .type = type, .misc = misc, .size = (uint16_t)(8 + nr_words * 8) };

	memcpy(record, &header, 8);
	memcpy(record + 1, words, nr_words * 8);
	return memory_ring_write(ring, record, header.size);
}

struct mring_box {
	struct op_mring ring;
	struct op_mring_writer writer;
	struct op_ring reader;
};

static inline void mring_box_open(struct mring_box *box, size_t data_bytes, size_t aux_bytes, unsigned int flags)
{
	assert_int_equal(op_mring_create(data_bytes, aux_bytes, flags, &box->ring), 0);
	assert_int_equal(op_mring_writer_open(&box->ring, &box->writer), 0);
	assert_int_equal(op_mring_reader(&box->ring, &box->reader), 0);
}

static inline void mring_box_close(struct mring_box *box)
{
	op_ring_unmap(&box->reader);
	op_mring_destroy(&box->ring);
}

/* The same as a cmocka teardown, for a state that is a box itself. */
static inline int mring_box_teardown(void **state)
{
	struct mring_box *box = *state;

	mring_box_close(box);
	free(box);
	return 0;
}

struct mring_pair_box {
	struct op_mring_pair pair;
	struct op_mring_pair_writer writer;
	struct op_mring_pair_reader reader;
};

/* The reader opens first: it makes the promise that spares the writer its fences. */
static inline void mring_pair_box_open(struct mring_pair_box *box, size_t data_bytes, unsigned int flags)
{
	assert_int_equal(op_mring_pair_create(data_bytes, flags, &box->pair), 0);
	assert_int_equal(op_mring_pair_reader_open(&box->pair, &box->reader), 0);
	assert_int_equal(op_mring_pair_writer_open(&box->pair, &box->writer), 0);
}

static inline void mring_pair_box_close(struct mring_pair_box *box)
{
	op_mring_pair_reader_close(&box->reader);
	op_mring_pair_destroy(&box->pair);
}

/* The i-th 64-bit word of a record. Word 0 is the header. */
static inline uint64_t memory_ring_word(const struct perf_event_header *record, size_t i)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)record + 8 * i, 8);
	return value;
}

typedef int mring_reserve_fn(struct op_mring_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record);

/* A record of 16 bytes or more. All its words are its number. */
static inline int mring_box_put_with(mring_reserve_fn *reserve, struct mring_box *box, uint64_t number, size_t nr_bytes)
{
	struct perf_event_header *record;
	int err = reserve(&box->writer, nr_bytes, &record);

	if (err < 0)
		return err;
	record->type = PERF_RECORD_SAMPLE;
	record->misc = 0;
	for (size_t i = 1; i < nr_bytes / 8; i++)
		memcpy((uint8_t *)record + 8 * i, &number, 8);
	op_mring_commit(&box->writer);
	return 0;
}

static inline int mring_box_put(struct mring_box *box, uint64_t number, size_t nr_bytes)
{
	return mring_box_put_with(op_mring_reserve, box, number, nr_bytes);
}

static inline void memory_ring_check(const struct perf_event_header *record, uint64_t number, size_t nr_bytes)
{
	assert_non_null(record);
	assert_int_equal(record->type, PERF_RECORD_SAMPLE);
	assert_int_equal(record->size, nr_bytes);
	for (size_t i = 1; i < nr_bytes / 8; i++)
		assert_int_equal(memory_ring_word(record, i), number);
}

/* Fills a backward ring of a page with records of 64 bytes, number 7. */
static inline void mring_box_fill_page(struct mring_box *box)
{
	for (size_t i = 0; i < box->ring.page_bytes / 64; i++)
		assert_int_equal(mring_box_put(box, 7, 64), 0);
}

/* Makes a reservation in that ring and writes its bytes, but does not commit it. */
static inline void mring_box_tear(struct mring_box *box, size_t nr_bytes)
{
	struct perf_event_header *record;

	assert_int_equal(op_mring_reserve(&box->writer, nr_bytes, &record), 0);
	memset(record, 0x08, nr_bytes);
}

/*
 * Expects record 8 of `newest` bytes, if that is not 0, and then the records of mring_box_fill_page
 * without the oldest ones, which are torn.
 */
static inline void mring_box_check_torn(struct mring_box *box, size_t nr_torn, size_t newest)
{
	size_t whole = box->ring.page_bytes - nr_torn;

	assert_int_equal(op_ring_begin(&box->reader), whole + newest);
	if (newest)
		memory_ring_check(op_ring_next(&box->reader), 8, newest);
	for (size_t i = 0; i < whole / 64; i++)
		memory_ring_check(op_ring_next(&box->reader), 7, 64);
	assert_null(op_ring_next(&box->reader));
}

#endif
