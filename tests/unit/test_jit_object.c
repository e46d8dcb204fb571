/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The object of JIT code as opd writes it, read as opreport reads it: symbols, addresses, code,
 * source lines.
 */
#include "tests/unit/pair.h"
#include "tests/unit/test_box.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/odb/recover.h"
#include "libop/odb/replace.h"
#include "libop/session/leftovers.h"
#include "libop/session/list.h"
#include "pipeline/jit/object.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/lines.h"
#include "tools/symbols/symbol_sources.h"

#define BASE UINT64_C(0x7f0000000000)

/*
 * libbfd 2.40 leaks the DWARF data of a closed file; this tells the leak checker of
 * --enable-sanitizers.
 */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libbfd";
}

static uint64_t counters[OP_NR_JIT];
static uint64_t broken_inode; /* cannot be looked at; 0: none */

int __real_op_sys_fstat(int fd, struct stat *ret_stat);
int __wrap_op_sys_fstat(int fd, struct stat *ret_stat);

int __wrap_op_sys_fstat(int fd, struct stat *ret_stat)
{
	int err = __real_op_sys_fstat(fd, ret_stat);

	return !err && broken_inode && ret_stat->st_ino == broken_inode ? -EIO : err;
}

static void put_u64(int fd, uint64_t value)
{
	assert_int_equal(op_sys_write_all(fd, &value, sizeof(value)), 0);
}

#define CODE_AT  8
#define LINES_AT 16
#define CODE     UINT64_C(0x1122334455667788)

/*
 * Code, and a DEBUG_INFO record: line 7 of "/a" at the start of the function, line 3 of the same
 * file four bytes behind, one that lies outside.
 */
static int make_dump(const struct box *box)
{
	int fd = openat(box->fd, "dump", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	put_u64(fd, 0);
	put_u64(fd, CODE);
	put_u64(fd, PAIR(2, 93));
	put_u64(fd, 0);
	put_u64(fd, BASE);
	put_u64(fd, 3);
	put_u64(fd, BASE);
	put_u64(fd, PAIR(7, 0));
	assert_int_equal(op_sys_write_all(fd, "/a/b.js", 8), 0);
	put_u64(fd, BASE + 4);
	put_u64(fd, PAIR(3, 0));
	assert_int_equal(op_sys_write_all(fd, "\xff", 2), 0);
	put_u64(fd, BASE + 4000);
	put_u64(fd, PAIR(3, 0));
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

static void check_line(struct opr_lines *lines, uint64_t offset, const char *wanted, unsigned int wanted_line)
{
	const char *file = "";
	unsigned int line = 0;

	assert_true(opr_lines_find(lines, OPD_JIT_RANGE_START + offset, &file, &line));
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

/* A dump may have any number of lines that lie in no function: not all are looked at. */
static void lines_elsewhere_are_not_all_read(void **state)
{
	struct box *box = *state;
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .file.fd = openat(box->fd, "many", O_RDWR | O_CREAT | O_CLOEXEC, 0644) };
	const uint64_t nr_lines = 300000, entry_bytes = 18;
	struct op_odb_pending *pending;
	uint64_t offset, dir_bytes, refused = counters[OP_JIT_refused_size];
	FILE *file = fdopen(dup(dump.file.fd), "w");

	assert_non_null(file);
	for (uint64_t word, i = 0; i < 6; i++) {
		word = i == 2 ? PAIR(2, 32 + nr_lines * entry_bytes) : i == 4 ? BASE : i == 5 ? nr_lines : 0;
		fwrite(&word, sizeof(word), 1, file);
	}
	for (uint64_t i = 0; i < nr_lines; i++)
		fwrite("elsewhere 1 2 3 x", entry_bytes, 1, file);
	assert_int_equal(fclose(file), 0);
	add(&map, BASE, "with lines", 0, LINES_AT, &offset);
	assert_int_equal(opd_jit_object_write(box->fd, "1.jo", "tmp", &map, &dump, &dir_bytes, &pending), 0);
	assert_null(pending);
	assert_int_equal(counters[OP_JIT_refused_size], refused + 1);
	opd_jit_map_free(&map);
	opd_jitdump_close(&dump);
}

static void an_object_is_read_again(void **state)
{
	const struct opr_symbol_options options = { .demangle = true, .sources = OPR_FROM_ALL, .by_address = true };
	struct box *box = *state;
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .file = { .fd = make_dump(box) } };
	struct opr_symbols symbols = { 0 };
	struct opr_lines *lines;
	struct op_odb_pending *pending;
	uint64_t plain, coded, lined, dir_bytes;
	char path[64];

	add(&map, BASE + 0x1000, "never sampled", 0, 0, NULL);
	add(&map, BASE + 0x2000, "plain", 0, 0, &plain);
	add(&map, BASE + 0x3000, "with code", CODE_AT, 0, &coded);
	add(&map, BASE, "with lines", CODE_AT, LINES_AT, &lined);
	assert_true(plain < OPD_JIT_CODE_AT && coded >= OPD_JIT_CODE_AT && lined >= OPD_JIT_CODE_AT);
	assert_int_equal(opd_jit_object_write(box->fd, "1.jo", "tmp", &map, &dump, &dir_bytes, &pending), 0);
	assert_null(pending);
	snprintf(path, sizeof(path), "%s/1.jo", box->path);
	assert_int_equal(opr_symbols_read_bfd(&symbols, path, path, &options), 0);
	assert_int_equal(symbols.nr_symbols, 3);
	assert_string_equal(symbol_at(&symbols, plain + 7), "plain");
	assert_string_equal(symbol_at(&symbols, coded), "with code");
	assert_string_equal(symbol_at(&symbols, lined + 7), "with lines");
	assert_int_equal(opr_lines_open(path, path, NULL, NULL, &lines), 0);
	assert_non_null(lines);
	check_line(lines, lined, "/a/b.js", 7);
	check_line(lines, lined + 5, "/a/b.js", 3);
	check_code(path, coded);
	check_code(path, lined);
	opr_lines_close(lines);
	opr_symbols_free(&symbols);
	close(dump.file.fd);
	opd_jit_map_free(&map);
}

/* ---- which version of an object is there after a power cut ---- */

#define LABEL "samples/current/{root}/app/{dep}/{anon:jit-1}"
#define PATH  LABEL "/1.jo"
#define TMP   "tmp/sample"

#define SEAL_BYTES 16

static uint64_t size_of(const struct box *box, const char *path)
{
	struct stat st;

	return fstatat(box->fd, path, &st, 0) ? 0 : (uint64_t)st.st_size;
}

/* Each has one function more. The list has the objects that are not on the disk. */
static struct op_odb_pending *write_versions(const struct box *box, unsigned int nr, uint64_t *ret_sizes)
{
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .file = { .fd = make_dump(box) } };
	struct op_odb_pending *all = NULL, *pending;
	uint64_t offset, dir_bytes;

	for (unsigned int i = 0; i < nr; i++) {
		add(&map, BASE + 0x1000 * i, "function", CODE_AT, 0, &offset);
		assert_int_equal(opd_jit_object_write(box->fd, PATH, TMP, &map, &dump, &dir_bytes, &pending), 0);
		assert_int_equal(!pending, i == 0);
		op_odb_append_pending(&all, pending);
		ret_sizes[i] = size_of(box, PATH);
		assert_true(ret_sizes[i] > (i ? ret_sizes[i - 1] : 0));
	}
	close(dump.file.fd);
	opd_jit_map_free(&map);
	return all;
}

