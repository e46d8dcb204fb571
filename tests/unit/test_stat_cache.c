/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files that were looked at lately: one question to a looker is about all of them, and a file that
 * is not as it was is looked at by itself.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/session/dcookie.h"
#include "pipeline/resolve/stat_cache.h"
#include "tests/unit/test_box.h"

#define FILES    6u

static struct opd_mount_views views;
static struct opd_stat_cache cache;
static char directory[BOX_PATH_BYTES], paths[FILES][128];
static struct opd_mapped mapped[FILES];
static struct opd_located located[FILES];
static size_t nr_questions;
static bool no_answers;

int __wrap_opd_look(struct opd_lookers *lookers, const struct opd_look_about *about, enum opd_look look,
		    const struct iovec *parts, size_t nr_parts, int fd, uint32_t *serial, struct op_text *ret_answer);

/* The looker is this process, so each question has its answer, however busy the machine is. */
int __wrap_opd_look(struct opd_lookers *lookers OP_UNUSED, const struct opd_look_about *about, enum opd_look look,
		    const struct iovec *parts, size_t nr_parts, int fd OP_UNUSED, uint32_t *serial OP_UNUSED,
		    struct op_text *ret_answer)
{
	nr_questions++;
	assert_int_equal(look, OPD_LOOK_UNCHANGED);
	assert_int_equal(nr_parts, 1);
	assert_true(about->is_files);
	return no_answers ? -EBUSY : opd_unchanged_answer(parts->iov_base, parts->iov_len, ret_answer);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static uint64_t cookie_of(size_t i)
{
	return i + 1;
}

/* As if it had been looked at for a mapping. */
static void note_file(size_t i)
{
	struct opd_located *file = &located[i];
	int fd = open(paths[i], O_PATH | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &file->stat), 0);
	file->inode_generation = opd_generation_of(fd, file->stat.stx_ino);
	close(fd);
	file->seen = file->on_host = file->knows_owner = true;
	op_text_truncate(&file->path, 0);
	op_text_add(&file->path, paths[i]);
	mapped[i] = (struct opd_mapped){
		.pid = (uint32_t)getpid(),
		.name = paths[i],
		.device = makedev(file->stat.stx_dev_major, file->stat.stx_dev_minor),
		.inode = file->stat.stx_ino,
		.inode_generation = file->inode_generation,
		.time_ns = op_now_ns(),
		.mount_views = &views,
		.stat_cache = &cache,
	};
}

static size_t nr_kept(void)
{
	size_t nr = 0;

	for (size_t i = 0; i < OPD_STAT_CACHE_SLOTS; i++)
		nr += cache.slots[i].cookie != OP_DCOOKIE_NONE;
	return nr;
}

/* A file whose slot in the cache no other file has. */
static void make_file(size_t i)
{
	for (unsigned int serial = 0;; serial++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%zu.%u", directory, i, serial);
		write_file(paths[i], "text");
		note_file(i);
		opd_stat_cache_keep(&mapped[i], &located[i], op_now_ns(), cookie_of(i));
		if (nr_kept() == i + 1)
			return;
		unlink(paths[i]);
	}
}

static int set_up(void **state OP_UNUSED)
{
	static char nobody;

	views.lookers = (struct opd_lookers *)&nobody;
	if (box_make(directory))
		return -1;
	for (size_t i = 0; i < FILES; i++)
		make_file(i);
	opd_stat_cache_clear(&cache);
	nr_questions = 0;
	no_answers = false;
	return 0;
}

static int tear_down(void **state OP_UNUSED)
{
	opd_stat_cache_clear(&cache);
	opd_mount_views_free(&views);
	for (size_t i = 0; i < FILES; i++) {
		op_text_free(&located[i].path);
		unlink(paths[i]);
	}
	return rmdir(directory);
}

static void keep_all(void)
{
	for (size_t i = 0; i < FILES; i++)
		opd_stat_cache_keep(&mapped[i], &located[i], op_now_ns(), cookie_of(i));
}

/* The files are mapped once more. */
static void map_again(void)
{
	for (size_t i = 0; i < FILES; i++)
		mapped[i].time_ns = op_now_ns();
}

static void assert_known(size_t first)
{
	for (size_t i = first; i < FILES; i++)
		assert_int_equal(opd_stat_cache_find(&mapped[i]), cookie_of(i));
}

