/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The writer of sample files on disks that are full, have no fallocate, or lose data. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/process/guard.h"
#include "libop/odb/file_image.h"
#include "libop/odb/odb.h"
#include "libop/odb/read.h"
#include "libop/odb/replace.h"
#include "libop/base/sys.h"
#include "tests/unit/odb_box.h"
#include "tests/unit/still_clock.h"

#define RETRY_NS        100000000 /* as the header says */
#define FILE_BYTES      2664
#define PAGE_BYTES      (uint64_t) sysconf(_SC_PAGESIZE)
#define NODE_AND_BUCKET (sizeof(struct op_odb_node) + sizeof(uint32_t))

static struct op_odb *open_with(uint64_t nr_keys)
{
	struct op_odb *odb = open_odb();

	for (uint64_t key = 0; key < nr_keys; key++)
		assert_int_equal(op_odb_add(odb, key, 1), 0);
	return odb;
}

static uint64_t sum_of(void)
{
	struct op_odb_samples samples;
	uint64_t sum = 0;

	assert_int_equal(op_odb_read(dir_fd, PATH, &samples, NULL), 0);
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		sum += samples.nodes[i].value;
	op_odb_samples_free(&samples);
	return sum;
}

static void stat_file(struct stat *ret_stat)
{
	assert_int_equal(fstatat(dir_fd, PATH, ret_stat, 0), 0);
}

/* The bytes that a file needs for nodes and hash table, and the bytes that it takes on the disk. */
static void weigh(uint64_t nr_nodes, uint64_t *ret_needed, uint64_t *ret_bytes)
{
	struct stat st;

	stat_file(&st);
	assert_true(op_odb_is_length((uint64_t)st.st_size));
	*ret_needed = OP_ODB_NODES_OFFSET + (nr_nodes + 1) * sizeof(struct op_odb_node) +
		      ((uint64_t)st.st_size - OP_ODB_NODES_OFFSET) / NODE_AND_BUCKET * sizeof(uint32_t);
	*ret_bytes = (uint64_t)st.st_blocks * 512;
}

/* ---- full disks ---- */

static void full_disk_at_growth_keeps_the_file(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(127);

	disk_fails.fallocate = -ENOSPC;
	assert_int_equal(op_odb_add(odb, 1000, 1), -ENOSPC);
	assert_int_equal(op_odb_add(odb, 5, 1), 0); /* known keys are still counted */
	disk_fails.fallocate = 0;
	disk_fails.renameat = -EIO;
	passed_ns += RETRY_NS;
	assert_int_equal(op_odb_add(odb, 1000, 1), -EIO);
	disk_fails.renameat = 0;
	passed_ns += RETRY_NS;
	assert_int_equal(op_odb_add(odb, 1000, 1), 0);
	assert_int_equal(sum_of(), 129);
	assert_int_equal(op_odb_total(odb), 129);
	op_odb_close(odb);
}

static void full_disk_is_not_asked_for_each_sample(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(127);

	disk_fails.fallocate = -ENOSPC;
	nr_fallocates = 0;
	for (uint64_t key = 1000; key < 2000; key++)
		assert_int_equal(op_odb_add(odb, key, 1), -ENOSPC);
	assert_int_equal(nr_fallocates, 1);
	passed_ns += RETRY_NS;
	assert_int_equal(op_odb_add(odb, 1000, 1), -ENOSPC);
	assert_int_equal(nr_fallocates, 2);
	disk_fails.fallocate = 0;
	passed_ns += RETRY_NS - 1;
	assert_int_equal(op_odb_add(odb, 1000, 1), -ENOSPC);
	passed_ns++;
	assert_int_equal(op_odb_add(odb, 1000, 1), 0);
	op_odb_close(odb);
}

/* A file may have room for more nodes than there are blocks for. */
static void full_disk_between_growths_keeps_the_file(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(600);
	uint64_t key = 600;
	struct stat before, after;

	stat_file(&before);
	disk_fails.fallocate = -ENOSPC;
	while (!op_odb_add(odb, key, 1))
		key++;
	assert_in_range(key, 601, 2000);
	assert_int_equal(op_odb_add(odb, key, 1), -ENOSPC);
	assert_int_equal(op_odb_add(odb, 5, 1), 0);
	assert_int_equal(op_odb_nr_nodes(odb), key);
	disk_fails.fallocate = 0;
	passed_ns += RETRY_NS;
	assert_int_equal(op_odb_add(odb, key, 1), 0);
	stat_file(&after);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(sum_of(), key + 2);
	assert_int_equal(op_odb_total(odb), key + 2);
	op_odb_close(odb);
}

