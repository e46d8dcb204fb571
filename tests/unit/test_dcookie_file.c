/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The dcookie table as a file: every row that is written is read again, whatever its names are; a
 * damaged row is skipped and reported by its line.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/session/dcookie.h"
#include "tests/unit/test_box.h"

#define HEAD "opd-dcookies 1\n"
#define ROW(cookie, name, inode)                                                                                                   \
	cookie "\tfile\t" name "\t/bin/a\t-\t-\t-\t8:1\t" inode "\t0\t5.000000007\t100\t0\t1000\t2000\n"

static char dir[BOX_PATH_BYTES];
static int dir_fd;

static int make_dir(void **state OP_UNUSED)
{
	dir_fd = box_make_open(dir);
	return dir_fd < 0 ? -1 : 0;
}

static int remove_dir(void **state OP_UNUSED)
{
	unlinkat(dir_fd, OP_DCOOKIE_FILE, 0);
	close(dir_fd);
	return rmdir(dir);
}

static void put_bytes(const char *bytes, size_t nr_bytes)
{
	int fd = openat(dir_fd, OP_DCOOKIE_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, nr_bytes), nr_bytes);
	close(fd);
}

static void put(const char *text)
{
	put_bytes(text, strlen(text));
}

static int read_table(struct op_dcookie_table **ret_table, struct op_dcookie_reading *ret_reading)
{
	*ret_table = op_dcookie_table_new();
	assert_non_null(*ret_table);
	return op_dcookie_table_read(*ret_table, dir_fd, OP_DCOOKIE_FILE, ret_reading);
}

/* Writes a table's counted rows as the daemon does. */
static void write_table(const struct op_dcookie_table *table)
{
	struct op_text text = { 0 };

	op_dcookie_format_head(&text);
	op_dcookie_format_next(op_dcookie_next(table), &text);
	op_dcookie_format_unwritten(table, &text);
	assert_false(text.failed);
	put(op_text_get(&text));
	op_text_free(&text);
}

static uint64_t by_name(const struct op_dcookie_table *table, const char *string)
{
	const struct op_image_name name = { .kind = OP_IMAGE_FILE, .name = string };

	return op_dcookie_by_name(table, &name);
}

static const char *const odd_names[] = {
	"/bin/plain",	  "/a b/c\td\ne\rf", "/back\\slash\\x41", "/\x01\x7f\x80\xff\xc3\xa4", "/-", "/next\t5",
	"/...../{dep}x/#", "/quote\"'`",
};

static void names_may_hold_anything(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new(), *again;
	struct op_dcookie_reading reading;
	uint64_t cookies[op_array_size(odd_names)];

	for (size_t i = 0; i < op_array_size(odd_names); i++) {
		struct op_image_id id = {
			.name = { .name = odd_names[i] }, .device = makedev(8, 3), .inode = i + 1, .mtime_ns = i
		};

		cookies[i] = op_dcookie_get(table, &id);
		assert_int_equal(op_dcookie_count_in(table, cookies[i], 77), 0);
	}
	assert_int_equal(op_dcookie_set_place(table, cookies[1], "-", "tab\tin it"), 0);
	write_table(table);
	assert_int_equal(read_table(&again, &reading), 0);
	assert_int_equal(reading.nr_rows, op_array_size(odd_names));
	assert_int_equal(reading.nr_bad, 0);
	for (size_t i = 0; i < op_array_size(odd_names); i++) {
		struct op_image_id id = {
			.name = { .name = odd_names[i] }, .device = makedev(8, 3), .inode = i + 1, .mtime_ns = i
		};

		assert_int_equal(by_name(again, odd_names[i]), cookies[i]);
		assert_int_equal(op_dcookie_find(again, &id), cookies[i]);
	}
	assert_string_equal(op_dcookie_row(again, cookies[1])->host_path, "-");
	assert_string_equal(op_dcookie_row(again, cookies[1])->container, "tab\tin it");
	assert_null(op_dcookie_row(again, cookies[0])->container);
	assert_int_equal(op_dcookie_next(again), op_dcookie_next(table));
	assert_int_equal(op_dcookie_nr_unwritten(again), 0);
	op_dcookie_table_free(table);
	op_dcookie_table_free(again);
}

