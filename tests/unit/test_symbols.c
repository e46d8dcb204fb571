/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/elf/bfd_file.h"
#include "tools/symbols/cache.h"
#include "tools/symbols/kept.h"
#include "tools/symbols/serialize.h"
#include "tools/symbols/symbol_sources.h"
#include "tests/unit/test_box.h"

#define SELF "/proc/self/exe"

static const struct opr_symbol_options options = { .demangle = true, .sources = OPR_FROM_SYMTAB };

/*
 * libbfd 2.40 does not free the message about a damaged file; the leak checker of
 * --enable-sanitizers is told here.
 */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libbfd";
}

static char directory[BOX_PATH_BYTES];
static char path[sizeof(directory) + 8];

/* What the tests look for in their own program: a function, and one that has a weak name too. */
int test_symbols_landmark(void);
int test_symbols_strong(void) __asm__("__test_symbols_strong");
int test_symbols_weak(void) __attribute__((weak, alias("__test_symbols_strong")));

int test_symbols_strong(void)
{
	return 2;
}

int __attribute__((noinline)) test_symbols_landmark(void)
{
	return 1;
}

static int directory_setup(void **state OP_UNUSED)
{
	if (box_make(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/f", directory);
	return 0;
}

static int directory_teardown(void **state OP_UNUSED)
{
	unlink(path);
	return rmdir(directory);
}

static void write_file(const void *bytes, size_t nr_bytes)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, nr_bytes, file), nr_bytes);
	assert_int_equal(fclose(file), 0);
}

/* ---- the table ---- */

static void add(struct opr_symbols *symbols, uint64_t start, uint32_t section, const char *name, bool local, bool weak)
{
	struct opr_symbol symbol = {
		.start = start, .vma = start, .section = section, .name = name, .rank = opr_symbol_rank(name, local, weak)
	};

	assert_int_equal(opr_symbols_add(symbols, &symbol), 0);
}

static void assert_symbol(const struct opr_symbols *symbols, uint64_t position, const char *name)
{
	const struct opr_symbol *symbol = opr_symbols_find(symbols, position);

	if (!name) {
		assert_null(symbol);
		return;
	}
	assert_non_null(symbol);
	assert_string_equal(symbol->name, name);
}

static void test_aliases_of_the_kernel(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };

	add(&symbols, 100, 0, "__pi_memcpy", false, false);
	add(&symbols, 100, 0, "memcpy", true, true);
	add(&symbols, 200, 0, "__ia32_sys_fork", false, false);
	add(&symbols, 200, 0, "__x64_sys_fork", false, false);
	add(&symbols, 300, 0, "__ia32_compat_sys_sigreturn", false, false);
	add(&symbols, 300, 0, "__do_compat_sys_sigreturn", true, false);
	add(&symbols, 400, 0, "__pi_alone", false, false);
	assert_int_equal(opr_symbols_finish(&symbols, 1000), 0);
	assert_symbol(&symbols, 100, "memcpy");
	assert_symbol(&symbols, 200, "__x64_sys_fork");
	assert_symbol(&symbols, 300, "__do_compat_sys_sigreturn");
	assert_symbol(&symbols, 400, "__pi_alone");
	opr_symbols_free(&symbols);
}

static void test_sizes(void **state OP_UNUSED)
{
	static const struct opr_section sections[] = { { 100, 200, OPR_NO_VMA }, { 250, 300, OPR_NO_VMA } };
	struct opr_symbols symbols = { 0 };

	add(&symbols, 260, 1, "last", false, false);
	add(&symbols, 150, 0, "second", true, false);
	add(&symbols, 120, 0, "first", false, false);
	symbols.sections = malloc(sizeof(sections));
	assert_non_null(symbols.sections);
	memcpy(symbols.sections, sections, sizeof(sections));
	assert_int_equal(opr_symbols_finish(&symbols, 1000), 0);
	assert_symbol(&symbols, 119, NULL);
	assert_symbol(&symbols, 120, "first");
	assert_symbol(&symbols, 149, "first");
	assert_symbol(&symbols, 150, "second");
	assert_symbol(&symbols, 199, "second");
	assert_symbol(&symbols, 200, NULL); /* between the sections */
	assert_symbol(&symbols, 259, NULL);
	assert_symbol(&symbols, 999, "last"); /* reaches beyond its section */
	assert_symbol(&symbols, 1000, NULL);
	opr_symbols_free(&symbols);
	assert_symbol(&symbols, 120, NULL);
}

