/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of sessions, closing one, and the ledger beside its samples. */
#define BOX_IN_MEMORY
#include "tests/unit/test_box.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/sum.h"
#include "libop/session/close.h"
#include "libop/session/ledger_file.h"
#include "libop/base/sys.h"
#include "tests/unit/sample_writer.h"

#define SECOND 1000000000ull

/* ---- names ---- */

static void test_names(void **state OP_UNUSED)
{
	static const char *const good[] = { "one", "A-Z_a.z:0,9", "2026-11-21T03:00Z", "currents", "x-" };
	static const char *const bad[] = { "",	  "current", ".",   "..",	    ".x",     "a/b", "/",
					   "a b", "a\n",	     "-x", "\xc3\xa4", "{root}", "-" };
	char name[OP_SESSION_NAME_MAX + 2];

	for (size_t i = 0; i < op_array_size(good); i++)
		assert_null(op_session_name_fault(good[i]));
	for (size_t i = 0; i < op_array_size(bad); i++)
		assert_non_null(op_session_name_fault(bad[i]));
	memset(name, 'x', sizeof(name));
	name[OP_SESSION_NAME_MAX + 1] = '\0';
	assert_non_null(op_session_name_fault(name));
	name[OP_SESSION_NAME_MAX] = '\0';
	assert_null(op_session_name_fault(name));
}

static void test_time_names(void **state OP_UNUSED)
{
	static const char *const good[] = { "2026-11-21T03:00Z", "2026-11-21T03:00:59Z", "2026-11-21T03:00Z-02",
					    "2026-11-21T03:00Z-1234" };
	static const char *const bad[] = { "",
					   "2026-11-21",
					   "2026-11-21T03:00",
					   "2026-11-21T03:00Z-",
					   "2026-11-21T03:00Zx",
					   "2026-11-21T03:00Z-x",
					   "2026-11-21T03:00Z-12345",
					   "x2026-11-21T03:00Z",
					   "2026-11-21 03:00Z",
					   "current" };
	char name[OP_SESSION_NAME_BYTES];

	op_session_time_name(1795230000 * SECOND + 1, false, name);
	assert_string_equal(name, "2026-11-21T03:00Z");
	op_session_time_name(1795230059 * SECOND, true, name);
	assert_string_equal(name, "2026-11-21T03:00:59Z");
	for (size_t i = 0; i < op_array_size(good); i++)
		assert_true(op_session_is_time_name(good[i]));
	for (size_t i = 0; i < op_array_size(bad); i++)
		assert_false(op_session_is_time_name(bad[i]));
}

/* ---- closing ---- */

