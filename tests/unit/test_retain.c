/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which sessions are kept: by age, by size and by free space; and the sessions that nobody may
 * remove.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/jobs/retain.h"
#include "libop/base/clock.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/base/sys.h"
#include "libop/timeline/append.h"
#include "libop/timeline/read.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/test_box.h"

#define SECOND ((uint64_t)OP_NS_PER_S)
#define DAY    (86400 * SECOND)
#define NOW    (1795230000 * SECOND) /* 2026-11-21 03:00 UTC */
#define SIZE   100000u

static char dir[BOX_PATH_BYTES];
static int session_fd;
static uint64_t room; /* free bytes, besides the space of the sessions that exist */
static struct opd_retention retention;

/* The current session, as its daemon counts it. */
static void count_current(void)
{
	struct stat st;

	retention.sizes.session_fd = session_fd;
	assert_int_equal(fstatat(session_fd, OP_SESSION_CURRENT, &st, AT_SYMLINK_NOFOLLOW), 0);
	retention.sizes.current.inode = st.st_ino;
	assert_int_equal(op_session_disk_bytes(session_fd, OP_SESSION_CURRENT, &retention.sizes.current.taken_bytes), 0);
}

static int retain(const struct op_config *config)
{
	count_current();
	return opd_retain(&retention, config);
}

uint64_t __wrap_op_sys_wall_ns(void);
int __wrap_op_sys_statvfs(int fd, struct statvfs *ret_statvfs);

static uint64_t wall_ns, boot_ns;

uint64_t __wrap_op_sys_boot_ns(void);

uint64_t __wrap_op_sys_wall_ns(void)
{
	return wall_ns;
}

uint64_t __wrap_op_sys_boot_ns(void)
{
	return boot_ns;
}

static int publish_err; /* of a disk that is full */

int __real_op_file_publish(int dir_fd, const char *name, const char *text, mode_t mode);
int __wrap_op_file_publish(int dir_fd, const char *name, const char *text, mode_t mode);

int __wrap_op_file_publish(int dir_fd, const char *name, const char *text, mode_t mode)
{
	return publish_err ? publish_err : __real_op_file_publish(dir_fd, name, text, mode);
}

static int remove_err; /* of a disk that cannot any more */
static const char *remove_err_of; /* remove_err is for this session only; NULL: for all */
static unsigned int nr_written_meanwhile; /* removals that find new files in the directory */

int __real_op_session_remove(int dir_fd, const char *path);
int __wrap_op_session_remove(int dir_fd, const char *path);

int __wrap_op_session_remove(int dir_fd, const char *path)
{
	if (nr_written_meanwhile) {
		nr_written_meanwhile--;
		return -ENOTEMPTY;
	}
	return remove_err && (!remove_err_of || strstr(path, remove_err_of)) ? remove_err : __real_op_session_remove(dir_fd, path);
}

/* This session is replaced by another one when the daemon comes to remove it; NULL: none. */
static const char *replaced;

int __real_op_file_rename_below(int dir_fd, const char *path, const char *new_path);
int __wrap_op_file_rename_below(int dir_fd, const char *path, const char *new_path);

int __wrap_op_file_rename_below(int dir_fd, const char *path, const char *new_path)
{
	if (replaced && !strcmp(path, replaced)) {
		replaced = NULL;
		assert_int_equal(__real_op_file_rename_below(dir_fd, path, "elsewhere/old"), 0);
		assert_int_equal(__real_op_file_rename_below(dir_fd, "samples/mine", path), 0);
	}
	return __real_op_file_rename_below(dir_fd, path, new_path);
}

static const char *const days[] = { "2026-11-17T00:00Z", "2026-11-18T00:00Z", "2026-11-19T00:00Z", "2026-11-19T00:00Z-02" };

