/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ring/torture.h"

#include <sched.h>

static uint32_t crc_table[256];

void make_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
		crc_table[i] = crc;
	}
}

/* ThreadSanitizer sees each word of a record being loaded; in a table that was made before the threads there is nothing to see. */
__attribute__((no_sanitize("thread"))) static uint32_t crc_of_word(uint32_t crc, uint64_t word)
{
	for (int i = 0; i < 8; i++, word >>= 8)
		crc = crc >> 8 ^ crc_table[(crc ^ word) & 0xff];
	return crc;
}

static uint32_t crc_of(const struct record *record, size_t nr_bytes)
{
	uint32_t crc = (uint32_t)record->number;

	for (size_t i = 0; i < nr_bytes / 8; i++)
		crc = crc_of_word(crc, record->body[i]);
	return crc;
}

uint64_t random_u64(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void yield_sometimes(uint64_t *seed)
{
	if (random_u64(seed) % 512 == 0)
		sched_yield();
}

void wrong(const struct run *run, const char *what, uint64_t value)
{
	fprintf(stderr, "torture: %s: %s: %llu, at record %llu, seed %llu\n", run->mode->name, what, (unsigned long long)value,
		(unsigned long long)run->expected, (unsigned long long)run->seed);
	exit(1);
}

void fill(struct record *record, uint64_t number, size_t nr_bytes, uint64_t *seed)
{
	uint64_t word = random_u64(seed);

	record->header.type = PERF_RECORD_SAMPLE;
	record->header.misc = (uint16_t)word;
	record->number = number;
	record->nr_bytes = (uint32_t)nr_bytes;
	for (size_t i = 0; i < nr_bytes / 8; i++)
		record->body[i] = word ^ i;
	yield_sometimes(seed);
	record->crc = crc_of(record, nr_bytes);
}

void take_lost(struct run *run, const struct perf_event_header *header)
{
	uint64_t nr;

	memcpy(&nr, (const uint8_t *)header + 16, sizeof(nr));
	if (header->size != OP_MRING_LOST_BYTES || !nr)
		wrong(run, "LOST", nr);
	run->told += nr;
	if (!run->mode->never_lose)
		run->expected += nr;
}

const struct record *check(const struct run *run, const struct perf_event_header *header)
{
	const struct record *record = (const void *)header;

	if (header->size < sizeof(*record) || header->size != sizeof(*record) + record->nr_bytes ||
	    header->type != PERF_RECORD_SAMPLE)
		wrong(run, "size", header->size);
	if (record->crc != crc_of(record, record->nr_bytes))
		wrong(run, "crc of record", record->number);
	return record;
}

void read_forward(struct run *run, struct op_ring *ring, uint64_t *seed)
{
	const struct perf_event_header *header;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		if (header->type == PERF_RECORD_LOST) {
			take_lost(run, header);
			continue;
		}
		if (check(run, header)->number != run->expected)
			wrong(run, "number", check(run, header)->number);
		run->expected++;
		run->read++;
		run->nr_bytes += header->size;
		yield_sometimes(seed);
		if (random_u64(seed) % 256 == 0)
			op_ring_end(ring);
	}
	op_ring_end(ring);
}

void read_snapshot(struct run *run, struct op_ring *ring)
{
	const struct perf_event_header *header;
	uint64_t newest = 0, oldest = 0, bytes = 0, missing;
	bool any = false;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		const struct record *record = check(run, header);

		if (!any)
			newest = record->number;
		else if (record->number != oldest - 1)
			wrong(run, "number in a snapshot", record->number);
		any = true;
		oldest = record->number;
		bytes += header->size;
		run->read++;
	}
	op_ring_end(ring);
	if (!any)
		return;
	if (oldest < run->expected)
		wrong(run, "twice in snapshots", oldest);
	/* Only a full ring may have let records go: full but for one partly overwritten, one reserved and a gap. */
	missing = 3 * (sizeof(struct record) + BODY_BYTES_MAX) + run->mode->in_page * ring->data_bytes / 2;
	if (oldest != run->expected && bytes + missing < ring->data_bytes)
		wrong(run, "missing between snapshots", oldest);
	run->expected = newest + 1;
}
