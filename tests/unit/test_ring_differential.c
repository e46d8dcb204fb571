/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The same records through the kernel's layout and through ours. A stream (of a real kernel ring,
 * and of random sizes) is written as the kernel writes it into a ring that op_ring_map maps, and
 * with the memory ring's writer in each of its ways; the one reader must give the same bytes and
 * decode the same fields, wherever the records wrap.
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/unit/kernel_events.h"
#include "tests/unit/memory_ring.h"
#include "tests/unit/record_text.h"

#define PAGE         4096u
#define RING_BYTES   (2 * PAGE)
#define LARGEST      3000u /* the part of the records with random sizes */
#define NR_RANDOM    400
#define NR_SEEDS     40
#define NR_ROUNDS    40
#define RECORD_ALIGN 8

/* ---- streams ---- */

struct stream {
	uint8_t *bytes; /* records, one behind the other */
	size_t nr_bytes, room_bytes, nr_records;
	size_t nr_of_type[PERF_RECORD_MAX + 1];
};

static void add_record(struct stream *stream, const struct perf_event_header *header)
{
	if (stream->nr_bytes + header->size > stream->room_bytes) {
		stream->room_bytes = 2 * stream->room_bytes + OP_RECORD_BYTES_MAX;
		stream->bytes = realloc(stream->bytes, stream->room_bytes);
		assert_non_null(stream->bytes);
	}
	memcpy(stream->bytes + stream->nr_bytes, header, header->size);
	stream->nr_bytes += header->size;
	stream->nr_records++;
	stream->nr_of_type[header->type < PERF_RECORD_MAX ? header->type : PERF_RECORD_MAX]++;
}

static void free_stream(struct stream *stream)
{
	free(stream->bytes);
	*stream = (struct stream){ 0 };
}

/*
 * Records of any type and size, most of them small; bytes are random, so names may have no end and
 * build-ids too many bytes.
 */
static void make_random(struct stream *stream, unsigned int seed)
{
	uint8_t record[LARGEST + 8];

	for (size_t i = 0; i < NR_RANDOM; i++) {
		unsigned int bytes = rand_r(&seed) % 8 ? 120 : LARGEST;
		struct perf_event_header header = {
			.type = (uint32_t)rand_r(&seed) % (PERF_RECORD_MAX + 4),
			.misc = (uint16_t)rand_r(&seed),
			.size = (uint16_t)(8 + (unsigned int)rand_r(&seed) % bytes / 8 * 8),
		};

		for (size_t at = 0; at < header.size; at++)
			record[at] = (uint8_t)(rand_r(&seed) % 3 ? rand_r(&seed) : 0);
		memcpy(record, &header, sizeof(header));
		add_record(stream, (const void *)record);
	}
}

/* ---- what the reader makes of it ---- */

struct result {
	/* a line for each record: its header and every field that was decoded */
	struct op_text text;
	struct stream stream;
};

static void take_record(struct result *result, const struct perf_event_header *header)
{
	assert_int_equal((uintptr_t)header % RECORD_ALIGN, 0);
	record_text_add(&result->text, header);
	add_record(&result->stream, header);
}

static void free_result(struct result *result)
{
	op_text_free(&result->text);
	free_stream(&result->stream);
}

/* Reads at most so many records, and gives their room back with the last one. */
static void read_some(struct result *result, struct op_ring *ring, size_t nr)
{
	const struct perf_event_header *header;

	op_ring_begin(ring);
	while (nr-- && (header = op_ring_next(ring)))
		take_record(result, header);
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
}

/* ---- ways ---- */

struct way {
	const char *name;
	void (*run)(const struct way *way, const struct stream *stream, unsigned int seed, struct result *ret_result);
	bool in_page;
	bool foreign;
	unsigned int flags; /* of the ring or of the pair */
};

#define for_each_record(stream, header)                                                                                            \
	for (const struct perf_event_header *header = (const void *)(stream)->bytes;                                               \
	     (const uint8_t *)header < (stream)->bytes + (stream)->nr_bytes;                                                       \
	     header = (const void *)((const uint8_t *)header + header->size))