#define NR_HOSTILE     3000
#define HOSTILE_BYTES  6000
#define COMPONENT_MAX  255
#define SAMPLE_PATH    4096

/* Names that only an attacker chooses: special, empty and long components, and many of them. */
static void make_hostile(unsigned int *seed, char name[HOSTILE_BYTES])
{
	static const char *const parts[] = { "",  ".",  "..", "{dep}", "{cg}", "{root}",    "{..}", "a",
					     "-", "\t", "\n", "\\",    "\xfe", "(no path)", "{" };
	size_t at = 0;

	for (int nr = rand_r(seed) % 5; nr >= 0; nr--) {
		size_t long_bytes = rand_r(seed) % 4 ? 0 : (size_t)rand_r(seed) % 1400, nr_of = rand_r(seed) % 8 ? 1 : 300;

		while (nr_of-- && at + 10 < HOSTILE_BYTES)
			at += (size_t)snprintf(name + at, HOSTILE_BYTES - at, "/%s",
					       parts[(size_t)rand_r(seed) % op_array_size(parts)]);
		long_bytes = op_min_u64(long_bytes, HOSTILE_BYTES - 1 - at);
		memset(name + at, 'x', long_bytes);
		at += long_bytes;
	}
	name[at] = '\0';
}

static struct op_image_id hostile_id(unsigned int *seed, char name[HOSTILE_BYTES])
{
	struct op_image_id id = { .name = { .name = name } };

	make_hostile(seed, name);
	if (rand_r(seed) % 8 == 0) {
		id.name.kind = OP_IMAGE_KERNEL;
		id.is_kernel = true;
		id.build_id_bytes = 20;
		id.build_id[0] = (uint8_t)rand_r(seed);
	} else {
		id.device = (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed);
		id.inode = (uint64_t)rand_r(seed) % 3;
		/* before 1970 or after */
		id.mtime_ns = (uint64_t)rand_r(seed) % 2 ? (uint64_t)-(int64_t)rand_r(seed) : (uint64_t)rand_r(seed);
		id.bytes = UINT64_MAX - (uint64_t)rand_r(seed);
	}
	return id;
}

/*
 * The kernel accepts the path of the sample file, and the name in the path leads back to its row.
 */
static void assert_path_leads_back(const struct op_dcookie_table *table, const struct op_dcookie_table *again, uint64_t cookie)
{
	struct op_sample_name name = { .app = op_dcookie_name(op_dcookie_row(table, cookie)),
				       .event = "IBS_OP_L1_DTLB_MISS_L2_DTLB_HIT" },
			      found;
	struct op_text path = { 0 };
	char *storage, *part, *rest;

	name.image = name.callee = name.app;
	name.has_callee = true;
	op_mangle(&name, &path);
	assert_true(path.length < SAMPLE_PATH);
	assert_int_equal(op_unmangle(op_text_get(&path), &found, &storage, NULL), 0);
	assert_int_equal(op_dcookie_by_name(table, &found.image), cookie);
	assert_int_equal(op_dcookie_by_name(again, &found.app), cookie);
	rest = path.data;
	while ((part = strsep(&rest, "/")))
		assert_true(*part && strlen(part) <= COMPONENT_MAX && strcmp(part, ".") != 0 && strcmp(part, "..") != 0);
	free(storage);
	op_text_free(&path);
}

static void whatever_is_written_is_read_back(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new(), *again;
	struct op_dcookie_reading reading;
	char *name = malloc(HOSTILE_BYTES);
	unsigned int seed = 7;

	assert_non_null(name);
	for (size_t i = 0; i < NR_HOSTILE; i++) {
		struct op_image_id id = hostile_id(&seed, name);
		uint64_t cookie = op_dcookie_get(table, &id);

		assert_int_equal(op_dcookie_count_in(table, cookie, 77), 0);
		assert_int_equal(op_dcookie_set_place(table, cookie, i % 3 ? "" : "/\x01", i % 2 ? "" : "-"), 0);
	}
	free(name);
	write_table(table);
	assert_int_equal(read_table(&again, &reading), 0);
	if (reading.nr_bad)
		fail_msg("%zu lines, %s", reading.nr_bad, reading.complaint);
	assert_int_equal(reading.nr_rows, op_dcookie_count(table));
	for (uint64_t cookie = 1; cookie < op_dcookie_next(table); cookie++) {
		assert_int_equal(op_dcookie_find(again, &op_dcookie_row(table, cookie)->id), cookie);
		assert_path_leads_back(table, again, cookie);
	}
	op_dcookie_table_free(table);
	op_dcookie_table_free(again);
}

