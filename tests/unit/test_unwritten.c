/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A closed session that the disk refuses: written later, anew, until it is on the disk, or gone. */
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
	fault.fsync = -EIO;
	turn();
	assert_true(is_marked());
	assert_int_equal(opd_unwritten_count(&sync_thread), 1);
	assert_int_equal(nr_written_anew, 0);
}

/* Written anew, since the kernel reports an error once and forgets what it was about. */
static void test_written_later(void **state OP_UNUSED)
{
	close_and_fail();
	fault.fsync = 0;
	turn();
	assert_true(is_marked());
	pass(5 * SECOND);
	turn();
	assert_false(is_marked());
	assert_int_equal(opd_unwritten_count(&sync_thread), 0);
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
	assert_int_equal(opd_unwritten_count(&sync_thread), 1);
	assert_int_equal(nr_written_anew, 3);
	assert_true(is_marked());
	fault.fsync = 0;
	for (int i = 0; i < 10 * 4; i++)
		turn();
	assert_int_equal(opd_unwritten_count(&sync_thread), 0);
	assert_false(is_marked());
	check("2026-11-21T02:17Z ");
}

/* Somebody removed it meanwhile, or the daemon ends first. */
static void test_never_written(void **state OP_UNUSED)
{
	close_and_fail();
	assert_int_equal(op_session_remove(session_fd, "samples/2026-11-21T02:17Z"), 0);
	turn();
	pass(5 * SECOND);
	turn();
	assert_int_equal(opd_unwritten_count(&sync_thread), 0);
	take(4);
	turn();
	pass(HOUR);
	turn();
	assert_int_equal(opd_unwritten_count(&sync_thread), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rotate_test(test_written_later),
		rotate_test(test_written_much_later),
		rotate_test(test_never_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
