/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The writer of sample files: layout byte by byte, growth, saturation, repair after an unclean
 * stop, and full disks.
 */
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/odb/replace.h"
#include "libop/base/sys.h"
#include "tests/unit/odb_box.h"

static uint64_t count_in(const char *path, uint64_t key, uint32_t *ret_nr_nodes)
{
	struct op_odb_samples samples;
	uint64_t sum = 0;

	assert_int_equal(op_odb_read(dir_fd, path, &samples, NULL), 0);
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		if (samples.nodes[i].key == key)
			sum += samples.nodes[i].value;
	if (ret_nr_nodes)
		*ret_nr_nodes = samples.nr_nodes;
	op_odb_samples_free(&samples);
	return sum;
}

static unsigned int nr_links(const char *directory)
{
	DIR *dir = fdopendir(openat(dir_fd, directory, O_RDONLY | O_DIRECTORY));
	unsigned int nr = 0;

	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return nr;
}

static uint64_t count_of(uint64_t key, uint32_t *ret_nr_nodes)
{
	return count_in(PATH, key, ret_nr_nodes);
}

/* The worked example of the format page, section 1.7. */
static void the_bytes_of_the_worked_example(void **state OP_UNUSED)
{
	static const uint8_t expected[] = {
		0x44, 0x41, 0x45, 0x0a, 0x13, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0, 0,    0,    0,
		0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x9f, 0x40, 0, 0xf1, 0x53, 0x65,
	};
	struct op_odb *odb = open_odb();
	uint8_t bytes[4096];
	uint32_t word;
	ssize_t nr;
	int fd;

	assert_int_equal(op_odb_add(odb, 0x1139, 50), 0);
	assert_int_equal(op_odb_add(odb, 0x115d, 9), 0);
	assert_int_equal(op_odb_add(odb, 0x115d, 1), 0);
	fd = openat(dir_fd, PATH, O_RDONLY);
	nr = read(fd, bytes, sizeof(bytes));
	close(fd);
	assert_int_equal(nr, 2664);
	assert_memory_equal(bytes, expected, sizeof(expected));
	memcpy(&word, bytes + 0x48, 4);
	assert_int_equal(word, 128);
	memcpy(&word, bytes + 0x4c, 4);
	assert_int_equal(word, 3);
	memcpy(&word, bytes + 0x80, 4);
	assert_int_equal(word, 50);
	memcpy(&word, bytes + 0x90, 4);
	assert_int_equal(word, 10);
	memcpy(&word, bytes + 2312, 4);
	assert_int_equal(word, 1);
	memcpy(&word, bytes + 2456, 4);
	assert_int_equal(word, 2);
	op_odb_close(odb);
}

static void grows_and_keeps_every_count(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	struct stat st;
	uint32_t nr_nodes;

	for (uint64_t round = 0; round < 3; round++)
		for (uint64_t key = 0; key < 3000; key++)
			assert_int_equal(op_odb_add(odb, key * 7, (uint32_t)(key + 1)), 0);
	assert_int_equal(fstatat(dir_fd, PATH, &st, 0), 0);
	assert_int_equal(st.st_size, op_odb_file_bytes(4096));
	for (uint64_t key = 0; key < 3000; key += 113)
		assert_int_equal(count_of(key * 7, &nr_nodes), 3 * (key + 1));
	assert_int_equal(nr_nodes, 3000);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
	op_odb_close(odb);
}

/* Each growth makes a new file, so small files grow in large steps. */
static void small_files_grow_in_large_steps(void **state OP_UNUSED)
{
	static const uint64_t sizes[] = { 128, 512, 2048, 4096, 8192 };
	struct op_odb *odb = open_odb();
	uint64_t key = 0;
	struct stat st;

	for (size_t i = 0; i < op_array_size(sizes); i++) {
		while (key < sizes[i] - 1)
			assert_int_equal(op_odb_add(odb, 8 * ++key, 1), 0);
		assert_int_equal(fstatat(dir_fd, PATH, &st, 0), 0);
		assert_int_equal(st.st_size, op_odb_file_bytes(sizes[i]));
	}
	op_odb_close(odb);
}

