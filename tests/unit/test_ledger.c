/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How the next daemon repairs a ledger: after a crash, whatever the ledger says, and after files
 * were removed, added or overwritten while no daemon ran. Afterwards received = stored + lost, and
 * stored is what the files hold.
 */
#include "tests/unit/rotation.h"

#include "libop/base/file.h"
#include "pipeline/ledger/stats_dir.h"

#define LEDGER OP_SESSION_CURRENT "/" OP_SESSION_LEDGER

static struct op_session_ledger read_current(void)
{
	struct op_session_ledger ledger;
	int fd = openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(op_session_ledger_read(fd, &ledger, NULL), 0);
	close(fd);
	return ledger;
}

/* The session ends in order and says this; what its files hold is asserted by samples_of. */
static void end_with(uint64_t received, uint64_t nr_lost)
{
	struct op_session_ledger ledger;

	end(true);
	ledger = read_current();
	assert_int_equal(ledger.ended, OP_SESSION_stopped);
	assert_int_equal(ledger.nr_events, 1);
	assert_int_equal(ledger.events[0].received, received);
	assert_int_equal(ledger.events[0].lost[OP_LOSS_io_error], nr_lost);
	assert_true(ledger.events[0].received == ledger.events[0].stored + op_ledger_lost(&ledger.events[0]));
	assert_int_equal(samples_of("current"), received - nr_lost);
	op_session_ledger_free(&ledger);
	start();
}

static char *keep_ledger(void)
{
	char *text;

	assert_int_equal(op_file_read(session_fd, LEDGER, 1 << 16, &text), 0);
	return text;
}

static void put_ledger(char *text)
{
	assert_int_equal(op_file_publish(session_fd, LEDGER, text, 0644), 0);
	free(text);
}

