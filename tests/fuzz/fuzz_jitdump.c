/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libFuzzer target for the reader of jitdump and the object made from it. Input: where the file is
 * cut in two parts (2 bytes), flags (1 byte), then the file. It is read after each part; with flag
 * 1 it is truncated before the object is made.
 */
#include "tests/fuzz/fuzz_jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static void read_dump(struct opd_jitdump *dump, struct opd_jit_map *map, uint64_t now_ns)
{
	const struct opd_jit_times times = { .now_ns = now_ns };
	struct opd_jit_allowance allowance = { .bytes = 1000000, .limit_ns = UINT64_MAX };
	uint64_t before = dump->offset;

	check(!opd_jitdump_read(dump, map, &times, &allowance));
	check(dump->offset >= before);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static uint64_t counters[OP_NR_JIT];
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .file = { .fd = -1 } };
	size_t cut;

	if (nr_bytes < 3)
		return 0;
	counters[OP_JIT_code_bytes] = 0;
	dump.file.fd = new_file();
	cut = op_min_u64(bytes[0] | (size_t)bytes[1] << 8, nr_bytes - 3);
	append(dump.file.fd, bytes + 3, cut);
	read_dump(&dump, &map, 1000);
	append(dump.file.fd, bytes + 3 + cut, nr_bytes - 3 - cut);
	read_dump(&dump, &map, 2000);
	check_map(&map);
	if (bytes[2] & 1)
		check(!ftruncate(dump.file.fd, (off_t)(nr_bytes / 2)));
	check_object(&map, &dump);
	opd_jit_map_free(&map);
	check(!counters[OP_JIT_bytes]);
	opd_jitdump_close(&dump);
	return 0;
}
