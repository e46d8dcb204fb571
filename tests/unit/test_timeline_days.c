/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Weeks of timelines on a simulated clock: sessions that close each day, minutes that become hours,
 * sessions and hours that are removed. The writer, the closing, the retention and opcheck's rule
 * are the real ones.
 */
#define BOX_IN_MEMORY /* thousands of spans, each with an fsync */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/jobs/minutes.h"
#include "daemon/jobs/retain.h"
#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "libop/session/close.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/timeline/read.h"
#include "tests/unit/sample_writer.h"
#include "tests/unit/test_box.h"
#include "tools/opcheck/timeline.h"

#define SECOND       ((uint64_t)OP_NS_PER_S)
#define HOUR         (3600 * SECOND)
#define DAY          (24 * HOUR)
#define BEGIN_NS     (1795219200 * SECOND) /* 2026-11-21 00:00 UTC */
#define DAYS_MAX     100
#define SAMPLE_BYTES 200000u
#define KEEP_DAYS    7u /* TimelineKeep= */
#define US(ns)       ((ns) / 1000)

static const char *const event_names[] = { "TIMER", "STACKS" };
static char dir[BOX_PATH_BYTES];
static int session_fd;
static uint64_t wall_ns, boot_ns;
static int sync_err;
static struct opd_background background;
static struct opd_minutes minutes;
static struct opd_minute_host host;
static struct opd_retention retention;

static struct {
	char name[OP_SESSION_NAME_BYTES];
	uint64_t stored[2];
	size_t nr_spans;
} days[DAYS_MAX];

uint64_t __wrap_op_sys_wall_ns(void);
uint64_t __wrap_op_sys_boot_ns(void);
int __real_op_sys_fsync(int fd);
int __wrap_op_sys_fsync(int fd);

uint64_t __wrap_op_sys_wall_ns(void)
{
	return wall_ns;
}

uint64_t __wrap_op_sys_boot_ns(void)
{
	return boot_ns;
}

int __wrap_op_sys_fsync(int fd)
{
	return sync_err ? sync_err : __real_op_sys_fsync(fd);
}

static void start_daemon(void)
{
	opd_background_init(&background);
	opd_minutes_init(&minutes, &background);
	host = opd_minutes_host(&minutes);
}

static void stop_daemon(void)
{
	opd_background_wait(&background);
	opd_minutes_free(&minutes);
	opd_background_free(&background);
}

static int setup(void **state OP_UNUSED)
{
	if (box_make(dir))
		return -1;
	session_fd = op_session_open(dir);
	wall_ns = BEGIN_NS;
	boot_ns = 1000 * SECOND;
	sync_err = 0;
	memset(days, 0, sizeof(days));
	retention = (struct opd_retention){ .sizes.session_fd = session_fd };
	start_daemon();
	return session_fd < 0 ? -1 : 0;
}

static int teardown(void **state OP_UNUSED)
{
	stop_daemon();
	opd_retention_free(&retention);
	close(session_fd);
	return box_remove(dir);
}

static void pass(uint64_t ns)
{
	wall_ns += ns;
	boot_ns += ns;
}

static struct op_timeline_clocks clocks(void)
{
	return (struct op_timeline_clocks){ wall_ns, boot_ns, boot_ns };
}

/* ---- a day ---- */

/* Always the same numbers; the small ones are much more frequent, as with functions. */
static uint32_t draw(uint32_t most)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 40) * (state >> 40 & 0xffff) / 0xffff * most >> 24);
}

static void add(struct op_minute *minute, uint32_t event, struct op_minute_step *steps, size_t nr, uint64_t *sum)
{
	uint64_t amount = 1 + draw(20);

	steps[0] = (struct op_minute_step){ event ? OP_MINUTE_STACKS : OP_MINUTE_SAMPLES, event, 0 };
	assert_true(op_minute_add(minute, steps, nr, amount));
	*sum += amount;
}