static void every_kind_and_column_comes_back(void **state OP_UNUSED)
{
	struct op_dcookie_table *table = op_dcookie_table_new(), *again;
	struct op_image_id said = { .name = { .name = "/bin/a" }, .build_id = { 1, 0xab }, .build_id_bytes = 20 };
	struct op_image_id seen = { .name = { .name = "/bin/a" }, .device = makedev(254, 70000), .inode = UINT64_MAX,
				    .inode_generation = 3, .mtime_ns = 1700000000123456789u, .bytes = 12345 };
	struct op_image_id kernel = { .name = { .kind = OP_IMAGE_KERNEL, .name = "ext4" }, .is_kernel = true };
	struct op_image_id pseudo = { .name = { .kind = OP_IMAGE_KERNEL, .name = "no-process" }, .is_pseudo = true };
	struct op_image_id region = { .name = { OP_IMAGE_ANON, "[vdso]", 77, 0x7fff00000000, 0xffffffffff601000 } };
	struct op_image_id built_anew = { .name = kernel.name, .build_id = { 2 }, .build_id_bytes = 20, .is_kernel = true };
	struct op_image_id vmlinux = {
		.name = { .name = "/boot/vmlinux" }, .build_id = { 3 }, .build_id_bytes = 20, .is_kernel = true
	};
	const struct op_image_id *ids[] = { &seen, &kernel, &built_anew, &vmlinux, &pseudo, &region };
	struct op_dcookie_reading reading;
	const struct op_dcookie_row *row;
	uint64_t cookie = op_dcookie_get(table, &seen);

	assert_int_equal(op_dcookie_set_build_id(table, cookie, said.build_id, said.build_id_bytes), 0);
	assert_int_equal(op_dcookie_alias(table, &said, cookie), 0);
	for (size_t i = 0; i < op_array_size(ids); i++)
		assert_int_equal(op_dcookie_count_in(table, op_dcookie_get(table, ids[i]), 1000), 0);
	op_dcookie_row(table, cookie)->last_seen = 2000;
	op_dcookie_row(table, op_dcookie_find(table, &vmlinux))->id.mtime_ns = 5000000000;
	write_table(table);
	assert_int_equal(read_table(&again, &reading), 0);
	assert_int_equal(reading.nr_rows, op_array_size(ids));
	for (size_t i = 0; i < op_array_size(ids); i++)
		assert_int_equal(op_dcookie_find(again, ids[i]), op_dcookie_find(table, ids[i]));
	assert_int_equal(op_dcookie_find(again, &said), cookie);
	row = op_dcookie_row(again, cookie);
	assert_int_equal(row->id.build_id_bytes, 20);
	assert_memory_equal(row->id.build_id, said.build_id, 20);
	assert_int_equal(op_dcookie_mtime(row), 1700000000);
	assert_int_equal(row->first_seen, 1000);
	assert_int_equal(row->last_seen, 2000);
	assert_string_equal(op_dcookie_row(again, op_dcookie_find(again, &built_anew))->name, "ext4 (build-id 020000000000)");
	assert_int_equal(op_dcookie_mtime(op_dcookie_row(again, op_dcookie_find(again, &vmlinux))), 5);
	assert_int_equal(op_dcookie_by_name(again, &region.name), op_dcookie_find(again, &region));
	op_dcookie_table_free(table);
	op_dcookie_table_free(again);
}

static void the_last_line_of_a_cookie_holds(void **state OP_UNUSED)
{
	struct op_dcookie_table *table;
	struct op_dcookie_reading reading;

	put(HEAD ROW("7", "/bin/a", "1") ROW("8", "/bin/b", "2") ROW("7", "/bin/c", "3"));
	assert_int_equal(read_table(&table, &reading), 0);
	assert_int_equal(reading.nr_bad, 0);
	assert_int_equal(op_dcookie_count(table), 2);
	assert_int_equal(by_name(table, "/bin/a"), OP_DCOOKIE_NONE);
	assert_int_equal(by_name(table, "/bin/c"), 7);
	assert_int_equal(op_dcookie_row(table, 7)->id.inode, 3);
	assert_int_equal(op_dcookie_next(table), 9);
	op_dcookie_table_free(table);
}

