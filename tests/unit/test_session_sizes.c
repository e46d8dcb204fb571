/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sizes of sessions are those on the disk, whatever a user removes, adds or renames: at once
 * where the directory of a session shows it, else after one round of the check. A look reads few
 * directory entries however many files there are.
 */
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/jobs/session_sizes.h"
#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/test_box.h"

#define NR_FILES    (2 * OPD_SIZES_ENTRIES) /* of the large session, in one directory */
#define NR_SMALL    5u
#define ROUND_LOOKS (NR_FILES / OPD_SIZES_ENTRIES + 2)
#define LARGE       "samples/large/{root}/usr/lib/"
#define BATCH       512u /* more entries than one call returns */

static char dir[BOX_PATH_BYTES];
static int session_fd;
static struct opd_session_sizes sizes;
static uint64_t nr_read; /* entries of directories */
static bool *stop;       /* is set by the next reading */

ssize_t __real_op_sys_getdents(int fd, void *buffer, size_t nr_bytes);
ssize_t __wrap_op_sys_getdents(int fd, void *buffer, size_t nr_bytes);

ssize_t __wrap_op_sys_getdents(int fd, void *buffer, size_t nr_bytes)
{
	ssize_t nr = __real_op_sys_getdents(fd, buffer, nr_bytes);

	for (ssize_t at = 0; at < nr; nr_read++)
		at += ((const struct dirent64 *)(const void *)((char *)buffer + at))->d_reclen;
	if (stop)
		*stop = true;
	return nr;
}

static void put(const char *path, size_t nr_bytes)
{
	char *bytes = calloc(1, nr_bytes + 1);
	int fd;

	sample_write_bytes(session_fd, path, bytes, nr_bytes);
	free(bytes);
	/* A file system may add a block when it writes the file, perhaps between two weighings. */
	fd = openat(session_fd, path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && !fsync(fd) && !close(fd));
}

/* Links to one file are made fast, and each of them is weighed. */
static void put_large(unsigned int first, unsigned int nr)
{
	char path[100];

	put(LARGE "file", 1);
	for (unsigned int i = first; i < first + nr; i++) {
		snprintf(path, sizeof(path), LARGE "file%u", i);
		assert_int_equal(linkat(session_fd, LARGE "file", session_fd, path, 0), 0);
	}
}

static void remove_large(unsigned int first, unsigned int nr)
{
	char path[100];

	for (unsigned int i = first; i < first + nr; i++) {
		snprintf(path, sizeof(path), LARGE "file%u", i);
		assert_int_equal(unlinkat(session_fd, path, 0), 0);
	}
}

static int sizes_setup(void **state OP_UNUSED)
{
	char path[100];

	if (box_make(dir))
		return -1;
	session_fd = op_session_open(dir);
	sizes = (struct opd_session_sizes){ .session_fd = session_fd };
	for (unsigned int i = 0; i < NR_SMALL; i++) {
		snprintf(path, sizeof(path), "samples/small%u/{root}/bin/a/file", i);
		put(path, 10000 * i);
	}
	put(OP_SESSION_CURRENT "/{root}/bin/a/file", 50000);
	return session_fd < 0 ? -1 : 0;
}

static int sizes_teardown(void **state OP_UNUSED)
{
	opd_sizes_free(&sizes);
	close(session_fd);
	return box_remove(dir);
}

static uint64_t weigh(const char *path)
{
	uint64_t nr_bytes;

	assert_int_equal(op_session_disk_bytes(session_fd, path, &nr_bytes), 0);
	return nr_bytes;
}

/* All sessions but the current one, without the directory samples itself. */
static uint64_t closed_bytes(void)
{
	struct stat st;

	assert_int_equal(fstatat(session_fd, "samples", &st, 0), 0);
	return weigh("samples") - weigh(OP_SESSION_CURRENT) - (uint64_t)st.st_blocks * 512;
}

static void look(void)
{
	struct stat st;

	assert_int_equal(fstatat(session_fd, OP_SESSION_CURRENT, &st, 0), 0);
	sizes.current.inode = st.st_ino;
	nr_read = 0;
	assert_int_equal(opd_sizes_look(&sizes, true), 0);
}

