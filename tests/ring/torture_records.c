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

/*
 * ThreadSanitizer sees each word of a record being loaded; in a table that was made before the
 * threads there is nothing to see.
 */
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

size_t body_bytes(const struct run *run, uint64_t number)
{
	uint64_t seed = run->seed + number * UINT64_C(0xd1342543de82ef95);

	return random_u64(&seed) % (BODY_BYTES_MAX / 8) * 8;
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

void scribble(const struct op_mring *ring, uint64_t *seed)
{
	size_t at = random_u64(seed) % (ring->data_bytes / 8) * 8;
	struct perf_event_header *header = (void *)(ring->data + at);

	op_store_relaxed(&header->size, (uint16_t)(random_u64(seed) % 4 ? random_u64(seed) : random_u64(seed) % 64 * 8));
}

static uint32_t crc_of_bytes(const struct perf_event_header *header, size_t nr_bytes)
{
	uint32_t crc = 0;
	uint64_t word;

	for (size_t at = 0; at < nr_bytes; at += sizeof(word)) {
		memcpy(&word, (const uint8_t *)header + at, sizeof(word));
		crc = crc_of_word(crc, word);
	}
	return crc;
}

void read_scribbled(struct run *run, struct op_ring *ring, uint64_t *seed)
{
	const struct perf_event_header *header;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		size_t nr_bytes = header->size, offset = (size_t)((const uint8_t *)header - ring->k_data);
		uint32_t crc;

		if (offset < 2 * ring->data_bytes)
			wrong(run, "a record in the ring", offset);
		if (nr_bytes < sizeof(*header) || nr_bytes % 8 || nr_bytes > ring->data_bytes)
			wrong(run, "size", nr_bytes);
		crc = crc_of_bytes(header, nr_bytes);
		yield_sometimes(seed);
		if (header->size != nr_bytes || crc != crc_of_bytes(header, nr_bytes))
			wrong(run, "a record that changed", nr_bytes);
		run->read++;
	}
	op_ring_end(ring);
}

struct snapshot {
	uint64_t newest, oldest; /* numbers */
	uint64_t bytes;
	bool any;
};

static void take_older(struct run *run, struct snapshot *snapshot, const struct perf_event_header *header)
{
	const struct record *record = check(run, header);

	if (!snapshot->any)
		snapshot->newest = record->number;
	else if (record->number != snapshot->oldest - 1)
		wrong(run, "number in a snapshot", record->number);
	snapshot->any = true;
	snapshot->oldest = record->number;
	snapshot->bytes += header->size;
	run->read++;
}

/* Where the record begins that was written below `head`. */
static uint64_t place_below(const struct run *run, uint64_t head, uint64_t number)
{
	uint64_t nr_bytes = sizeof(struct record) + body_bytes(run, number), page_bytes = run->pair.rings[0].page_bytes;

	if (run->mode->in_page && (head - 1) / page_bytes != (head - nr_bytes) / page_bytes)
		head &= ~(page_bytes - 1);
	return head - nr_bytes;
}

/*
 * The bytes that the ring says are overwritten, below what it had at the snapshot before: those of
 * the numbers that are missing. What is not known in a page: how much is left of the gap between
 * the newest of them and the oldest record that was given, so it may be on either side.
 */
static void check_overwritten(struct run *run, const struct op_ring *ring, const struct snapshot *snapshot)
{
	uint64_t overwritten = op_ring_overwritten(ring), head = ring->known, gap = 0;

	if (snapshot->any && snapshot->oldest < run->expected)
		wrong(run, "twice in snapshots", snapshot->oldest);
	for (uint64_t number = run->expected; snapshot->any && number < snapshot->oldest; number++)
		head = place_below(run, head, number);
	if (snapshot->any)
		gap = head - place_below(run, head, snapshot->oldest) - sizeof(struct record) - body_bytes(run, snapshot->oldest);
	if (overwritten < ring->known - head || overwritten > ring->known - head + gap)
		wrong(run, "overwritten", overwritten);
	run->overwritten += overwritten;
}

void read_snapshot(struct run *run, struct op_ring *ring)
{
	const struct perf_event_header *header;
	struct snapshot snapshot = { 0 };
	uint64_t missing;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring)))
		take_older(run, &snapshot, header);
	check_overwritten(run, ring, &snapshot);
	op_ring_end(ring);
	if (!snapshot.any)
		return;
	/*
	 * Only a full ring may have let records go: full but for one partly overwritten, one
	 * reserved and a gap.
	 */
	missing = 3 * (sizeof(struct record) + BODY_BYTES_MAX) + run->mode->in_page * ring->data_bytes / 2;
	if (snapshot.oldest != run->expected && snapshot.bytes + missing < ring->data_bytes)
		wrong(run, "missing between snapshots", snapshot.oldest);
	run->expected = snapshot.newest + 1;
}