/* A symbol ends at its size, and what is behind it belongs to a range, if there is one. */
static void test_ranges(void **state OP_UNUSED)
{
	static struct opr_range list[] = { { 990, 1000, false },  { 1020, 1215, false }, { 1240, 1260, false },
					   { 1255, 1270, false }, { 1340, 1350, true },  { 1990, 2100, false },
					   { 2200, 2201, false } };
	const struct opr_ranges ranges = { list, op_array_size(list) };
	struct opr_symbols symbols = { 0 };

	symbols.sections = calloc(1, sizeof(*symbols.sections));
	assert_non_null(symbols.sections);
	symbols.nr_sections = 1;
	symbols.sections[0] = (struct opr_section){ .start = 0, .end = 1000, .vma = 1000 };
	for (uint64_t start = 0; start < 800; start += 100) {
		struct opr_symbol symbol = { .start = start, .vma = 1000 + start, .name = "named", .size = 30, .is_sized = true };

		assert_int_equal(opr_symbols_add(&symbols, &symbol), 0);
	}
	assert_int_equal(symbols.nr_symbols, symbols.capacity); /* the array moves */
	assert_int_equal(opr_symbols_finish(&symbols, 1000), 0);
	assert_int_equal(opr_symbols_add_ranges(&symbols, &ranges), 0);
	assert_int_equal(symbols.nr_symbols, 8 + 2 + 2 + 1 + 1);
	assert_symbol(&symbols, 29, "named");
	assert_symbol(&symbols, 30, "[0x406]"); /* 1030, of 1020 to 1215 */
	assert_symbol(&symbols, 99, "[0x406]");
	assert_symbol(&symbols, 100, "named");
	assert_symbol(&symbols, 199, "[0x46a]");
	assert_symbol(&symbols, 200, "named");
	assert_symbol(&symbols, 230, NULL);
	assert_symbol(&symbols, 259, "[0x4d8]");
	assert_symbol(&symbols, 260, "[0x4ec]"); /* what the range before it does not have */
	assert_symbol(&symbols, 339, NULL);
	assert_symbol(&symbols, 340, "__restore_rt"); /* what signal handlers return to */
	assert_symbol(&symbols, 730, NULL);
	assert_symbol(&symbols, 999, "[0x7c6]"); /* it ends with its section */
	assert_symbol(&symbols, 1000, NULL);
	opr_symbols_free(&symbols);
}

static void test_one_symbol_for_an_address(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };

	add(&symbols, 1, 0, "Letext", false, false);
	add(&symbols, 1, 0, "local", true, false);
	add(&symbols, 2, 0, "_underscore", false, false);
	add(&symbols, 2, 0, "plain", false, false);
	add(&symbols, 3, 0, "local", true, false);
	add(&symbols, 3, 0, "_global", false, false);
	add(&symbols, 4, 0, "weak", false, true);
	add(&symbols, 4, 0, "strong", false, false);
	add(&symbols, 5, 0, "first", false, false);
	add(&symbols, 5, 0, "then", false, false);
	add(&symbols, 6, 0, "??.text", false, false);
	add(&symbols, 6, 0, "named", true, true);
	add(&symbols, 7, 0, "__strong", false, false);
	add(&symbols, 7, 0, "weak", false, true);
	assert_int_equal(opr_symbols_finish(&symbols, 100), 0);
	assert_int_equal(symbols.nr_symbols, 7);
	assert_symbol(&symbols, 1, "local");
	assert_symbol(&symbols, 2, "plain");
	assert_symbol(&symbols, 3, "_global");
	assert_symbol(&symbols, 4, "strong");
	assert_symbol(&symbols, 5, "first");
	assert_symbol(&symbols, 6, "named");
	assert_symbol(&symbols, 7, "weak");
	opr_symbols_free(&symbols);
}

