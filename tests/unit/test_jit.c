/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JIT code: functions at their addresses and times, the files that a process writes, which files
 * are read, and all limits.
 */
#include "tests/unit/still_clock.h"
#include "tests/unit/pair.h"
#include "tests/unit/test_box.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "pipeline/files/owner.h"
#include "pipeline/jit/address_map.h"
#include "pipeline/jit/jitdump.h"
#include "pipeline/jit/object.h"
#include "pipeline/jit/perf_map.h"
#include "pipeline/jit/space.h"
#include "pipeline/resolve/jit_lookup.h"

#define BASE UINT64_C(0x7f0000000000)

static uint64_t counters[OP_NR_JIT];
static bool has_openat2 = true;

int __real_op_sys_open_in_root(int root_fd, const char *path, int flags);
int __wrap_op_sys_open_in_root(int root_fd, const char *path, int flags);
int __real_op_sys_open_dir_below(int dir_fd, const char *path);
int __wrap_op_sys_open_dir_below(int dir_fd, const char *path);

int __wrap_op_sys_open_in_root(int root_fd, const char *path, int flags)
{
	return has_openat2 ? __real_op_sys_open_in_root(root_fd, path, flags) : -ENOSYS;
}

int __wrap_op_sys_open_dir_below(int dir_fd, const char *path)
{
	return has_openat2 ? __real_op_sys_open_dir_below(dir_fd, path) : -ENOSYS;
}

static struct opd_jit_map new_map(void)
{
	memset(counters, 0, sizeof(counters));
	return (struct opd_jit_map){ .counters = counters };
}

static void add(struct opd_jit_map *map, uint64_t start, uint64_t bytes, const char *name, uint64_t from_ns)
{
	const struct opd_jit_code code = { .start = start, .bytes = bytes, .name = name, .from_ns = from_ns, .may_be_known = true };

	assert_int_equal(opd_jit_map_add(map, &code, 0), 0);
}

/* The function at an address, found by its offset. "" for none. */
static const char *at(struct opd_jit_map *map, uint64_t address, uint64_t time_ns, uint64_t *ret_in_function)
{
	uint64_t offset;

	if (!opd_jit_map_find(map, address, time_ns, &offset))
		return "";
	for (size_t i = 0; i < map->functions.nr_rows; i++) {
		const struct opd_jit_function *function = &map->functions.rows[i];

		if (function->offset <= offset && offset < function->offset + function->bytes) {
			*ret_in_function = offset - function->offset;
			return function->name;
		}
	}
	return "outside";
}

static void assert_at(struct opd_jit_map *map, uint64_t address, uint64_t time_ns, const char *name, uint64_t in_function)
{
	uint64_t found = 0;

	assert_string_equal(at(map, address, time_ns, &found), name);
	assert_int_equal(found, in_function);
}

/* ---- the map ---- */

static void later_code_takes_the_place(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();

	add(&map, BASE, 0x100, "old", 10);
	add(&map, BASE + 0x40, 0x40, "new", 20);
	assert_at(&map, BASE + 0x50, 15, "old", 0x50);
	assert_at(&map, BASE + 0x50, 20, "new", 0x10);
	assert_at(&map, BASE + 0x80, 30, "old", 0x80);
	assert_at(&map, BASE + 0x10, 5, "old", 0x10);
	assert_at(&map, BASE + 0x100, 30, "", 0);
	assert_at(&map, BASE - 1, 30, "", 0);
	assert_int_equal(map.nr_sampled, 2);
	opd_jit_map_free(&map);
	assert_int_equal(counters[OP_JIT_bytes], 0);
}

static void the_same_again_is_known(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();

	add(&map, BASE, 0x100, "f", 10);
	add(&map, BASE, 0x100, "f", 20);
	assert_int_equal(opd_jit_map_count(&map), 1);
	add(&map, BASE, 0x100, "g", 30);
	add(&map, BASE, 0x100, "f", 40);
	assert_int_equal(opd_jit_map_count(&map), 3);
	opd_jit_map_free(&map);
}

static void a_function_in_several_windows(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();

	add(&map, BASE + 0xfff0, 0x30010, "wide", 10);
	for (uint64_t offset = 0; offset < 0x30010; offset += 0xffff)
		assert_at(&map, BASE + 0xfff0 + offset, 20, "wide", offset);
	assert_int_equal(map.nr_sampled, 1);
	opd_jit_map_free(&map);
}