/*
 * Another file is at the path, or none: the next growth replaces it, so that readers see the
 * counts.
 */
static void without_the_file_there_is_another(void **state OP_UNUSED)
{
	for (int removed = 0; removed < 2; removed++) {
		struct op_odb *odb = open_with(600);
		int fd;

		assert_int_equal(unlinkat(dir_fd, PATH, 0), 0);
		if (!removed) {
			fd = openat(dir_fd, PATH, O_WRONLY | O_CREAT | O_EXCL, 0644);
			assert_int_equal(write(fd, "x", 1), 1);
			close(fd);
		}
		for (uint64_t key = 600; key < 1500; key++)
			assert_int_equal(op_odb_add(odb, key, 1), 0);
		assert_int_equal(sum_of(), 1500);
		op_odb_close(odb);
		assert_int_equal(unlinkat(dir_fd, PATH, 0), 0);
	}
}

/* ---- disk space of a file ---- */

/* Parts of pages at three ends, and a block for the file system's extent tree. */
#define BESIDE_BYTES (4 * PAGE_BYTES)

static void blocks_come_with_the_nodes(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();
	uint64_t needed, bytes;

	for (uint64_t key = 0; key < 40000; key++) {
		assert_int_equal(op_odb_add(odb, key * 16 + 16, 1), 0);
		if (key % 97)
			continue;
		weigh(key + 1, &needed, &bytes);
		assert_true(bytes >= needed);
		assert_true(bytes <= needed + key / 8 * sizeof(struct op_odb_node) + BESIDE_BYTES);
	}
	op_odb_close(odb);
	odb = open_odb();
	assert_int_equal(op_odb_dropped(odb), 0);
	weigh(40000, &needed, &bytes);
	assert_true(bytes <= needed + 40000 / 8 * sizeof(struct op_odb_node) + BESIDE_BYTES);
	op_odb_close(odb);
}

/* A compact file keeps its nodes, and a writer can still open it. */
static void a_compact_file_has_its_nodes_only(void **state OP_UNUSED)
{
	struct op_odb_samples before, after;
	struct op_odb *odb = open_with(3000);
	uint64_t needed, bytes;
	struct stat st;

	op_odb_close(odb);
	assert_int_equal(op_odb_read(dir_fd, PATH, &before, NULL), 0);
	assert_int_equal(op_odb_compact(dir_fd, PATH), 0);
	stat_file(&st);
	assert_true(op_odb_is_length((uint64_t)st.st_size));
	assert_true((uint64_t)st.st_blocks * 512 < OP_ODB_NODES_OFFSET + 3010 * sizeof(struct op_odb_node) + PAGE_BYTES);
	assert_int_equal(op_odb_read(dir_fd, PATH, &after, NULL), 0);
	assert_int_equal(before.nr_nodes, after.nr_nodes);
	assert_memory_equal(before.nodes, after.nodes, before.nr_nodes * sizeof(*before.nodes));
	op_odb_samples_free(&before);
	op_odb_samples_free(&after);
	disk_fails.fallocate = -ENOSPC; /* the writer needs blocks again */
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &before.header, &odb), -ENOSPC);
	disk_fails.fallocate = 0;
	odb = open_odb();
	assert_int_equal(op_odb_dropped(odb), 0);
	for (uint64_t key = 0; key < 3000; key++)
		assert_int_equal(op_odb_add(odb, key, 1), 0);
	assert_int_equal(op_odb_nr_nodes(odb), 3000);
	assert_int_equal(sum_of(), 6000);
	weigh(3000, &needed, &bytes);
	assert_true(bytes >= needed);
	op_odb_close(odb);
}

static void what_cannot_be_compact_stays_as_it_is(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(20);
	uint8_t before[FILE_BYTES], after[FILE_BYTES];
	int fd = openat(dir_fd, PATH, O_RDWR);

	op_odb_close(odb);
	assert_int_equal(pread(fd, before, sizeof(before), 0), FILE_BYTES);
	assert_int_equal(op_odb_compact(dir_fd, PATH), 0);
	assert_int_equal(pread(fd, after, sizeof(after), 0), FILE_BYTES);
	assert_memory_equal(before, after, FILE_BYTES); /* one block */
	assert_int_equal(ftruncate(fd, FILE_BYTES + 1), 0);
	assert_int_equal(op_odb_compact(dir_fd, PATH), -EUCLEAN);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	assert_int_equal(op_odb_compact(dir_fd, PATH), -EBADMSG);
	close(fd);
	assert_int_equal(unlinkat(dir_fd, PATH, 0), 0);
	assert_int_equal(op_odb_compact(dir_fd, PATH), -ENOENT);
	odb = open_with(3000);
	op_odb_close(odb);
	disk_fails.fallocate = -EOPNOTSUPP;
	assert_int_equal(op_odb_compact(dir_fd, PATH), -EOPNOTSUPP);
	assert_int_equal(sum_of(), 3000);
}