/* A position where a ring begins: anywhere in it, and sometimes where 32 bits overflow. */
static uint64_t begin_at(unsigned int *seed)
{
	uint64_t base = rand_r(seed) % 2 ? UINT32_MAX + UINT64_C(1) - RING_BYTES : 0;

	return base + (uint64_t)rand_r(seed) % (RING_BYTES / 8) * 8;
}

/*
 * Another party's memory in the kernel's layout: the memfd takes the place of an event's
 * descriptor.
 */
static void through_the_kernels(const struct way *way, const struct stream *stream, unsigned int seed, struct result *ret_result)
{
	int fd = op_sys_memfd_create("image", 0);
	struct op_ring ring;

	(void)way;
	assert_true(fd >= 0);
	assert_int_equal(op_sys_ftruncate(fd, PAGE + RING_BYTES), 0);
	assert_int_equal(op_ring_map(fd, RING_BYTES, &ring), 0);
	ring.tail = ring.k_control->data_tail = ring.k_control->data_head = begin_at(&seed);
	for_each_record(stream, header)
	{
		while (!memory_ring_write(&ring, header, header->size))
			read_some(ret_result, &ring, 1 + (size_t)rand_r(&seed) % 40);
	}
	read_some(ret_result, &ring, SIZE_MAX);
	op_ring_unmap(&ring);
	close(fd);
}

static void begin_ring(const struct op_mring *ring, unsigned int *seed)
{
	ring->control->data_tail = ring->control->data_head = begin_at(seed);
}

/* Never full, whatever the gap is: a record without room would make a LOST record. */
static bool has_room(const struct op_mring *ring, const struct way *way, size_t nr_bytes)
{
	uint64_t used = ring->control->data_head - ring->control->data_tail;

	return used + nr_bytes + (way->in_page ? nr_bytes : 0) <= ring->data_bytes;
}

static void write_record(const struct way *way, struct op_mring_writer *writer, const struct perf_event_header *header)
{
	struct perf_event_header *place;

	if (way->in_page)
		assert_int_equal(op_mring_reserve_in_page(writer, header->size, &place), 0);
	else
		assert_int_equal(op_mring_reserve(writer, header->size, &place), 0);
	memcpy(place, header, header->size);
	op_mring_commit(writer);
}

static void through_the_ring(const struct way *way, const struct stream *stream, unsigned int seed, struct result *ret_result)
{
	struct op_mring_writer writer;
	struct op_mring ring, other = { 0 };
	struct op_ring reader;

	assert_int_equal(op_mring_create(RING_BYTES, 0, way->flags, &ring), 0);
	begin_ring(&ring, &seed);
	assert_int_equal(op_mring_writer_open(&ring, &writer), 0);
	if (way->foreign)
		assert_int_equal(op_mring_attach(ring.fd, ring.wake_fd, &other), 0);
	assert_int_equal(op_mring_reader(way->foreign ? &other : &ring, &reader), 0);
	for_each_record(stream, header)
	{
		while (!has_room(&ring, way, header->size))
			read_some(ret_result, &reader, 1 + (size_t)rand_r(&seed) % 40);
		write_record(way, &writer, header);
	}
	read_some(ret_result, &reader, SIZE_MAX);
	op_ring_unmap(&reader);
	op_mring_destroy(&other);
	op_mring_destroy(&ring);
}

static void swap_and_read(struct mring_pair_box *box, struct result *result)
{
	assert_int_equal(op_mring_pair_swap(&box->reader), 0);
	read_some(result, op_mring_pair_read_ring(&box->reader), SIZE_MAX);
}