/* Keeps the path and the links; the caller says what the files contain. */
static void require_after_recovery(const struct box *box, uint64_t size, uint64_t nr_put_back)
{
	static const struct op_odb_moves no_moves = { .from = "samples/current" };
	uint64_t nr = 0;

	assert_int_equal(op_odb_recover(box->fd, TMP, &no_moves, op_session_is_jit_object, &nr), 0);
	assert_int_equal(size_of(box, PATH), size);
	assert_int_equal(nr, nr_put_back);
	assert_int_equal(unlinkat(box->fd, "tmp", AT_REMOVEDIR), 0); /* empty */
	assert_int_equal(unlinkat(box->fd, PATH, 0), 0);
	assert_int_equal(mkdirat(box->fd, "tmp", 0755), 0);
}

static void make_directories(const struct box *box)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/" LABEL, box->path);
	assert_int_equal(op_file_make_dirs(path), 0);
	assert_int_equal(mkdirat(box->fd, "tmp", 0755), 0);
}

static void damage(const struct box *box, const char *path, off_t at)
{
	static const char zeros[64];
	int fd = openat(box->fd, path, O_RDWR | O_CLOEXEC);

	assert_int_equal(at < 0 ? ftruncate(fd, 0) : op_sys_pwrite_all(fd, zeros, sizeof(zeros), at), 0);
	close(fd);
}

static void what_was_promised_is_there_after_a_power_cut(void **state)
{
	static const off_t damages[] = { -1, 0, 128 }; /* empty, or all zeros */
	struct box *box = *state;
	uint64_t sizes[3];

	make_directories(box);
	for (size_t i = 0; i < op_array_size(damages); i++) {
		op_odb_free_pending(write_versions(box, 2, sizes));
		damage(box, PATH, damages[i]);
		require_after_recovery(box, sizes[0], 1);
	}
	op_odb_free_pending(write_versions(box, 3, sizes)); /* a kill only */
	require_after_recovery(box, sizes[2], 0);
	op_odb_free_pending(write_versions(box, 3, sizes));
	damage(box, PATH, 0);
	require_after_recovery(box, sizes[1], 1);
}

static void what_is_on_the_disk_is_kept_by_no_link(void **state)
{
	struct box *box = *state;
	uint64_t sizes[3];
	struct op_odb_pending *pending, *next;

	make_directories(box);
	for (pending = write_versions(box, 3, sizes); pending; pending = next) {
		next = pending->next;
		pending->next = NULL;
		assert_int_equal(op_odb_sync_pending(box->fd, pending), 0);
	}
	require_after_recovery(box, sizes[2], 0);
}