/*
 * Two files with one path and build-id, one in a container and one on the host: the second file was
 * gone before opd looked at it.
 */
static void an_image_is_more_than_another_one_s_alias(void **state OP_UNUSED)
{
	struct op_image_id seen = { .name = { .name = "/lib/x" }, .device = makedev(8, 1), .inode = 5, .mtime_ns = 7, .bytes = 9 };
	struct op_image_id said = { .name = seen.name, .build_id = { 0xab, 0xcd }, .build_id_bytes = 2 }, inside = said;
	struct op_dcookie_table *table = op_dcookie_table_new(), *again;
	struct op_dcookie_reading reading;
	uint64_t first = op_dcookie_get(table, &seen), second;

	inside.device = UINT64_MAX;
	assert_int_equal(op_dcookie_set_build_id(table, first, said.build_id, said.build_id_bytes), 0);
	assert_int_equal(op_dcookie_alias(table, &inside, first), 0);
	second = op_dcookie_get(table, &said);
	assert_int_not_equal(first, second);
	assert_int_equal(op_dcookie_count_in(table, first, 77), 0);
	assert_int_equal(op_dcookie_count_in(table, second, 77), 0);
	write_table(table);
	assert_int_equal(read_table(&again, &reading), 0);
	assert_int_equal(reading.nr_bad, 0);
	assert_int_equal(op_dcookie_find(again, &seen), first);
	assert_int_equal(op_dcookie_find(again, &said), second);
	assert_string_equal(op_dcookie_row(again, second)->name, op_dcookie_row(table, second)->name);
	op_dcookie_table_free(table);
	op_dcookie_table_free(again);
}

/* A build-id found in a container, or under another name, is not that of the host's file. */
static void only_a_file_of_the_host_is_found_by_build_id(void **state OP_UNUSED)
{
	static const char *const containers[] = { NULL, NULL, "mnt:[1]" };

	for (size_t i = 0; i < op_array_size(containers); i++) {
		struct op_image_id seen = { .name = { .name = "/lib/x" }, .device = makedev(8, 1), .inode = 5, .mtime_ns = 7 };
		struct op_image_id said = { .name = seen.name, .build_id = { 0xab, 0xcd }, .build_id_bytes = 2 };
		struct op_dcookie_table *table = op_dcookie_table_new(), *again;
		struct op_dcookie_reading reading;
		uint64_t cookie = op_dcookie_get(table, &seen);

		assert_int_equal(op_dcookie_set_build_id(table, cookie, said.build_id, said.build_id_bytes), 0);
		assert_int_equal(op_dcookie_set_place(table, cookie, NULL, containers[i]), 0);
		op_dcookie_row(table, cookie)->host_has_another = i == 1;
		assert_int_equal(op_dcookie_count_in(table, cookie, 77), 0);
		write_table(table);
		assert_int_equal(read_table(&again, &reading), 0);
		assert_int_equal(op_dcookie_find(again, &seen), cookie);
		assert_int_equal(op_dcookie_find(again, &said), i ? OP_DCOOKIE_NONE : cookie);
		op_dcookie_table_free(table);
		op_dcookie_table_free(again);
	}
}

static void a_torn_line_is_passed_over_but_not_its_number(void **state OP_UNUSED)
{
	static const char text[] = HEAD ROW("7", "/bin/a", "1") "next\t90\n" ROW("80", "/bin/b", "2");
	const size_t whole = strlen(HEAD ROW("7", "/bin/a", "1") "next\t90\n");

	for (size_t nr_bytes = whole + 1; nr_bytes < strlen(text); nr_bytes++) {
		struct op_dcookie_table *table;
		struct op_dcookie_reading reading;

		put_bytes(text, nr_bytes);
		assert_int_equal(read_table(&table, &reading), 0);
		assert_true(reading.is_torn);
		assert_int_equal(reading.nr_bytes, whole);
		assert_int_equal(reading.nr_bad, 0);
		assert_int_equal(op_dcookie_count(table), 1);
		assert_int_equal(op_dcookie_next(table), 90);
		op_dcookie_table_free(table);
	}
}

