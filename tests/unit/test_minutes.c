/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The thread that writes minutes (daemon/jobs/minutes.h), beside resets and a disk that fails. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/jobs/minutes.h"
#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/session/dcookie.h"
#include "libop/session/layout.h"
#include "libop/timeline/read.h"
#include "tests/unit/test_box.h"

#define MINUTE   (60 * (uint64_t)OP_NS_PER_S)
#define BEGIN_NS (1700000000 * (uint64_t)OP_NS_PER_S)

static char dir[BOX_PATH_BYTES];
static int dir_fd;
static struct opd_background background;
static struct opd_minutes minutes;
static struct opd_minute_host host;
static int sync_err, start_err;
static bool is_slow; /* fsync waits */
static sem_t syncs, may_sync;

int __real_op_sys_fsync(int fd);
int __wrap_op_sys_fsync(int fd);

int __wrap_op_sys_fsync(int fd)
{
	if (is_slow) {
		sem_post(&syncs);
		sem_wait(&may_sync);
	}
	return sync_err ? sync_err : __real_op_sys_fsync(fd);
}

int __real_opd_background_start(struct opd_background *of, const char *name, opd_background_work work, void *context, void *arg);
int __wrap_opd_background_start(struct opd_background *of, const char *name, opd_background_work work, void *context, void *arg);

int __wrap_opd_background_start(struct opd_background *of, const char *name, opd_background_work work, void *context, void *arg)
{
	return start_err ? start_err : __real_opd_background_start(of, name, work, context, arg);
}

static int setup(void **state OP_UNUSED)
{
	int fd;

	sync_err = start_err = 0;
	is_slow = false;
	dir_fd = box_make_open(dir);
	fd = openat(dir_fd, OP_DCOOKIE_FILE, O_WRONLY | O_CREAT, 0644); /* which is synced first */
	opd_background_init(&background);
	opd_minutes_init(&minutes, &background);
	host = opd_minutes_host(&minutes);
	return fd < 0 || close(fd) || sem_init(&syncs, 0, 0) || sem_init(&may_sync, 0, 0);
}

static int teardown(void **state OP_UNUSED)
{
	opd_background_wait(&background);
	opd_background_free(&background);
	close(dir_fd);
	return box_remove(dir);
}

/* Minute number i, which begins where the one before ended. */
static void send(uint32_t i, uint32_t gap)
{
	uint64_t begin_ns = BEGIN_NS + i * MINUTE, end_ns = begin_ns + MINUTE;
	struct op_minute minute;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	minute.begin = (struct op_timeline_clocks){ begin_ns, begin_ns, begin_ns };
	minute.end = (struct op_timeline_clocks){ end_ns, end_ns, end_ns };
	minute.gap = gap;
	host.take(host.host, &minute, fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
}

static void send_and_wait(uint32_t i, uint32_t gap)
{
	send(i, gap);
	opd_background_wait(&background);
}

static struct opd_minutes_state state_of(void)
{
	struct opd_minutes_state state;

	opd_minutes_state(&minutes, &state);
	return state;
}

/* The gaps of all minutes in the file; OP_NR_GAPS is behind the last one. */
static void check_gaps(const uint32_t *gaps)
{
	struct op_timeline *timeline;
	struct op_minute minute;

	assert_int_equal(op_timeline_open(dir_fd, OP_SESSION_TIMELINE, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	assert_int_equal(op_minute_init(&minute, 0), 0);
	for (; *gaps != OP_NR_GAPS; gaps++) {
		assert_int_equal(op_timeline_next(timeline, &minute), 0);
		assert_int_equal(minute.gap, *gaps);
	}
	assert_int_equal(op_timeline_next(timeline, &minute), -ENODATA);
	op_minute_free(&minute);
	op_timeline_close(timeline);
}

/*
 * opcontrol --reset while a minute waits for the disk, and another one for that: neither comes back
 * into the session that is empty now.
 */
static void reset_beside_a_slow_disk(void **state OP_UNUSED)
{
	is_slow = true;
	send(0, OP_GAP_FIRST);
	assert_int_equal(sem_wait(&syncs), 0);
	send(1, OP_GAP_NONE);
	opd_minutes_reset(&minutes);
	unlinkat(dir_fd, OP_SESSION_TIMELINE, 0);
	is_slow = false;
	sem_post(&may_sync);
	opd_background_wait(&background);
	assert_int_equal(faccessat(dir_fd, OP_SESSION_TIMELINE, F_OK, 0), -1);
	assert_int_equal(state_of().nr_written + state_of().nr_lost, 0);
	assert_int_equal(host.take_growth(host.host), 0);
	send_and_wait(7, OP_GAP_FIRST);
	check_gaps((uint32_t[]){ OP_GAP_FIRST, OP_NR_GAPS });
	assert_int_equal(state_of().nr_written, 1);
	opd_minutes_free(&minutes);
}

/* A reset while a minute is in its file already, which is removed. */
static void reset_of_a_file(void **state OP_UNUSED)
{
	send_and_wait(0, OP_GAP_FIRST);
	sync_err = -EIO;
	send_and_wait(1, OP_GAP_NONE);
	sync_err = 0;
	opd_minutes_reset(&minutes);
	assert_int_equal(unlinkat(dir_fd, OP_SESSION_TIMELINE, 0), 0);
	send_and_wait(2, OP_GAP_FIRST);
	check_gaps((uint32_t[]){ OP_GAP_FIRST, OP_NR_GAPS });
	opd_minutes_free(&minutes);
}

/* What could not be written is counted, and the minute behind it says so whatever gap it had. */
static void lost_minutes(void **state OP_UNUSED)
{
	sync_err = -ENOSPC;
	send_and_wait(0, OP_GAP_FIRST);
	sync_err = 0;
	send_and_wait(1, OP_GAP_NONE);
	send_and_wait(2, OP_GAP_NONE);
	sync_err = -EROFS;
	send_and_wait(3, OP_GAP_NONE);
	assert_int_equal(state_of().last_error, -EROFS);
	sync_err = 0;
	send_and_wait(5, OP_GAP_PAUSED);
	send_and_wait(7, OP_GAP_PAUSED);
	check_gaps((uint32_t[]){ OP_GAP_UNWRITTEN, OP_GAP_NONE, OP_GAP_UNWRITTEN, OP_GAP_PAUSED, OP_NR_GAPS });
	assert_int_equal(state_of().nr_lost, 2);
	assert_int_equal(state_of().nr_written, 4);
	assert_int_equal(state_of().last_error, 0);
	opd_minutes_free(&minutes);
}

/* Without a thread a minute waits for the next one, and at the end it is written all the same. */
static void no_thread(void **state OP_UNUSED)
{
	start_err = -EAGAIN;
	send(0, OP_GAP_FIRST);
	send(1, OP_GAP_NONE);
	assert_int_equal(faccessat(dir_fd, OP_SESSION_TIMELINE, F_OK, 0), -1);
	assert_int_equal(state_of().last_error, -EAGAIN);
	opd_minutes_free(&minutes);
	check_gaps((uint32_t[]){ OP_GAP_FIRST, OP_GAP_NONE, OP_NR_GAPS });
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(reset_beside_a_slow_disk),
		TEST(reset_of_a_file),
		TEST(lost_minutes),
		TEST(no_thread),
	};
#undef TEST

	return cmocka_run_group_tests_name("minutes", tests, NULL, NULL);
}