static void one_question_for_all(void **state OP_UNUSED)
{
	keep_all();
	assert_known(0);
	assert_int_equal(nr_questions, 0);
	for (size_t round = 1; round < 4; round++) {
		map_again();
		assert_known(0);
		assert_int_equal(nr_questions, round);
	}
}

/* Of the files that were not mapped lately, the first one is asked about by itself. */
static void the_second_question_of_a_visit_is_for_all(void **state OP_UNUSED)
{
	keep_all();
	for (size_t round = 0; round < 2; round++) {
		mapped[0].time_ns = op_now_ns();
		assert_int_equal(opd_stat_cache_find(&mapped[0]), cookie_of(0));
	}
	assert_int_equal(nr_questions, 2);
	map_again();
	assert_known(0);
	assert_int_equal(nr_questions, 4);
}

static void set_time(const char *path, struct timespec time)
{
	assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){ { .tv_nsec = UTIME_OMIT }, time }, 0), 0);
}

static void a_file_that_changed(void **state OP_UNUSED)
{
	struct stat st;

	located[3].inode_generation++; /* an earlier file had the inode */
	mapped[4].inode = ++located[4].stat.stx_ino;
	keep_all();
	set_time(paths[0], (struct timespec){ .tv_sec = 1 });
	assert_int_equal(stat(paths[1], &st), 0);
	write_file(paths[1], "longer text");
	set_time(paths[1], st.st_mtim);
	unlink(paths[2]);
	map_again();
	for (size_t i = 0; i < FILES - 1; i++)
		assert_int_equal(opd_stat_cache_find(&mapped[i]), OP_DCOOKIE_NONE);
	assert_known(FILES - 1);
	assert_int_equal(nr_questions, 1);
}

/* Another file has the path, with the same size and time. */
static void a_file_that_was_replaced(void **state OP_UNUSED)
{
	char other[160];
	struct stat st;

	keep_all();
	snprintf(other, sizeof(other), "%s.new", paths[0]);
	write_file(other, "text");
	assert_int_equal(stat(paths[0], &st), 0);
	set_time(other, st.st_mtim);
	assert_int_equal(rename(other, paths[0]), 0);
	map_again();
	assert_int_equal(opd_stat_cache_find(&mapped[0]), OP_DCOOKIE_NONE);
	assert_known(1);
}

/* Only what was proved to be the file of the record at this path is asked about so. */
static void what_is_not_proved(void **state OP_UNUSED)
{
	located[0].on_host = false;
	located[1].knows_owner = false; /* a FUSE server may have it */
	located[2].stat.stx_dev_minor++; /* the layer of an overlay */
	located[3].stat.stx_ino++;
	keep_all();
	assert_known(0);
	map_again();
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(opd_stat_cache_find(&mapped[i]), OP_DCOOKIE_NONE);
	assert_int_equal(nr_questions, 0);
	assert_known(4);
	assert_int_equal(nr_questions, 1);
}

/* A user's file that hangs costs the others nothing. */
static void each_owner_is_asked_about_alone(void **state OP_UNUSED)
{
	for (size_t i = 1; i < FILES; i++)
		located[i].stat.stx_uid = located[0].stat.stx_uid + 1;
	keep_all();
	map_again();
	no_answers = true;
	assert_int_equal(opd_stat_cache_find(&mapped[0]), OP_DCOOKIE_NONE);
	assert_int_equal(nr_questions, 1);
	no_answers = false;
	assert_known(1);
	assert_int_equal(nr_questions, 2);
}

/* Then they are looked at one by one, until they were located again. */
static void without_an_answer(void **state OP_UNUSED)
{
	keep_all();
	map_again();
	no_answers = true;
	for (size_t i = 0; i < FILES; i++)
		assert_int_equal(opd_stat_cache_find(&mapped[i]), OP_DCOOKIE_NONE);
	assert_int_equal(nr_questions, 1);
	no_answers = false;
	keep_all();
	assert_known(0);
	map_again();
	assert_known(0);
	assert_int_equal(nr_questions, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_question_for_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_second_question_of_a_visit_is_for_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_changed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_was_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_proved, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_owner_is_asked_about_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_an_answer, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