static const struct {
	const char *line;
	const char *complaint;
} bad_lines[] = {
	{ "", "dcookies:3: too few columns" },
	{ "9\tfile\t/b", "dcookies:3: too few columns" },
	{ "0\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a cookie" },
	{ "-1\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a cookie" },
	{ "18446744073709551616\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a cookie" },
	{ "9\tFile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a kind of image" },
	{ "9\tfile\t/b\\\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tfile\t/b\\x0\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tfile\t/b\\x00\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tfile\t\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tfile\t/b\t-\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tanon\t/b\tx\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tanon\t1.0x.0x2\tx\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a name" },
	{ "9\tfile\t/b\t/b\t-\t-\tabc\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a build-id" },
	{ "9\tfile\t/b\t/b\t-\t-\tABCD\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a build-id" },
	{ "9\tfile\t/b\t/b\t-\t-\t000102030405060708090a0b0c0d0e0f1011121314\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0",
	  "dcookies:3: not a build-id" },
	{ "9\tfile\t/b\t/b\t-\t-\t-\t0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a device, inode and generation" },
	{ "9\tfile\t/b\t/b\t-\t-\t-\t0:0\t01\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: not a device, inode and generation" },
	{ "9\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.00000000\t0\t0\t0\t0", "dcookies:3: not a time and a size" },
	{ "9\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t \t0\t0\t0", "dcookies:3: not a time and a size" },
	{ "9\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t2\t0\t0", "dcookies:3: is_kernel is neither 0 nor 1" },
	{ "9\tfile\t/b\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t-5", "dcookies:3: not the times of samples" },
	{ "9\tfile\t/bin/a\t/b\t-\t-\t-\t0:0\t0\t0\t0.000000000\t0\t0\t0\t0", "dcookies:3: the name of another image" },
	{ "9\tfile\t/b\t/bin/a\t-\t-\t-\t8:1\t1\t0\t5.000000007\t100\t0\t0\t0", "dcookies:3: the identity of another image" },
	{ "next\tsoon", "dcookies:3: not a number" },
};

static void bad_lines_have_their_number(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(bad_lines); i++) {
		struct op_dcookie_table *table;
		struct op_dcookie_reading reading;
		struct op_text text = { 0 };

		op_text_printf(&text, HEAD ROW("7", "/bin/a", "1") "%s\n" ROW("8", "/bin/c", "4"), bad_lines[i].line);
		put(op_text_get(&text));
		op_text_free(&text);
		assert_int_equal(read_table(&table, &reading), 0);
		assert_string_equal(reading.complaint, bad_lines[i].complaint);
		assert_int_equal(reading.nr_bad, 1);
		assert_int_equal(reading.nr_rows, 2);
		assert_int_equal(op_dcookie_count(table), 2);
		free(reading.complaint);
		op_dcookie_table_free(table);
	}
}

static void what_is_no_table_is_refused(void **state OP_UNUSED)
{
	static const struct {
		const char *text, *complaint;
	} files[] = {
		{ "opd-dcookies 2\n", "dcookies:1: a dcookie table of a later version" },
		{ "#!/bin/sh\n", "dcookies:1: not a dcookie table" },
	};
	struct op_dcookie_table *table;
	struct op_dcookie_reading reading;

	assert_int_equal(read_table(&table, &reading), -ENOENT);
	op_dcookie_table_free(table);
	for (size_t i = 0; i < op_array_size(files); i++) {
		put(files[i].text);
		assert_int_equal(read_table(&table, &reading), -EBADMSG);
		assert_string_equal(reading.complaint, files[i].complaint);
		free(reading.complaint);
		op_dcookie_table_free(table);
	}
	put_bytes(HEAD "a\0b\n" ROW("7", "/bin/a", "1"), strlen(HEAD) + 4 + strlen(ROW("7", "/bin/a", "1")));
	assert_int_equal(read_table(&table, &reading), 0);
	assert_string_equal(reading.complaint, "dcookies:2: a NUL byte");
	assert_int_equal(reading.nr_rows, 1);
	free(reading.complaint);
	op_dcookie_table_free(table);
}

/*
 * No more of a line is in memory than a row may have, also when the file ends in the middle of it.
 */