static void write_file(const struct box *box, const char *path, const char *bytes, size_t nr_bytes)
{
	int fd = openat(box->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_equal(op_sys_write_all(fd, bytes, nr_bytes), 0);
	close(fd);
}

/*
 * What a power cut may leave of `whole`: no such file is taken for a whole one, with a seal or
 * without.
 */
static void check_remains(const struct box *box, const char *whole, size_t nr_bytes)
{
	char *zeroed = calloc(1, nr_bytes);

	assert_non_null(zeroed);
	for (size_t left = 0; left < nr_bytes; left++) {
		write_file(box, "left", whole, left);
		assert_int_equal(op_jit_object_check(box->fd, "left"), -EBADMSG);
	}
	for (size_t left = 0; left + sizeof(Elf64_Shdr) <= nr_bytes; left++) {
		memcpy(zeroed, whole, left);
		write_file(box, "left", zeroed, nr_bytes);
		assert_int_equal(op_jit_object_check(box->fd, "left"), -EBADMSG);
	}
	free(zeroed);
}

static void a_new_object_that_is_not_whole_is_known(void **state)
{
	struct box *box = *state;
	uint64_t sizes[1];
	char *whole;
	size_t nr_read;
	int fd;

	make_directories(box);
	assert_null(write_versions(box, 1, sizes));
	assert_int_equal(op_jit_object_check(box->fd, PATH), 0);
	whole = malloc(sizes[0]);
	assert_non_null(whole);
	fd = openat(box->fd, PATH, O_RDONLY | O_CLOEXEC);
	assert_int_equal(op_file_read_at(fd, whole, sizes[0], 0, &nr_read), 0);
	assert_int_equal(nr_read, sizes[0]);
	close(fd);
	write_file(box, "unsealed", whole, sizes[0] - SEAL_BYTES);
	assert_int_equal(op_jit_object_check(box->fd, "unsealed"), 0);
	check_remains(box, whole, sizes[0] - SEAL_BYTES);
	memset(whole + sizeof(Elf64_Ehdr), 0, 64); /* a page in the middle */
	write_file(box, "sealed", whole, sizes[0]);
	assert_int_equal(op_jit_object_check(box->fd, "sealed"), -EBADMSG);
	assert_int_equal(op_jit_object_check(box->fd, "tmp"), -EBADMSG);
	assert_int_equal(op_jit_object_check(box->fd, "nothing"), -ENOENT);
	free(whole);
}

static void what_cannot_be_looked_at_is_not_replaced(void **state)
{
	struct box *box = *state;
	struct opd_jit_map map = { .counters = counters };
	struct opd_jitdump dump = { .file = { .fd = -1 } };
	struct op_odb_pending *pending;
	uint64_t sizes[1], dir_bytes;
	struct stat before, after;

	make_directories(box);
	assert_null(write_versions(box, 1, sizes));
	assert_int_equal(fstatat(box->fd, PATH, &before, 0), 0);
	broken_inode = before.st_ino;
	assert_int_equal(opd_jit_object_write(box->fd, PATH, TMP, &map, &dump, &dir_bytes, &pending), -EIO);
	broken_inode = 0;
	assert_int_equal(fstatat(box->fd, PATH, &after, 0), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(unlinkat(box->fd, "tmp", AT_REMOVEDIR), 0);
}

/* Beyond a limit, for one process or for all, functions go into the object without their code. */
static void code_has_limits(void **state OP_UNUSED)
{
	struct opd_jit_map map = { .counters = counters };
	struct opd_jit_code code = { .bytes = 1 << 20, .name = "f", .from_ns = 1, .code_at = 4096 };
	uint64_t offset;

	memset(counters, 0, sizeof(counters));
	counters[OP_JIT_code_bytes] = OPD_JIT_CODE_ALL_MAX_BYTES - OPD_JIT_CODE_MAX_BYTES + code.bytes;
	for (uint64_t i = 0; i < 20; i++) {
		code.start = BASE + i * code.bytes;
		if (i == 16) /* less of others: only the limit of the process is left */
			counters[OP_JIT_code_bytes] = OPD_JIT_CODE_MAX_BYTES;
		assert_int_equal(opd_jit_map_add(&map, &code, 0), 0);
		assert_int_equal(opd_jit_map_find(&map, code.start, 1, &offset), OPD_JIT_IN_RANGE);
		assert_int_equal(counters[OP_JIT_refused_size], i < 15 ? 0 : i < 17 ? 1 : i - 15);
	}
	opd_jit_map_free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		box_test(an_object_is_read_again),
		box_test(lines_elsewhere_are_not_all_read),
		box_test(what_was_promised_is_there_after_a_power_cut),
		box_test(what_is_on_the_disk_is_kept_by_no_link),
		box_test(a_new_object_that_is_not_whole_is_known),
		box_test(what_cannot_be_looked_at_is_not_replaced),
		cmocka_unit_test(code_has_limits),
	};

	return cmocka_run_group_tests_name("jit_object", tests, NULL, NULL);
}
