/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The dcookie table on the disk: no appended row is lost, whatever fails and whoever else writes;
 * numbers and names stay the same.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "pipeline/ledger/cookie_file.h"
#include "tests/unit/disk.h"
#include "tests/unit/test_box.h"

#define PATH "samples/current/dcookies"
#define SECOND_NS 1000000000u

static char dir[BOX_PATH_BYTES];
static int dir_fd;
static struct opd_cookie_file file;
static struct op_dcookie_table *table;
static uint64_t now_ns;

/* ---- faults ---- */

static size_t write_bytes; /* of a write that fails, the bytes that there is room for */

ssize_t __real_op_sys_write(int fd, const void *buffer, size_t nr_bytes);
ssize_t __wrap_op_sys_write(int fd, const void *buffer, size_t nr_bytes);

ssize_t __wrap_op_sys_write(int fd, const void *buffer, size_t nr_bytes)
{
	if (disk_fails.write_all && write_bytes)
		return __real_op_sys_write(fd, buffer, write_bytes);
	return disk_fails.write_all ? disk_fails.write_all : __real_op_sys_write(fd, buffer, nr_bytes);
}

/* ---- a daemon's life ---- */

static void begin(void)
{
	table = op_dcookie_table_new();
	assert_int_equal(opd_cookie_file_open(&file, dir_fd, table), 0);
}

static void end(void)
{
	opd_cookie_file_close(&file);
	op_dcookie_table_free(table);
}

static int cookie_file_setup(void **state OP_UNUSED)
{
	memset(&disk_fails, 0, sizeof(disk_fails));
	write_bytes = 0;
	now_ns = SECOND_NS;
	dir_fd = box_make_open(dir);
	if (mkdirat(dir_fd, "samples", 0755) < 0 || mkdirat(dir_fd, "tmp", 0755) < 0)
		return -1;
	begin();
	return 0;
}

static int cookie_file_teardown(void **state OP_UNUSED)
{
	end();
	close(dir_fd);
	return box_remove(dir);
}

static uint64_t sample(const char *path, uint64_t inode)
{
	const struct op_image_id id = { .name = { .name = path }, .device = 1, .inode = inode };
	uint64_t cookie = op_dcookie_get(table, &id);

	assert_int_equal(op_dcookie_count_in(table, cookie, 5), 0);
	opd_cookie_file_flush(&file, now_ns);
	return cookie;
}

/* The cookie of a name as a reader of the file finds it; 0: none. Every line must be valid. */
static uint64_t found(const char *string)
{
	const struct op_image_name name = { .name = string };
	struct op_dcookie_table *reader = op_dcookie_table_new();
	struct op_dcookie_reading reading;
	uint64_t cookie;

	assert_int_equal(op_dcookie_table_read(reader, dir_fd, PATH, &reading), 0);
	assert_int_equal(reading.nr_bad, 0);
	cookie = op_dcookie_by_name(reader, &name);
	op_dcookie_table_free(reader);
	return cookie;
}

static void assert_sampled(const char *path, uint64_t inode)
{
	uint64_t cookie = sample(path, inode);

	assert_int_equal(found(path), cookie);
}

static uint64_t nr_errors(void)
{
	int err;

	return opd_cookie_file_errors(&file, &err);
}

static int publish(void)
{
	struct opd_cookie_snapshot *snapshot = opd_cookie_file_begin(&file);

	return opd_cookie_file_publish(&file, snapshot);
}

/* ---- tests ---- */

static void a_row_is_there_at_once_and_after_a_kill(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1), second = sample("/bin/a", 2), third;

	assert_int_equal(found("/bin/a"), first);
	assert_int_equal(found("/bin/a (inode 2)"), second);
	end();
	begin();
	assert_int_equal(sample("/bin/a", 2), second);
	assert_int_equal(sample("/bin/a", 1), first);
	assert_string_equal(op_dcookie_row(table, second)->name, "/bin/a (inode 2)");
	third = sample("/bin/a", 3);
	assert_true(third > second);
	assert_string_equal(op_dcookie_row(table, third)->name, "/bin/a (inode 3)");
}

static void numbers_of_torn_rows_are_not_given_again(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1), torn = sample("/bin/b", 2);
	struct stat st;

	assert_int_equal(fstatat(dir_fd, PATH, &st, 0), 0);
	end();
	{
		int fd = openat(dir_fd, PATH, O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, st.st_size - 3), 0);
		close(fd);
	}
	begin();
	assert_int_equal(file.nr_damaged_lines, 1);
	assert_int_equal(sample("/bin/a", 1), first);
	assert_true(sample("/bin/c", 3) > torn);
	assert_int_equal(found("/bin/b"), 0);
	assert_true(sample("/bin/b", 2) > torn + 1);
}