static bool has(int fd, const char *path)
{
	return !faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static int open_with_sample(const struct box *box)
{
	int fd = op_session_open(box->path);

	assert_true(fd >= 0);
	sample_write_bytes(fd, "samples/current/{root}/x", "x", 1);
	return fd;
}

static void clean(const struct box *box, int fd)
{
	assert_int_equal(op_session_remove(box->fd, "samples"), 0);
	assert_int_equal(op_session_remove(box->fd, "tmp"), 0);
	close(fd);
}

static void test_close(void **state)
{
	struct box *box = *state;
	char name[OP_SESSION_NAME_BYTES] = "2026-11-21T03:00Z";
	int fd = open_with_sample(box);

	assert_int_equal(op_session_close(fd, "one"), 0);
	assert_true(has(fd, "samples/one/{root}/x"));
	assert_true(has(fd, "samples/current"));
	assert_false(has(fd, "samples/current/{root}"));
	assert_false(has(fd, "tmp/current"));
	assert_int_equal(op_session_close(fd, "one"), -EEXIST);
	assert_true(has(fd, "samples/one/{root}/x"));
	assert_false(has(fd, "tmp/current"));
	assert_int_equal(op_session_close_timed(fd, name), 0);
	assert_int_equal(op_session_close_timed(fd, name), 0);
	assert_string_equal(name, "2026-11-21T03:00Z-02");
	assert_true(has(fd, "samples/2026-11-21T03:00Z-02"));
	assert_int_equal(op_session_sync_dirs(fd), 0);
	clean(box, fd);
}

/* tmp/ may be missing, and a killed call may have left a new current. */
/* Whoever may write to tmp/ could else make a link the current session. */
static void test_close_with_a_link(void **state)
{
	struct box *box = *state;
	int fd = open_with_sample(box);

	assert_int_equal(op_sys_symlinkat(".", fd, "tmp/current"), 0);
	assert_int_equal(op_session_close(fd, "one"), -ENOTDIR);
	assert_true(has(fd, "samples/current/{root}/x"));
	assert_false(has(fd, "samples/one"));
	clean(box, fd);
}

static void test_close_in_disorder(void **state)
{
	struct box *box = *state;
	int fd = open_with_sample(box);

	assert_int_equal(unlinkat(fd, "tmp", AT_REMOVEDIR), 0);
	assert_int_equal(op_session_close(fd, "one"), 0);
	assert_int_equal(mkdirat(fd, "tmp/current", 0755), 0);
	assert_int_equal(op_session_close(fd, "two"), 0);
	assert_true(has(fd, "samples/current"));
	assert_int_equal(unlinkat(fd, "samples/current", AT_REMOVEDIR), 0);
	assert_int_equal(op_session_close(fd, "three"), -ENOENT);
	assert_false(has(fd, "tmp/current"));
	clean(box, fd);
}

/* The leftovers of a call that was killed before its last step are removed; a session is not. */
static void test_close_over_an_empty_directory(void **state)
{
	struct box *box = *state;
	char name[OP_SESSION_NAME_BYTES] = "2026-11-21T03:00Z";
	int fd = open_with_sample(box);

	assert_int_equal(mkdirat(fd, "samples/one", 0755), 0);
	assert_int_equal(op_session_close(fd, "one"), 0);
	assert_true(has(fd, "samples/one/{root}/x"));
	assert_int_equal(mkdirat(fd, "samples/2026-11-21T03:00Z", 0755), 0);
	assert_int_equal(op_session_close_timed(fd, name), 0);
	assert_string_equal(name, "2026-11-21T03:00Z");
	assert_int_equal(symlinkat("one", fd, "samples/two"), 0);
	assert_int_equal(op_session_close(fd, "two"), -EEXIST);
	assert_true(has(fd, "samples/current"));
	clean(box, fd);
}

/* ---- a reader beside it ---- */

struct reader {
	int session_fd;
	bool end;
	unsigned long nr_looks, nr_missed;
};

static void *read_on(void *arg)
{
	struct reader *reader = arg;

	while (!__atomic_load_n(&reader->end, __ATOMIC_ACQUIRE)) {
		int fd = openat(reader->session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		reader->nr_looks++;
		reader->nr_missed += fd < 0;
		if (fd >= 0)
			close(fd);
	}
	return NULL;
}

static bool can_exchange(int fd)
{
	int err;

	assert_int_equal(mkdirat(fd, "tmp/a", 0755), 0);
	assert_int_equal(mkdirat(fd, "tmp/b", 0755), 0);
	err = op_sys_rename_exchange(fd, "tmp/a", fd, "tmp/b");
	assert_int_equal(unlinkat(fd, "tmp/a", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(fd, "tmp/b", AT_REMOVEDIR), 0);
	return !err;
}

/* There is a current at every moment. */
static void test_always_a_current(void **state)
{
	struct box *box = *state;
	struct reader reader = { .session_fd = open_with_sample(box) };
	char name[OP_SESSION_NAME_BYTES];
	pthread_t thread;

	if (!can_exchange(reader.session_fd)) {
		clean(box, reader.session_fd);
		skip();
	}
	assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "s-%d", i);
		assert_int_equal(op_session_close(reader.session_fd, name), 0);
	}
	__atomic_store_n(&reader.end, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_true(reader.nr_looks > 100);
	assert_int_equal(reader.nr_missed, 0);
	clean(box, reader.session_fd);
}

/* Links are removed, and what they lead to is not. */
static void test_remove(void **state)
{
	struct box *box = *state;
	int fd = open_with_sample(box);
	uint64_t bytes = 0;

	assert_int_equal(symlinkat("../../tmp", fd, "samples/current/link"), 0);
	sample_write_bytes(fd, "tmp/kept", "k", 1);
	assert_int_equal(op_session_disk_bytes(fd, "samples/current", &bytes), 0);
	assert_true(bytes > 0);
	assert_int_equal(op_session_remove(fd, "samples/current"), 0);
	assert_false(has(fd, "samples/current"));
	assert_true(has(fd, "tmp/kept"));
	assert_int_equal(op_session_remove(fd, "samples/current"), 0);
	assert_int_equal(symlinkat("../tmp", fd, "samples/link"), 0);
	assert_int_equal(op_session_remove(fd, "samples/link"), 0);
	assert_true(has(fd, "tmp/kept"));
	clean(box, fd);
}

/* ---- the lock ---- */

static void test_lock(void **state)
{
	struct box *box = *state;
	int fd = op_session_lock(box->fd);

	assert_true(fd >= 0);
	assert_int_equal(op_session_lock(box->fd), -EBUSY);
	op_session_unlock(box->fd, fd);
	assert_false(has(box->fd, OP_SESSION_LOCK));
	assert_false(has(box->fd, OP_SESSION_UNCLEAN));
}

/* The next daemon gets the request, and only once. */
static void test_stale_lock(void **state)
{
	struct box *box = *state;

	for (int i = 0; i < 2; i++) {
		int fd;

		sample_write_bytes(box->fd, OP_SESSION_LOCK, "4194303", 7);
		fd = op_session_lock(box->fd);
		assert_true(fd >= 0);
		assert_true(has(box->fd, OP_SESSION_UNCLEAN));
		/* the lock has another pid than its present owner */
		assert_int_equal(lseek(fd, 0, SEEK_END), 0);
		op_session_unlock(box->fd, fd);
		assert_false(has(box->fd, OP_SESSION_LOCK));
		assert_true(has(box->fd, OP_SESSION_UNCLEAN));
	}
	assert_int_equal(unlinkat(box->fd, OP_SESSION_UNCLEAN, 0), 0);
}

/* ---- the ledger ---- */

static void test_ledger(void **state)
{
	struct box *box = *state;
	struct op_ledger_event rows[] = {
		{ .name = "TIMER",
		  .count = 1000,
		  .received = 17,
		  .stored = 10,
		  .unattributed = 3,
		  .filtered = 5,
		  .lost_kernel = 7 },
		{ .name = "CPU_CLK_UNHALTED", .count = 100000, .unit_mask = 255, .received = UINT64_MAX },
		{ .name = OP_STACKS_NAME, .count = 10101010, .received = 9, .stored = 9, .role = OP_EVENT_STACKS },
		{ .name = OP_WAITS_NAME, .count = 1, .received = 7000000, .stored = 7000000, .role = OP_EVENT_WAITS },
	};
	static const struct op_wait_ledger waits = {
		.switches = 31, .idle = 1, .kernel = 2, .emitted = 5, .skipped = 16, .lost = 7, .records = 4,
		.total_us = { [OP_WAIT_blocked] = 6000000, [OP_WAIT_frozen] = UINT64_MAX },
	};
	struct op_session_ledger ledger = { .ended = OP_SESSION_rotated, .begin_ns = 5 * SECOND + 7, .end_ns = 9 * SECOND }, back;
	struct op_text text = { 0 };

	rows[0].lost[OP_LOSS_no_space] = 2;
	rows[2].ends[OP_STACK_END_complete] = 8;
	rows[2].ends[OP_STACK_END_no_room] = 1;
	ledger.is_imported = true;
	ledger.waits = waits;
	op_session_ledger_set_host(&ledger, "db1.example.org");
	op_session_ledger_set_kernel(&ledger, "6.1.0-49-amd64");
	op_session_ledger_set_cpu(&ledger, "i386/skylake");
	for (size_t i = 0; i < op_array_size(rows); i++)
		*op_session_ledger_row(&ledger, &rows[i]) = rows[i];
	assert_ptr_equal(op_session_ledger_row(&ledger, &rows[1]), &ledger.events[1]);
	op_session_ledger_format(&ledger, &text);
	assert_non_null(strstr(op_text_get(&text), "\nstacks\tSTACKS\t10101010\t0\t"));
	assert_non_null(strstr(op_text_get(&text), "\nwaits\tWAIT\t1\t0\treceived=7000000\t"));
	assert_non_null(strstr(op_text_get(&text), "\nswitches\tswitches=31\tidle=1\t"));
	op_text_add(&text, "later\tword\n");
	sample_write_bytes(box->fd, "ledger", text.data, text.length);
	assert_int_equal(op_session_ledger_read(box->fd, &back, NULL), 0);
	assert_int_equal(back.ended, ledger.ended);
	assert_int_equal(back.begin_ns, ledger.begin_ns);
	assert_int_equal(back.end_ns, ledger.end_ns);
	assert_string_equal(back.host, "db1.example.org");
	assert_string_equal(back.kernel, "6.1.0-49-amd64");
	assert_string_equal(back.cpu, "i386/skylake");
	assert_true(back.is_imported);
	assert_int_equal(back.nr_events, op_array_size(rows));
	assert_memory_equal(back.events, rows, sizeof(rows));
	assert_memory_equal(&back.waits, &waits, sizeof(waits));
	op_session_ledger_free(&back);
	op_session_ledger_free(&ledger);
	op_text_free(&text);
}

/* The name of a host comes from anybody, with perf.data and with copied sessions. */
static void test_host_of_ledger(void **state OP_UNUSED)
{
	static const char *const bad[] = { "", "two words", "\033[2J", "tab\there", "line\nend", "\xc3\xa4" };
	struct op_session_ledger ledger = { 0 };
	char name[OP_SESSION_HOST_BYTES + 1];

	memset(name, 'h', sizeof(name));
	name[OP_SESSION_HOST_BYTES - 1] = '\0';
	op_session_ledger_set_host(&ledger, name);
	assert_string_equal(ledger.host, name);
	for (size_t i = 0; i < op_array_size(bad); i++) {
		op_session_ledger_set_host(&ledger, "good");
		assert_string_equal(ledger.host, "good");
		op_session_ledger_set_host(&ledger, bad[i]);
		assert_string_equal(ledger.host, "");
	}
	name[OP_SESSION_HOST_BYTES - 1] = 'h';
	name[OP_SESSION_HOST_BYTES] = '\0';
	op_session_ledger_set_host(&ledger, name);
	assert_string_equal(ledger.host, "");
	op_session_ledger_set_host(&ledger, NULL);
	assert_string_equal(ledger.host, "");
}

/*
 * Samples missing from the files are lost under a name, extra ones were received. A row that does
 * not add up proves nothing.
 */
static void test_correct_ledger(void **state OP_UNUSED)
{
	struct op_ledger_event rows[] = {
		{ .name = "less", .received = 32, .stored = 10, .unattributed = 8, .filtered = 20 },
		{ .name = "more", .received = 12, .stored = 10 },
		{ .name = "none", .received = 10, .stored = 10 },
		{ .name = "torn", .received = 10, .stored = 100 },
		{ .name = "sampler", .received = 10, .stored = 10, .role = OP_EVENT_SAMPLER },
		{ .name = OP_STACKS_NAME, .received = 10, .stored = 10, .role = OP_EVENT_STACKS },
	};
	struct op_ledger_event files[] = {
		{ .name = "new", .stored = 4 },
		{ .name = "less", .stored = 7 },
		{ .name = "more", .stored = 11 },
		{ .name = "torn", .stored = 9 },
	};
	static const struct {
		uint64_t received, stored, unattributed, lost_io_error;
	} wanted[] = { { 32, 7, 7, 3 },  { 13, 11, 0, 0 }, { 10, 0, 0, 10 }, { 9, 9, 0, 0 },
		       { 10, 10, 0, 0 }, { 10, 0, 0, 10 }, { 4, 4, 0, 0 } };
	struct op_session_ledger ledger = { 0 }, sums = { .events = files, .nr_events = op_array_size(files) };

	rows[0].lost[OP_LOSS_no_space] = rows[1].lost[OP_LOSS_no_space] = 2;
	for (size_t i = 0; i < op_array_size(rows); i++)
		*op_session_ledger_row(&ledger, &rows[i]) = rows[i];
	assert_int_equal(op_session_ledger_correct(&ledger, &sums), 0);
	assert_int_equal(ledger.nr_events, op_array_size(wanted));
	for (size_t i = 0; i < op_array_size(wanted); i++) {
		assert_int_equal(ledger.events[i].received, wanted[i].received);
		assert_int_equal(ledger.events[i].stored, wanted[i].stored);
		assert_int_equal(ledger.events[i].unattributed, wanted[i].unattributed);
		assert_int_equal(ledger.events[i].lost[OP_LOSS_io_error], wanted[i].lost_io_error);
	}
	op_session_ledger_free(&ledger);
}

static void test_bad_ledgers(void **state)
{
	struct box *box = *state;
	static const char *const bad[] = {
		"",
		"opd-ledger 2\n",
		"opd-ledger 1\nended\n",
		"opd-ledger 1\nended\tnever\n",
		"opd-ledger 1\nbegin\t5\n",
		"opd-ledger 1\nbegin\t5.12345678x\n",
		"opd-ledger 1\nbegin\t-5.123456789\n",
		"opd-ledger 1\nbegin\t99999999999999999999.123456789\n",
		"opd-ledger 1\nbegin\t5.000000000\nend\t4.000000000\n",
		"opd-ledger 1\nevent\tTIMER\n",
		"opd-ledger 1\nevent\tTIMER\t1\n",
		"opd-ledger 1\nevent\t\t1\t0\n",
		"opd-ledger 1\nevent\tTIMER\t01\t0\n",
		"opd-ledger 1\nevent\tTIMER\t1\t4294967296\n",
		"opd-ledger 1\nevent\tTIMER\t1\t0\tstored\n",
		"opd-ledger 1\nevent\tTIMER\t1\t0\tstored=x\n",
		"opd-ledger 1\nevent\tTIMER\t1\t0\tstored=18446744073709551616\n",
		"opd-ledger 1\nevent\tTIMER\t1\t0\nevent\tTIMER\t1\t0\n",
		"opd-ledger 1\nended\topen",
	};
	struct op_session_ledger ledger;
	unsigned int line;

	assert_int_equal(op_session_ledger_read(box->fd, &ledger, &line), -ENOENT);
	for (size_t i = 0; i < op_array_size(bad); i++) {
		sample_write_bytes(box->fd, "ledger", bad[i], strlen(bad[i]));
		line = 99;
		if (op_session_ledger_read(box->fd, &ledger, &line) != -EBADMSG || line == 99)
			fail_msg("taken for a ledger: %s", bad[i]);
	}
	sample_write_bytes(box->fd, "ledger", "opd-ledger 1\0x\n", 15);
	assert_int_equal(op_session_ledger_read(box->fd, &ledger, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_time_names),
		cmocka_unit_test(test_host_of_ledger),
		box_test(test_close),	      box_test(test_close_in_disorder),
		box_test(test_close_over_an_empty_directory), box_test(test_close_with_a_link),
		box_test(test_always_a_current),
		box_test(test_lock),	      box_test(test_stale_lock),
		box_test(test_remove),	      box_test(test_correct_ledger), box_test(test_ledger),
		box_test(test_bad_ledgers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