static bool is_there(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "samples/%s", name);
	return !faccessat(session_fd, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* The space of a session is free once the session is gone. */
int __wrap_op_sys_statvfs(int fd OP_UNUSED, struct statvfs *ret_statvfs)
{
	uint64_t bytes = room;

	for (size_t i = 0; i < op_array_size(days); i++)
		bytes += is_there(days[i]) ? 0 : SIZE;
	*ret_statvfs = (struct statvfs){ .f_bavail = bytes, .f_frsize = 1 };
	return 0;
}

static void make(const char *name, enum op_session_end ended, uint64_t end_ns)
{
	struct op_session_ledger ledger = { .ended = ended, .begin_ns = end_ns - DAY, .end_ns = end_ns };
	struct op_text text = { 0 };
	char path[300], *bytes = calloc(1, SIZE);

	op_session_ledger_format(&ledger, &text);
	snprintf(path, sizeof(path), "samples/%s/ledger", name);
	sample_write_bytes(session_fd, path, text.data, text.length);
	snprintf(path, sizeof(path), "samples/%s/{root}/bin/a/{dep}/{root}/bin/a/file", name);
	sample_write_bytes(session_fd, path, bytes, SIZE);
	op_text_free(&text);
	free(bytes);
}

/* The state that a daemon left which ran until then. */
static void write_clock(uint64_t trusted_ns)
{
	char text[100];

	snprintf(text, sizeof(text), "opd-clock 1\ntrusted\t%llu\nclaimed\t0\nheld\t0\n",
		 (unsigned long long)(trusted_ns / SECOND));
	sample_write_bytes(session_fd, OPD_TRUSTED_CLOCK_FILE, text, strlen(text));
}

static int sessions_setup(void **state OP_UNUSED)
{
	if (box_make(dir))
		return -1;
	session_fd = op_session_open(dir);
	room = 1ull << 40;
	wall_ns = NOW;
	boot_ns = 1000 * SECOND;
	write_clock(NOW);
	for (size_t i = 0; i < op_array_size(days); i++)
		make(days[i], OP_SESSION_rotated, NOW - (3 - i) * DAY - DAY / 2);
	make("current", OP_SESSION_open, NOW);
	make("mine", OP_SESSION_saved, NOW - 100 * DAY);
	/* a user's file, whatever its name is */
	make("2020-01-01T00:00Z", OP_SESSION_saved, NOW - 100 * DAY);
	make("renamed", OP_SESSION_rotated, NOW - 100 * DAY);         /* a user took it */
	make("2020-01-02T00:00Z", OP_SESSION_open, NOW - 100 * DAY);
	/* of another program */
	sample_write_bytes(session_fd, "samples/2020-01-03T00:00Z/{root}/x", "", 0);
	sample_write_bytes(session_fd, "elsewhere/ledger", "", 0);
	return session_fd < 0 ? -1 : symlinkat("../elsewhere", session_fd, "samples/2020-01-04T00:00Z");
}

static int sessions_teardown(void **state OP_UNUSED)
{
	opd_retention_free(&retention);
	close(session_fd);
	return box_remove(dir);
}

static void check(const struct op_config *config, size_t nr_removed)
{
	static const char *const others[] = {
		"current", "mine", "renamed", "2020-01-01T00:00Z", "2020-01-02T00:00Z", "2020-01-03T00:00Z", "2020-01-04T00:00Z"
	};

	assert_int_equal(retain(config), 0);
	for (size_t i = 0; i < op_array_size(days); i++)
		if (is_there(days[i]) != (i >= nr_removed))
			fail_msg("%s is %s", days[i], is_there(days[i]) ? "there" : "gone");
	for (size_t i = 0; i < op_array_size(others); i++)
		if (!is_there(others[i]))
			fail_msg("%s is gone", others[i]);
	assert_int_equal(faccessat(session_fd, "elsewhere/ledger", F_OK, 0), 0);
	assert_int_equal(unlinkat(session_fd, "tmp", AT_REMOVEDIR), 0); /* it is empty */
	assert_int_equal(mkdirat(session_fd, "tmp", 0755), 0);
}

static void test_nothing(void **state OP_UNUSED)
{
	check(&(struct op_config){ 0 }, 0);
	check(&(struct op_config){ .session_max_use = 1ull << 40, .session_keep_us = 1000 * DAY / 1000, .session_keep_free = 1 },
	      0);
}

static void test_age(void **state OP_UNUSED)
{
	check(&(struct op_config){ .session_keep_us = 3 * DAY / 1000 }, 1);
	check(&(struct op_config){ .session_keep_us = 2 * DAY / 1000 }, 2);
	check(&(struct op_config){ .session_keep_us = 1 }, 4);
}

/* Nine directories with a file each, and what the file system adds. */
static void test_use(void **state OP_UNUSED)
{
	uint64_t all;

	assert_int_equal(op_session_disk_bytes(session_fd, "samples", &all), 0);
	assert_true(all > 8 * SIZE);
	check(&(struct op_config){ .session_max_use = all }, 0);
	check(&(struct op_config){ .session_max_use = all - SIZE / 2 }, 1);
	check(&(struct op_config){ .session_max_use = all - 3 * SIZE }, 3);
	check(&(struct op_config){ .session_max_use = 1 }, 4);
}

/* A session becomes smaller until it is on the disk as a whole: only then its weight is final. */
static void test_smaller_when_whole(void **state OP_UNUSED)
{
	uint64_t all;
	char path[300];

	snprintf(path, sizeof(path), "samples/%s/" OP_SESSION_CLOSING, days[2]);
	sample_write_bytes(session_fd, path, "", 0);
	assert_int_equal(op_session_disk_bytes(session_fd, "samples", &all), 0);
	check(&(struct op_config){ .session_max_use = all }, 0);
	assert_int_equal(unlinkat(session_fd, path, 0), 0);
	snprintf(path, sizeof(path), "samples/%s/{root}/bin/a/{dep}/{root}/bin/a/file", days[2]);
	sample_write_bytes(session_fd, path, "", 0);
	check(&(struct op_config){ .session_max_use = all - SIZE / 2 }, 0);
}

static void test_room(void **state OP_UNUSED)
{
	room = 1000;
	check(&(struct op_config){ .session_keep_free = 1000 }, 0);
	check(&(struct op_config){ .session_keep_free = 1001 }, 1);
	check(&(struct op_config){ .session_keep_free = SIZE + 1001 }, 2);
	check(&(struct op_config){ .session_keep_free = 1ull << 50 }, 4);
}

/* A daemon that was killed had begun to remove this. */
static void test_rest(void **state OP_UNUSED)
{
	sample_write_bytes(session_fd, "tmp/removed-2026-01-01T00:00Z/{root}/a/b", "x", 1);
	assert_int_equal(symlinkat("../samples/mine", session_fd, "tmp/removed-link"), 0);
	check(&(struct op_config){ 0 }, 0);
}

/* Removing them frees nothing. */
static void test_cannot_remove(void **state OP_UNUSED)
{
	const struct op_config config = { .session_keep_us = 1 };

	remove_err = -EIO;
	assert_int_equal(retain(&config), -EIO);
	remove_err = 0;
	for (size_t i = 0; i < op_array_size(days); i++)
		assert_true(is_there(days[i]));
	assert_int_equal(retention.nr_removed, 0);
	check(&config, op_array_size(days));
}

/* A session that was closed just now: its table is written while it is emptied. */
static void test_written_meanwhile(void **state OP_UNUSED)
{
	nr_written_meanwhile = 3;
	check(&(struct op_config){ .session_keep_us = 1 }, op_array_size(days));
	assert_int_equal(nr_written_meanwhile, 0);
}

/* A session that cannot be removed keeps its weight, but the others are removed all the same. */
static void test_cannot_remove_one(void **state OP_UNUSED)
{
	uint64_t all;

	assert_int_equal(op_session_disk_bytes(session_fd, "samples", &all), 0);
	remove_err = -EBUSY;
	remove_err_of = days[0];
	assert_int_equal(retain(&(struct op_config){ .session_max_use = all - SIZE / 2 }), -EBUSY);
	remove_err = 0;
	remove_err_of = NULL;
	assert_true(is_there(days[0]));
	assert_false(is_there(days[1]));
	assert_true(is_there(days[2]));
	assert_int_equal(retention.nr_removed, 1);
}

/* A session that is half removed is hidden from readers, but its space still counts. */
static void test_cannot_remove_rest(void **state OP_UNUSED)
{
	uint64_t all;
	char *bytes = calloc(1, SIZE);

	assert_int_equal(op_session_disk_bytes(session_fd, "samples", &all), 0);
	sample_write_bytes(session_fd, "tmp/removed-half/{root}/a", bytes, SIZE);
	free(bytes);
	remove_err = -EIO;
	remove_err_of = "removed-half";
	assert_int_equal(retain(&(struct op_config){ .session_max_use = all + SIZE / 2 }), -EIO);
	remove_err = 0;
	remove_err_of = NULL;
	assert_false(is_there(days[0]));
	assert_true(is_there(days[1]));
	check(&(struct op_config){ .session_max_use = all }, 1);
}

/* ---- clocks that step ---- */

static const struct op_config keep_3_days = { .session_keep_us = 3 * DAY / 1000 };

static void pass(uint64_t ns)
{
	wall_ns += ns;
	boot_ns += ns;
}

/* Looks as often as a daemon that runs all the time. */
static void run_for(uint64_t ns, size_t nr_removed)
{
	for (uint64_t passed = 0; passed < ns; passed += DAY / 48) {
		pass(DAY / 48);
		check(&keep_3_days, nr_removed);
	}
}

static void restart(void)
{
	opd_retention_free(&retention);
	boot_ns = 10 * SECOND;
}

/*
 * A machine that starts with a clock far ahead keeps its sessions, every time, and the times that
 * it wrote then do no harm later.
 */
static void test_clock_ahead_at_the_start(void **state OP_UNUSED)
{
	for (int i = 0; i < 3; i++) {
		restart();
		wall_ns = NOW + 5000 * DAY;
		check(&keep_3_days, 0);
		pass(60 * SECOND);
		if (!i)
			make("2026-11-21T00:00Z", OP_SESSION_rotated, wall_ns);
		check(&keep_3_days, 0);
		wall_ns = NOW;
		check(&keep_3_days, 1);
		make(days[0], OP_SESSION_rotated, NOW - 3 * DAY - DAY / 2);
	}
}

static void test_clock_steps_ahead(void **state OP_UNUSED)
{
	run_for(DAY / 12, 1);
	wall_ns += 1000 * DAY;
	run_for(DAY / 2, 1);
	wall_ns -= 1000 * DAY;
	run_for(DAY / 4, 2);
}

/* The clock is right after all: the machine was off. */
static void test_clock_holds(void **state OP_UNUSED)
{
	restart();
	wall_ns = NOW + 1000 * DAY;
	run_for(DAY - DAY / 24, 0);
	pass(DAY / 12);
	check(&keep_3_days, 4);
}

/*
 * The same where the daemon does not run for a day: the time that the clock has held is counted on.
 */
static void test_clock_holds_with_restarts(void **state OP_UNUSED)
{
	wall_ns = NOW + 1000 * DAY;
	for (int i = 0; i < 4; i++) {
		restart();
		run_for(DAY / 4 - DAY / 24, 0);
		wall_ns += DAY / 3;
	}
	restart();
	run_for(DAY / 4, 0);
	pass(DAY / 4);
	check(&keep_3_days, 4);
}

/* Less than half of the kept time: an ordinary weekend. */
static void test_off_for_a_while(void **state OP_UNUSED)
{
	restart();
	wall_ns += DAY + DAY / 3;
	check(&keep_3_days, 2);
}

/* A machine without a battery-backed clock starts in 1970. */
static void test_clock_short_at_the_start(void **state OP_UNUSED)
{
	restart();
	wall_ns = 60 * SECOND;
	check(&keep_3_days, 0);
	pass(60 * SECOND);
	check(&keep_3_days, 0);
	wall_ns = NOW + DAY / 2;
	check(&keep_3_days, 1);
}

/* Without the file, or with a bad one, the newest session gives the time. */
static void test_clock_without_a_file(void **state OP_UNUSED)
{
	static const char *const texts[] = { "", "opd-clock 2\ntrusted\t1\nclaimed\t1\nheld\t1\n",
					     "opd-clock 1\ntrusted\t99999999999999999\nclaimed\t0\nheld\t0\n" };

	for (size_t i = 0; i <= op_array_size(texts); i++) {
		restart();
		if (i < op_array_size(texts))
			sample_write_bytes(session_fd, OPD_TRUSTED_CLOCK_FILE, texts[i], strlen(texts[i]));
		else
			assert_int_equal(unlinkat(session_fd, OPD_TRUSTED_CLOCK_FILE, 0), 0);
		wall_ns = NOW + 2 * DAY;
		check(&keep_3_days, 0);
	}
	restart();
	assert_int_equal(unlinkat(session_fd, OPD_TRUSTED_CLOCK_FILE, 0), 0);
	wall_ns = NOW;
	check(&keep_3_days, 1);
}

/*
 * When the time cannot be saved there is an error, and sessions beyond the limits are removed all
 * the same.
 */
static void test_clock_cannot_be_kept(void **state OP_UNUSED)
{
	const struct op_config config = { .session_keep_us = 3 * DAY / 1000, .session_max_use = 1 };

	publish_err = -ENOSPC;
	assert_int_equal(retain(&config), -ENOSPC);
	publish_err = 0;
	check(&keep_3_days, op_array_size(days));
}

/* What the user puts in the place of a session that is too old stays. */
static void test_session_that_is_replaced(void **state OP_UNUSED)
{
	replaced = "samples/2026-11-17T00:00Z";
	assert_int_equal(retain(&(struct op_config){ .session_keep_us = 3 * DAY / 1000 }), -ESTALE);
	assert_null(replaced);
	assert_int_equal(faccessat(session_fd, "samples/2026-11-17T00:00Z/{root}/bin/a/{dep}/{root}/bin/a/file", F_OK, 0), 0);
	assert_int_equal(faccessat(session_fd, "elsewhere/old/ledger", F_OK, 0), 0);
	assert_int_equal(unlinkat(session_fd, "tmp", AT_REMOVEDIR), 0); /* it is empty */
}

/* Two minutes of one hour. */
static void write_timeline(const char *name)
{
	const struct op_encode_limits no_limits = { 0 };
	struct op_timeline_writer *writer;
	struct op_minute minute;
	char path[300];

	snprintf(path, sizeof(path), "samples/%s/" OP_SESSION_TIMELINE, name);
	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_timeline_append_open(session_fd, path, &writer, NULL), 0);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t begin_ns = NOW + 60 * i * SECOND, end_ns = begin_ns + 60 * SECOND;

		minute.begin = (struct op_timeline_clocks){ begin_ns, begin_ns, begin_ns };
		minute.end = (struct op_timeline_clocks){ end_ns, end_ns, end_ns };
		minute.gap = i ? OP_GAP_NONE : OP_GAP_FIRST;
		assert_int_equal(op_timeline_append(writer, &minute, &no_limits), 0);
	}
	op_timeline_append_close(writer);
	op_minute_free(&minute);
}

