/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The object of JIT code as opd writes it, read as opreport reads it: symbols, addresses, code, source lines. */
#include "tests/unit/test_box.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/jit_object.h"
#include "libop/sys.h"
#include "tools/symbols.h"
#include "tools/symbols_bfd.h"

#define BASE UINT64_C(0x7f0000000000)

/* libbfd 2.40 keeps what it read of DWARF when a file is closed; the leak checker of --enable-sanitizers is told here. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libbfd";
}

static uint64_t counters[OP_NR_JIT];

static void put_u64(int fd, uint64_t value)
{
	assert_int_equal(op_sys_write_all(fd, &value, sizeof(value)), 0);
}

#define CODE_AT  8
#define LINES_AT 16
#define CODE     UINT64_C(0x1122334455667788)

/* Code, and a DEBUG_INFO record: line 7 of "/a" at the start of the function, line 3 of the same file four bytes behind, one that lies outside. */
static int make_dump(const struct box *box)
{
	int fd = openat(box->fd, "dump", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	put_u64(fd, 0);
	put_u64(fd, CODE);
	put_u64(fd, UINT64_C(93) << 32 | 2);
	put_u64(fd, 0);
	put_u64(fd, BASE);
	put_u64(fd, 3);
	put_u64(fd, BASE);
	put_u64(fd, 7);
	assert_int_equal(op_sys_write_all(fd, "/a/b.js", 8), 0);
	put_u64(fd, BASE + 4);
	put_u64(fd, 3);
	assert_int_equal(op_sys_write_all(fd, "\xff", 2), 0);
	put_u64(fd, BASE + 4000);
	put_u64(fd, 3);
	assert_int_equal(op_sys_write_all(fd, "/c", 3), 0);
	return fd;
}

static void add(struct opd_jit_map *map, uint64_t start, const char *name, uint64_t code_at, uint64_t lines_at,
		uint64_t *ret_offset)
{
	const struct opd_jit_code code = { .start = start, .bytes = 8, .name = name, .code_at = code_at, .lines_at = lines_at };

	assert_int_equal(opd_jit_map_add(map, &code, 0), 0);
	if (ret_offset)
		assert_true(opd_jit_map_find(map, start, 1, ret_offset));
}

static const char *symbol_at(const struct opr_symbols *symbols, uint64_t offset)
{
	const struct opr_symbol *symbol = opr_symbols_find(symbols, OPD_JIT_RANGE_START + offset);

	return symbol ? symbol->name : "";
}

static void check_line(const struct opr_symbols *symbols, uint64_t offset, const char *wanted, unsigned int wanted_line)
{
	const char *file = "";
	unsigned int line = 0;

	assert_true(opr_symbols_line(symbols, OPD_JIT_RANGE_START + offset, &file, &line));
	assert_string_equal(file, wanted);
	assert_int_equal(line, wanted_line);
}

static void check_code(const char *path, uint64_t offset)
{
	bfd *abfd = opr_bfd_open(path);
	asection *text = bfd_get_section_by_name(abfd, ".text");
	uint64_t code = 0;

	assert_non_null(text);
	assert_int_equal(bfd_section_vma(text), OPD_JIT_RANGE_START + OPD_JIT_CODE_AT);
	assert_true(bfd_get_section_contents(abfd, text, &code, (file_ptr)(offset - OPD_JIT_CODE_AT), sizeof(code)));
	assert_int_equal(code, CODE);
	bfd_close(abfd);
}

static void an_object_is_read_again(void **state)
{
	const struct opr_symbol_options options = { .demangle = true, .lines = true, .by_address = true };
	struct box *box = *state;
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .fd = make_dump(box) };
	struct opr_symbols symbols = { 0 };
	uint64_t plain, coded, lined;
	char path[64];

	add(&map, BASE + 0x1000, "never sampled", 0, 0, NULL);
	add(&map, BASE + 0x2000, "plain", 0, 0, &plain);
	add(&map, BASE + 0x3000, "with code", CODE_AT, 0, &coded);
	add(&map, BASE, "with lines", CODE_AT, LINES_AT, &lined);
	assert_true(plain < OPD_JIT_CODE_AT && coded >= OPD_JIT_CODE_AT && lined >= OPD_JIT_CODE_AT);
	assert_int_equal(opd_jit_object_write(box->fd, "1.jo", "tmp", &map, &dump), 0);
	snprintf(path, sizeof(path), "%s/1.jo", box->path);
	assert_int_equal(opr_symbols_read_bfd(&symbols, path, path, &options), 0);
	assert_int_equal(symbols.nr_symbols, 3);
	assert_string_equal(symbol_at(&symbols, plain + 7), "plain");
	assert_string_equal(symbol_at(&symbols, coded), "with code");
	assert_string_equal(symbol_at(&symbols, lined + 7), "with lines");
	check_line(&symbols, lined, "/a/b.js", 7);
	check_line(&symbols, lined + 5, "/a/b.js", 3);
	check_code(path, coded);
	check_code(path, lined);
	opr_symbols_free(&symbols);
	close(dump.fd);
	opd_jit_map_free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = { box_test(an_object_is_read_again) };

	return cmocka_run_group_tests_name("jit_object", tests, NULL, NULL);
}