/* The names of the symbol at a position, with a blank behind each. */
static const char *names_at(const struct opr_symbols *symbols, uint64_t position)
{
	const struct opr_symbol *symbol = opr_symbols_find(symbols, position);
	static char names[256];
	size_t length = 0;

	assert_non_null(symbol);
	for (const char *name = symbol->name; name; name = opr_symbol_next_name(symbol, name))
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s ", name);
	return names;
}

static void test_aliases(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };

	add(&symbols, 1, 0, "alone", false, false);
	add(&symbols, 2, 0, "__libc_calloc", false, false);
	add(&symbols, 2, 0, "local", true, false);
	add(&symbols, 2, 0, "calloc", false, true);
	add(&symbols, 2, 0, "calloc", false, true);
	add(&symbols, 3, 0, "twice", false, false);
	add(&symbols, 3, 0, "twice", true, false);
	assert_int_equal(opr_symbols_finish(&symbols, 100), 0);
	assert_int_equal(opr_symbols_demangle(&symbols, OPR_DEMANGLE_NORMAL), 0);
	assert_int_equal(symbols.nr_symbols, 3);
	assert_string_equal(names_at(&symbols, 1), "alone ");
	assert_string_equal(names_at(&symbols, 2), "calloc __libc_calloc local ");
	assert_string_equal(opr_symbols_find(&symbols, 2)->shown, "calloc");
	assert_string_equal(names_at(&symbols, 3), "twice ");
	opr_symbols_free(&symbols);
}

static void test_demangling(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };

	add(&symbols, 0, 0, "_ZN4shop4CartIlE3addEl", false, false);
	add(&symbols, 1, 0, "main", false, false);
	add(&symbols, 2, 0, "??.plt", false, false);
	assert_int_equal(opr_symbols_demangle(&symbols, true), 0);
	assert_string_equal(symbols.symbols[0].shown, "shop::Cart<long>::add(long)");
	assert_string_equal(symbols.symbols[1].shown, "main");
	assert_string_equal(symbols.symbols[2].shown, "anonymous symbol from section .plt");
	assert_int_equal(opr_symbols_demangle(&symbols, false), 0);
	assert_string_equal(symbols.symbols[0].shown, "_ZN4shop4CartIlE3addEl");
	opr_symbols_free(&symbols);
}

/* 20,000 symbols share the bytes of one name of 1 MiB: it is cut, and they do not take 20 GB. */
static void test_long_names(void **state OP_UNUSED)
{
	static char name[1u << 20];
	struct opr_symbols symbols = { 0 };
	size_t nr_bytes = 0;

	memset(name, 'n', sizeof(name) - 1);
	for (uint32_t i = 0; i < 20000; i++)
		add(&symbols, i, 0, name + i, false, false);
	add(&symbols, 30000, 0, "_ZN4shop4CartIlE3addEl", false, false);
	assert_int_equal(opr_symbols_demangle(&symbols, OPR_DEMANGLE_NORMAL), 0);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		nr_bytes += strlen(symbols.symbols[i].name);
	assert_int_equal(strlen(symbols.symbols[0].name), OPR_NAME_BYTES_MAX);
	assert_true(nr_bytes < 300u << 20);
	assert_string_equal(symbols.symbols[20000].shown, "_ZN4shop4CartIlE3addEl");
	opr_symbols_free(&symbols);
}

/* ---- object files ---- */

static void test_own_program(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };
	const struct opr_symbol *found = NULL;

	assert_int_equal(opr_symbols_read_bfd(&symbols, SELF, SELF, &options), 0);
	assert_int_equal(test_symbols_landmark(), 1);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		if (!strcmp(symbols.symbols[i].name, "test_symbols_landmark"))
			found = &symbols.symbols[i];
	assert_non_null(found);
	if (found)
		assert_ptr_equal(opr_symbols_find(&symbols, found->start), found);
	assert_true(symbols.start_offset > 0);
	opr_symbols_free(&symbols);
}

