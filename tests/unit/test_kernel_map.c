/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Kernel text, modules and run-time code from files that a test wrote, and with addresses hidden.
 */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/resolve/kernel_code.h"
#include "pipeline/resolve/kernel_map.h"
#include "tests/unit/test_box.h"

static char dir[BOX_PATH_BYTES];

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

/* A note that is none, then a build-id of twenty bytes that begins with `first`. */
static void write_notes(const char *name, uint8_t first)
{
	static const uint8_t before[] = { 6, 0, 0, 0, 4, 0, 0, 0, 1, 1, 0, 0, 'L', 'i', 'n', 'u', 'x', 0, 0, 0, 0, 0, 0, 0 };
	uint8_t note[36] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, first };
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fwrite(before, 1, sizeof(before), file);
	fwrite(note, 1, sizeof(note), file);
	fclose(file);
}

static void shell(const char *format)
{
	char command[256];

	snprintf(command, sizeof(command), "cd %s && %s", dir, format);
	assert_int_equal(system(command), 0);
}

static int kernel_setup(void **state)
{
	*state = op_dcookie_table_new();
	return box_make(dir);
}

static int kernel_teardown(void **state)
{
	op_dcookie_table_free(*state);
	return box_remove(dir);
}

static const char *name_of(struct op_dcookie_table *table, struct op_location location)
{
	return op_dcookie_row(table, location.cookie)->id.name.name;
}

static void text_and_modules(void **state)
{
	struct opd_kernel_map map;
	struct op_location location;

	write_file("kallsyms", "ffffffff80fffff0 t before\nffffffff81000000 T _stext\nffffffff81000000 T _text\n"
			       "ffffffff81000100 t f\nffffffff82000000 T _etext\n");
	write_file("modules", "ext4 4096 1 - Live 0xffffffffc0001000\nhidden 4096 1 - Live 0x0000000000000000\n"
			      "xfs 8192 2 a,b, Live 0xffffffffc0010000 (E)\ngarbage\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	location = opd_kernel_map_find(&map, 0xffffffff81000123, 1);
	assert_string_equal(name_of(*state, location), "/proc/kallsyms");
	assert_int_equal(location.offset, 0x123);
	assert_true(op_dcookie_row(*state, location.cookie)->id.is_kernel);
	location = opd_kernel_map_find(&map, 0xffffffffc0001ffe, 1);
	assert_string_equal(name_of(*state, location), "ext4");
	assert_int_equal(location.offset, 0xffe);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0010000, 1)), "xfs");
	location = opd_kernel_map_find(&map, 0xffffffffc0002000, 1);
	assert_string_equal(name_of(*state, location), "no-vmlinux");
	assert_int_equal(location.offset, 0xffffffffc0002000);
	opd_kernel_map_free(&map);
}

/* Functions of this kind end at the next line that has another address; modules have none. */
static void functions_where_memory_goes_away(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff81000100 t __pfx_load_elf_binary\n"
			       "ffffffff81000110 t load_elf_binary\n"
			       "ffffffff81000110 t alias\nffffffff81000200 t load_elf_binary_too\nffffffff81000300 t do_exit.cold\n"
			       "ffffffff81000400 T other\nffffffff82000000 T _etext\nffffffffc0200000 t do_exit\t[mod]\n"
			       "ffffffffc0200100 t last\t[mod]\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_null(opd_kernel_map_memory_end(&map, 0xffffffff8100010f));
	assert_true(opd_kernel_map_memory_end(&map, 0xffffffff81000110)->is_exec);
	assert_true(opd_kernel_map_memory_end(&map, 0xffffffff810001ff)->is_exec);
	assert_null(opd_kernel_map_memory_end(&map, 0xffffffff81000200));
	assert_false(opd_kernel_map_memory_end(&map, 0xffffffff810003ff)->is_exec);
	assert_null(opd_kernel_map_memory_end(&map, 0xffffffff81000400));
	assert_null(opd_kernel_map_memory_end(&map, 0xffffffffc0200000));
	opd_kernel_map_free(&map);
	/* each function, also of older kernels */
	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff81000100 t begin_new_exec\nffffffff81000200 t flush_old_exec\n"
			       "ffffffff81000300 t do_exit\nffffffff81000400 t exit_mmap\nffffffff82000000 T _etext\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	for (uint64_t i = 1; i <= 4; i++) {
		const struct opd_memory_end *end = opd_kernel_map_memory_end(&map, 0xffffffff81000000 + i * 0x100);

		assert_non_null(end);
		assert_int_equal(end->is_exec, i <= 2);
	}
	opd_kernel_map_free(&map);
	/* hidden addresses */
	write_file("kallsyms", "0000000000000000 T _text\n0000000000000000 t do_exit\n0000000000000000 t other\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_null(opd_kernel_map_memory_end(&map, 0));
	opd_kernel_map_free(&map);
}