static void through_the_pair(const struct way *way, const struct stream *stream, unsigned int seed, struct result *ret_result)
{
	struct mring_pair_box box;

	assert_int_equal(op_mring_pair_create(RING_BYTES, way->flags, &box.pair), 0);
	for (size_t i = 0; i < 2; i++)
		begin_ring(&box.pair.rings[i], &seed);
	assert_int_equal(op_mring_pair_reader_open(&box.pair, &box.reader), 0);
	assert_int_equal(op_mring_pair_writer_open(&box.pair, &box.writer), 0);
	for_each_record(stream, header)
	{
		if (!has_room(&box.pair.rings[!box.reader.read], way, header->size) || rand_r(&seed) % 30 == 0)
			swap_and_read(&box, ret_result);
		write_record(way, op_mring_pair_enter(&box.writer), header);
		op_mring_pair_leave(&box.writer);
	}
	swap_and_read(&box, ret_result);
	mring_pair_box_close(&box);
}

/* Appends a snapshot, which goes from the newest record to the oldest, in reverse order. */
static void take_snapshot(struct op_ring *reader, struct result *result)
{
	const struct perf_event_header *headers[RING_BYTES / 8], *header;
	struct stream copies = { .bytes = malloc(RING_BYTES) };
	size_t nr = 0;

	assert_non_null(copies.bytes);
	op_ring_begin(reader);
	while ((header = op_ring_next(reader))) {
		headers[nr++] = (const void *)(copies.bytes + copies.nr_bytes);
		memcpy(copies.bytes + copies.nr_bytes, header, header->size);
		copies.nr_bytes += header->size;
	}
	op_ring_end(reader);
	assert_int_equal(reader->damaged, 0);
	while (nr)
		take_record(result, headers[--nr]);
	free_stream(&copies);
}

static void through_overwritten(const struct way *way, const struct stream *stream, unsigned int seed, struct result *ret_result)
{
	struct mring_box box;
	uint64_t taken_at = 0;

	mring_box_open(&box, RING_BYTES, 0, OP_MRING_OVERWRITE);
	for_each_record(stream, header)
	{
		size_t most = header->size * (way->in_page ? 2u : 1u);

		if (taken_at - box.ring.control->data_head + most > RING_BYTES || rand_r(&seed) % 30 == 0) {
			take_snapshot(&box.reader, ret_result);
			taken_at = box.ring.control->data_head;
		}
		write_record(way, &box.writer, header);
	}
	take_snapshot(&box.reader, ret_result);
	mring_box_close(&box);
}

static const struct way ways[] = {
	{ .name = "kernel's layout", .run = through_the_kernels },
	{ .name = "memory ring", .run = through_the_ring },
	{ .name = "memory ring, own writer", .run = through_the_ring, .flags = OP_MRING_OWN_WRITER },
	{ .name = "memory ring, own writer, in page", .run = through_the_ring, .in_page = true, .flags = OP_MRING_OWN_WRITER },
	{ .name = "memory ring of another process", .run = through_the_ring, .foreign = true },
	{ .name = "pair", .run = through_the_pair },
	{ .name = "pair, own writer", .run = through_the_pair, .flags = OP_MRING_OWN_WRITER },
	{ .name = "pair with fences", .run = through_the_pair, .flags = OP_MRING_FENCE },
	{ .name = "pair, in page", .run = through_the_pair, .in_page = true },
	{ .name = "overwrite mode", .run = through_overwritten },
	{ .name = "overwrite mode, in page", .run = through_overwritten, .in_page = true },
};

/* Records that never were in a ring. */
static void take_directly(const struct stream *stream, struct result *ret_result)
{
	for_each_record(stream, header) take_record(ret_result, header);
}

static void check_all_ways(const struct stream *stream, unsigned int seed)
{
	struct result expected = { 0 };

	take_directly(stream, &expected);
	assert_int_equal(expected.stream.nr_bytes, stream->nr_bytes);
	for (size_t i = 0; i < op_array_size(ways); i++) {
		struct result result = { 0 };

		ways[i].run(&ways[i], stream, seed, &result);
		if (result.stream.nr_records != stream->nr_records)
			fail_msg("%s, seed %u: %zu records of %zu", ways[i].name, seed, result.stream.nr_records,
				 stream->nr_records);
		assert_int_equal(result.stream.nr_bytes, stream->nr_bytes);
		if (memcmp(result.stream.bytes, stream->bytes, stream->nr_bytes) != 0)
			fail_msg("%s, seed %u: other bytes", ways[i].name, seed);
		assert_string_equal(op_text_get(&result.text), op_text_get(&expected.text));
		free_result(&result);
	}
	free_result(&expected);
}