static void look_at_all(void)
{
	for (unsigned int i = 0; i < ROUND_LOOKS; i++)
		look();
}

static uint64_t reported(void)
{
	return opd_sizes_closed_bytes(&sizes);
}

/* What the directories of the sessions show is known with the next look. */
static void sessions_that_come_and_go(void **state OP_UNUSED)
{
	put_large(0, NR_FILES);
	look();
	assert_int_equal(reported(), closed_bytes());
	assert_int_equal(op_session_remove(session_fd, "samples/small2"), 0);
	put("samples/new/{root}/bin/a/file", 123456);
	put("samples/small1/note", 45678);
	look();
	assert_int_equal(reported(), closed_bytes());
	assert_int_equal(renameat(session_fd, "samples/new", session_fd, "samples/newer"), 0);
	assert_int_equal(op_session_remove(session_fd, "samples/small3"), 0);
	put("samples/small3/{root}/bin/a/file", 234567);
	look();
	assert_int_equal(reported(), closed_bytes());
}

/* A session becomes smaller until its mark is removed. */
static void a_session_that_is_written(void **state OP_UNUSED)
{
	struct stat st;

	put_large(0, NR_FILES);
	put("samples/large/" OP_SESSION_CLOSING, 0);
	look();
	assert_int_equal(reported(), closed_bytes());
	remove_large(10, 10);
	look();
	assert_int_equal(reported(), closed_bytes());
	remove_large(0, 10);
	assert_int_equal(unlinkat(session_fd, "samples/large/" OP_SESSION_CLOSING, 0), 0);
	/* The time of the directory need not show it: it changes with the kernel's tick. */
	assert_int_equal(fstatat(session_fd, "samples/large", &st, 0), 0);
	assert_string_equal(sizes.sessions[1].name, "large");
	sizes.sessions[1].changed_ns = (uint64_t)st.st_ctim.tv_sec * OP_NS_PER_S + (uint64_t)st.st_ctim.tv_nsec;
	look();
	assert_int_equal(reported(), closed_bytes());
}

static void files_that_come_and_go(void **state OP_UNUSED)
{
	put_large(0, NR_FILES);
	look();
	assert_int_equal(reported(), closed_bytes());
	remove_large(0, NR_FILES / 2);
	look_at_all();
	assert_int_equal(reported(), closed_bytes());
	put_large(NR_FILES, 1000);
	put("samples/small0/{root}/bin/a/file", 345678); /* grows in its place */
	look_at_all();
	assert_int_equal(reported(), closed_bytes());
}

/* In a session that is removed and put back while it is weighed, and one that goes for good. */
static void a_session_that_changes_in_the_check(void **state OP_UNUSED)
{
	put_large(0, NR_FILES);
	look();
	look();
	assert_true(sizes.is_begun);
	assert_int_equal(op_session_remove(session_fd, "samples/large"), 0);
	put_large(0, 10);
	look();
	assert_int_equal(reported(), closed_bytes());
	look_at_all();
	assert_int_equal(reported(), closed_bytes());
	put_large(10, NR_FILES);
	look_at_all();
	while (!sizes.is_begun)
		look();
	assert_int_equal(op_session_remove(session_fd, "samples/large"), 0);
	look();
	assert_int_equal(reported(), closed_bytes());
}

/* The limit holds within one directory, too. */
static void a_look_reads_few_entries(void **state OP_UNUSED)
{
	put_large(0, NR_FILES);
	look();
	assert_true(nr_read > NR_FILES); /* all is new */
	for (int i = 0; i < 10; i++) {
		look();
		assert_in_range(nr_read, 1, OPD_SIZES_ENTRIES + BATCH);
	}
}

/* Few files are all weighed in each look. */
static void small_sessions_are_checked_at_once(void **state OP_UNUSED)
{
	look();
	put("samples/small0/{root}/bin/a/file", 345678);
	put("samples/small4/{root}/bin/a/other", 45678);
	look();
	assert_int_equal(reported(), closed_bytes());
}

