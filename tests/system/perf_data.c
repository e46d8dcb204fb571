/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records through the memory ring into a perf.data file: usage: perf_data ring|in-page|pair SEED
 * FILE.
 *
 * Writes COMM, MMAP2 and SAMPLE records of a few processes into a ring that is read too seldom, so
 * that some find no room, and what is read out of it, byte for byte, as the data section of FILE.
 * Prints what was written and what was lost, a line for each record:
 *
 *   comm PID NAME
 *   mmap PID START BYTES OFFSET MAJ MIN INODE GENERATION PROT NAME
 *   sample EVENT PID TID TIME-NS IP
 *   lost NUMBER
 *
 * The format of the file is that of perf.data-file-format.txt in the kernel's
 * tools/perf/Documentation.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/parse.h"
#include "libop/perf/record.h"
#include "libop/ring/memory_pair.h"
#include "libop/base/sys.h"

#define RING_BYTES  8192u
#define NR_SAMPLES  4000
#define NR_PIDS     3
#define FIRST_PID   7001u
#define IMAGE_BYTES 0x100000u
#define NAME_BYTES  64

/* ---- perf.data ---- */

struct file_section {
	uint64_t offset, nr_bytes;
};

struct file_header {
	uint64_t magic;
	uint64_t nr_bytes;
	uint64_t attr_bytes;
	struct file_section attrs, data, event_types;
	uint64_t features[4];
};

struct file_attr {
	struct perf_event_attr attr;
	struct file_section ids;
};

static const struct {
	const char *name;
	uint64_t config, id;
} events[] = {
	{ "page-faults", PERF_COUNT_SW_PAGE_FAULTS, 501 },
	{ "context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, 502 },
};

struct file {
	struct file_header header;
	uint64_t ids[op_array_size(events)];
	struct file_attr attrs[op_array_size(events)];
};

/*
 * sample_id_all is 0: LOST records of the memory ring have no sample_id, because the ring does not
 * know its layout.
 */
static void fill_file(struct file *file, uint64_t data_bytes)
{
	*file = (struct file){
		.header = {
			.nr_bytes = sizeof(file->header),
			.attr_bytes = sizeof(file->attrs[0]),
			.attrs = { offsetof(struct file, attrs), sizeof(file->attrs) },
			.data = { sizeof(*file), data_bytes },
		},
	};
	file->header.magic = UINT64_C(0x32454c4946524550); /* PERFILE2 */
	for (size_t i = 0; i < op_array_size(events); i++) {
		file->ids[i] = events[i].id;
		file->attrs[i] = (struct file_attr){
			.attr = {
				.type = PERF_TYPE_SOFTWARE,
				.size = sizeof(file->attrs[i].attr),
				.config = events[i].config,
				.sample_period = 1,
				.sample_type = OP_SAMPLE_TYPE,
				.mmap = 1,
				.mmap2 = 1,
				.comm = 1,
			},
			.ids = { offsetof(struct file, ids) + i * sizeof(file->ids[0]), sizeof(file->ids[0]) },
		};
	}
}

static int write_file(const char *path, const void *data, size_t nr_bytes)
{
	struct file file;
	int fd, err;

	fill_file(&file, nr_bytes);
	fd = op_sys_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return fd;
	err = op_sys_write_all(fd, &file, sizeof(file));
	if (!err)
		err = op_sys_write_all(fd, data, nr_bytes);
	close(fd);
	return err;
}

/* ---- rings ---- */

struct store {
	struct op_mring_pair pair; /* one ring of it, or both */
	struct op_mring_pair_writer writer;
	struct op_mring_pair_reader reader;
	bool in_page, swaps;
	uint64_t dropped; /* since the last record that found room */
	uint8_t *data;
	size_t nr_bytes, room_bytes;
	unsigned int seed;
};

static int open_store(struct store *store, const char *mode, unsigned int seed)
{
	int err;

	*store = (struct store){ .seed = seed, .in_page = !strcmp(mode, "in-page"), .swaps = !strcmp(mode, "pair") };
	if (!store->in_page && !store->swaps && strcmp(mode, "ring") != 0)
		return -EINVAL;
	err = op_mring_pair_create(RING_BYTES, 0, &store->pair);
	if (err)
		return err;
	err = op_mring_pair_reader_open(&store->pair, &store->reader);
	if (err)
		return err;
	return op_mring_pair_writer_open(&store->pair, &store->writer);
}

static void close_store(struct store *store)
{
	op_mring_pair_reader_close(&store->reader);
	op_mring_pair_destroy(&store->pair);
	free(store->data);
}

static int keep(struct store *store, const struct perf_event_header *record)
{
	if (store->nr_bytes + record->size > store->room_bytes) {
		size_t room_bytes = 2 * store->room_bytes + OP_RECORD_BYTES_MAX;
		uint8_t *data = realloc(store->data, room_bytes);

		if (!data)
			return -ENOMEM;
		store->data = data;
		store->room_bytes = room_bytes;
	}
	memcpy(store->data + store->nr_bytes, record, record->size);
	store->nr_bytes += record->size;
	return 0;
}

/*
 * The pair swaps and reads its whole frozen ring. The other modes have one ring and read a part of
 * it.
 */
static int drain(struct store *store, size_t nr_records)
{
	const struct perf_event_header *record;
	struct op_ring *ring = &store->reader.rings[0];
	int err = 0;

	if (store->swaps) {
		nr_records = SIZE_MAX;
		err = op_mring_pair_swap(&store->reader);
		ring = op_mring_pair_read_ring(&store->reader);
	}
	if (err || !ring)
		return err ? err : -EAGAIN;
	op_ring_begin(ring);
	while (!err && nr_records-- && (record = op_ring_next(ring)))
		err = keep(store, record);
	op_ring_end(ring);
	return ring->damaged ? -EBADMSG : err;
}

/* True when the record is in a ring. What was lost before it is told first. */
static bool put(struct store *store, const struct perf_event_header *header, const void *body)
{
	struct perf_event_header *place;
	struct op_mring_writer *writer = op_mring_pair_enter(&store->writer);
	int err = store->in_page ? op_mring_reserve_in_page(writer, header->size, &place)
				 : op_mring_reserve(writer, header->size, &place);

	if (err) {
		store->dropped++;
	} else {
		memcpy(place, header, sizeof(*header));
		memcpy(place + 1, body, header->size - sizeof(*header));
		op_mring_commit(writer);
		if (store->dropped)
			printf("lost %llu\n", (unsigned long long)store->dropped);
		store->dropped = 0;
	}
	op_mring_pair_leave(&store->writer);
	return !err;
}

/* ---- records ---- */

static uint16_t padded(size_t nr_bytes)
{
	return (uint16_t)((nr_bytes + 7) / 8 * 8);
}

static void put_comm(struct store *store, uint32_t pid)
{
	struct {
		uint32_t pid, tid;
		char name[16];
	} body = { .pid = pid, .tid = pid };
	struct perf_event_header header = { .type = PERF_RECORD_COMM };

	snprintf(body.name, sizeof(body.name), "worker-%u", pid);
	header.size = (uint16_t)(sizeof(header) + padded(offsetof(typeof(body), name) + strlen(body.name) + 1));
	if (put(store, &header, &body))
		printf("comm %u %s\n", pid, body.name);
}

static uint64_t image_start(uint32_t pid)
{
	return 0x400000u + (uint64_t)(pid - FIRST_PID) * 2 * IMAGE_BYTES;
}

static void put_mmap(struct store *store, uint32_t pid)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, bytes, offset;
		uint32_t maj, min;
		uint64_t inode, generation;
		uint32_t prot, flags;
		char name[NAME_BYTES];
	} body = {
		.pid = pid,
		.tid = pid,
		.start = image_start(pid),
		.bytes = IMAGE_BYTES,
		.offset = 0x1000,
		.maj = 8,
		.min = 1,
		.inode = 100 + pid,
		.generation = 3,
		.prot = 5,
		.flags = 2,
	};
	struct perf_event_header header = { .type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER };

	snprintf(body.name, sizeof(body.name), "/no/such/image-%u%.*s", pid, (int)(pid % 5), "-long");
	header.size = (uint16_t)(sizeof(header) + padded(offsetof(typeof(body), name) + strlen(body.name) + 1));
	if (put(store, &header, &body))
		printf("mmap %u 0x%llx 0x%llx 0x%llx %u %u %llu %llu %u %s\n", pid, (unsigned long long)body.start,
		       (unsigned long long)body.bytes, (unsigned long long)body.offset, body.maj, body.min,
		       (unsigned long long)body.inode, (unsigned long long)body.generation, body.prot, body.name);
}