static void moved_code_keeps_its_place(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();

	add(&map, BASE, 0x40, "f", 10);
	assert_at(&map, BASE + 4, 10, "f", 4);
	assert_int_equal(opd_jit_map_move(&map, BASE, BASE + 0x5000, 20, 0), 0);
	assert_at(&map, BASE + 0x5004, 20, "f", 4);
	assert_int_equal(map.nr_sampled, 1);
	assert_int_equal(opd_jit_map_move(&map, BASE + 8, BASE + 0x6000, 30, 0), 0);
	assert_int_equal(counters[OP_JIT_refused_records], 1);
	opd_jit_map_free(&map);
}

static void names_can_be_shown(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();

	add(&map, BASE, 1, "a\x01\x7f\xff\xc2\x85ä", 1);
	add(&map, BASE + 1, 1, "", 1);
	assert_string_equal(map.functions.rows[0].name, "a????ä");
	assert_string_equal(map.functions.rows[1].name, "[unnamed]");
	opd_jit_map_free(&map);
}

/*
 * A runtime compiles again and again at the same addresses: functions without samples make room,
 * functions with samples keep offset and name.
 */
static void gone_code_makes_room(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();
	uint64_t offsets[3], offset;
	char name[32];

	for (uint64_t i = 0; i < 600000; i++) {
		struct opd_jit_code code = { .start = BASE + i % 1000 * 0x100, .bytes = 0x100, .name = name, .from_ns = i + 1 };

		snprintf(name, sizeof(name), "function-%llu", (unsigned long long)i);
		assert_int_equal(opd_jit_map_add(&map, &code, i > 2000 ? i - 2000 : 0), 0);
		if (i < 3)
			assert_true(opd_jit_map_find(&map, code.start + 8, i + 1, &offsets[i]));
	}
	assert_int_equal(counters[OP_JIT_refused_memory], 0);
	assert_true(counters[OP_JIT_functions_forgotten] > 0);
	assert_int_equal(counters[OP_JIT_functions], 600000);
	assert_int_equal(opd_jit_map_count(&map) + counters[OP_JIT_functions_forgotten], 600000);
	assert_true(map.nr_bytes <= OPD_JIT_PROCESS_MAX_BYTES);
	assert_int_equal(map.nr_bytes, counters[OP_JIT_bytes]);
	for (uint64_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "function-%llu", (unsigned long long)i);
		assert_string_equal(map.functions.rows[i].name, name);
		assert_int_equal(map.functions.rows[i].offset + 8, offsets[i]);
	}
	assert_at(&map, BASE + 0x100 * 999 + 8, 600000, "function-599999", 8);
	assert_at(&map, BASE + 0x100 * 7 + 8, 600000, "function-599007", 8);
	assert_true(opd_jit_map_find(&map, BASE + 8, 600000, &offset));
	assert_int_not_equal(offset, offsets[0]);
	opd_jit_map_free(&map);
	assert_int_equal(counters[OP_JIT_bytes], 0);
}

static void limits_hold(void **state OP_UNUSED)
{
	struct opd_jit_map map = new_map();

	add(&map, BASE, OPD_JIT_FUNCTION_MAX_BYTES + 1, "large", 1);
	assert_int_equal(counters[OP_JIT_refused_size], 1);
	add(&map, UINT64_MAX - 5, 10, "wraps", 1);
	add(&map, (uint64_t)1 << 63, 10, "kernel", 1);
	assert_int_equal(counters[OP_JIT_refused_records], 2);
	add(&map, BASE, 0, "empty", 1);
	assert_int_equal(opd_jit_map_count(&map), 0);
	for (uint64_t i = 0; !counters[OP_JIT_refused_memory]; i++)
		add(&map, BASE + i * 0x10000, 16, "one in each window", 1);
	assert_in_range(map.nr_bytes, OPD_JIT_PROCESS_MAX_BYTES / 2, OPD_JIT_PROCESS_MAX_BYTES);
	opd_jit_map_free(&map);
}