/* A span of the day: five times as much to do by day as by night. */
static void write_span(size_t day, uint64_t length_ns, uint32_t gap, uint32_t nr_entries)
{
	uint32_t hour = (uint32_t)(wall_ns % DAY / HOUR), event;
	uint64_t sums[2] = { 0 };
	char name[32];
	struct op_minute minute;

	assert_int_equal(op_minute_init(&minute, 0), 0);
	for (uint32_t e = 0; e < 2; e++) {
		snprintf(name, sizeof(name), "%s:1000000:0x0", event_names[e]);
		assert_int_equal(op_minute_event(&minute, name, OP_UNIT_SAMPLES, e ? OP_EVENT_STACKS : 0, &event), 0);
	}
	for (uint32_t i = hour > 7 && hour < 20 ? nr_entries : nr_entries / 5; i > 0; i--) {
		uint64_t app = 1 + draw(12), image = 1 + draw(40);
		struct op_minute_step sample[] = { { 0, 0, 0 }, { OP_MINUTE_APP, 0, app }, { OP_MINUTE_IMAGE, 0, image },
						   { OP_MINUTE_FUNCTION, 64 * draw(300), image } };
		struct op_minute_step stack[] = { { 0, 0, 0 }, { OP_MINUTE_APP, 0, app }, { OP_MINUTE_FUNCTION, 0x1000, app },
						  { OP_MINUTE_FUNCTION, 64 * draw(30), app },
						  { OP_MINUTE_FUNCTION, 64 * draw(300), image } };

		add(&minute, 0, sample, op_array_size(sample), &sums[0]);
		add(&minute, 1, stack, op_array_size(stack), &sums[1]);
	}
	minute.gap = gap;
	minute.begin = clocks();
	pass(length_ns);
	minute.end = clocks();
	for (uint32_t e = 0; e < 2; e++) {
		assert_int_equal(op_minute_add_row(&minute, e, "before", (int64_t)days[day].stored[e]), 0);
		assert_int_equal(op_minute_add_row(&minute, e, "stored", (int64_t)sums[e]), 0);
		days[day].stored[e] += sums[e];
	}
	days[day].nr_spans++;
	host.take(host.host, &minute, op_session_open_current(session_fd));
	opd_background_wait(&background);
}

static void write_ledger(size_t day, enum op_session_end ended, uint64_t begin_ns)
{
	struct op_ledger_event events[2] = { 0 };
	struct op_session_ledger ledger = {
		.ended = ended, .begin_ns = begin_ns, .end_ns = wall_ns, .events = events, .nr_events = 2
	};
	struct op_text text = { 0 };

	for (uint32_t e = 0; e < 2; e++) {
		snprintf(events[e].name, sizeof(events[e].name), "%s", event_names[e]);
		events[e].count = 1000000;
		events[e].role = e ? OP_EVENT_STACKS : 0;
		events[e].received = events[e].stored = days[day].stored[e];
	}
	op_session_ledger_format(&ledger, &text);
	sample_write_bytes(session_fd, OP_SESSION_CURRENT "/ledger", text.data, text.length);
	op_text_free(&text);
}

static void close_session(size_t day, uint64_t begin_ns)
{
	int fd = op_session_open_current(session_fd);

	write_ledger(day, OP_SESSION_rotated, begin_ns);
	op_session_time_name(begin_ns, false, days[day].name);
	assert_int_equal(op_session_close_timed(session_fd, days[day].name), 0);
	op_session_mark_whole(fd);
	close(fd);
}

/* ---- what is kept ---- */

static uint64_t retain(const struct op_config *config)
{
	uint64_t nr_bytes;
	struct stat st;

	retention.sizes.current.inode = 0;
	if (!fstatat(session_fd, OP_SESSION_CURRENT, &st, AT_SYMLINK_NOFOLLOW)) {
		retention.sizes.current.inode = st.st_ino;
		assert_int_equal(op_session_disk_bytes(session_fd, OP_SESSION_CURRENT, &nr_bytes), 0);
		retention.sizes.current.taken_bytes = nr_bytes;
	}
	assert_int_equal(opd_retain(&retention, config), 0);
	assert_int_equal(op_session_disk_bytes(session_fd, "samples", &nr_bytes), 0);
	return nr_bytes;
}