static void test_weak_name(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };
	const struct opr_symbol *found = NULL;

	assert_int_equal(opr_symbols_read_bfd(&symbols, SELF, SELF, &options), 0);
	assert_int_equal(test_symbols_weak(), 2);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		if (strstr(symbols.symbols[i].name, "test_symbols_weak"))
			found = &symbols.symbols[i];
	assert_non_null(found);
	if (found)
		assert_string_equal(names_at(&symbols, found->start), "test_symbols_weak __test_symbols_strong ");
	opr_symbols_free(&symbols);
}

/*
 * A user's path led to a file of the user when it was read, and leads to root's file with the same
 * build-id when the symbols are kept: they get no key of root's file.
 */
static void test_symbols_of_another_file_are_not_kept(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };
	struct opr_symbols_bytes bytes = { 0 };
	struct op_text all = { 0 };
	char command[sizeof(directory) + 16];

	setenv("OPD_CACHE_DIR", directory, 1);
	assert_int_equal(opr_symbols_read_bfd(&symbols, SELF, SELF, &options), 0);
	assert_int_equal(opr_symbols_serialize(&bytes, &symbols), 0);
	op_text_add_bytes(&all, bytes.head, bytes.nr_head_bytes);
	op_text_add_bytes(&all, bytes.strings.data, bytes.strings.length);
	for (int is_same = 0; is_same < 2; is_same++) {
		struct opr_symbols kept = { 0 };
		struct opr_symbol_cache cache;
		struct opr_file_read file = symbols.file;

		file.inode += !is_same;
		opr_symbol_cache_open(&cache);
		opr_symbol_cache_put(&cache, SELF, &options, &file, all.data, all.length);
		opr_symbol_cache_close(&cache);
		opr_symbol_cache_open(&cache);
		assert_int_equal(opr_symbol_cache_get(&cache, SELF, SELF, &options, &kept), is_same ? 0 : -ENOENT);
		opr_symbols_free(&kept);
		opr_symbol_cache_close(&cache);
	}
	opr_symbols_free(&symbols);
	opr_symbols_bytes_free(&bytes);
	op_text_free(&all);
	snprintf(command, sizeof(command), "rm -r %s/*", directory);
	assert_int_equal(system(command), 0);
	unsetenv("OPD_CACHE_DIR");
}

static void test_no_object_file(void **state OP_UNUSED)
{
	static const char *const others[] = { "/proc/version", "/dev/null", "/proc/self", "/nothing" };
	struct opr_symbols symbols = { 0 };

	for (size_t i = 0; i < op_array_size(others); i++)
		assert_int_equal(opr_symbols_read_bfd(&symbols, others[i], others[i], &options), -ENOEXEC);
	write_file("", 0);
	assert_int_equal(opr_symbols_read_bfd(&symbols, path, path, &options), -ENOEXEC);
	assert_int_equal(symbols.nr_symbols, 0);
	opr_symbols_free(&symbols);
}

static char *read_self(size_t *ret_bytes)
{
	FILE *file = fopen(SELF, "re");
	struct stat st;
	char *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	*ret_bytes = fread(bytes, 1, (size_t)st.st_size, file);
	fclose(file);
	return bytes;
}

/* Neither a short nor a damaged object file may do harm; what is found in it does not matter. */
static void test_damaged_object_files(void **state OP_UNUSED)
{
	unsigned int seed = 1;
	size_t nr_bytes;
	char *bytes = read_self(&nr_bytes);

	for (int round = 0; round < 40; round++) {
		struct opr_symbols symbols = { 0 };
		size_t length = round < 20 ? nr_bytes * (size_t)round / 20 : nr_bytes;

		if (round >= 20)
			bytes[(size_t)rand_r(&seed) % 64] ^= (char)(1 << rand_r(&seed) % 8);
		write_file(bytes, length);
		if (!opr_symbols_read_bfd(&symbols, path, path, &options))
			(void)opr_symbols_find(&symbols, 0x1000);
		opr_symbols_free(&symbols);
	}
	free(bytes);
}

/* ---- separate debug files ---- */

static int OP_PRINTF(1, 2) run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