/* One user with many processes leaves room for the process of another. */
static void a_user_leaves_memory_for_others(void **state OP_UNUSED)
{
	struct opd_jit_uses uses = { 0 };
	struct opd_jit_map maps[6];

	for (size_t i = 0; i < op_array_size(maps); i++) {
		bool is_other = i == op_array_size(maps) - 1;

		maps[i] = i ? (struct opd_jit_map){ .counters = counters } : new_map();
		maps[i].user = opd_jit_use_get(&uses, is_other ? 1001 : 1000);
		counters[OP_JIT_refused_memory] = 0;
		for (uint64_t k = 0; !counters[OP_JIT_refused_memory]; k++)
			add(&maps[i], BASE + k * 0x10000, 16, "one in each window", 1);
		if (is_other)
			assert_in_range(maps[i].nr_bytes, OPD_JIT_PROCESS_MAX_BYTES / 2, OPD_JIT_PROCESS_MAX_BYTES);
	}
	assert_in_range(counters[OP_JIT_bytes], OPD_JIT_ALL_MAX_BYTES / 2, OPD_JIT_ALL_MAX_BYTES);
	for (size_t i = 0; i < op_array_size(maps); i++)
		opd_jit_map_free(&maps[i]);
	assert_int_equal(counters[OP_JIT_bytes], 0);
	for (size_t i = 0; i < OPD_JIT_MEMORY_USERS_MAX; i++)
		assert_int_equal(uses.rows[i].nr_refs, 0);
}

/* ---- perf map ---- */

static void put(int fd, const char *text)
{
	assert_int_equal(op_sys_write_all(fd, text, strlen(text)), 0);
}

static void read_map(struct opd_perf_map *perf_map, int fd, struct opd_jit_map *map, uint64_t now_ns)
{
	const struct opd_jit_times times = { .now_ns = now_ns };
	struct opd_jit_allowance allowance = { .bytes = UINT64_MAX, .limit_ns = UINT64_MAX };
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(opd_perf_map_read(perf_map, &(struct opd_far_file){ .fd = fd }, &st, map, &times, &allowance), 0);
}

static void a_map_grows(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct opd_jit_map map = new_map();
	struct opd_perf_map perf_map = { 0 };
	uint64_t now_ns = op_now_ns();

	put(fd, "7f0000000000 40 first of x.js:1\n0x7f0000000040 0x40 second\nnonsense\n\n7f00000000");
	read_map(&perf_map, fd, &map, now_ns);
	assert_int_equal(opd_jit_map_count(&map), 2);
	assert_int_equal(counters[OP_JIT_refused_records], 1);
	assert_at(&map, BASE + 1, now_ns - 1, "first of x.js:1", 1);
	put(fd, "00 40 instead\n");
	read_map(&perf_map, fd, &map, now_ns + 1000);
	assert_at(&map, BASE + 1, now_ns + 1000, "instead", 1);
	assert_at(&map, BASE + 1, now_ns - 1, "first of x.js:1", 1);
	read_map(&perf_map, fd, &map, now_ns + 2000);
	assert_int_equal(opd_jit_map_count(&map), 3);
	close(fd);
	opd_jit_map_free(&map);
}

static void read_map_at(struct opd_perf_map *perf_map, int fd, struct opd_jit_map *map, const struct opd_jit_times *times)
{
	struct opd_jit_allowance allowance = { .bytes = UINT64_MAX, .limit_ns = UINT64_MAX };
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(opd_perf_map_read(perf_map, &(struct opd_far_file){ .fd = fd }, &st, map, times, &allowance), 0);
}

/* It counts at the end of the process, or when nothing follows for 10 s. It may be half a line. */
static void a_last_line_needs_no_newline(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct opd_jit_times times = { .now_ns = op_now_ns() };
	struct opd_perf_map perf_map = { 0 };
	struct opd_jit_map map = new_map();
	struct stat st;

	put(fd, "7f0000000000 40 first\n7f0000000040 40 seco");
	read_map_at(&perf_map, fd, &map, &times);
	times.now_ns += 9 * OP_NS_PER_S;
	read_map_at(&perf_map, fd, &map, &times);
	assert_int_equal(opd_jit_map_count(&map), 1);
	assert_false(opd_perf_map_is_read(&perf_map, &st));
	put(fd, "nd\n7f0000000080 40 third");
	read_map_at(&perf_map, fd, &map, &times);
	assert_int_equal(opd_jit_map_count(&map), 2);
	times.now_ns += 10 * (uint64_t)OP_NS_PER_S;
	read_map_at(&perf_map, fd, &map, &times);
	assert_int_equal(opd_jit_map_count(&map), 3);
	assert_at(&map, BASE + 0x80, times.now_ns, "third", 0);
	assert_true(opd_perf_map_is_read(&perf_map, &st));
	put(fd, "\n7f00000000c0 40 fourth");
	times.has_ended = true;
	read_map_at(&perf_map, fd, &map, &times);
	read_map_at(&perf_map, fd, &map, &times);
	assert_int_equal(opd_jit_map_count(&map), 4);
	assert_at(&map, BASE + 0xc0, times.now_ns, "fourth", 0);
	assert_int_equal(counters[OP_JIT_refused_records], 0);
	close(fd);
	opd_jit_map_free(&map);
}

