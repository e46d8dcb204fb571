/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * torture [--records=N] [--seed=N] [MODE...]: a writer thread and a reader thread, which also swaps, on one memory ring or
 * pair. Every record has a number and a CRC, a random size and random yields around it. What is read must be what was written,
 * in order and once; what is missing must be what LOST records tell (in overwrite mode: nothing may be missing within a
 * snapshot). Exit code 1 and a line that says what was wrong otherwise.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>

#include "libop/parse.h"
#include "libop/ring_memory_pair.h"

#define BODY_BYTES_MAX 240u

struct mode {
	const char *name;
	unsigned int flags; /* enum op_mring_flags */
	bool pair;
	bool in_page;
	bool never_lose; /* the writer tries again until there is room */
	unsigned int reader_flags; /* enum op_ring_flags, added */
};

static const struct mode modes[] = {
	{ .name = "ring" },
	{ .name = "ring-full", .never_lose = true },
	{ .name = "ring-in-page", .in_page = true },
	{ .name = "ring-copy", .reader_flags = OP_RING_COPY },
	{ .name = "pair", .pair = true },
	{ .name = "pair-fence", .pair = true, .flags = OP_MRING_FENCE },
	{ .name = "pair-full", .pair = true, .never_lose = true },
	{ .name = "pair-full-fence", .pair = true, .never_lose = true, .flags = OP_MRING_FENCE },
	{ .name = "pair-in-page", .pair = true, .in_page = true },
	{ .name = "pair-overwrite", .pair = true, .flags = OP_MRING_OVERWRITE },
	{ .name = "pair-overwrite-fence", .pair = true, .flags = OP_MRING_OVERWRITE | OP_MRING_FENCE },
	{ .name = "pair-overwrite-in-page", .pair = true, .in_page = true, .flags = OP_MRING_OVERWRITE },
};

struct record {
	struct perf_event_header header;
	uint64_t number;
	uint32_t crc; /* of what follows, and of the number */
	uint32_t nr_bytes;
	uint8_t body[];
};

struct run {
	const struct mode *mode;
	struct op_mring_pair pair; /* or the first of its rings alone */
	uint64_t nr_records;
	uint64_t seed;
	uint64_t dropped; /* by the writer, as it saw it */
	bool done;	  /* the writer has committed its last record */
	uint64_t expected; /* number of the next record */
	uint64_t read;
	uint64_t told; /* by LOST records */
};

static uint32_t crc_table[256];

static void make_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
		crc_table[i] = crc;
	}
}

static uint32_t crc_of(const struct record *record, size_t nr_bytes)
{
	uint32_t crc = (uint32_t)record->number;

	for (size_t i = 0; i < nr_bytes; i++)
		crc = crc >> 8 ^ crc_table[(crc ^ record->body[i]) & 0xff];
	return crc;
}

static uint64_t random_u64(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void yield_sometimes(uint64_t *seed)
{
	if (random_u64(seed) % 512 == 0)
		sched_yield();
}

static void wrong(const struct run *run, const char *what, uint64_t value)
{
	fprintf(stderr, "torture: %s: %s: %llu, at record %llu, seed %llu\n", run->mode->name, what, (unsigned long long)value,
		(unsigned long long)run->expected, (unsigned long long)run->seed);
	exit(1);
}

struct writers {
	struct op_mring_writer ring;
	struct op_mring_pair_writer pair;
};

static int reserve(const struct mode *mode, struct writers *writers, size_t nr_bytes, struct perf_event_header **ret_record)
{
	if (mode->pair)
		return mode->in_page ? op_mring_pair_reserve_in_page(&writers->pair, nr_bytes, ret_record) :
				       op_mring_pair_reserve(&writers->pair, nr_bytes, ret_record);
	return mode->in_page ? op_mring_reserve_in_page(&writers->ring, nr_bytes, ret_record) :
			       op_mring_reserve(&writers->ring, nr_bytes, ret_record);
}

static void commit(const struct mode *mode, struct writers *writers)
{
	if (mode->pair)
		op_mring_pair_commit(&writers->pair);
	else
		op_mring_commit(&writers->ring);
}

static void abandon(const struct mode *mode, struct writers *writers)
{
	if (mode->pair)
		op_mring_pair_abandon(&writers->pair);
	else
		op_mring_abandon(&writers->ring);
}

static void fill(struct record *record, uint64_t number, size_t nr_bytes, uint64_t *seed)
{
	uint64_t word = random_u64(seed);

	record->header.type = PERF_RECORD_SAMPLE;
	record->header.misc = (uint16_t)word;
	record->number = number;
	record->nr_bytes = (uint32_t)nr_bytes;
	for (size_t i = 0; i < nr_bytes; i++)
		record->body[i] = (uint8_t)(word >> i % 8 * 8) ^ (uint8_t)i;
	yield_sometimes(seed);
	record->crc = crc_of(record, nr_bytes);
}

static void write_records(struct run *run, struct writers *writers)
{
	uint64_t seed = run->seed;

	for (uint64_t number = 0; number < run->nr_records; number++) {
		size_t nr_bytes = random_u64(&seed) % (BODY_BYTES_MAX / 8) * 8;
		struct perf_event_header *place;
		int err;

		yield_sometimes(&seed);
		while ((err = reserve(run->mode, writers, sizeof(struct record) + nr_bytes, &place)) == -ENOSPC) {
			run->dropped++;
			sched_yield();
			if (!run->mode->never_lose)
				break;
		}
		if (err == -ENOSPC)
			continue;
		if (err)
			wrong(run, "reserve", (uint64_t)-err);
		fill((void *)place, number, nr_bytes, &seed);
		if (random_u64(&seed) % 1024 == 0) {
			abandon(run->mode, writers);
			number--; /* once more */
			continue;
		}
		commit(run->mode, writers);
	}
}

static void *writer_main(void *arg)
{
	struct run *run = arg;
	struct writers writers;
	int err = run->mode->pair ? op_mring_pair_writer_open(&run->pair, &writers.pair) :
				    op_mring_writer_open(&run->pair.rings[0], &writers.ring);

	if (err)
		wrong(run, "writer_open", (uint64_t)-err);
	write_records(run, &writers);
	op_store_release(&run->done, true); /* V, pairs with W in read_all: the commits are stored before */
	return NULL;
}

/* A LOST record stands for as many numbers, unless the writer tries again. */
static void take_lost(struct run *run, const struct perf_event_header *header)
{
	uint64_t nr;

	memcpy(&nr, (const uint8_t *)header + 16, sizeof(nr));
	if (header->size != OP_MRING_LOST_BYTES || !nr)
		wrong(run, "LOST", nr);
	run->told += nr;
	if (!run->mode->never_lose)
		run->expected += nr;
}

static const struct record *check(const struct run *run, const struct perf_event_header *header)
{
	const struct record *record = (const void *)header;

	if (header->size < sizeof(*record) || header->size != sizeof(*record) + record->nr_bytes || header->type != PERF_RECORD_SAMPLE)
		wrong(run, "size", header->size);
	if (record->crc != crc_of(record, record->nr_bytes))
		wrong(run, "crc of record", record->number);
	return record;
}

static void read_forward(struct run *run, struct op_ring *ring, uint64_t *seed)
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
		yield_sometimes(seed);
		if (random_u64(seed) % 256 == 0)
			op_ring_end(ring);
	}
	op_ring_end(ring);
}