static void long_lines_are_passed_over(void **state OP_UNUSED)
{
	static const char row[] = ROW("7", "/bin/a", "1");
	struct op_dcookie_table *table;
	struct op_dcookie_reading reading;
	size_t nr_long = 1024 * 1024, nr_head = strlen(HEAD);
	char *text = calloc(1, nr_head + nr_long + 200);

	assert_non_null(text);
	for (size_t more = 0; more < 2; more++) {
		size_t nr_line = nr_long + more, end;

		memcpy(text, HEAD, nr_head);
		memset(text + nr_head, '#', nr_line);
		text[nr_head + nr_line - 1] = '\n';
		memcpy(text + nr_head + nr_line, row, sizeof(row));
		end = nr_head + nr_line + sizeof(row) - 1;
		put(text);
		assert_int_equal(read_table(&table, &reading), 0);
		assert_int_equal(reading.nr_rows, 1);
		assert_int_equal(reading.nr_bad, more);
		assert_int_equal(reading.nr_bytes, end);
		if (more)
			assert_string_equal(reading.complaint, "dcookies:2: too long");
		free(reading.complaint);
		op_dcookie_table_free(table);
	}
	free(text);
}

#define TAIL_BYTES (128ll << 20)
#define ROOM_BYTES (32ull << 20)

/* A quarter of the used room is free beside it. */
static void a_tail_is_not_read_into_memory(void **state OP_UNUSED)
{
	struct rlimit before, small = { 0 };
	struct op_dcookie_table *table;
	struct op_dcookie_reading reading;
	unsigned long nr_pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	int fd, err;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &nr_pages), 1);
	fclose(file);
	put(HEAD ROW("7", "/bin/a", "1"));
	fd = openat(dir_fd, OP_DCOOKIE_FILE, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, TAIL_BYTES), 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	small = before;
	small.rlim_cur = nr_pages * (unsigned long)sysconf(_SC_PAGESIZE) + ROOM_BYTES;
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	err = read_table(&table, &reading);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(err, 0);
	assert_int_equal(reading.nr_rows, 1);
	assert_true(reading.is_torn);
	assert_string_equal(reading.complaint, "dcookies:3: more than 64 MiB of damaged lines, and the rest is not read");
	free(reading.complaint);
	op_dcookie_table_free(table);
}

static void only_a_file_is_read(void **state OP_UNUSED)
{
	const struct {
		mode_t mode;
		dev_t device;
	} kinds[] = { { S_IFIFO, 0 }, { S_IFCHR, makedev(1, 5) } };
	struct op_dcookie_table *table;
	struct op_dcookie_reading reading;

	for (size_t i = 0; i < op_array_size(kinds); i++) {
		unlinkat(dir_fd, OP_DCOOKIE_FILE, 0);
		if (mknodat(dir_fd, OP_DCOOKIE_FILE, kinds[i].mode | 0600, kinds[i].device) < 0)
			continue; /* not root */
		assert_int_equal(read_table(&table, &reading), -EBADMSG);
		assert_string_equal(reading.complaint, "dcookies:1: not a file");
		free(reading.complaint);
		op_dcookie_table_free(table);
	}
}

static void later_columns_and_remarks_do_no_harm(void **state OP_UNUSED)
{
	struct op_dcookie_table *table;
	struct op_dcookie_reading reading;

	put(HEAD "#remark\n" "7\tfile\t/bin/a\t/bin/a\t-\t-\t-\t8:1\t1\t0\t5.000000007\t100\t0\t1000\t2000\tmore\tand more\n");
	assert_int_equal(read_table(&table, &reading), 0);
	assert_int_equal(reading.nr_bad, 0);
	assert_int_equal(by_name(table, "/bin/a"), 7);
	op_dcookie_table_free(table);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		T(names_may_hold_anything),
		T(whatever_is_written_is_read_back),
		T(every_kind_and_column_comes_back),
		T(the_last_line_of_a_cookie_holds),
		T(an_image_is_more_than_another_one_s_alias), T(only_a_file_of_the_host_is_found_by_build_id),
		T(a_torn_line_is_passed_over_but_not_its_number),
		T(bad_lines_have_their_number),
		T(what_is_no_table_is_refused),
		T(later_columns_and_remarks_do_no_harm),
		T(long_lines_are_passed_over),
		T(a_tail_is_not_read_into_memory),
		T(only_a_file_is_read),
	};

	return cmocka_run_group_tests_name("dcookie_file", tests, NULL, NULL);
}