static uint64_t landmark_start(const char *file, const char *root)
{
	const struct opr_symbol_options with_root = { .sources = OPR_FROM_SYMTAB, .root = root };
	struct opr_symbols symbols = { 0 };
	uint64_t start = 0;

	assert_int_equal(opr_symbols_read_bfd(&symbols, file, "/f", &with_root), 0);
	for (size_t i = 0; i < symbols.nr_symbols; i++)
		if (!strcmp(symbols.symbols[i].name, "test_symbols_landmark"))
			start = symbols.symbols[i].start;
	opr_symbols_free(&symbols);
	return start;
}

/* DIRECTORY/self, the whole program; f.debug, its debug file; f, stripped. */
static void make_debug_files(bool link)
{
	if (run("objcopy --version >/dev/null 2>&1"))
		skip();
	assert_int_equal(
		run("cd %s && cat /proc/%d/exe >self && objcopy --only-keep-debug self f.debug && objcopy --strip-all self f",
		    directory, (int)getpid()),
		0);
	if (link)
		assert_int_equal(
			run("cd %s && objcopy --remove-section=.note.gnu.build-id --add-gnu-debuglink=f.debug f", directory), 0);
}

static void remove_debug_files(void)
{
	assert_int_equal(run("find %s -mindepth 1 -delete", directory), 0);
}

static void test_debug_link(void **state OP_UNUSED)
{
	static const char *const places[] = { ".", ".debug", "usr/lib/debug" };
	uint64_t start = landmark_start(SELF, NULL);

	make_debug_files(true);
	assert_int_not_equal(start, 0);
	assert_int_equal(run("mv %s/f.debug %s/away", directory, directory), 0);
	assert_int_equal(landmark_start(path, directory), 0);
	for (size_t i = 0; i < op_array_size(places); i++) {
		assert_int_equal(run("cd %s && mkdir -p %s && cp away %s/f.debug", directory, places[i], places[i]), 0);
		assert_int_equal(landmark_start(path, directory), start);
		assert_int_equal(run("echo >>%s/%s/f.debug", directory, places[i]), 0);
		assert_int_equal(landmark_start(path, directory), 0); /* another checksum */
		assert_int_equal(run("rm %s/%s/f.debug", directory, places[i]), 0);
	}
	remove_debug_files();
}

static void test_build_id(void **state OP_UNUSED)
{
	bfd *self = opr_bfd_open(SELF);
	char name[256];
	int length;

	assert_non_null(self);
	if (!self->build_id) {
		bfd_close(self);
		print_message("the linker gave this program no build-id\n");
		skip();
	}
	length = snprintf(name, sizeof(name), "%02x/", self->build_id->data[0]);
	for (size_t i = 1; i < self->build_id->size && length < (int)sizeof(name) - 3; i++)
		length += snprintf(name + length, 3, "%02x", self->build_id->data[i]);
	bfd_close(self);
	make_debug_files(false);
	assert_int_equal(landmark_start(path, directory), 0);
	assert_int_equal(
		run("cd %s && D=usr/lib/debug/.build-id/%s.debug && mkdir -p $(dirname $D) && mv f.debug $D", directory, name), 0);
	assert_int_equal(landmark_start(path, directory), landmark_start(SELF, NULL));
	remove_debug_files();
}

/* ---- the kernel's list ---- */

static const char kernel_list[] = "0000000000000000 A fixed_percpu_data\n"
				  "ffffffff81000000 T _text\n"
				  "ffffffff81000000 T _stext\n"
				  "ffffffff81000100 t local_function\n"
				  "ffffffff81000100 T global_function\n"
				  "ffffffff81000200 D not_code\n"
				  "ffffffff81000300 W weak_function\n"
				  "garbage\n"
				  "\n"
				  "ffffffff81000400 T\n"
				  "ffffffff81001000 T _etext\n"
				  "ffffffff82000000 T beyond\n"
				  "ffffffffc0000000 t of_a_module\t[ext4]\n";

static void test_kallsyms(void **state OP_UNUSED)
{
	struct opr_symbols symbols = { 0 };

	write_file(kernel_list, sizeof(kernel_list) - 1);
	assert_int_equal(opr_symbols_read_kallsyms(&symbols, path, OPR_DEMANGLE_NORMAL), 0);
	assert_int_equal(symbols.nr_symbols, 3);
	assert_symbol(&symbols, 0x1ff, "global_function");
	assert_string_equal(names_at(&symbols, 0x100), "global_function local_function ");
	assert_symbol(&symbols, 0x2ff, "global_function");
	assert_symbol(&symbols, 0x300, "weak_function");
	assert_symbol(&symbols, 0xfff, "weak_function");
	assert_symbol(&symbols, 0x1000, NULL);
	assert_int_equal(opr_symbols_find(&symbols, 0x100)->vma, 0xffffffff81000100);
	opr_symbols_free(&symbols);
}