/*
 * No other name is accepted. Hidden addresses, a missing symbol and a missing list are treated
 * alike.
 */
static void where_text_begins(void **state)
{
	static const struct {
		const char *list;
		uint64_t text;
	} cases[] = {
		{ "ffffffff80fffff0 t _text_before\nffffffff80fffff0 t _tex\nffffffff81000000 T _text\nffffffff82000000 T _etext\n",
		  0xffffffff81000000 },
		{ "0000000000000000 T _stext\n0000000000000000 T _text\n", 0 },
		{ "ffffffff81000000 T _stext\nffffffff82000000 t _text\t[module]\n", 0 },
		{ "", 0 },
	};

	(void)state;
	assert_int_equal(opd_kallsyms_text(dir), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_file("kallsyms", cases[i].list);
		assert_int_equal(opd_kallsyms_text(dir), cases[i].text);
	}
}

/* A module that hundreds of others use has all their names in its line. */
static void a_line_of_any_length(void **state)
{
	struct opd_kernel_map map;
	char lines[20000];
	size_t at;

	at = (size_t)snprintf(lines, sizeof(lines), "nf_tables 4096 800 ");
	while (at < sizeof(lines) - 200)
		at += (size_t)snprintf(lines + at, sizeof(lines) - at, "nft_module_%zu,", at);
	snprintf(lines + at, sizeof(lines) - at, " Live 0xffffffffc0001000\nxfs 8192 0 - Live 0xffffffffc0010000\n");
	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	write_file("modules", lines);
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001ffe, 1)), "nf_tables");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0010000, 1)), "xfs");
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 2);
	opd_kernel_map_free(&map);
}

static void vmlinux_takes_the_text(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, "/boot/vmlinux-x"), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffff81000123, 1)), "/boot/vmlinux-x");
	opd_kernel_map_free(&map);
}

static void hidden_addresses(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffff81000123, 1)), "no-vmlinux");
	assert_non_null(strstr(map.note, "kptr_restrict"));
	opd_kernel_map_free(&map);
	write_file("kallsyms", "");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0, 1)), "no-vmlinux");
	opd_kernel_map_free(&map);
}

static void run_time_code_comes_and_goes(void **state)
{
	struct op_ksymbol_record record = { .start = 0xffffffffc0100000, .bytes = 64, .name = "bpf_prog/1" };
	struct opd_kernel_map map;

	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	record.who.time_ns = 10;
	assert_int_equal(opd_kernel_map_ksymbol(&map, &record), 0);
	record.unregister = true;
	record.who.time_ns = 20;
	assert_int_equal(opd_kernel_map_ksymbol(&map, &record), 0);
	record.unregister = false;
	record.name = "bpf_prog_2";
	record.who.time_ns = 30;
	assert_int_equal(opd_kernel_map_ksymbol(&map, &record), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0100010, 5)), "no-vmlinux");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0100010, 15)), "bpf_prog_1");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0100010, 25)), "no-vmlinux");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0100010, 35)), "bpf_prog_2");
	opd_kernel_map_prune(&map, 21);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 1);
	opd_kernel_map_free(&map);
}

