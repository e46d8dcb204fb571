/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A closed session that the disk refuses is written again later, until it is on the disk or
 * removed.
 */
#include "libop/session/contents.h"
#include "tests/unit/rotation.h"

#define CLOSING_MARK "samples/2026-11-21T02:17Z/closing"

static bool is_marked(void)
{
	return !faccessat(session_fd, CLOSING_MARK, F_OK, 0);
}

static void close_and_fail(void)
{
	take(6);
	turn();
	pass(HOUR);
	disk_fails.fsync = -EIO;
	turn();
	assert_true(is_marked());
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 1);
	assert_int_equal(nr_written_anew, 0);
}

/* Written anew, because the kernel reports an error once and then forgets it. */
static void test_written_later(void **state OP_UNUSED)
{
	close_and_fail();
	disk_fails.fsync = 0;
	turn();
	assert_true(is_marked());
	pass(5 * SECOND);
	turn();
	assert_false(is_marked());
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 0);
	assert_true(nr_written_anew >= 3); /* two sample files and the ledger */
	check("2026-11-21T02:17Z ");
	check_table("2026-11-21T02:17Z", false);
	nr_written_anew = 0;
	pass(HOUR / 2);
	turn();
	assert_int_equal(nr_written_anew, 0);
}

/* After 5 seconds, 15, 35 and 75. */
static void test_written_much_later(void **state OP_UNUSED)
{
	close_and_fail();
	for (int i = 0; i < 70 * 4; i++)
		turn();
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 1);
	assert_int_equal(nr_written_anew, 3);
	assert_true(is_marked());
	disk_fails.fsync = 0;
	for (int i = 0; i < 10 * 4; i++)
		turn();
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 0);
	assert_false(is_marked());
	check("2026-11-21T02:17Z ");
}

/* Somebody removed the session meanwhile, or the daemon ends first. */
static void test_never_written(void **state OP_UNUSED)
{
	close_and_fail();
	assert_int_equal(op_session_remove(session_fd, "samples/2026-11-21T02:17Z"), 0);
	turn();
	pass(5 * SECOND);
	turn();
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 0);
	take(4);
	turn();
	pass(HOUR);
	turn();
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 1);
}

/* ---- files that somebody removed ---- */

#define APP_FILES "/{root}/bin/a"

static void remove_below(const char *session, const char *below)
{
	char command[sizeof(dir) + 128];

	snprintf(command, sizeof(command), "rm -rf '%s/samples/%s%s'", dir, session, below);
	assert_int_equal(system(command), 0);
}

static void begin_losing(void)
{
	pipeline.count.ledger = &pipeline.ledger;
}