/* Written but not published, next to the others and behind a hole. */
static void what_was_not_published_is_found_behind_holes(void **state OP_UNUSED)
{
	static const uint32_t indices[] = { 2101, 2102, 3900 };
	static const struct op_odb_node node = { .key = 77, .value = 1 };
	struct op_odb_node found;
	struct op_odb *odb = open_with(2100);
	int fd;

	op_odb_close(odb);
	fd = openat(dir_fd, PATH, O_RDWR);
	for (size_t i = 0; i < op_array_size(indices); i++)
		assert_int_equal(pwrite(fd, &node, sizeof(node), (off_t)(OP_ODB_NODES_OFFSET + indices[i] * sizeof(node))),
				 sizeof(node));
	odb = open_odb();
	assert_int_equal(op_odb_dropped(odb), op_array_size(indices));
	for (size_t i = 0; i < op_array_size(indices); i++) {
		assert_int_equal(pread(fd, &found, sizeof(found), (off_t)(OP_ODB_NODES_OFFSET + indices[i] * sizeof(node))),
				 sizeof(node));
		assert_int_equal(found.key, 0);
		assert_int_equal(found.value, 0);
	}
	assert_int_equal(op_odb_total(odb), 2100);
	close(fd);
	op_odb_close(odb);
}

/* ---- file systems without fallocate ---- */

static void blocks_are_written_where_they_cannot_be_asked_for(void **state OP_UNUSED)
{
	struct op_odb *odb;
	uint64_t needed, bytes;
	struct stat st;

	disk_fails.fallocate = -EOPNOTSUPP;
	odb = open_odb();
	stat_file(&st);
	assert_int_equal(st.st_size, FILE_BYTES);
	assert_true(st.st_blocks * 512 >= FILE_BYTES);
	for (uint64_t key = 0; key < 20000; key++)
		assert_int_equal(op_odb_add(odb, key, 1), 0);
	op_odb_close(odb);
	stat_file(&st);
	assert_true(op_odb_is_length((uint64_t)st.st_size));
	weigh(20000, &needed, &bytes);
	assert_true(bytes >= needed);
	assert_int_equal(sum_of(), 20000);
}

static void a_sparse_copy_gets_its_blocks_and_keeps_its_counts(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(3000);
	uint64_t needed, bytes;
	int fd;

	op_odb_close(odb);
	fd = openat(dir_fd, PATH, O_WRONLY);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096 * 16 / 4096 * 4096 + 4096, 8192), 0);
	close(fd);
	disk_fails.fallocate = -EOPNOTSUPP;
	odb = open_odb();
	assert_int_equal(op_odb_total(odb), 3000);
	op_odb_close(odb);
	weigh(3000, &needed, &bytes);
	assert_true(bytes >= needed);
	assert_int_equal(sum_of(), 3000);
}

/* ---- lost pages ---- */

/* In each test, since cmocka sets its own handler for each. */
static void cut_short(void)
{
	int fd = openat(dir_fd, PATH, O_WRONLY | O_TRUNC);

	close(fd);
	assert_int_equal(op_guard_install(), 0);
}

static void a_file_that_is_cut_short_is_broken(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(100);
	struct op_odb_addition additions[] = { { .odb = odb, .key = 5, .count = 1 }, { .odb = odb, .key = 500, .count = 1 } };
	uint32_t nr_broken = op_guard_nr_broken();

	cut_short();
	op_odb_add_all(additions, 2);
	assert_int_equal(additions[0].error, -EIO);
	assert_int_equal(additions[1].error, -EIO);
	assert_int_equal(op_guard_nr_broken(), nr_broken + 1);
	assert_true(op_odb_is_broken(odb));
	assert_int_equal(op_odb_total(odb), 100);
	assert_int_equal(op_odb_renew(odb), -EIO);
	op_odb_close(odb);
}

static void nothing_broken_takes_the_place_of_a_file(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(127);
	struct stat st;

	cut_short();
	assert_int_equal(op_odb_renew(odb), -EIO); /* the thread that sees it first */
	assert_int_equal(op_odb_add(odb, 1000, 1), -EIO);
	op_odb_close(odb);
	stat_file(&st);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
}