static void modules_come_and_go(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	write_file("modules", "old 4096 1 - Live 0xffffffffc0001000\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_int_equal(opd_kernel_map_refresh(&map, 50), 0);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 1);
	write_file("modules", "new 8192 1 - Live 0xffffffffc0001000\n");
	assert_int_equal(opd_kernel_map_refresh(&map, 100), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001010, 40)), "old");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001010, 120)), "new");
	write_file("modules", "");
	assert_int_equal(opd_kernel_map_refresh(&map, 200), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001010, 220)), "no-vmlinux");
	opd_kernel_map_free(&map);
}

/* The name of the image in the session. The image has samples now. */
static const char *counted_name(struct op_dcookie_table *table, const struct opd_kernel_map *map, uint64_t address)
{
	uint64_t cookie = opd_kernel_map_find(map, address, UINT64_MAX - 1).cookie;

	assert_int_equal(op_dcookie_count_in(table, cookie, 1), 0);
	return op_dcookie_row(table, cookie)->name;
}

static void another_kernel_is_another_image(void **state)
{
	struct opd_kernel_map map;
	uint64_t first;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	shell("mkdir kernel");
	write_notes("kernel/notes", 0xaa);
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	first = map.text_cookie;
	assert_int_equal(op_dcookie_row(*state, first)->id.build_id[0], 0xaa);
	assert_string_equal(counted_name(*state, &map, 0xffffffff81000000), "/proc/kallsyms");
	opd_kernel_map_free(&map);

	write_notes("kernel/notes", 0xbb);
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_int_not_equal(map.text_cookie, first);
	assert_string_equal(counted_name(*state, &map, 0xffffffff81000000), "/proc/kallsyms (build-id bb0000000000)");
	opd_kernel_map_free(&map);

	write_notes("kernel/notes", 0xaa);
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_int_equal(map.text_cookie, first);
	opd_kernel_map_free(&map);

	shell("rm kernel/notes");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_int_not_equal(map.text_cookie, first);
	assert_int_equal(op_dcookie_row(*state, map.text_cookie)->id.build_id_bytes, 0);
	opd_kernel_map_free(&map);
}

/* A file with a date is identified by its build-id alone, too. */
static void a_vmlinux_that_was_touched_is_the_same(void **state)
{
	struct opd_kernel_map map;
	char vmlinux[64];
	uint64_t first;

	snprintf(vmlinux, sizeof(vmlinux), "%s/vmlinux", dir);
	shell("mkdir kernel && touch -d @1000 vmlinux");
	write_notes("kernel/notes", 0xaa);
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, vmlinux), 0);
	first = map.text_cookie;
	assert_int_equal(op_dcookie_mtime(op_dcookie_row(*state, first)), 1000);
	opd_kernel_map_free(&map);
	shell("touch -d @2000 vmlinux");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, vmlinux), 0);
	assert_int_equal(map.text_cookie, first);
	assert_int_equal(op_dcookie_mtime(op_dcookie_row(*state, first)), 2000);
	opd_kernel_map_free(&map);
}

/*
 * rmmod and insmod of another build, to the same address and of the same size, between two looks.
 */
static void a_module_that_was_built_anew_is_another_image(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	write_file("modules", "mine 4096 1 - Live 0xffffffffc0001000\n");
	shell("mkdir -p module/mine/notes");
	write_notes("module/mine/notes/.note.gnu.build-id", 0xaa);
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_string_equal(counted_name(*state, &map, 0xffffffffc0001000), "mine");
	assert_int_equal(opd_kernel_map_refresh(&map, 50), 0);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 1);

	shell("mv module/mine module/before && mkdir -p module/mine/notes");
	write_notes("module/mine/notes/.note.gnu.build-id", 0xbb);
	assert_int_equal(opd_kernel_map_refresh(&map, 100), 0);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 2);
	assert_string_equal(counted_name(*state, &map, 0xffffffffc0001000), "mine (build-id bb0000000000)");
	assert_int_equal(op_dcookie_row(*state, opd_kernel_map_find(&map, 0xffffffffc0001000, 40).cookie)->id.build_id[0], 0xaa);
	opd_kernel_map_free(&map);
}