/* received = stored + lost_io_error, and the files have what is stored. */
static void check_sum(const char *session, uint64_t nr_stored, uint64_t nr_lost)
{
	struct op_session_ledger ledger;
	char path[300];
	int fd;

	assert_int_equal(samples_of(session), nr_stored);
	snprintf(path, sizeof(path), "samples/%s", session);
	fd = openat(session_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(op_session_ledger_read(fd, &ledger, NULL), 0);
	close(fd);
	assert_int_equal(ledger.nr_events, 1);
	assert_int_equal(ledger.events[0].stored, nr_stored);
	assert_int_equal(ledger.events[0].lost[OP_LOSS_io_error], nr_lost);
	assert_int_equal(ledger.events[0].received, nr_stored + nr_lost);
	op_session_ledger_free(&ledger);
}

static void look_and_write(void)
{
	opd_recording_check_files(&recording, false);
	opd_recording_write_ledger(&recording, OP_SESSION_open, false);
}

static void test_removed_without_a_sample_since(void **state OP_UNUSED)
{
	begin_losing();
	take(6);
	look_and_write();
	check_sum("current", 6, 0);
	remove_below("current", APP_FILES);
	look_and_write();
	check_sum("current", 3, 3);
	assert_true(recording.dumps.files_removed);
	take(4);
	look_and_write();
	check_sum("current", 7, 3);
}

/* It is closed as well: its samples are lost once. */
static void test_removed_when_closed(void **state OP_UNUSED)
{
	begin_losing();
	take(6);
	opd_count_release_files(&pipeline.count);
	remove_below("current", APP_FILES);
	assert_true(opd_count_forget_missing(&pipeline.count));
	assert_false(opd_count_forget_missing(&pipeline.count));
	look_and_write();
	check_sum("current", 3, 3);
}

/* The next dump writes the samples that are left, and not the lost ones. */
static void test_the_rest_is_still_to_be_written(void **state OP_UNUSED)
{
	char **paths;
	size_t nr;

	begin_losing();
	take(6);
	remove_below("current", APP_FILES);
	assert_true(opd_count_forget_missing(&pipeline.count));
	assert_int_equal(opd_count_take_changed(&pipeline.count, &paths, &nr), 0);
	assert_int_equal(nr, 1);
	assert_non_null(strstr(paths[0], "/bin/b"));
	free(paths[0]);
	free(paths);
}

/* Samples of an earlier daemon, in files that this daemon has not opened. */
static void test_removed_of_an_earlier_one(void **state OP_UNUSED)
{
	take(6);
	end(true);
	start();
	begin_losing();
	assert_int_equal(opd_file_limit_recount(&pipeline.count.limit, session_fd), 0);
	take(1); /* of /bin/b */
	remove_below("current", "");
	look_and_write();
	take(2);
	look_and_write();
	check_sum("current", 2, 7);
}

/* The same with no open file, and with some files left. */
static void test_removed_of_an_earlier_one_alone(void **state OP_UNUSED)
{
	take(6);
	end(true);
	start();
	begin_losing();
	assert_int_equal(opd_file_limit_recount(&pipeline.count.limit, session_fd), 0);
	remove_below("current", APP_FILES);
	look_and_write();
	opd_recording_check_files(&recording, true);
	opd_recording_write_ledger(&recording, OP_SESSION_open, false);
	check_sum("current", 3, 3);
	remove_below("current", "");
	assert_int_equal(mkdirat(session_fd, OP_SESSION_CURRENT, 0755), 0);
	look_and_write();
	check_sum("current", 0, 6);
}

static void test_removed_before_it_is_closed(void **state OP_UNUSED)
{
	begin_losing();
	take(6);
	turn();
	remove_below("current", APP_FILES);
	pass(HOUR);
	turn();
	check_sum("2026-11-21T02:17Z", 3, 3);
	assert_false(is_marked());
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 0);
}

static void test_removed_before_it_is_written(void **state OP_UNUSED)
{
	close_and_fail();
	remove_below("2026-11-21T02:17Z", APP_FILES);
	disk_fails.fsync = 0;
	turn();
	pass(5 * SECOND);
	turn();
	assert_false(is_marked());
	check_sum("2026-11-21T02:17Z", 3, 3);
}

/* The writing thread no longer has them. */
static void test_removed_while_it_is_written(void **state OP_UNUSED)
{
	struct opd_dump *out;
	char name[OP_SESSION_NAME_BYTES] = "closed";

	take(6);
	opd_recording_write_ledger(&recording, OP_SESSION_saved, false);
	assert_int_equal(opd_dump_begin(&recording.dumps, NULL, true, &out), 0);
	assert_int_equal(op_session_close(session_fd, name), 0);
	remove_below(name, APP_FILES);
	opd_count_close_files(&pipeline.count);
	assert_int_equal(opd_dump_go(out), 0);
	wait_for_threads();
	assert_int_equal(opd_unwritten_count(&recording.dumps.unwritten), 0);
	check_sum(name, 3, 3);
	assert_int_equal(faccessat(session_fd, "samples/closed/closing", F_OK, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rotate_test(test_written_later),
		rotate_test(test_written_much_later),
		rotate_test(test_never_written),
		rotate_test(test_removed_without_a_sample_since),
		rotate_test(test_removed_when_closed),
		rotate_test(test_the_rest_is_still_to_be_written),
		rotate_test(test_removed_of_an_earlier_one),
		rotate_test(test_removed_of_an_earlier_one_alone),
		rotate_test(test_removed_before_it_is_closed),
		rotate_test(test_removed_before_it_is_written),
		rotate_test(test_removed_while_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
