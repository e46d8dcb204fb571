/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for timelines. The first byte of an input says what the rest is. 'p': a payload.
 * 'b': a tail, its levels, and the payload as it is in the file; the sums are made right, or no
 * input would come behind them. Else the whole input is a file. What could be read can be written,
 * and read again with the same weights.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "libop/base/seal.h"
#include "libop/timeline/append.h"
#include "libop/timeline/decode.h"
#include "libop/timeline/read.h"

#define FILE_NAME "timeline"

static uint64_t total_of(const struct op_minute *minute)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < minute->nr_nodes; i++)
		total += minute->nodes[i].self + minute->nodes[i].rest;
	return total;
}

static void use(const struct op_minute *minute)
{
	static const struct op_encode_limits limits = { .max_samples = 7, .max_stacks = 5 }, none;
	struct op_bytes bytes = { 0 };
	struct op_minute again, merged;

	fuzz_check(!op_minute_init(&again, 0) && !op_minute_init(&merged, 0));
	fuzz_check(!op_minute_encode(minute, &limits, &bytes));
	fuzz_check(!op_minute_decode(&again, bytes.data, bytes.length));
	fuzz_check(total_of(&again) == total_of(minute) && again.nr_nodes <= 1 + 7 + 5);
	op_bytes_free(&bytes);
	fuzz_check(!op_minute_merge(&merged, minute) && !op_minute_merge(&merged, minute));
	fuzz_check(total_of(&merged) == 2 * total_of(minute));
	fuzz_check(!op_minute_encode(&merged, &none, &bytes));
	op_bytes_free(&bytes);
	op_minute_free(&merged);
	op_minute_free(&again);
}

static void read_payload(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_minute minute;
	int err;

	fuzz_check(!op_minute_init(&minute, 0));
	err = op_minute_decode(&minute, bytes, nr_bytes);
	fuzz_check(!err || (err == -EBADMSG && minute.nr_nodes == 1));
	if (!err)
		use(&minute);
	op_minute_free(&minute);
}

static void append(void)
{
	static const struct op_encode_limits none;
	struct op_timeline_writer *writer;
	struct op_minute minute;

	fuzz_check(!op_minute_init(&minute, 0));
	fuzz_check(!op_timeline_append_open(fuzz_dir_open(), FILE_NAME, &writer, NULL));
	fuzz_check(!op_timeline_append(writer, &minute, &none));
	op_timeline_append_close(writer);
	op_minute_free(&minute);
}

static uint32_t read_all(uint64_t since_ns, uint64_t until_ns)
{
	struct op_timeline *timeline;
	struct op_minute minute;
	uint32_t nr = 0;
	int err;

	fuzz_check(!op_minute_init(&minute, 0));
	fuzz_check(!op_timeline_open(fuzz_dir_open(), FILE_NAME, &timeline));
	err = op_timeline_select(timeline, since_ns, until_ns);
	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		use(&minute);
		nr++;
	}
	fuzz_check(err == -ENODATA);
	op_timeline_close(timeline);
	op_minute_free(&minute);
	return nr;
}

static void read_file(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_timeline *timeline;
	uint32_t nr;
	int err;

	fuzz_check(fuzz_dir_write(FILE_NAME, bytes, nr_bytes));
	err = op_timeline_open(fuzz_dir_open(), FILE_NAME, &timeline);
	fuzz_check(!err || err == -EBADMSG);
	if (err)
		return;
	op_timeline_close(timeline);
	read_all(1, 1000);
	nr = read_all(0, UINT64_MAX);
	append();
	fuzz_check(read_all(0, UINT64_MAX) == nr + 1);
}

static void read_block(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_timeline_header header = { .reserved = 0 };
	struct op_timeline_tail tail;
	struct op_bytes file = { 0 };
	size_t index_bytes;
	uint32_t head[2] = { htole32(OP_TIMELINE_HEAD_MAGIC) };

	if (nr_bytes < sizeof(tail))
		return;
	memcpy(&tail, bytes, sizeof(tail));
	bytes += sizeof(tail);
	nr_bytes -= sizeof(tail);
	index_bytes = le32toh(tail.nr_levels) % (OP_TIMELINE_LEVELS_MAX + 1) * sizeof(struct op_timeline_level);
	index_bytes = index_bytes <= nr_bytes ? index_bytes : 0;
	tail.nr_levels = htole32((uint32_t)(index_bytes / sizeof(struct op_timeline_level)));
	tail.packed_bytes = htole32((uint32_t)(nr_bytes - index_bytes));
	tail.block_bytes = head[1] = htole32((uint32_t)(sizeof(head) + nr_bytes + sizeof(tail)));
	tail.payload_sum = htole64(op_seal_sum(bytes + index_bytes, nr_bytes - index_bytes));
	memcpy(header.magic, OP_TIMELINE_MAGIC, sizeof(header.magic));
	memcpy(tail.magic, OP_TIMELINE_BLOCK_MAGIC, sizeof(tail.magic));
	op_bytes_add(&file, &header, sizeof(header));
	/* Twice, so that levels of the second one may lead to the first. */
	for (int i = 0; i < 2; i++) {
		op_bytes_add(&file, head, sizeof(head));
		op_bytes_add(&file, bytes + index_bytes, nr_bytes - index_bytes);
		op_bytes_add(&file, bytes, index_bytes);
		op_bytes_add(&file, &tail, sizeof(tail));
		tail.sum = htole64(op_seal_sum(file.data + file.length - sizeof(tail) - index_bytes,
					       index_bytes + offsetof(struct op_timeline_tail, sum)));
		memcpy(file.data + file.length - sizeof(tail.sum), &tail.sum, sizeof(tail.sum));
	}
	read_file(file.data, file.length);
	op_bytes_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	if (nr_bytes && bytes[0] == 'p')
		read_payload(bytes + 1, nr_bytes - 1);
	else if (nr_bytes && bytes[0] == 'b')
		read_block(bytes + 1, nr_bytes - 1);
	else
		read_file(bytes, nr_bytes);
	return 0;
}