static bool is_there(size_t day, const char *file)
{
	char path[OP_SESSION_NAME_BYTES + 64];

	snprintf(path, sizeof(path), "samples/%.200s/%s", days[day].name, file);
	return !faccessat(session_fd, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void fail_on_problem(const struct opk_problem *problem, void *arg)
{
	fail_msg("day %zu: %s: %s %s", *(size_t *)arg, problem->path, problem->fault, problem->detail);
}

/* Nothing is torn or damaged, and all samples of the day are there. The number of blocks. */
static size_t check_timeline(size_t day, bool is_thin)
{
	struct opk_check check = { .top_fd = -1, .report = fail_on_problem, .arg = &day };
	const struct opk_found found = { 0 }; /* without a table of images no shares are compared */
	struct op_session_ledger ledger;
	struct op_timeline *timeline;
	struct op_block block = { 0 };
	char path[OP_SESSION_NAME_BYTES + 64];
	uint64_t offset;
	size_t nr;

	snprintf(path, sizeof(path), "samples/%.200s", days[day].name);
	check.dir_fd = openat(session_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(op_session_ledger_read(check.dir_fd, &ledger, NULL), 0);
	assert_int_equal(ledger.events[0].stored, days[day].stored[0]);
	assert_int_equal(opk_timeline_check(&check, &found, &ledger), 0);
	op_session_ledger_free(&ledger);
	assert_int_equal(op_timeline_open(check.dir_fd, OP_SESSION_TIMELINE, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	nr = op_timeline_nr_selected(timeline);
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(op_timeline_block(timeline, i, &block), 0);
		assert_int_equal(block.tail.flags & OP_TIMELINE_IS_MERGED ? 1 : 0, is_thin);
	}
	assert_int_equal(block.end, op_timeline_bytes(timeline)); /* no torn end */
	assert_int_equal(op_timeline_nr_damaged(timeline, &offset), 0);
	op_timeline_close(timeline);
	close(check.dir_fd);
	return nr;
}

/* ---- tests ---- */

/*
 * 30 days with sessions of a day, in a quota for about half of them. On day 12 opd is off for five
 * hours; on day 17 the wall clock is set back by one.
 */
static void thirty_days(void **state OP_UNUSED)
{
	const struct op_config config = {
		.session_max_use = 5u << 20, .session_keep_us = US(90 * DAY), .timeline_keep_us = US(KEEP_DAYS * DAY)
	};
	char *bytes = test_calloc(1, SAMPLE_BYTES);
	size_t oldest = 0, nr_merged = 0;

	for (size_t day = 0; day < 30; day++) {
		uint64_t begin_ns = wall_ns, nr_bytes;

		sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/bin/a/{dep}/{root}/bin/a/file", bytes, SAMPLE_BYTES);
		write_ledger(day, OP_SESSION_open, begin_ns);
		for (uint32_t i = 0; i < 96; i++) {
			bool is_off = day == 12 && i == 40, is_back = day == 17 && i == 50;

			if (is_off) {
				stop_daemon();
				pass(5 * HOUR);
				start_daemon();
				i += 20;
			}
			wall_ns -= is_back ? HOUR : 0;
			write_span(day, HOUR / 4, i && !is_off ? OP_GAP_NONE : OP_GAP_FIRST, 200);
			if (i % 24 == 0)
				assert_in_range(retain(&config), 1, config.session_max_use);
		}
		wall_ns += day == 17 ? HOUR : 0;
		close_session(day, begin_ns);
		nr_bytes = retain(&config);
		assert_in_range(nr_bytes, 1, config.session_max_use);
		/* the oldest are gone, and no other one */
		while (!is_there(oldest, ""))
			oldest++;
		for (size_t i = oldest; i <= day; i++)
			assert_true(is_there(i, "{root}"));
		assert_int_equal(check_timeline(day, false), days[day].nr_spans);
		if (day > KEEP_DAYS + oldest) {
			assert_in_range(check_timeline(day - KEEP_DAYS - 1, true), 19, 26);
			nr_merged++;
		}
	}
	assert_in_range(oldest, 10, 20);
	assert_true(nr_merged > 10);
	for (size_t i = oldest; i < 30; i++)
		check_timeline(i, i + KEEP_DAYS + 1 < 30);
	test_free(bytes);
}

/* Without a limit of the size hours are kept for 90 days, in sessions that are kept for longer. */
static void ninety_days(void **state OP_UNUSED)
{
	const struct op_config config = { .session_keep_us = US(365 * DAY), .timeline_keep_us = US(KEEP_DAYS * DAY) };

	for (size_t day = 0; day < DAYS_MAX; day++) {
		uint64_t begin_ns = wall_ns;

		sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/bin/a/{dep}/{root}/bin/a/file", "x", 1);
		for (uint32_t i = 0; i < 12; i++)
			write_span(day, i % 4 ? HOUR / 2 : HOUR * 9 / 2, i ? OP_GAP_NONE : OP_GAP_FIRST, 10);
		wall_ns = begin_ns + DAY;
		close_session(day, begin_ns);
		retain(&config);
	}
	for (size_t day = 0; day < DAYS_MAX; day++) {
		size_t age = DAYS_MAX - 1 - day;

		assert_true(is_there(day, "{root}"));
		assert_int_equal(is_there(day, OP_SESSION_TIMELINE), age <= 90);
		if (age <= 90)
			check_timeline(day, age > KEEP_DAYS);
	}
}

/* What the disk refuses is merged later, and not tried with each look. */
static void full_disk(void **state OP_UNUSED)
{
	const struct op_config config = { .timeline_keep_us = US(KEEP_DAYS * DAY) };

	for (size_t day = 0; day < 2; day++) {
		uint64_t begin_ns = wall_ns;

		sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/bin/a/{dep}/{root}/bin/a/file", "x", 1);
		for (uint32_t i = 0; i < 4; i++)
			write_span(day, HOUR / 4, i ? OP_GAP_NONE : OP_GAP_FIRST, 10);
		close_session(day, begin_ns);
		pass(8 * DAY);
	}
	sync_err = -ENOSPC;
	retain(&config);
	assert_int_equal(check_timeline(0, false), 4);
	sync_err = 0;
	retain(&config);
	assert_int_equal(check_timeline(0, false), 4);
	assert_in_range(retention.merge_due_ns, op_now_ns(), op_now_ns() + HOUR);
	retention.merge_due_ns = op_now_ns();
	retain(&config);
	assert_int_equal(check_timeline(0, true), 1);
	assert_int_equal(check_timeline(1, false), 4); /* the newest one is the clock */
}

/* ---- a session without an end: SessionInterval=0 ---- */

#define SPAN (HOUR / 2)

struct kept {
	size_t nr_spans, nr_hours;
	uint64_t span_age_ns, hour_age_ns; /* of the oldest ones, by the clock that does not step */
	uint64_t nr_bytes;
	uint32_t first_gap;
};

/* Hours come before spans, nothing is torn or damaged, and opcheck finds nothing. */
static struct kept look_at_current(void)
{
	struct opk_check check = { .top_fd = -1, .report = fail_on_problem, .arg = &(size_t){ 0 } };
	const struct opk_found found = { 0 };
	struct op_session_ledger ledger;
	struct op_timeline *timeline;
	struct op_block block;
	struct kept kept = { 0 };
	uint64_t offset;

	write_ledger(0, OP_SESSION_open, BEGIN_NS);
	check.dir_fd = op_session_open_current(session_fd);
	assert_int_equal(op_session_ledger_read(check.dir_fd, &ledger, NULL), 0);
	assert_int_equal(opk_timeline_check(&check, &found, &ledger), 0);
	op_session_ledger_free(&ledger);
	assert_int_equal(op_timeline_open(check.dir_fd, OP_SESSION_TIMELINE, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	for (size_t i = 0; i < op_timeline_nr_selected(timeline); i++) {
		assert_int_equal(op_timeline_block(timeline, i, &block), 0);
		kept.first_gap = i ? kept.first_gap : block.tail.gap;
		if (block.tail.flags & OP_TIMELINE_IS_MERGED) {
			assert_int_equal(kept.nr_spans, 0);
			kept.hour_age_ns = kept.nr_hours++ ? kept.hour_age_ns : boot_ns - block.tail.end.boot_ns;
		} else {
			kept.span_age_ns = kept.nr_spans++ ? kept.span_age_ns : boot_ns - block.tail.end.boot_ns;
		}
	}
	kept.nr_bytes = op_timeline_bytes(timeline);
	assert_int_equal(block.end, kept.nr_bytes);
	assert_int_equal(op_timeline_nr_damaged(timeline, &offset), 0);
	op_timeline_close(timeline);
	close(check.dir_fd);
	return kept;
}

static void check_sum(uint64_t wanted)
{
	struct op_timeline *timeline;
	struct op_minute minute;
	uint64_t total, sum = 0;
	int fd = op_session_open_current(session_fd);

	assert_int_equal(op_minute_init(&minute, 0), 0);
	assert_int_equal(op_timeline_open(fd, OP_SESSION_TIMELINE, &timeline), 0);
	assert_int_equal(op_timeline_select(timeline, 0, UINT64_MAX), 0);
	while (!op_timeline_next(timeline, &minute)) {
		assert_int_equal(op_minute_total(&minute, OP_MINUTE_SAMPLES, 0, &total), 0);
		sum += total;
	}
	assert_int_equal(sum, wanted);
	op_timeline_close(timeline);
	op_minute_free(&minute);
	close(fd);
}

static void write_days(size_t nr, uint64_t span_ns, uint32_t nr_entries)
{
	for (size_t i = 0; i < nr * DAY / span_ns; i++)
		write_span(0, span_ns, days[0].nr_spans ? OP_GAP_NONE : OP_GAP_FIRST, nr_entries);
}

/*
 * TimelineKeep= holds in a session that never ends. The wall clock steps by a year: the spans are
 * not older for that. After 90 days hours go, and the first block says so.
 */
static void endless(void **state OP_UNUSED)
{
	struct kept kept, later;

	sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/bin/a/{dep}/{root}/bin/a/file", "x", 1);
	opd_minutes_set_keep(&minutes, &(struct opd_minutes_keep){ session_fd, KEEP_DAYS * DAY, 0 });
	write_days(7, SPAN, 20);
	assert_int_equal(look_at_current().nr_hours, 0);
	write_days(5, SPAN, 20);
	kept = look_at_current();
	assert_in_range(kept.span_age_ns, KEEP_DAYS * DAY - HOUR, KEEP_DAYS * DAY + DAY + HOUR);
	assert_in_range(kept.nr_hours, 3 * 24, 5 * 24 + 2);
	assert_int_equal(kept.first_gap, OP_GAP_FIRST);
	check_sum(days[0].stored[0]);
	wall_ns += 365 * DAY;
	write_days(1, SPAN, 20);
	later = look_at_current();
	assert_in_range(later.span_age_ns, KEEP_DAYS * DAY - HOUR, KEEP_DAYS * DAY + DAY + HOUR);
	check_sum(days[0].stored[0]);
	write_days(91, 6 * HOUR, 5);
	kept = look_at_current();
	assert_in_range(kept.hour_age_ns, 90 * DAY - 6 * HOUR, 91 * DAY + 6 * HOUR);
	assert_in_range(kept.span_age_ns, KEEP_DAYS * DAY - 6 * HOUR, KEEP_DAYS * DAY + DAY + 6 * HOUR);
	assert_int_equal(kept.first_gap, OP_GAP_REMOVED);
}

/* The part of SessionMaxUse= holds, too: spans become hours early, and the oldest hours go. */
static void endless_in_a_quota(void **state OP_UNUSED)
{
	const uint64_t most = 150000;
	size_t nr_hours = 0;
	struct kept kept;

	sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/bin/a/{dep}/{root}/bin/a/file", "x", 1);
	opd_minutes_set_keep(&minutes, &(struct opd_minutes_keep){ session_fd, KEEP_DAYS * DAY, most });
	for (size_t day = 0; day < 8; day++) {
		write_days(1, SPAN, 200);
		kept = look_at_current();
		assert_in_range(kept.nr_bytes, 1, most + most / 16 + 16384);
		assert_true(kept.nr_spans > 0);
		nr_hours = op_max_u64(nr_hours, kept.nr_hours);
	}
	assert_true(nr_hours > 12);
	assert_int_equal(kept.first_gap, OP_GAP_REMOVED);
	assert_int_equal(faccessat(session_fd, OP_SESSION_TMP_SHORT, F_OK, 0), -1);
}

/* A disk that refuses the hours: the spans stay, and are merged later. A reset drops all. */
static void endless_on_a_bad_disk(void **state OP_UNUSED)
{
	struct kept kept;
	int fd;

	sample_write_bytes(session_fd, OP_SESSION_CURRENT "/{root}/bin/a/{dep}/{root}/bin/a/file", "x", 1);
	write_days(12, SPAN, 10);
	opd_minutes_set_keep(&minutes, &(struct opd_minutes_keep){ open("/proc/self", O_PATH), KEEP_DAYS * DAY, 0 });
	write_span(0, 2 * HOUR, OP_GAP_NONE, 10);
	kept = look_at_current();
	assert_int_equal(kept.nr_spans, days[0].nr_spans);
	assert_int_equal(kept.nr_hours, 0);
	close(minutes.keep.session_fd);
	opd_minutes_set_keep(&minutes, &(struct opd_minutes_keep){ session_fd, KEEP_DAYS * DAY, 0 });
	write_span(0, 2 * HOUR, OP_GAP_NONE, 10);
	kept = look_at_current();
	assert_in_range(kept.nr_hours, 4 * 24, 6 * 24);
	check_sum(days[0].stored[0]);
	opd_minutes_reset(&minutes);
	fd = op_session_open_current(session_fd);
	unlinkat(fd, OP_SESSION_TIMELINE, 0);
	close(fd);
	memset(days, 0, sizeof(days));
	write_days(1, SPAN, 10);
	assert_int_equal(look_at_current().nr_spans, days[0].nr_spans);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(thirty_days),
		TEST(ninety_days),
		TEST(full_disk),
		TEST(endless),
		TEST(endless_in_a_quota),
		TEST(endless_on_a_bad_disk),
	};
#undef TEST

	return cmocka_run_group_tests_name("timeline_days", tests, NULL, NULL);
}
