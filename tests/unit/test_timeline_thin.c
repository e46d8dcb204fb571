/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The minutes of an old session become hours: op_timeline_thin (libop/timeline/thin.h). */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/timeline/append.h"
#include "libop/timeline/read.h"
#include "libop/timeline/thin.h"
#include "tests/unit/test_box.h"

#define TIMELINE   "timeline"
#define TMP        "new"
#define NS_PER_MIN (60 * (uint64_t)OP_NS_PER_S)
#define HOUR       (60 * NS_PER_MIN)
#define BEGIN_NS   (1700000000 * (uint64_t)OP_NS_PER_S / HOUR * HOUR + 20 * NS_PER_MIN)
#define NR_MINUTES 150u /* 40 of the first hour, 60, 50 */
#define TIMER      "TIMER:1000000:0x0"

static const struct op_encode_limits no_limits;
static char dir[BOX_PATH_BYTES];
static int dir_fd, sync_err;
static bool grows; /* a block is added while hours are made */

static void write_minutes(uint32_t first, uint32_t last, uint32_t missing);

int __real_op_sys_fsync(int fd);
int __wrap_op_sys_fsync(int fd);

int __wrap_op_sys_fsync(int fd)
{
	if (grows) {
		grows = false;
		write_minutes(30, 31, UINT32_MAX - 1);
	}
	return sync_err ? sync_err : __real_op_sys_fsync(fd);
}

static int setup(void **state OP_UNUSED)
{
	sync_err = 0;
	dir_fd = box_make_open(dir);
	return dir_fd < 0;
}

static int teardown(void **state OP_UNUSED)
{
	close(dir_fd);
	return box_remove(dir);
}

/* Minute i adds i + 1 samples to one function, and one to a function of its own. */
static void write_minute(struct op_timeline_writer *writer, struct op_minute *minute, uint32_t i, uint32_t gap)
{
	struct op_minute_step steps[] = { { OP_MINUTE_SAMPLES, 0, 0 }, { OP_MINUTE_APP, 0, 1 }, { OP_MINUTE_FUNCTION, 0x400, 1 } };
	uint64_t begin_ns = BEGIN_NS + i * NS_PER_MIN;
	uint32_t event;

	op_minute_clear(minute);
	assert_int_equal(op_minute_event(minute, TIMER, OP_UNIT_SAMPLES, 0, &event), 0);
	assert_true(op_minute_add(minute, steps, op_array_size(steps), i + 1));
	steps[2].value = 0x1000 + 64 * i;
	assert_true(op_minute_add(minute, steps, op_array_size(steps), 1));
	assert_int_equal(op_minute_add_row(minute, event, "stored", i + 2), 0);
	minute->begin = (struct op_timeline_clocks){ begin_ns, begin_ns, begin_ns };
	minute->end = (struct op_timeline_clocks){ begin_ns + NS_PER_MIN, begin_ns + NS_PER_MIN, begin_ns + NS_PER_MIN };
	minute->gap = gap;
	assert_int_equal(op_timeline_append(writer, minute, &no_limits), 0);
}

/* Minutes from `first` to `last`, without `missing`; the one behind it says why. */
static void write_minutes(uint32_t first, uint32_t last, uint32_t missing)
{
	struct op_timeline_writer *writer;
	struct op_minute minute;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_timeline_append_open(dir_fd, TIMELINE, &writer, NULL), 0);
	for (uint32_t i = first; i < last; i++)
		if (i != missing)
			write_minute(writer, &minute, i,
				     i == first ? OP_GAP_FIRST : i == missing + 1 ? OP_GAP_SUSPENDED : OP_GAP_NONE);
	op_timeline_append_close(writer);
	op_minute_free(&minute);
}

struct seen {
	uint32_t nr_blocks;
	uint64_t samples, stored, common; /* common: of the function that all minutes have */
	struct op_minute blocks[16];      /* only times, gap and flags are valid */
};