static void make_current_large(void)
{
	put_large(0, NR_FILES);
	assert_int_equal(renameat2(session_fd, "samples/large", session_fd, OP_SESSION_CURRENT, RENAME_EXCHANGE), 0);
}

/* Looks until the current session was weighed. Its account grows meanwhile. */
static void look_until_weighed(uint64_t growth)
{
	sizes.weighed.inode = 0;
	for (unsigned int i = 0; i < ROUND_LOOKS && !sizes.weighed.inode; i++) {
		look();
		sizes.current.taken_bytes += growth;
	}
	assert_int_equal(sizes.weighed.disk_bytes, weigh(OP_SESSION_CURRENT));
}

/* It counts its own bytes. Its account when the weighing began comes with the weight. */
static void the_current_session(void **state OP_UNUSED)
{
	make_current_large();
	sizes.current.nr_begun = 7;
	sizes.current.taken_bytes = 1000;
	look();
	assert_int_equal(sizes.current.disk_bytes, 1000);
	assert_int_equal(reported(), closed_bytes());
	look_until_weighed(0);
	assert_int_equal(sizes.weighed.taken_bytes, 1000);
	assert_int_equal(sizes.weighed.nr_begun, 7);
	sizes.current.taken_bytes = 2000;
	look_until_weighed(1000);
	assert_int_equal(sizes.weighed.taken_bytes, 2000);
	assert_true(sizes.current.taken_bytes > 3000);
}

/* It has grown by much. */
static void the_current_session_is_due(void **state OP_UNUSED)
{
	make_current_large();
	sizes.is_due = true;
	sizes.current.taken_bytes = 1000;
	look();
	assert_int_equal(sizes.weighed.disk_bytes, weigh(OP_SESSION_CURRENT));
	assert_int_equal(sizes.weighed.taken_bytes, 1000);
	assert_int_equal(sizes.current.disk_bytes, weigh(OP_SESSION_CURRENT));
	assert_int_equal(reported(), closed_bytes());
}

/* A check that goes on in another session would say nothing about either. */
static void the_current_session_is_emptied_in_the_check(void **state OP_UNUSED)
{
	make_current_large();
	look();
	assert_true(sizes.is_begun);
	assert_int_equal(op_session_remove(session_fd, OP_SESSION_CURRENT "/{root}"), 0);
	sizes.current.nr_begun++;
	look_until_weighed(0);
	assert_int_equal(sizes.weighed.nr_begun, 1);
}

/* A session that is closed between the account and the look is counted once. */
static void a_session_that_is_closed_before_the_look(void **state OP_UNUSED)
{
	struct stat st;

	look();
	assert_int_equal(fstatat(session_fd, OP_SESSION_CURRENT, &st, 0), 0);
	assert_int_equal(renameat2(session_fd, "samples/small1", session_fd, OP_SESSION_CURRENT, RENAME_EXCHANGE), 0);
	sizes.current.inode = st.st_ino;
	assert_int_equal(opd_sizes_look(&sizes, true), 0);
	assert_int_equal(reported(), closed_bytes() - weigh("samples/small1"));
	look();
	assert_int_equal(reported(), closed_bytes());
}

static void the_end_of_the_daemon(void **state OP_UNUSED)
{
	put_large(0, NR_FILES);
	stop = &sizes.is_stopped;
	assert_int_equal(opd_sizes_look(&sizes, true), -ECANCELED);
	stop = NULL;
	assert_true(nr_read < NR_FILES);
	sizes.is_stopped = false;
	look();
	assert_int_equal(reported(), closed_bytes());
}

#define T(name) cmocka_unit_test_setup_teardown(name, sizes_setup, sizes_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(sessions_that_come_and_go),
		T(a_session_that_is_written),
		T(files_that_come_and_go),
		T(a_session_that_changes_in_the_check),
		T(a_look_reads_few_entries),
		T(small_sessions_are_checked_at_once),
		T(the_current_session),
		T(the_current_session_is_due),
		T(the_current_session_is_emptied_in_the_check),
		T(a_session_that_is_closed_before_the_look),
		T(the_end_of_the_daemon),
	};

	return cmocka_run_group_tests_name("session_sizes", tests, NULL, NULL);
}