static void run_time_code_that_was_there_before(void **state)
{
	struct op_ksymbol_record gone = { .start = 0xffffffffc0200040, .bytes = 64, .name = "bpf_prog_b", .unregister = true };
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0200040 t bpf_prog_b\t[bpf]\n"
			       "ffffffffc0200000 t bpf_prog_a/x\t[bpf]\nffffffffc0300000 t ftrace_trampoline\t[__builtin__ftrace]\n"
			       "ffffffffc0400000 t module_function\t[ext4]\n0000000000000000 t bpf_prog_hidden\t[bpf]\n]\n[bpf]\n");
	write_file("modules", "");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 3);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc020003f, 5)), "bpf_prog_a_x");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0200041, 5)), "bpf_prog_b");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0300041, 5)), "ftrace_trampoline");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0400041, 5)), "no-vmlinux");
	gone.who.time_ns = 10;
	assert_int_equal(opd_kernel_map_ksymbol(&map, &gone), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0200041, 9)), "bpf_prog_b");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0200041, 10)), "no-vmlinux");
	opd_kernel_map_free(&map);
}

static const char *name_there(struct op_dcookie_table *table, const struct opd_kernel_map *map, uint64_t address, uint64_t time_ns)
{
	return name_of(table, opd_kernel_map_find(map, address, time_ns));
}

/* No record reports a filter of classic BPF behind the listed code. */
static void code_that_nobody_tells_of(void **state)
{
	struct opd_bpf_function lengths[] = { { 0xffffffffc0201000, 0x80 },
					      { 0xffffffffc0300000, 0x3000 },
					      { 0xffffffffc0500000, 0x40 } };
	const struct opd_bpf_code code = { .functions = lengths, .nr_functions = op_array_size(lengths) };
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0200000 t bpf_prog_a\t[bpf]\n"
			       "ffffffffc0201000 t bpf_prog_b\t[bpf]\nffffffffc0300000 t bpf_prog_c\t[bpf]\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200fff, 5), "bpf_prog_a");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0201fff, 5), "bpf_prog_b");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0202000, 5), "no-vmlinux");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0300fff, 5), "bpf_prog_c");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0301000, 5), "no-vmlinux");
	opd_kernel_map_learn(&map, &code);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 3);
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200fff, 5), "bpf_prog_a");
	assert_string_equal(name_there(*state, &map, 0xffffffffc020107f, 5), "bpf_prog_b");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0201080, 5), "no-vmlinux");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0302fff, 5), "bpf_prog_c");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0303000, 5), "no-vmlinux");
	opd_kernel_map_free(&map);
}

/* Its record says how long it is. */
static void listed_code_whose_record_comes_late(void **state)
{
	struct op_ksymbol_record record = { .start = 0xffffffffc0200000, .bytes = 0x80, .name = "bpf_prog_a", .who.time_ns = 10 };
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0200000 t bpf_prog_a\t[bpf]\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	assert_int_equal(opd_kernel_map_ksymbol(&map, &record), 0);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 1);
	assert_string_equal(name_there(*state, &map, 0xffffffffc020007f, 20), "bpf_prog_a");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200080, 20), "no-vmlinux");

	/* The record of its removal was lost. */
	record.name = "bpf_prog_b";
	record.bytes = 0x40;
	record.who.time_ns = 30;
	assert_int_equal(opd_kernel_map_ksymbol(&map, &record), 0);
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200050, 20), "bpf_prog_a");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200030, 40), "bpf_prog_b");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200050, 40), "no-vmlinux");
	opd_kernel_map_free(&map);
}