/* A program that writes when its buffer is full stops in the middle of a line. */
static void a_buffer_ends_anywhere(void **state)
{
	static const char first[] = "7f0000000000 40 first\n", second[] = "7f0000000040 40 seco";
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct opd_jit_times times = { .now_ns = op_now_ns() };
	struct opd_perf_map perf_map = { 0 };
	struct opd_jit_map map = new_map();
	char fill[8192 - sizeof(first) - sizeof(second) + 2 + 1];
	struct stat st;

	memset(fill, '\n', sizeof(fill) - 1);
	fill[sizeof(fill) - 1] = '\0';
	put(fd, fill);
	put(fd, first);
	put(fd, second);
	read_map_at(&perf_map, fd, &map, &times);
	times.now_ns += 100 * (uint64_t)OP_NS_PER_S;
	read_map_at(&perf_map, fd, &map, &times);
	assert_int_equal(opd_jit_map_count(&map), 1);
	assert_true(opd_perf_map_is_read(&perf_map, &st));
	times.has_ended = true;
	read_map_at(&perf_map, fd, &map, &times);
	assert_int_equal(opd_jit_map_count(&map), 2);
	assert_at(&map, BASE + 0x40, times.now_ns, "seco", 0);
	close(fd);
	opd_jit_map_free(&map);
}

static void a_map_is_written_anew(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct opd_jit_map map = new_map();
	struct opd_perf_map perf_map = { 0 };

	put(fd, "7f0000000000 40 one\n7f0000000040 40 two\n");
	read_map(&perf_map, fd, &map, 1000);
	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	put(fd, "7f0000000000 40 one\n7f0000000040 40 zwo\n7f0000000080 40 three\n");
	read_map(&perf_map, fd, &map, 2000);
	assert_int_equal(opd_jit_map_count(&map), 4);
	assert_at(&map, BASE + 0x40, 3000, "zwo", 0);
	assert_at(&map, BASE, 3000, "one", 0);
	close(fd);
	opd_jit_map_free(&map);
}

static void a_line_too_long_is_passed_over(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct opd_jit_map map = new_map();
	struct opd_perf_map perf_map = { 0 };
	char name[2000];

	put(fd, "7f0000000000 40 ");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		put(fd, name);
	put(fd, "\n7f0000000040 40 next\n7f0000000080 40 ");
	put(fd, name);
	put(fd, "\n");
	read_map(&perf_map, fd, &map, 1000);
	assert_int_equal(opd_jit_map_count(&map), 2);
	assert_int_equal(counters[OP_JIT_refused_records], 1);
	assert_at(&map, BASE + 0x40, 1, "next", 0);
	assert_int_equal(strlen(map.functions.rows[1].name), OPD_JIT_NAME_MAX);
	close(fd);
	opd_jit_map_free(&map);
}

/*
 * The file is never written again: the read that reaches the limit is counted, the read before it
 * is not.
 */
static void what_is_beyond_the_limit_is_counted(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct opd_jit_map map = new_map();
	struct opd_perf_map perf_map = { 0 };

	assert_int_equal(pwrite(fd, "\n7f0000000000 40 at the end\n", 28, OPD_PERF_MAP_MAX_BYTES - 28), 28);
	read_map(&perf_map, fd, &map, 1000);
	assert_at(&map, BASE, 1, "at the end", 0);
	assert_int_equal(counters[OP_JIT_refused_size], 0);
	assert_int_equal(pwrite(fd, "7f0000000040 40 behind it\n", 26, OPD_PERF_MAP_MAX_BYTES), 26);
	read_map(&perf_map, fd, &map, 2000);
	assert_int_equal(counters[OP_JIT_refused_size], 1);
	perf_map = (struct opd_perf_map){ 0 };
	read_map(&perf_map, fd, &map, 3000);
	assert_int_equal(counters[OP_JIT_refused_size], 2);
	read_map(&perf_map, fd, &map, 4000);
	assert_int_equal(counters[OP_JIT_refused_size], 2);
	assert_at(&map, BASE + 0x40, 5000, "", 0);
	close(fd);
	opd_jit_map_free(&map);
}