static void put_sample(struct store *store, uint64_t number)
{
	uint32_t pid = FIRST_PID + (uint32_t)rand_r(&store->seed) % NR_PIDS;
	size_t event = (size_t)rand_r(&store->seed) % op_array_size(events);
	struct {
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time_ns;
	} body = {
		.id = events[event].id,
		.ip = image_start(pid) + (uint64_t)rand_r(&store->seed) % IMAGE_BYTES,
		.pid = pid,
		.tid = pid,
		.time_ns = 5000000000u + number * 1000003,
	};
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER };

	header.size = sizeof(header) + sizeof(body);
	if (put(store, &header, &body))
		printf("sample %s %u %u %llu 0x%llx\n", events[event].name, pid, body.tid, (unsigned long long)body.time_ns,
		       (unsigned long long)body.ip);
}

static int produce(struct store *store)
{
	int err = 0;

	for (uint32_t pid = FIRST_PID; pid < FIRST_PID + NR_PIDS; pid++) {
		put_comm(store, pid);
		put_mmap(store, pid);
	}
	for (uint64_t i = 0; i < NR_SAMPLES && !err; i++) {
		put_sample(store, i);
		if (rand_r(&store->seed) % 180 == 0)
			err = drain(store, (size_t)rand_r(&store->seed) % 300);
	}
	for (int i = 0; i < 2 && !err; i++) {
		err = drain(store, SIZE_MAX);
		put_sample(store, NR_SAMPLES + (uint64_t)i); /* tells the last loss */
	}
	return err ? err : drain(store, SIZE_MAX);
}

int main(int argc, char **argv)
{
	struct store store;
	uint64_t seed;
	int err;

	if (argc != 4 || op_parse_u64(argv[2], 0, UINT32_MAX, &seed) < 0) {
		fprintf(stderr, "usage: perf_data ring|in-page|pair SEED FILE\n");
		return 1;
	}
	err = open_store(&store, argv[1], (unsigned int)seed);
	if (!err)
		err = produce(&store);
	if (!err)
		err = write_file(argv[3], store.data, store.nr_bytes);
	close_store(&store);
	if (err)
		fprintf(stderr, "perf_data: %s\n", strerror(-err));
	return err ? 1 : 0;
}