static void goes_on_in_an_existing_file(void **state OP_UNUSED)
{
	struct op_odb_header other = odb_header;
	struct op_odb *odb = open_odb();

	assert_int_equal(op_odb_add(odb, 5, 1), 0);
	op_odb_close(odb);
	other.mtime = 1;
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &other, &odb), 0);
	assert_int_equal(op_odb_header(odb)->mtime, odb_header.mtime);
	assert_int_equal(op_odb_add(odb, 5, 1), 0);
	op_odb_close(odb);
	assert_int_equal(count_of(5, NULL), 2);
}

static void counts_past_32_bits(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	uint32_t nr_nodes;

	assert_int_equal(op_odb_add(odb, 9, UINT32_MAX), 0);
	assert_int_equal(op_odb_add(odb, 9, 1), 0);
	assert_int_equal(op_odb_add(odb, 9, UINT32_MAX), 0);
	assert_int_equal(op_odb_add(odb, 9, 5), 0);
	assert_int_equal(count_of(9, &nr_nodes), 2ull * UINT32_MAX + 6);
	assert_int_equal(nr_nodes, 3);
	op_odb_close(odb);
}

static void drops_what_was_not_published(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	uint32_t index = 2;
	struct op_odb_node torn = { .key = 99, .value = 7 };
	int fd;

	assert_int_equal(op_odb_add(odb, 1, 4), 0);
	op_odb_close(odb);
	/* A writer was killed after linking node 2 and before raising current_size. */
	fd = openat(dir_fd, PATH, O_RDWR);
	assert_int_equal(pwrite(fd, &torn, sizeof(torn), (off_t)(OP_ODB_NODES_OFFSET + 2 * sizeof(torn))), sizeof(torn));
	assert_int_equal(pwrite(fd, &index, 4, (off_t)(OP_ODB_NODES_OFFSET + 128 * 16 + 4 * op_odb_bucket(99, 128))), 4);
	close(fd);
	odb = open_odb();
	assert_int_equal(op_odb_dropped(odb), 1);
	assert_int_equal(op_odb_add(odb, 99, 1), 0);
	assert_int_equal(op_odb_add(odb, 1, 1), 0);
	op_odb_close(odb);
	assert_int_equal(count_of(99, NULL), 1);
	assert_int_equal(count_of(1, NULL), 5);
}

static void refuses_foreign_files(void **state OP_UNUSED)
{
	static const uint32_t sizes[][2] = { { 0, 1 }, { 128, 0 }, { 128, 129 }, { 100, 1 }, { 1u << 31, 1 } };
	struct op_odb *odb = open_odb();
	int fd;

	op_odb_close(odb);
	for (size_t i = 0; i < op_array_size(sizes); i++) {
		fd = openat(dir_fd, PATH, O_RDWR);
		assert_int_equal(pwrite(fd, sizes[i], 8, 72), 8);
		close(fd);
		assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -EBADMSG);
	}
	fd = openat(dir_fd, PATH, O_RDWR | O_TRUNC);
	assert_int_equal(write(fd, "short", 5), 5);
	close(fd);
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -EBADMSG);
	unlinkat(dir_fd, PATH, 0);
	assert_int_equal(symlinkat("/etc/passwd", dir_fd, PATH), 0);
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -ELOOP);
	unlinkat(dir_fd, PATH, 0);
	mkdirat(dir_fd, PATH, 0755);
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -EISDIR);
}

