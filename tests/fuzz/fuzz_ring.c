/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libFuzzer target of the ring's reader: a control page and data as a hostile writer may leave
 * them. Input: flags of enum op_ring_flags (1 byte), number of rounds (1 byte), then for each round
 * head and floor (8 bytes each), then the data. Between the rounds the writer changes its mind. The
 * data are allocated to the byte, so the address sanitizer sees a read outside; a loop is seen by
 * the count.
 */
#include <unistd.h>

#include "libop/ring/reader.h"

#define ROUNDS_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

struct input {
	const uint8_t *bytes;
	size_t nr_bytes;
};

static uint64_t take(struct input *input, size_t nr_bytes)
{
	uint64_t value = 0;

	nr_bytes = op_min_u64(nr_bytes, input->nr_bytes);
	memcpy(&value, input->bytes, nr_bytes);
	input->bytes += nr_bytes;
	input->nr_bytes -= nr_bytes;
	return value;
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void read_round(struct op_ring *ring, uint64_t *sum)
{
	const struct perf_event_header *record;
	uint64_t available = op_ring_begin(ring), given = 0;
	bool again = false;

	check(available <= ring->data_bytes);
	while ((record = op_ring_next(ring))) {
		check((uintptr_t)record % 8 == 0);
		check(record->size >= sizeof(*record) && record->size % 8 == 0);
		for (size_t i = 0; i < record->size; i++)
			*sum += ((const uint8_t *)record)[i];
		if (!again) {
			op_ring_put_back(ring, record);
			again = true;
			continue;
		}
		given += record->size;
		check(given <= available);
	}
	check(!op_ring_next(ring));
	op_ring_end(ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	struct input input = { bytes, nr_bytes };
	struct perf_event_mmap_page *control = calloc(1, sizeof(*control));
	size_t data_bytes = (size_t)sysconf(_SC_PAGESIZE) * 2;
	uint8_t *data = aligned_alloc(64, data_bytes);
	uint64_t floor = 0, sum = 0;
	uint8_t *bounce = aligned_alloc(8, OP_RECORD_BYTES_MAX);
	struct op_ring ring = { .k_control = control, .k_data = data, .data_bytes = data_bytes, .bounce = bounce };
	uint64_t nr_rounds, heads[ROUNDS_MAX], floors[ROUNDS_MAX];

	check(control && data && bounce);
	ring.flags = (unsigned int)take(&input, 1) & 7;
	ring.floor = take(&input, 1) & 1 ? &floor : NULL;
	nr_rounds = 1 + take(&input, 1) % ROUNDS_MAX;
	for (uint64_t i = 0; i < nr_rounds; i++) {
		heads[i] = take(&input, 8);
		floors[i] = take(&input, 8);
	}
	memset(data, 0, data_bytes);
	for (size_t i = 0; i < data_bytes && input.nr_bytes; i++)
		data[i] = input.bytes[i % input.nr_bytes];
	for (uint64_t i = 0; i < nr_rounds; i++) {
		control->data_head = heads[i];
		floor = floors[i];
		read_round(&ring, &sum);
	}
	op_ring_unmap(&ring);
	free(data);
	free(control);
	return sum == 1 ? 1 : 0; /* the bytes are looked at */
}