/* A map with a listed program and one that a record reported. */
static void init_with_code(struct opd_kernel_map *map, struct op_dcookie_table *table)
{
	struct op_ksymbol_record told = {
		.start = 0xffffffffc0300000, .bytes = 0x2000, .name = "bpf_prog_told", .who.time_ns = 10
	};

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0200000 t bpf_prog_a\t[bpf]\n");
	write_file("modules", "ext4 4096 1 - Live 0xffffffffc0001000\n");
	assert_int_equal(opd_kernel_map_init(map, table, dir, dir, NULL), 0);
	assert_int_equal(opd_kernel_map_ksymbol(map, &told), 0);
}

static void code_is_looked_at_again_after_a_loss(void **state)
{
	struct opd_kernel_map map;

	init_with_code(&map, *state);
	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0200040 t bpf_prog_lost\t[bpf]\n"
			       "ffffffffc0300000 t bpf_prog_told\t[bpf]\n");
	assert_int_equal(opd_kernel_map_mend(&map, 100, 200), 0);
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200040, 99), "bpf_prog_a");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200040, 100), "bpf_prog_lost");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200040, 300), "bpf_prog_lost");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200010, 199), "bpf_prog_a");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200010, 200), "no-vmlinux");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0301fff, 300), "bpf_prog_told");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0001000, 300), "ext4");
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 5);
	assert_int_equal(opd_kernel_map_mend(&map, 300, 400), 0);
	assert_int_equal(map.ranges.now.nr + map.ranges.past.nr, 5);

	/* The modules are another list. */
	assert_int_equal(opd_kernel_map_refresh(&map, 500), 0);
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200040, 600), "bpf_prog_lost");
	assert_string_equal(name_there(*state, &map, 0xffffffffc0001000, 600), "ext4");
	opd_kernel_map_free(&map);
}

/*
 * With net.core.bpf_jit_harden no program is listed, with kernel.kptr_restrict there are no
 * addresses, and a list may be missing.
 */
static void a_list_that_says_nothing_ends_nothing(void **state)
{
	static const char *const lists[] = {
		"ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]\n",
		"0000000000000000 T _text\n0000000000000000 T _etext\n0000000000000000 t bpf_prog_b\t[bpf]\n",
		"",
	};
	struct opd_kernel_map map;

	init_with_code(&map, *state);
	for (size_t i = 0; i < op_array_size(lists); i++) {
		write_file("kallsyms", lists[i]);
		assert_int_equal(opd_kernel_map_mend(&map, 100, 200), 0);
		assert_string_equal(name_there(*state, &map, 0xffffffffc0200000, 300), "bpf_prog_a");
		assert_string_equal(name_there(*state, &map, 0xffffffffc0301fff, 300), "bpf_prog_told");
	}
	opd_kernel_map_free(&map);

	/* A map without addresses adds none. */
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, dir, NULL), 0);
	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\nffffffffc0200000 t bpf_prog_a\t[bpf]\n");
	assert_int_equal(opd_kernel_map_mend(&map, 100, 200), 0);
	assert_string_equal(name_there(*state, &map, 0xffffffffc0200000, 300), "no-vmlinux");
	opd_kernel_map_free(&map);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, kernel_setup, kernel_teardown)
	const struct CMUnitTest tests[] = { T(text_and_modules),
					    T(functions_where_memory_goes_away),
					    T(where_text_begins),
					    T(a_line_of_any_length),
					    T(vmlinux_takes_the_text),
					    T(hidden_addresses),
					    T(run_time_code_comes_and_goes),
					    T(modules_come_and_go),
					    T(run_time_code_that_was_there_before),
					    T(code_that_nobody_tells_of),
					    T(listed_code_whose_record_comes_late),
					    T(code_is_looked_at_again_after_a_loss),
					    T(a_list_that_says_nothing_ends_nothing),
					    T(another_kernel_is_another_image),
					    T(a_vmlinux_that_was_touched_is_the_same),
					    T(a_module_that_was_built_anew_is_another_image) };

	return cmocka_run_group_tests_name("kernel_map", tests, NULL, NULL);
}