static void full_disk_at_creation_leaves_nothing(void **state OP_UNUSED)
{
	struct op_odb *odb;

	disk_fails.fallocate = -ENOSPC;
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -ENOSPC);
	assert_int_equal(faccessat(dir_fd, PATH, F_OK, 0), -1);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
	disk_fails.fallocate = 0;
	disk_fails.renameat = -EROFS;
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -EROFS);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
}

static void makes_its_directories_anew(void **state OP_UNUSED)
{
	struct op_odb *odb;

	assert_int_equal(unlinkat(dir_fd, "tmp", AT_REMOVEDIR), 0);
	odb = open_odb();
	assert_int_equal(op_odb_add(odb, 1, 1), 0);
	op_odb_close(odb);
	assert_int_equal(count_of(1, NULL), 1);
}

/* A filler has the key of another node. That node still takes the counts. */
static void nothing_is_counted_in_a_filler(void **state OP_UNUSED)
{
	struct op_odb_samples samples;
	unsigned int nr_with_key = 0;
	struct op_odb_addition addition;
	struct op_odb *odb = open_odb();

	for (uint64_t key = 1; key <= 24; key++)
		assert_int_equal(op_odb_add(odb, key, 1), 0);
	assert_int_equal(op_odb_add(odb, 0, 1), 0);
	assert_int_equal(op_odb_add(odb, 24, 1), 0);
	op_odb_close(odb);
	odb = open_odb();
	addition = (struct op_odb_addition){ .odb = odb, .key = 24, .count = 1, .error = 1 };
	op_odb_add_all(&addition, 1);
	assert_int_equal(addition.error, 0);
	op_odb_close(odb);
	assert_int_equal(op_odb_read(dir_fd, PATH, &samples, NULL), 0);
	assert_int_equal(samples.nr_nodes, 26);
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		nr_with_key += samples.nodes[i].key == 24 && samples.nodes[i].value;
	op_odb_samples_free(&samples);
	assert_int_equal(nr_with_key, 1);
	assert_int_equal(count_of(24, NULL), 3);
	assert_int_equal(count_of(0, NULL), 1);
}

/* The same additions, one by one and together, over several files that grow meanwhile. */
static void many_at_once_are_as_many_in_turn(void **state OP_UNUSED)
{
	static const char *const paths[] = { "samples/a", "samples/b", "samples/c" };
	struct op_odb_addition additions[3 * OP_ODB_ADDITIONS_MAX];
	struct op_odb *odbs[3];
	uint64_t expected[3][500] = { 0 };
	uint32_t random = 1;

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(op_odb_open(dir_fd, paths[i], TMP, &odb_header, &odbs[i]), 0);
	for (size_t round = 0; round < 40; round++) {
		size_t nr = 1 + round * 5 % op_array_size(additions);

		for (size_t i = 0; i < nr; i++) {
			uint32_t file = (random = random * 1664525 + 1013904223) >> 8, key = (random >> 12) % 500;

			additions[i] = (struct op_odb_addition){
				.odb = odbs[file % 3], .key = key * 0x1001, .count = 1 + random % 7, .error = 1
			};
			expected[file % 3][key] += additions[i].count;
		}
		op_odb_add_all(additions, nr);
		for (size_t i = 0; i < nr; i++)
			assert_int_equal(additions[i].error, 0);
	}
	for (size_t i = 0; i < 3; i++) {
		op_odb_close(odbs[i]);
		for (uint64_t key = 0; key < 500; key += 7)
			assert_int_equal(count_in(paths[i], key * 0x1001, NULL), expected[i][key]);
	}
}

#define NR_IN_BUCKET 6u
#define IN_BUCKET(n) (((n) + 1ull) << 16)