/* From the newest down, without a gap, to what the snapshot before had, or to what was overwritten. */
static void read_snapshot(struct run *run, struct op_ring *ring)
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

static void read_pair(struct run *run, struct op_mring_pair_reader *reader, uint64_t *seed)
{
	struct op_ring *ring;
	int err;

	while ((err = op_mring_pair_swap(reader)) == -EAGAIN)
		sched_yield();
	if (err)
		wrong(run, "swap", (uint64_t)-err);
	yield_sometimes(seed);
	while (!(ring = op_mring_pair_read_ring(reader)))
		sched_yield();
	if (run->mode->flags & OP_MRING_OVERWRITE)
		read_snapshot(run, ring);
	else
		read_forward(run, ring, seed);
}

static void read_all(struct run *run, struct op_mring_pair_reader *pair, struct op_ring *ring)
{
	uint64_t seed = ~run->seed;
	bool done;

	do {
		done = op_load_acquire(&run->done); /* W, pairs with V */
		if (run->mode->pair)
			read_pair(run, pair, &seed);
		else
			read_forward(run, ring, &seed);
		if (random_u64(&seed) % 4 == 0)
			sched_yield();
	} while (!done);
}

/* After the last record: what was not told is still pending. */
static void check_sums(struct run *run)
{
	uint64_t dropped = op_mring_dropped(&run->pair.rings[0]) + (run->mode->pair ? op_mring_dropped(&run->pair.rings[1]) : 0);

	if (dropped != run->dropped)
		wrong(run, "dropped", dropped);
	if (run->mode->flags & OP_MRING_OVERWRITE) {
		if (dropped || run->expected != run->nr_records)
			wrong(run, "the last record", run->expected);
		return;
	}
	if (run->told > dropped || (run->mode->never_lose && run->told != dropped))
		wrong(run, "told", run->told);
	if (run->expected + (run->mode->never_lose ? 0 : dropped - run->told) != run->nr_records)
		wrong(run, "sum", run->expected);
}

static void run_mode(const struct mode *mode, uint64_t nr_records, uint64_t seed)
{
	struct run run = { .mode = mode, .nr_records = nr_records, .seed = seed };
	struct op_mring_pair_reader reader = { .swaps = 0 };
	struct op_ring ring = { .damaged = 0 };
	pthread_t thread;

	if (mode->pair ? op_mring_pair_create(8192, mode->flags, &run.pair) : op_mring_create(8192, 0, mode->flags, &run.pair.rings[0]))
		wrong(&run, "create", 0);
	if (mode->pair)
		op_mring_pair_reader_open(&run.pair, &reader);
	else
		op_mring_reader(&run.pair.rings[0], &ring);
	ring.flags |= mode->reader_flags;
	if (pthread_create(&thread, NULL, writer_main, &run))
		wrong(&run, "pthread_create", 0);
	read_all(&run, &reader, &ring);
	pthread_join(thread, NULL);
	check_sums(&run);
	if (ring.damaged + reader.rings[0].damaged + reader.rings[1].damaged)
		wrong(&run, "damaged", 0);
	printf("%-24s %10llu read %10llu no room %9llu swaps %9llu late %9llu barriers\n", mode->name, (unsigned long long)run.read,
	       (unsigned long long)run.dropped, (unsigned long long)reader.swaps, (unsigned long long)reader.late,
	       (unsigned long long)reader.barriers);
	op_ring_unmap(&ring);
	op_mring_pair_reader_close(&reader);
	op_mring_pair_destroy(&run.pair);
}

static bool chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const struct option options[] = { { "records", required_argument, NULL, 'r' }, { "seed", required_argument, NULL, 's' }, { 0 } };
	uint64_t nr_records = 1000000, seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "r:s:", options, NULL)) != -1)
		if (option == '?' || op_parse_u64(optarg, 0, UINT64_MAX, option == 'r' ? &nr_records : &seed) < 0)
			return 2;
	make_crc_table();
	for (size_t i = 0; i < op_array_size(modes); i++)
		if (chosen(modes[i].name, argv + optind))
			run_mode(&modes[i], nr_records, seed);
	return 0;
}