static size_t nr_blocks(const char *name)
{
	struct op_timeline *timeline;
	size_t nr;
	char path[300];

	snprintf(path, sizeof(path), "samples/%s/" OP_SESSION_TIMELINE, name);
	assert_int_equal(op_timeline_open(session_fd, path, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	nr = op_timeline_nr_selected(timeline);
	op_timeline_close(timeline);
	return nr;
}

/* By TimelineKeep=, and only in sessions that SessionInterval= closed. */
static void test_minutes_become_hours(void **state OP_UNUSED)
{
	for (size_t i = 0; i < op_array_size(days); i++)
		write_timeline(days[i]);
	write_timeline("mine");
	write_timeline("current");
	check(&(struct op_config){ 0 }, 0);
	assert_int_equal(nr_blocks(days[0]), 2);
	check(&(struct op_config){ .session_keep_us = 1000 * DAY / 1000, .timeline_keep_us = 2 * DAY / 1000 }, 0);
	assert_int_equal(nr_blocks(days[0]), 1);
	assert_int_equal(nr_blocks(days[1]), 1);
	assert_int_equal(nr_blocks(days[2]), 2);
	assert_int_equal(nr_blocks("mine"), 2);
	assert_int_equal(nr_blocks("current"), 2);
	/* without SessionKeep= the newest closed session is the clock */
	check(&(struct op_config){ .timeline_keep_us = DAY / 2 / 1000 }, 0);
	assert_int_equal(nr_blocks(days[2]), 1);
	assert_int_equal(nr_blocks(days[3]), 2);
}

#define retain_test(name) cmocka_unit_test_setup_teardown(name, sessions_setup, sessions_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		retain_test(test_nothing), retain_test(test_age),  retain_test(test_use), retain_test(test_smaller_when_whole),
		retain_test(test_room),    retain_test(test_rest),
		retain_test(test_cannot_remove),
		retain_test(test_written_meanwhile), retain_test(test_cannot_remove_one),
		retain_test(test_cannot_remove_rest),
		retain_test(test_clock_ahead_at_the_start),
		retain_test(test_clock_steps_ahead),
		retain_test(test_clock_holds),
		retain_test(test_clock_holds_with_restarts),
		retain_test(test_off_for_a_while),
		retain_test(test_clock_short_at_the_start),
		retain_test(test_clock_without_a_file),
		retain_test(test_clock_cannot_be_kept),
		retain_test(test_session_that_is_replaced),
		retain_test(test_minutes_become_hours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