/* All keys are in one bucket; each addition must find the nodes of those before it. */
static void a_batch_sees_what_it_added(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	struct op_odb_addition additions[2 * NR_IN_BUCKET];

	for (uint32_t i = 0; i < op_array_size(additions); i++)
		additions[i] = (struct op_odb_addition){ .odb = odb, .key = IN_BUCKET(i % NR_IN_BUCKET), .count = 1 };
	assert_int_equal(op_odb_add_all(additions, op_array_size(additions)), 0);
	assert_int_equal(op_odb_nr_nodes(odb), NR_IN_BUCKET);
	for (uint32_t i = 0; i < op_array_size(additions); i++)
		additions[i].count = UINT32_MAX - 5;
	assert_int_equal(op_odb_add_all(additions, op_array_size(additions)), 0);
	assert_int_equal(op_odb_nr_nodes(odb), 2 * NR_IN_BUCKET);
	assert_int_equal(op_odb_total(odb), 2 * NR_IN_BUCKET * (UINT32_MAX - 4ull));
	op_odb_close(odb);
	for (uint32_t i = 0; i < NR_IN_BUCKET; i++)
		assert_int_equal(count_of(IN_BUCKET(i), NULL), 2 * (UINT32_MAX - 4ull));
}

static void one_that_fails_is_told_and_the_others_are_added(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	struct op_odb_addition additions[] = { { odb, 5, 1, 0 }, { odb, 1000, 1, 0 }, { odb, 6, 2, 1 } };

	for (uint64_t key = 0; key < 127; key++)
		assert_int_equal(op_odb_add(odb, key, 1), 0);
	disk_fails.fallocate = -ENOSPC;
	assert_int_equal(op_odb_add_all(additions, op_array_size(additions)), 1);
	assert_int_equal(additions[0].error, 0);
	assert_int_equal(additions[1].error, -ENOSPC);
	assert_int_equal(additions[2].error, 0);
	op_odb_close(odb);
	assert_int_equal(count_of(5, NULL), 2);
	assert_int_equal(count_of(6, NULL), 3);
	assert_int_equal(count_of(1000, NULL), 0);
}

static void growth_never_waits_for_the_disk(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	struct op_odb_pending *pending;
	uint64_t key = 0;

	nr_fsyncs = 0;
	while (key < 200)
		assert_int_equal(op_odb_add(odb, key++, 1), 0);
	assert_null(op_odb_take_pending(odb)); /* nothing was promised */
	op_odb_mark_dumped(odb);
	while (key < 600)
		assert_int_equal(op_odb_add(odb, key++, 1), 0);
	assert_int_equal(nr_fsyncs, 0);
	assert_int_equal(nr_links("tmp"), 2);
	pending = op_odb_take_pending(odb);
	assert_non_null(pending);
	assert_null(pending->next);
	assert_int_equal(op_odb_sync_pending(dir_fd, pending), 0);
	assert_int_equal(nr_fsyncs, 1);
	assert_int_equal(nr_links("tmp"), 0);
	op_odb_close(odb);
	odb = open_odb(); /* an existing file has its space already */
	while (key < 2200)
		assert_int_equal(op_odb_add(odb, key++, 1), 0);
	assert_int_equal(nr_links("tmp"), 2);
	assert_int_equal(nr_fsyncs, 1);
	op_odb_close(odb);
	assert_int_equal(nr_links("tmp"), 2); /* for the next start */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		odb_test(the_bytes_of_the_worked_example),
		odb_test(grows_and_keeps_every_count),
		odb_test(small_files_grow_in_large_steps),
		odb_test(goes_on_in_an_existing_file),
		odb_test(counts_past_32_bits),
		odb_test(drops_what_was_not_published),
		odb_test(refuses_foreign_files),
		odb_test(full_disk_at_creation_leaves_nothing),
		odb_test(makes_its_directories_anew),
		odb_test(nothing_is_counted_in_a_filler),
		odb_test(many_at_once_are_as_many_in_turn),
		odb_test(a_batch_sees_what_it_added),
		odb_test(one_that_fails_is_told_and_the_others_are_added),
		odb_test(growth_never_waits_for_the_disk),
	};

	return cmocka_run_group_tests_name("odb", tests, NULL, NULL);
}