static void random_records_come_out_alike(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= NR_SEEDS; seed++) {
		struct stream stream = { 0 };

		make_random(&stream, seed);
		check_all_ways(&stream, seed);
		free_stream(&stream);
	}
}

/* ---- the kernel's records ---- */

static const uint32_t types_wanted[] = {
	PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_EXIT, PERF_RECORD_LOST,
};

static bool has_all_types(const struct stream *stream)
{
	for (size_t i = 0; i < op_array_size(types_wanted); i++)
		if (!stream->nr_of_type[types_wanted[i]])
			return false;
	return true;
}

static int open_event(uint64_t config, uint64_t period, int cpu)
{
	bool tracks = config == PERF_COUNT_SW_DUMMY;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.size = sizeof(attr),
		.sample_period = period,
		.sample_type = OP_SAMPLE_TYPE,
		.sample_id_all = 1,
		.mmap = tracks,
		.mmap2 = tracks,
		.comm = tracks,
		.comm_exec = tracks,
		.task = tracks,
		.use_clockid = 1,
		.clockid = OP_CLOCK,
	};

	return op_sys_perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Not by fork(), which would copy the large memory of sanitizers, one page fault at a time. */
static void run_a_program(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	int status;
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void take_stream(struct op_ring *ring, struct stream *stream)
{
	const struct perf_event_header *header;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring)))
		add_record(stream, header);
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
}

/* Samples and process records in one ring, which overflows now and then. */
static bool record_stream(struct stream *stream)
{
	int cpu = pin_to_a_cpu(), tracking = open_event(PERF_COUNT_SW_DUMMY, 0, cpu);
	int clock_fd = open_event(PERF_COUNT_SW_CPU_CLOCK, 100000, cpu), fault_fd = open_event(PERF_COUNT_SW_PAGE_FAULTS, 1, cpu);
	struct op_ring ring;

	if (tracking < 0 || clock_fd < 0 || fault_fd < 0 || op_ring_map(tracking, 2 * PAGE, &ring) < 0) {
		print_message("events of a whole CPU are refused here\n");
		return false;
	}
	assert_int_equal(op_sys_ioctl(clock_fd, PERF_EVENT_IOC_SET_OUTPUT, (void *)(intptr_t)tracking), 0);
	assert_int_equal(op_sys_ioctl(fault_fd, PERF_EVENT_IOC_SET_OUTPUT, (void *)(intptr_t)tracking), 0);
	for (int i = 0; i < NR_ROUNDS || (!has_all_types(stream) && i < 10 * NR_ROUNDS); i++) {
		run_a_program();
		if (i % 8 >= 4)
			take_stream(&ring, stream);
	}
	close(fault_fd);
	close(clock_fd);
	op_ring_unmap(&ring);
	close(tracking);
	return true;
}

static void the_kernels_records_come_out_alike(void **state)
{
	struct stream stream = { 0 };

	(void)state;
	if (!record_stream(&stream)) {
		skip();
		return;
	}
	print_message("%zu records of the kernel; of each type:", stream.nr_records);
	for (size_t i = 0; i < op_array_size(types_wanted); i++)
		print_message(" %zu", stream.nr_of_type[types_wanted[i]]);
	print_message("\n");
	assert_true(has_all_types(&stream));
	for (unsigned int seed = 1; seed <= NR_SEEDS; seed++)
		check_all_ways(&stream, seed);
	free_stream(&stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_records_come_out_alike),
		cmocka_unit_test(the_kernels_records_come_out_alike),
	};

	return cmocka_run_group_tests_name("ring_differential", tests, NULL, NULL);
}