/* Parts of the kernel are in Rust. */
static void test_names_of_kallsyms(void **state OP_UNUSED)
{
	static const char list[] =
		"ffffffff81000000 T _text\nffffffff81000100 T _ZN6kernel5print3fooE\nffffffff81001000 T _etext\n";

	for (int i = 0; i < 2; i++) {
		struct opr_symbols symbols = { 0 };

		write_file(list, sizeof(list) - 1);
		assert_int_equal(opr_symbols_read_kallsyms(&symbols, path, i ? OPR_DEMANGLE_NONE : OPR_DEMANGLE_NORMAL), 0);
		assert_string_equal(opr_symbols_find(&symbols, 0x100)->shown, i ? "_ZN6kernel5print3fooE" : "kernel::print::foo");
		assert_string_equal(opr_symbols_find(&symbols, 0x100)->name, "_ZN6kernel5print3fooE");
		opr_symbols_free(&symbols);
	}
}

static void test_hidden_kallsyms(void **state OP_UNUSED)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 T schedule\n0000000000000000 T _etext\n";
	struct opr_symbols symbols = { 0 };

	write_file(hidden, sizeof(hidden) - 1);
	assert_int_equal(opr_symbols_read_kallsyms(&symbols, path, OPR_DEMANGLE_NORMAL), -EPERM);
	assert_int_equal(symbols.nr_symbols, 0);
	assert_int_equal(opr_symbols_read_kallsyms(&symbols, "/nothing", OPR_DEMANGLE_NORMAL), -ENOENT);
	opr_symbols_free(&symbols);
}

/* Symbols are there for the next report, as long as the file is the same, and not for ever. */
static void test_kept(void **state OP_UNUSED)
{
	static const char list[] = "ffffffff81000000 T _text\nffffffff81000010 T schedule\nffffffff81000020 T _etext\n";
	struct opr_kept_symbols kept = { 0 };
	struct opr_file_state file;
	struct opr_symbols symbols = { 0 };

	write_file(list, sizeof(list) - 1);
	assert_false(opr_kept_take(&kept, path, &symbols, &file));
	assert_int_equal(opr_symbols_read_kallsyms(&symbols, path, OPR_DEMANGLE_NORMAL), 0);
	for (int i = 0; i < 2; i++) {
		opr_kept_give(&kept, path, &symbols, &file);
		assert_int_equal(symbols.nr_symbols, 0);
		assert_false(opr_kept_take(&kept, "/nothing", &symbols, &(struct opr_file_state){ 0 }));
		assert_true(opr_kept_take(&kept, path, &symbols, &file));
		assert_string_equal(symbols.symbols[1].name, "schedule");
	}
	opr_kept_give(&kept, path, &symbols, &file);
	write_file(list, sizeof(list) - 2);
	assert_false(opr_kept_take(&kept, path, &symbols, &file));
	assert_int_equal(kept.nr_rows, 1);
	kept.rows[0].state.read_ns -= OPR_KEPT_NS + 1;
	write_file(list, sizeof(list) - 1);
	assert_false(opr_kept_take(&kept, path, &symbols, &file));
	assert_int_equal(kept.nr_rows, 0);
	opr_kept_free(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aliases_of_the_kernel),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_one_symbol_for_an_address),
		cmocka_unit_test(test_demangling),
		cmocka_unit_test(test_own_program),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_symbols_of_another_file_are_not_kept),
		cmocka_unit_test(test_no_object_file),
		cmocka_unit_test(test_damaged_object_files),
		cmocka_unit_test(test_debug_link),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_kallsyms),
		cmocka_unit_test(test_names_of_kallsyms),
		cmocka_unit_test(test_hidden_kallsyms),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_weak_name),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_kept),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