static void a_full_disk_is_counted_and_tried_again(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1), second, third;

	disk_fails.write_all = -ENOSPC;
	second = sample("/bin/b", 2);
	assert_int_equal(nr_errors(), 1);
	assert_int_equal(found("/bin/b"), 0);
	third = sample("/bin/c", 3);
	assert_int_equal(nr_errors(), 1); /* not at once */
	now_ns += 2 * (uint64_t)SECOND_NS;
	write_bytes = 10;
	opd_cookie_file_flush(&file, now_ns);
	assert_int_equal(nr_errors(), 2);
	assert_int_equal(found("/bin/a"), first);
	now_ns += 2 * (uint64_t)SECOND_NS;
	disk_fails.ftruncate = -EIO; /* not even the incomplete row can be cut off */
	opd_cookie_file_flush(&file, now_ns);
	memset(&disk_fails, 0, sizeof(disk_fails));
	write_bytes = 0;
	now_ns += 2 * (uint64_t)SECOND_NS;
	opd_cookie_file_flush(&file, now_ns);
	assert_int_equal(nr_errors(), 3);
	assert_int_equal(found("/bin/a"), first);
	assert_int_equal(found("/bin/b"), second);
	assert_int_equal(found("/bin/c"), third);
}

static void a_dump_writes_the_table_anew(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1);
	struct op_dcookie_table *reader = op_dcookie_table_new();
	struct op_dcookie_reading reading;

	op_dcookie_row(table, first)->last_seen = 99;
	assert_int_equal(publish(), 0);
	assert_int_equal(op_dcookie_table_read(reader, dir_fd, PATH, &reading), 0);
	assert_int_equal(op_dcookie_row(reader, first)->last_seen, 99);
	op_dcookie_table_free(reader);
	assert_int_equal(faccessat(dir_fd, "tmp/dcookies", F_OK, 0), -1);
	assert_sampled("/bin/b", 2);
	assert_int_equal(found("/bin/a"), first);
}

static void what_is_appended_during_a_dump_stays(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1), second, third;
	struct opd_cookie_snapshot *snapshot = opd_cookie_file_begin(&file), *other;

	second = sample("/bin/b", 2);
	assert_int_equal(found("/bin/b"), second); /* a kill now loses nothing */
	other = opd_cookie_file_begin(&file);      /* another dump */
	assert_int_equal(opd_cookie_file_publish(&file, other), 0);
	third = sample("/bin/c", 3);
	assert_int_equal(opd_cookie_file_publish(&file, snapshot), 0);
	assert_int_equal(found("/bin/a"), first);
	assert_int_equal(found("/bin/b"), second);
	assert_int_equal(found("/bin/c"), third);
	assert_sampled("/bin/d", 4);
	assert_int_equal(nr_errors(), 0);
}

static void a_dump_that_fails_leaves_the_file(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1);

	disk_fails.write_all = -ENOSPC;
	assert_int_equal(publish(), 0);
	assert_int_equal(nr_errors(), 1);
	memset(&disk_fails, 0, sizeof(disk_fails));
	disk_fails.renameat = -EIO;
	assert_int_equal(publish(), 0);
	assert_int_equal(nr_errors(), 2);
	disk_fails.fsync = -EIO;
	assert_int_equal(publish(), -EIO);
	memset(&disk_fails, 0, sizeof(disk_fails));
	assert_int_equal(faccessat(dir_fd, "tmp/dcookies", F_OK, 0), -1);
	assert_int_equal(found("/bin/a"), first);
	assert_int_equal(publish(), 0);
	assert_sampled("/bin/b", 2);
}

static void a_reset_during_a_dump_empties_the_table(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1), second;
	struct opd_cookie_snapshot *snapshot = opd_cookie_file_begin(&file);

	opd_cookie_file_reset(&file);
	assert_int_equal(unlinkat(dir_fd, PATH, 0), 0);
	assert_int_equal(opd_cookie_file_publish(&file, snapshot), 0);
	assert_int_equal(faccessat(dir_fd, PATH, F_OK, 0), -1);
	assert_int_equal(nr_errors(), 0);
	second = sample("/bin/b", 2);
	assert_true(second > first);
	assert_int_equal(found("/bin/a"), 0);
	assert_int_equal(found("/bin/b"), second);
}

static void a_file_that_somebody_removed_is_made_anew(void **state OP_UNUSED)
{
	uint64_t first = sample("/bin/a", 1), second;

	assert_int_equal(unlinkat(dir_fd, PATH, 0), 0);
	assert_int_equal(unlinkat(dir_fd, "samples/current", AT_REMOVEDIR), 0);
	second = sample("/bin/b", 2);
	assert_int_equal(found("/bin/a"), first);
	assert_int_equal(found("/bin/b"), second);
}

static void what_is_no_table_is_kept_aside(void **state OP_UNUSED)
{
	int fd;

	end();
	assert_int_equal(mkdirat(dir_fd, "samples/current", 0755), 0);
	fd = openat(dir_fd, PATH, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "opd-dcookies 2\n", 15), 15);
	close(fd);
	begin();
	assert_int_equal(nr_errors(), 1);
	assert_int_equal(faccessat(dir_fd, "damaged", F_OK, 0), 0);
	assert_sampled("/bin/a", 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, cookie_file_setup, cookie_file_teardown)
	const struct CMUnitTest tests[] = {
		T(a_row_is_there_at_once_and_after_a_kill), T(numbers_of_torn_rows_are_not_given_again),
		T(a_full_disk_is_counted_and_tried_again), T(a_dump_writes_the_table_anew), T(what_is_appended_during_a_dump_stays),
		T(a_dump_that_fails_leaves_the_file), T(a_reset_during_a_dump_empties_the_table),
		T(a_file_that_somebody_removed_is_made_anew), T(what_is_no_table_is_kept_aside),
	};

	return cmocka_run_group_tests_name("cookie_file", tests, NULL, NULL);
}