/* What the allowance leaves is read with the next calls, and holds from the same time on. */
static void a_map_is_read_bit_by_bit(void **state)
{
	struct box *box = *state;
	int fd = openat(box->fd, "map", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	const struct opd_jit_times times = { .now_ns = 1000 };
	struct opd_jit_allowance nothing = {
		.bytes = UINT64_MAX,
		.begin_ns = op_now_ns(),
		.begin_cpu_ns = op_clock_ns(CLOCK_THREAD_CPUTIME_ID),
	};
	struct opd_jit_map map = new_map();
	const struct opd_far_file file = { .fd = fd };
	struct opd_perf_map perf_map = { 0 };
	size_t nr_functions, nr_calls = 0;
	struct stat st;

	for (uint64_t i = 0; i < 10000; i++)
		dprintf(fd, "%llx 10 f%llu\n", (unsigned long long)(BASE + 16 * i), (unsigned long long)i);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(opd_perf_map_read(&perf_map, &file, &st, &map, &times, &nothing), 0);
	assert_true(nothing.is_spent && perf_map.more);
	nr_functions = opd_jit_map_count(&map);
	assert_in_range(nr_functions, 1, 64);
	while (perf_map.more) {
		struct opd_jit_allowance few_bytes = { .bytes = 1, .limit_ns = UINT64_MAX };

		assert_int_equal(opd_perf_map_read(&perf_map, &file, &st, &map, &times, &few_bytes), 0);
		assert_int_equal(few_bytes.is_spent, perf_map.more);
		assert_true(opd_jit_map_count(&map) > nr_functions || !perf_map.more);
		nr_functions = opd_jit_map_count(&map);
		nr_calls++;
	}
	assert_in_range(nr_calls, 3, 10);
	assert_int_equal(nr_functions, 10000);
	assert_at(&map, BASE + 16 * 9999, 0, "f9999", 0);
	close(fd);
	opd_jit_map_free(&map);
}

/* ---- jitdump ---- */

static void put_words(int fd, const uint64_t *words, size_t nr_words)
{
	assert_int_equal(op_sys_write_all(fd, words, nr_words * sizeof(*words)), 0);
}

static void put_dump_header(int fd)
{
	const uint64_t words[] = { PAIR(0x4a695444, 1), PAIR(40, 0), 0, 0, 0 };

	put_words(fd, words, op_array_size(words));
}

/* Eight bytes of code, all of them `code`; the name has seven letters. */
static void put_load(int fd, uint64_t start, const char *name, uint64_t time_ns)
{
	const uint64_t words[] = { PAIR(0, 72), time_ns, PAIR(1, 0), start, start, 8, 1 };

	put_words(fd, words, op_array_size(words));
	assert_int_equal(op_sys_write_all(fd, name, 8), 0);
	put(fd, "codecode");
}

static void read_dump(struct opd_jitdump *dump, struct opd_jit_map *map, uint64_t now_ns)
{
	const struct opd_jit_times times = { .now_ns = now_ns };
	struct opd_jit_allowance allowance = { .bytes = UINT64_MAX, .limit_ns = UINT64_MAX };

	assert_int_equal(opd_jitdump_read(dump, map, &times, &allowance), 0);
}

static void a_dump_grows(void **state)
{
	struct box *box = *state;
	struct opd_jitdump dump = { .file = { .fd = openat(box->fd, "dump", O_RDWR | O_CREAT | O_CLOEXEC, 0644) } };
	struct opd_jit_map map = new_map();
	const uint64_t part[] = { PAIR(0, 72), 30 };

	read_dump(&dump, &map, 100);
	put_dump_header(dump.file.fd);
	put_load(dump.file.fd, BASE, "first..", 10);
	put_load(dump.file.fd, BASE, "second.", 20);
	put_words(dump.file.fd, part, 2);
	read_dump(&dump, &map, 100);
	read_dump(&dump, &map, 100);
	assert_int_equal(opd_jit_map_count(&map), 2);
	assert_at(&map, BASE + 1, 15, "first..", 1);
	assert_at(&map, BASE + 1, 20, "second.", 1);
	assert_false(dump.ended);
	opd_jit_map_free(&map);
	opd_jitdump_close(&dump);
}

static void a_dump_that_makes_no_sense_ends(void **state)
{
	struct box *box = *state;
	struct opd_jitdump dump = { .file = { .fd = openat(box->fd, "dump", O_RDWR | O_CREAT | O_CLOEXEC, 0644) } };
	struct opd_jit_map map = new_map();
	const uint64_t too_much_code[] = { PAIR(0, 64), 1, PAIR(1, 0), BASE, BASE, UINT64_MAX, 1, 'x' },
		       too_short[] = { PAIR(0, 8), 0 };

	put_dump_header(dump.file.fd);
	put_words(dump.file.fd, too_much_code, op_array_size(too_much_code));
	put_load(dump.file.fd, BASE, "good...", 10);
	put_words(dump.file.fd, too_short, op_array_size(too_short));
	put_load(dump.file.fd, BASE, "behind.", 20);
	read_dump(&dump, &map, 100);
	assert_int_equal(opd_jit_map_count(&map), 1);
	assert_int_equal(counters[OP_JIT_refused_records], 2);
	assert_true(dump.ended);
	opd_jit_map_free(&map);
	opd_jitdump_close(&dump);
}

/* A record of more than 256 MiB ends a dump, and so does its length of 4 GiB. */
static void a_dump_has_limits(void **state)
{
	struct box *box = *state;
	struct opd_jitdump dump = { .file = { .fd = openat(box->fd, "dump", O_RDWR | O_CREAT | O_CLOEXEC, 0644) } };
	const uint64_t longest = 256u << 20, passed_over[] = { PAIR(9, longest), 1 }, too_long[] = { PAIR(9, longest + 1), 1 };
	struct opd_jit_map map = new_map();

	put_dump_header(dump.file.fd);
	for (off_t i = 0; i < 16; i++)
		assert_int_equal(pwrite(dump.file.fd, passed_over, sizeof(passed_over), 40 + i * (off_t)longest), 16);
	assert_int_equal(lseek(dump.file.fd, 40 + 16 * (off_t)longest, SEEK_SET), 40 + 16 * (off_t)longest);
	put_load(dump.file.fd, BASE, "behind.", 20);
	read_dump(&dump, &map, 100);
	assert_true(dump.ended);
	assert_int_equal(counters[OP_JIT_refused_size], 1);
	assert_int_equal(ftruncate(dump.file.fd, 40), 0);
	assert_int_equal(pwrite(dump.file.fd, too_long, sizeof(too_long), 40), 16);
	dump = (struct opd_jitdump){ .file = dump.file };
	read_dump(&dump, &map, 100);
	assert_true(dump.ended);
	assert_int_equal(counters[OP_JIT_refused_records], 1);
	assert_int_equal(opd_jit_map_count(&map), 0);
	opd_jit_map_free(&map);
	opd_jitdump_close(&dump);
}

static void what_is_no_dump_is_refused(void **state)
{
	struct box *box = *state;
	struct opd_jitdump dump = { .file = { .fd = openat(box->fd, "dump", O_RDWR | O_CREAT | O_CLOEXEC, 0644) } };
	struct opd_jit_map map = new_map();

	put(dump.file.fd, "this is a text that is longer than the header of a dump");
	read_dump(&dump, &map, 100);
	assert_true(dump.ended);
	assert_int_equal(counters[OP_JIT_refused_files], 1);
	opd_jitdump_close(&dump);
}

/* ---- whose files ---- */

static int open_as(struct opd_jit_owner *owner, const struct box *box, const char *name)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", box->path, name);
	fd = opd_jit_owner_open(owner, path, &st);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void check_files(const struct box *box)
{
	struct opd_jit_owner owner;

	opd_jit_owner_init(&owner, (uint32_t)getpid(), 0);
	assert_true(owner.is_known);
	assert_int_equal(owner.uid, geteuid());
	assert_true(owner.began_ns > 0 && owner.began_ns <= op_clock_ns(CLOCK_REALTIME));
	assert_int_equal(mknodat(box->fd, "plain", S_IFREG | 0644, 0), 0);
	assert_int_equal(mknodat(box->fd, "fifo", S_IFIFO | 0644, 0), 0);
	assert_int_equal(mkdirat(box->fd, "dir", 0755), 0);
	assert_int_equal(symlinkat("plain", box->fd, "link"), 0);
	assert_int_equal(open_as(&owner, box, "plain"), 0);
	assert_int_equal(open_as(&owner, box, "fifo"), -EPERM);
	assert_int_equal(open_as(&owner, box, "dir"), -EPERM);
	assert_int_equal(open_as(&owner, box, "link"), -EPERM);
	assert_int_equal(open_as(&owner, box, "nothing"), -ENOENT);
	if (!geteuid()) {
		assert_int_equal(fchownat(box->fd, "plain", 12345, 0, 0), 0);
		assert_int_equal(open_as(&owner, box, "plain"), -EPERM);
	}
	opd_jit_owner_close(&owner);
	opd_jit_owner_init(&owner, 4000000000u, 0);
	assert_false(owner.is_known);
	assert_int_equal(open_as(&owner, box, "plain"), -ENOENT);
	opd_jit_owner_close(&owner);
}

static void files_of_the_process_are_read(void **state)
{
	check_files(*state);
}

static void files_are_read_without_openat2(void **state)
{
	has_openat2 = false;
	check_files(*state);
	has_openat2 = true;
}

/* A zombie is still in /proc. A file that was expected is taken for the parent's. */
static void an_ended_process_is_its_parents(void **state)
{
	struct box *box = *state;
	struct opd_jit_owner owner;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(mknodat(box->fd, "plain", S_IFREG | 0644, 0), 0);
	opd_jit_owner_init_ended(&owner, (uint32_t)pid, 0, 0);
	assert_true(owner.is_known);
	assert_int_equal(owner.uid, geteuid());
	assert_int_equal(open_as(&owner, box, "plain"), 0);
	opd_jit_owner_close(&owner);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	opd_jit_owner_init_ended(&owner, (uint32_t)pid, 0, 0);
	assert_false(owner.is_known);
	opd_jit_owner_close(&owner);
	/* By now another process has the number of a living one. */
	opd_jit_owner_init_ended(&owner, (uint32_t)getpid(), (uint32_t)getppid(), op_now_ns());
	assert_int_equal(owner.proc_fd, -1);
	opd_jit_owner_close(&owner);
	opd_jit_owner_init_ended(&owner, (uint32_t)pid, (uint32_t)getpid(), op_now_ns() - 100 * (uint64_t)OP_NS_PER_S);
	assert_true(owner.is_known);
	assert_int_equal(owner.began_ns, op_clock_ns(CLOCK_REALTIME) - 100 * (uint64_t)OP_NS_PER_S);
	assert_int_equal(open_as(&owner, box, "plain"), 0);
	if (!geteuid()) {
		assert_int_equal(fchownat(box->fd, "plain", 12345, 0, 0), 0);
		assert_int_equal(open_as(&owner, box, "plain"), -EPERM);
	}
	opd_jit_owner_close(&owner);
}

static void a_file_from_before_the_process_is_not_its(void **state OP_UNUSED)
{
	const struct opd_jit_owner owner = { .began_ns = 1000 * (uint64_t)OP_NS_PER_S };
	struct stat st = { .st_mtim = { .tv_sec = 999, .tv_nsec = 970000000 } };

	assert_true(opd_jit_owner_is_older(&owner, &st));
	st.st_mtim.tv_nsec = 990000000; /* the stamp of the tick before */
	assert_false(opd_jit_owner_is_older(&owner, &st));
	st.st_mtim.tv_nsec = 0; /* of a file system with whole seconds */
	assert_false(opd_jit_owner_is_older(&owner, &st));
	st.st_mtim.tv_sec = 997;
	assert_true(opd_jit_owner_is_older(&owner, &st));
}

/*
 * The map of the program before exec has the number of the process, but is newer than the process.
 */
static void a_file_from_before_the_exec_is_not_its(void **state OP_UNUSED)
{
	struct opd_jit_owner owner;
	struct stat st = { 0 };
	uint64_t written_ns;

	passed_ns += 100 * OP_NS_PER_MS;
	written_ns = op_clock_ns(CLOCK_REALTIME) - 50 * OP_NS_PER_MS;
	st.st_mtim =
		(struct timespec){ .tv_sec = (time_t)(written_ns / OP_NS_PER_S), .tv_nsec = (long)(written_ns % OP_NS_PER_S) | 1 };
	opd_jit_owner_init(&owner, (uint32_t)getpid(), op_now_ns());
	assert_true(opd_jit_owner_is_older(&owner, &st));
	opd_jit_owner_close(&owner);
	opd_jit_owner_init(&owner, (uint32_t)getpid(), 0);
	assert_false(opd_jit_owner_is_older(&owner, &st));
	opd_jit_owner_close(&owner);
	opd_jit_owner_init(&owner, (uint32_t)getpid(), op_now_ns() - 70 * OP_NS_PER_MS);
	assert_false(opd_jit_owner_is_older(&owner, &st));
	opd_jit_owner_close(&owner);
}

/* ---- all together, with this very process ---- */

static void a_sample_finds_its_function(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new();
	struct opd_processes processes = { 0 };
	struct op_sample sample = { .pid = (uint32_t)getpid(), .ip = BASE + 4, .time_ns = 50 };
	const struct opd_mapping mapping = { .start = BASE, .end = BASE + 4096, .region_end = BASE + 4096 };
	struct op_location location, child_location;
	struct opd_process *process, *child;
	struct opd_jit jit;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	put(fd, "7f0000000000 40 f\n");
	opd_jit_init(&jit, table);
	processes.jit = &jit;
	assert_int_equal(opd_process_get(&processes, sample.pid, 0, &process), 0);
	assert_int_equal(opd_process_fork(&processes, sample.pid, 4000000, 40), 0);
	child = opd_process_find(&processes, 4000000);
	assert_true(opd_jit_resolve(&processes, process, process->mm, &mapping, &sample, 100, &location));
	assert_int_equal(location.offset, 4);
	assert_int_equal(op_dcookie_row(table, location.cookie)->id.name.kind, OP_IMAGE_ANON);
	assert_int_equal(op_dcookie_row(table, location.cookie)->id.name.start, OPD_JIT_RANGE_START);
	assert_true(opd_jit_resolve(&processes, child, child->mm, &mapping, &sample, 100, &child_location));
	assert_memory_equal(&location, &child_location, sizeof(location));
	sample.ip = BASE + 0x40;
	assert_false(opd_jit_resolve(&processes, process, process->mm, &mapping, &sample, 100, &location));
	put(fd, "7f0000000040 40 g\n");
	assert_false(opd_jit_resolve(&processes, process, process->mm, &mapping, &sample, 100, &location));
	assert_true(opd_jit_resolve(&processes, process, process->mm, &mapping, &sample, 100 + OP_NS_PER_S, &location));
	assert_int_equal(jit.counters[OP_JIT_sampled], 2);
	opd_processes_free(&processes);
	opd_jit_free(&jit);
	op_dcookie_table_free(table);
	close(fd);
	unlink(path);
}

static void names_of_mappings(void **state OP_UNUSED)
{
	assert_true(opd_jit_may_be_in(""));
	assert_true(opd_jit_may_be_in("//anon"));
	assert_true(opd_jit_may_be_in("/memfd:doublemapper (deleted)"));
	assert_true(opd_jit_may_be_in("[heap]"));
	assert_true(opd_jit_may_be_in("[anon: v8]"));
	assert_false(opd_jit_may_be_in("[vdso]"));
	assert_false(opd_jit_may_be_in("/usr/bin/node"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_code_takes_the_place),
		cmocka_unit_test(the_same_again_is_known),
		cmocka_unit_test(a_function_in_several_windows),
		cmocka_unit_test(moved_code_keeps_its_place),
		cmocka_unit_test(names_can_be_shown),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(a_user_leaves_memory_for_others),
		cmocka_unit_test(gone_code_makes_room),
		box_test(a_map_grows),
		box_test(a_last_line_needs_no_newline),
		box_test(a_buffer_ends_anywhere),
		box_test(a_map_is_written_anew),
		box_test(a_line_too_long_is_passed_over),
		box_test(what_is_beyond_the_limit_is_counted),
		box_test(a_map_is_read_bit_by_bit),
		box_test(a_dump_grows),
		box_test(a_dump_that_makes_no_sense_ends),
		box_test(a_dump_has_limits),
		box_test(what_is_no_dump_is_refused),
		box_test(files_of_the_process_are_read),
		box_test(files_are_read_without_openat2),
		box_test(an_ended_process_is_its_parents),
		cmocka_unit_test(a_file_from_before_the_process_is_not_its),
		cmocka_unit_test(a_file_from_before_the_exec_is_not_its),
		cmocka_unit_test(a_sample_finds_its_function),
		cmocka_unit_test(names_of_mappings),
	};

	return cmocka_run_group_tests_name("jit", tests, NULL, NULL);
}