static struct seen read_all(void)
{
	struct op_timeline *timeline;
	struct op_minute minute;
	struct seen seen = { 0 };
	uint64_t total, offset;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_timeline_open(dir_fd, TIMELINE, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	while (!op_timeline_next(timeline, &minute)) {
		if (seen.nr_blocks < op_array_size(seen.blocks))
			seen.blocks[seen.nr_blocks] = minute;
		seen.nr_blocks++;
		assert_int_equal(op_minute_total(&minute, OP_MINUTE_SAMPLES, 0, &total), 0);
		seen.samples += total;
		seen.stored += (uint64_t)minute.rows[0].amount;
		for (uint32_t i = 0; i < minute.nr_nodes; i++)
			seen.common += minute.nodes[i].value == 0x400 ? minute.nodes[i].self : 0;
	}
	assert_int_equal(op_timeline_nr_damaged(timeline, &offset), 0);
	op_timeline_close(timeline);
	op_minute_free(&minute);
	return seen;
}

static int thin(void)
{
	return op_timeline_thin(dir_fd, TIMELINE, TMP, HOUR, &no_limits);
}

static void test_hours(void **state OP_UNUSED)
{
	struct seen before, after;

	write_minutes(0, NR_MINUTES, UINT32_MAX - 1);
	before = read_all();
	assert_int_equal(before.nr_blocks, NR_MINUTES);
	assert_int_equal(thin(), 0);
	after = read_all();
	assert_int_equal(after.nr_blocks, 3);
	assert_int_equal(after.samples, before.samples);
	assert_int_equal(after.stored, before.stored);
	assert_int_equal(after.common, before.common);
	for (uint32_t i = 0; i < 3; i++) {
		const struct op_minute *block = &after.blocks[i];

		assert_int_equal(block->begin.wall_ns, i ? BEGIN_NS + (40 + 60 * (i - 1)) * NS_PER_MIN : BEGIN_NS);
		assert_int_equal(block->end.mono_ns, BEGIN_NS + (i < 2 ? 40 + 60 * i : NR_MINUTES) * NS_PER_MIN);
		assert_int_equal(block->gap, i ? OP_GAP_NONE : OP_GAP_FIRST);
		assert_true(block->flags & OP_TIMELINE_IS_MERGED);
	}
	assert_int_equal(thin(), -EALREADY);
	assert_int_equal(read_all().samples, before.samples);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
}

static void test_gaps_stay(void **state OP_UNUSED)
{
	struct seen before, after;

	write_minutes(0, 30, 10);
	before = read_all();
	assert_int_equal(thin(), 0);
	after = read_all();
	assert_int_equal(after.nr_blocks, 2);
	assert_int_equal(after.blocks[1].gap, OP_GAP_SUSPENDED);
	assert_int_equal(after.blocks[1].begin.wall_ns, BEGIN_NS + 11 * NS_PER_MIN);
	assert_int_equal(after.samples, before.samples);
}

/* The wall clock jumps back an hour: two spans, and nothing is added up twice. */
static void test_clock_step(void **state OP_UNUSED)
{
	write_minutes(60, 70, UINT32_MAX - 1);
	write_minutes(0, 10, UINT32_MAX - 1);
	assert_int_equal(thin(), 0);
	assert_int_equal(read_all().nr_blocks, 2);
}

/* The last minute of a session comes when the disk is slow. */
static void test_late_minute(void **state OP_UNUSED)
{
	write_minutes(0, 30, UINT32_MAX - 1);
	grows = true;
	assert_int_equal(thin(), -EAGAIN);
	assert_int_equal(read_all().nr_blocks, 31);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
	assert_int_equal(thin(), 0);
	assert_int_equal(read_all().nr_blocks, 2);
}

static void test_errors(void **state OP_UNUSED)
{
	const char garbage[64] = "nonsense";
	struct seen before;
	int fd;

	assert_int_equal(thin(), -ENOENT);
	write_minutes(0, 90, UINT32_MAX - 1);
	before = read_all();
	sync_err = -EIO;
	assert_int_equal(thin(), -EIO);
	assert_int_equal(read_all().nr_blocks, before.nr_blocks);
	assert_int_equal(faccessat(dir_fd, TMP, F_OK, 0), -1);
	sync_err = 0;
	/* a kill left half a file */
	fd = openat(dir_fd, TMP, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, garbage, sizeof(garbage)), sizeof(garbage));
	close(fd);
	assert_int_equal(thin(), 0);
	assert_int_equal(read_all().samples, before.samples);
	fd = openat(dir_fd, TIMELINE, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, garbage, sizeof(garbage)), sizeof(garbage));
	close(fd);
	assert_int_equal(thin(), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gaps_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clock_step, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_minute, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