static void a_number_of_nodes_that_cannot_be_is_refused(void **state OP_UNUSED)
{
	static const uint32_t numbers[] = { 0, 129, UINT32_MAX };

	for (size_t i = 0; i < op_array_size(numbers); i++) {
		struct op_odb *odb = open_with(10);
		int fd = openat(dir_fd, PATH, O_WRONLY);

		assert_int_equal(pwrite(fd, &numbers[i], 4, 76), 4);
		close(fd);
		assert_int_equal(op_odb_add(odb, 1000, 1), -EBADMSG);
		assert_true(op_odb_is_broken(odb));
		op_odb_close(odb);
		unlinkat(dir_fd, PATH, 0);
	}
}

/* ---- open files that somebody overwrites ---- */

static void write_over(uint64_t offset, const void *bytes, size_t nr_bytes)
{
	int fd = openat(dir_fd, PATH, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, nr_bytes, (off_t)offset), nr_bytes);
	close(fd);
}

static uint64_t offset_of(uint32_t index)
{
	return OP_ODB_NODES_OFFSET + index * sizeof(struct op_odb_node);
}

/* After it is closed and opened again, the file has all nodes and takes counts. */
static void check_mended(struct op_odb *odb, uint64_t total)
{
	assert_true(op_odb_is_broken(odb));
	op_odb_close(odb);
	odb = open_odb();
	assert_int_equal(op_odb_total(odb), total);
	assert_int_equal(op_odb_add(odb, 1 << 20, 1), 0);
	assert_false(op_odb_is_broken(odb));
	op_odb_close(odb);
	unlinkat(dir_fd, PATH, 0);
}

/* The file has none of these keys, but has a chain for each. */
static void add_to_all(struct op_odb *odb, int wanted)
{
	struct op_odb_addition additions[OP_ODB_ADDITIONS_MAX];

	for (uint32_t i = 0; i < op_array_size(additions); i++)
		additions[i] = (struct op_odb_addition){ .odb = odb, .key = (1 << 20) + i, .count = 1 };
	op_odb_add_all(additions, op_array_size(additions));
	for (uint32_t i = 0; i < op_array_size(additions); i++)
		assert_int_equal(additions[i].error, wanted);
}

static void a_chain_in_a_circle_ends(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(120);

	for (uint32_t i = 1; i <= 120; i++)
		write_over(offset_of(i) + offsetof(struct op_odb_node, next), &i, sizeof(i));
	assert_int_equal(op_odb_add(odb, 1 << 20, 1), -EBADMSG);
	assert_false(op_odb_has(odb, 1 << 20));
	check_mended(odb, 120);
}

static void a_chain_does_not_leave_the_file(void **state OP_UNUSED)
{
	static const uint32_t beyond[] = { OP_ODB_INITIAL_SIZE, 1u << 27, UINT32_MAX / 2, UINT32_MAX };
	uint32_t buckets[OP_ODB_INITIAL_SIZE];

	for (size_t i = 0; i < op_array_size(beyond); i++) {
		struct op_odb *odb = open_with(120);

		for (uint32_t j = 0; j < op_array_size(buckets); j++)
			buckets[j] = beyond[i];
		write_over(offset_of(OP_ODB_INITIAL_SIZE), buckets, sizeof(buckets));
		add_to_all(odb, -EBADMSG);
		check_mended(odb, 120);
		odb = open_with(120);
		for (uint32_t j = 1; j <= 120; j++)
			write_over(offset_of(j) + offsetof(struct op_odb_node, next), &beyond[i], sizeof(beyond[i]));
		assert_int_equal(op_odb_add(odb, 1 << 20, 1), -EBADMSG);
		check_mended(odb, 120);
	}
}

static void fill_at_random(unsigned char *bytes, size_t nr_bytes, unsigned int *seed)
{
	for (size_t i = 0; i < nr_bytes; i++)
		bytes[i] = (unsigned char)(rand_r(seed) >> 8);
}

/* The search ends and stays within the file, whatever the links are. */
static void garbage_is_endured(void **state OP_UNUSED)
{
	unsigned char bytes[OP_ODB_INITIAL_SIZE * 20];

	for (unsigned int run = 0, seed = 1; run < 300; run++) {
		struct op_odb *odb = open_with(100);
		struct op_odb_header header = *op_odb_header(odb);
		uint64_t begin = run % 3 ? OP_ODB_NODES_OFFSET : sizeof(header);

		fill_at_random(bytes, sizeof(bytes), &seed);
		write_over(begin, bytes, sizeof(bytes));
		for (uint64_t key = 0; key < 200; key++)
			if (op_odb_add(odb, key, 1) && op_odb_is_broken(odb))
				break;
		op_odb_close(odb);
		if (!op_odb_open(dir_fd, PATH, TMP, &header, &odb)) {
			assert_int_equal(op_odb_add(odb, 1 << 20, 1), 0);
			op_odb_close(odb);
		}
		unlinkat(dir_fd, PATH, 0);
	}
}

