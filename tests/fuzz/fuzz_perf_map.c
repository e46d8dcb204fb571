/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * libFuzzer target for the reader of perf maps. Input: where the file is cut in two parts (2
 * bytes), whether it is replaced in between (1 byte), then the file. It is read after each part,
 * and once more.
 */
#include "tests/fuzz/fuzz_jit.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static void read_map(struct opd_perf_map *perf_map, int fd, struct opd_jit_map *map, uint64_t now_ns)
{
	const struct opd_jit_times times = { .now_ns = now_ns };
	struct opd_jit_allowance allowance = { .bytes = 1000000, .limit_ns = UINT64_MAX };
	struct stat st;

	check(!fstat(fd, &st));
	check(!opd_perf_map_read(perf_map, &(struct opd_far_file){ .fd = fd }, &st, map, &times, &allowance));
	check(allowance.bytes <= 1000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static uint64_t counters[OP_NR_JIT];
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .file = { .fd = -1 } };
	struct opd_perf_map perf_map = { 0 };
	size_t cut;
	int fd;

	if (nr_bytes < 3)
		return 0;
	fd = new_file();
	cut = op_min_u64(bytes[0] | (size_t)bytes[1] << 8, nr_bytes - 3);
	append(fd, bytes + 3, cut);
	read_map(&perf_map, fd, &map, 1000);
	if (bytes[2] & 1)
		check(!ftruncate(fd, 0) && !lseek(fd, 0, SEEK_SET));
	append(fd, bytes + 3 + cut, nr_bytes - 3 - cut);
	read_map(&perf_map, fd, &map, 2000);
	read_map(&perf_map, fd, &map, 3000);
	check(perf_map.offset <= nr_bytes);
	check_map(&map);
	if (bytes[2] & 2)
		check_object(&map, &dump);
	opd_jit_map_free(&map);
	check(!counters[OP_JIT_bytes]);
	close(fd);
	return 0;
}