/* In samples/current. */
static void run_there(const char *command)
{
	char line[256];

	snprintf(line, sizeof(line), "cd %s/" OP_SESSION_CURRENT "/{root}/bin && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static void set_times(void)
{
	run_there("find . -type f -exec touch -d @1795226400 {} +");
}

/*
 * `open` could not be written, or a power cut lost it: the ledger is from the stop before, and the
 * files do not show it, as on a tmpfs.
 */
static void test_killed_beside_an_old_ledger(void **state OP_UNUSED)
{
	char *text;

	take(7);
	set_times();
	end(true);
	text = keep_ledger();
	assert_non_null(strstr(text, "ended\tstopped\n"));
	start();
	take(6);
	end(false);
	set_times();
	put_ledger(text);
	start_after(true);
	assert_true(pipeline.ledger.is_mended);
	take(2);
	end_with(15, 0);
}

/* A copy without the lock is recognised by its files. */
static void test_old_ledger_without_a_lock(void **state OP_UNUSED)
{
	char *text;

	take(7);
	end(true);
	text = keep_ledger();
	start();
	take(600);
	end(false);
	put_ledger(text);
	run_there("cp -r b c && rm -r b && mv c b"); /* as it is in a copy */
	start();
	end_with(607, 0);
}

/* A session that could not be closed, and whose ledger could not be written again. */
static void test_killed_while_it_closed(void **state OP_UNUSED)
{
	struct op_session_ledger ledger;

	take(7);
	pass(HOUR);
	disk_fails.mkdirat = -ENOSPC;
	fault.mkdir_fills = true;
	turn();
	assert_int_equal(rotation.nr_failed, 1);
	take(4);
	disk_fails.mkdirat = disk_fails.write_all = 0;
	fault.mkdir_fills = false;
	end(false);
	ledger = read_current();
	assert_int_equal(ledger.ended, OP_SESSION_rotated);
	assert_int_equal(stored(&ledger), 7);
	op_session_ledger_free(&ledger);
	start();
	assert_true(pipeline.ledger.is_mended);
	end_with(11, 0);
}

static void test_removed_while_down(void **state OP_UNUSED)
{
	take(10);
	end(true);
	run_there("rm -r a");
	start();
	take(3);
	end_with(13, 5);
	end_with(13, 5);
}

static void test_all_removed_while_down(void **state OP_UNUSED)
{
	take(10);
	end(true);
	run_there("rm -r a b");
	start();
	end_with(10, 10);
}

/* The number and the sizes of files are as before. */
static void test_written_over_while_down(void **state OP_UNUSED)
{
	take(11);
	end(true);
	run_there("cp b/{dep}/{root}/bin/b/TIMER.* b/{dep}/{root}/bin/b/copy && mv b/{dep}/{root}/bin/b/copy "
		  "a/{dep}/{root}/bin/a/TIMER.*");
	start();
	assert_true(pipeline.ledger.is_mended);
	end_with(12, 0);
}

static void test_more_while_down(void **state OP_UNUSED)
{
	take(10);
	end(true);
	run_there("mkdir -p c/{dep}/{root}/bin/c && cp a/{dep}/{root}/bin/a/TIMER.* c/{dep}/{root}/bin/c/");
	start();
	end_with(15, 0);
}

/* Files are not read when nothing happened, and not when the last daemon stored nothing. */
static void test_nothing_happened(void **state OP_UNUSED)
{
	char *text;

	take(600);
	end(true);
	start();
	assert_false(pipeline.ledger.is_mended);
	text = keep_ledger();
	assert_null(strstr(text, "files\t")); /* of a daemon that runs */
	free(text);
	take(5);
	end(true);
	text = keep_ledger();
	assert_non_null(strstr(text, "\nfiles\t2\t"));
	free(text);
	start();
	assert_false(pipeline.ledger.is_mended);
}

/* A ledger without the line `files`, or with a bad one: the files are added up once. */
static void test_files_line(void **state OP_UNUSED)
{
	static const char *const lines[] = { "files\t2\n",    "files\t2\t\n",   "files\t2\t-1\n",
					     "files\tx\t7\n", "files\t02\t7\n", "files\n" };
	struct op_session_ledger ledger;
	char text[256];
	int fd = openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned int line;

	for (size_t i = 0; i < op_array_size(lines); i++) {
		snprintf(text, sizeof(text), "opd-ledger 1\nended\tstopped\n%s", lines[i]);
		assert_int_equal(op_file_publish(fd, OP_SESSION_LEDGER, text, 0644), 0);
		assert_int_equal(op_session_ledger_read(fd, &ledger, &line), -EBADMSG);
		assert_int_equal(line, 3);
	}
	close(fd);
	take(3);
	end(true);
	put_ledger(strdup("opd-ledger 1\nended\tstopped\n"));
	start();
	assert_true(pipeline.ledger.is_mended);
	end_with(3, 0);
}

/* A reset that could not remove all files. */
static void test_rest_of_a_reset(void **state OP_UNUSED)
{
	struct op_session_ledger ledger;
	uint64_t begin_ns = opd_ledger_begin_ns(&pipeline.ledger);

	take(10);
	pass(MINUTE);
	opd_count_close_files(&pipeline.count);
	run_there("rm -r a ../../" OP_SESSION_LEDGER);
	memset(&event, 0, sizeof(event));
	opd_ledger_reset_to_rest(&pipeline.ledger);
	take(4);
	end(true);
	ledger = read_current();
	assert_int_equal(ledger.events[0].received, 5 + 4);
	assert_int_equal(ledger.events[0].stored, 5 + 4);
	assert_int_equal(ledger.begin_ns, begin_ns);
	assert_int_equal(samples_of("current"), 9);
	op_session_ledger_free(&ledger);
	start();
	assert_false(pipeline.ledger.is_mended);
}

static void test_in_the_way(void **state OP_UNUSED)
{
	static const char *const paths[] = { OP_SESSION_TMP "/ledger", OP_SESSION_TMP "/stats", LEDGER,
					     OPD_STATS_DIR "/total_samples" };

	take(3);
	assert_null(opd_ledger_in_the_way(&pipeline.ledger));
	for (size_t i = 0; i < op_array_size(paths); i++) {
		unlinkat(session_fd, paths[i], 0);
		assert_int_equal(mkdirat(session_fd, paths[i], 0755), 0);
		assert_int_equal(opd_recording_write_ledger(&recording, OP_SESSION_open, false), -EISDIR);
		assert_string_equal(opd_ledger_in_the_way(&pipeline.ledger), paths[i]);
		assert_int_equal(unlinkat(session_fd, paths[i], AT_REMOVEDIR), 0);
		assert_int_equal(mkfifoat(session_fd, paths[i], 0644), 0);
		assert_string_equal(opd_ledger_in_the_way(&pipeline.ledger), paths[i]);
		assert_int_equal(unlinkat(session_fd, paths[i], 0), 0);
		assert_int_equal(opd_recording_write_ledger(&recording, OP_SESSION_open, false), 0);
		assert_null(opd_ledger_in_the_way(&pipeline.ledger));
	}
	end_with(3, 0);
}

/* The span, the pauses in it, and whether nothing is sampled since the end, in seconds. */
static void assert_times(uint64_t span_s, uint64_t paused_s, bool is_stopped)
{
	struct op_session_ledger ledger;

	assert_int_equal(opd_recording_write_ledger(&recording, OP_SESSION_open, false), 0);
	ledger = read_current();
	assert_int_equal(ledger.end_ns - ledger.begin_ns, span_s * SECOND);
	assert_int_equal(ledger.paused_ns, paused_s * SECOND);
	assert_int_equal(ledger.is_stopped, is_stopped);
	op_session_ledger_free(&ledger);
}

static void test_pauses(void **state OP_UNUSED)
{
	take(3);
	pass(10 * SECOND);
	assert_times(10, 0, false);
	opd_ledger_stop(&pipeline.ledger);
	pass(100 * SECOND);
	assert_times(10, 0, true);
	opd_ledger_stop(&pipeline.ledger);
	assert_times(10, 0, true);
	opd_ledger_begin(&pipeline.ledger);
	opd_ledger_begin(&pipeline.ledger);
	pass(5 * SECOND);
	assert_times(115, 100, false);
	opd_ledger_stop(&pipeline.ledger);
	pass(7 * SECOND);
	end(true);
	pass(30 * SECOND);
	start();
	assert_times(152, 137, false);
	opd_ledger_stop(&pipeline.ledger);
	pass(2 * SECOND);
	opd_ledger_begin(&pipeline.ledger);
	assert_times(154, 139, false);
}

/* A session that begins while nothing is sampled has no length. */
static void test_rotation_in_a_pause(void **state OP_UNUSED)
{
	take(3);
	pass(10 * SECOND);
	opd_ledger_stop(&pipeline.ledger);
	pass(HOUR);
	turn();
	pass(100 * SECOND);
	assert_times(0, 0, true);
	opd_ledger_begin(&pipeline.ledger);
	pass(4 * SECOND);
	opd_recording_write_ledger(&recording, OP_SESSION_open, false);
	take(2);
	end_with(2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rotate_test(test_killed_beside_an_old_ledger),
		rotate_test(test_old_ledger_without_a_lock),
		rotate_test(test_killed_while_it_closed),
		rotate_test(test_removed_while_down),
		rotate_test(test_all_removed_while_down),
		rotate_test(test_written_over_while_down),
		rotate_test(test_more_while_down),
		rotate_test(test_nothing_happened),
		rotate_test(test_files_line),
		rotate_test(test_rest_of_a_reset),
		rotate_test(test_in_the_way),
		rotate_test(test_pauses),
		rotate_test(test_rotation_in_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