/* As cp does with the file of a saved session. */
static void a_larger_file_is_written_over_it(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(2000);
	unsigned char bytes[65536];
	int fd = openat(dir_fd, PATH, O_RDONLY);
	ssize_t nr = read(fd, bytes, sizeof(bytes));

	close(fd);
	op_odb_close(odb);
	unlinkat(dir_fd, PATH, 0);
	assert_true(nr > (ssize_t)op_odb_file_bytes(1024));
	odb = open_with(100);
	write_over(0, bytes, (size_t)nr);
	assert_true(op_odb_is_broken(odb));
	assert_int_equal(op_odb_add(odb, 1 << 20, 1), -EBADMSG);
	assert_int_equal(op_odb_renew(odb), -EBADMSG);
	check_mended(odb, 2000);
}

static void a_header_is_written_over(void **state OP_UNUSED)
{
	static const char zeros[8];
	struct op_odb *odb = open_with(127);

	write_over(0, zeros, sizeof(zeros));
	assert_true(op_odb_is_broken(odb));
	/* the file is full, and is not replaced */
	assert_int_equal(op_odb_add(odb, 1 << 20, 1), -EBADMSG);
	assert_int_equal(op_odb_add(odb, 5, 1), 0);
	op_odb_close(odb);
	assert_int_equal(op_odb_open(dir_fd, PATH, TMP, &odb_header, &odb), -EBADMSG);
}

/* A second node of key 0 at an index where it would look torn. */
static void a_place_is_held_behind_the_key_0(void **state OP_UNUSED)
{
	struct op_odb *odb = open_odb();

	for (uint64_t key = 1; key <= 23; key++)
		assert_int_equal(op_odb_add(odb, key, 1), 0);
	assert_int_equal(op_odb_add(odb, 0, UINT32_MAX), 0);
	assert_int_equal(op_odb_add(odb, 0, 5), 0);
	assert_int_equal(op_odb_nr_nodes(odb), 26);
	op_odb_close(odb);
	assert_int_equal(sum_of(), 23 + (uint64_t)UINT32_MAX + 5);
	odb = open_odb();
	assert_int_equal(op_odb_dropped(odb), 0);
	op_odb_close(odb);
}

static void a_renewed_file_is_another_with_the_same_counts(void **state OP_UNUSED)
{
	struct op_odb *odb = open_with(300);
	struct op_odb_pending *pending;
	struct stat before, after;

	op_odb_mark_dumped(odb);
	stat_file(&before);
	assert_int_equal(op_odb_renew(odb), 0);
	stat_file(&after);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(op_odb_add(odb, 1, 1), 0);
	assert_int_equal(op_odb_total(odb), 301);
	assert_int_equal(sum_of(), 301);
	pending = op_odb_take_pending(odb);
	assert_non_null(pending);
	assert_int_equal(op_odb_sync_pending(dir_fd, pending), 0);
	op_odb_close(odb);
	odb = open_odb();
	assert_int_equal(op_odb_total(odb), 301);
	op_odb_close(odb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		odb_test(full_disk_at_growth_keeps_the_file),
		odb_test(full_disk_is_not_asked_for_each_sample),
		odb_test(full_disk_between_growths_keeps_the_file),
		odb_test(without_the_file_there_is_another),
		odb_test(blocks_come_with_the_nodes),
		odb_test(what_was_not_published_is_found_behind_holes),
		odb_test(a_compact_file_has_its_nodes_only),
		odb_test(what_cannot_be_compact_stays_as_it_is),
		odb_test(blocks_are_written_where_they_cannot_be_asked_for),
		odb_test(a_sparse_copy_gets_its_blocks_and_keeps_its_counts),
		odb_test(a_file_that_is_cut_short_is_broken),
		odb_test(nothing_broken_takes_the_place_of_a_file),
		odb_test(a_number_of_nodes_that_cannot_be_is_refused),
		odb_test(a_renewed_file_is_another_with_the_same_counts),
		odb_test(a_chain_in_a_circle_ends),
		odb_test(a_chain_does_not_leave_the_file),
		odb_test(garbage_is_endured),
		odb_test(a_larger_file_is_written_over_it),
		odb_test(a_header_is_written_over),
		odb_test(a_place_is_held_behind_the_key_0),
	};

	return cmocka_run_group_tests_name("odb faults", tests, NULL, NULL);
}
