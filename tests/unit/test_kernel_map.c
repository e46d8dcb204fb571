/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Kernel text, modules and run-time code from files that a test wrote, and with addresses hidden. */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/kernel_map.h"

static char dir[] = "/tmp/test_kernel_map.XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test_kernel_map.XXXXXX");
	*state = op_dcookie_table_new();
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	op_dcookie_table_free(*state);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
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
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, NULL), 0);
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

static void vmlinux_takes_the_text(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, "/boot/vmlinux-x"), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffff81000123, 1)), "/boot/vmlinux-x");
	opd_kernel_map_free(&map);
}

static void hidden_addresses(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "0000000000000000 T _text\n0000000000000000 T _etext\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, NULL), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffff81000123, 1)), "no-vmlinux");
	assert_non_null(strstr(map.note, "kptr_restrict"));
	opd_kernel_map_free(&map);
	write_file("kallsyms", "");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, NULL), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0, 1)), "no-vmlinux");
	opd_kernel_map_free(&map);
}

static void run_time_code_comes_and_goes(void **state)
{
	struct op_ksymbol_record record = { .start = 0xffffffffc0100000, .bytes = 64, .name = "bpf_prog/1" };
	struct opd_kernel_map map;

	assert_int_equal(opd_kernel_map_init(&map, *state, dir, NULL), 0);
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
	assert_int_equal(map.nr_ranges, 1);
	opd_kernel_map_free(&map);
}

static void modules_come_and_go(void **state)
{
	struct opd_kernel_map map;

	write_file("kallsyms", "ffffffff81000000 T _text\nffffffff82000000 T _etext\n");
	write_file("modules", "old 4096 1 - Live 0xffffffffc0001000\n");
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, NULL), 0);
	assert_int_equal(opd_kernel_map_refresh(&map, 50), 0);
	assert_int_equal(map.nr_ranges, 1);
	write_file("modules", "new 8192 1 - Live 0xffffffffc0001000\n");
	assert_int_equal(opd_kernel_map_refresh(&map, 100), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001010, 40)), "old");
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001010, 120)), "new");
	write_file("modules", "");
	assert_int_equal(opd_kernel_map_refresh(&map, 200), 0);
	assert_string_equal(name_of(*state, opd_kernel_map_find(&map, 0xffffffffc0001010, 220)), "no-vmlinux");
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
	assert_int_equal(opd_kernel_map_init(&map, *state, dir, NULL), 0);
	assert_int_equal(map.nr_ranges, 3);
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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = { T(text_and_modules), T(vmlinux_takes_the_text), T(hidden_addresses),
					    T(run_time_code_comes_and_goes), T(modules_come_and_go),
					    T(run_time_code_that_was_there_before) };

	return cmocka_run_group_tests_name("kernel_map", tests, NULL, NULL);
}
