/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rotation beside a clock that steps, a disk that is full, a dump that is under way, and kills: every sample is in exactly one session, and the ledger of each session
 * says what its files hold.
 */
#include "tests/unit/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "daemon/recover.h"
#include "daemon/sync.h"
#include "daemon/unwritten.h"
#include "libop/clock.h"
#include "libop/session.h"
#include "libop/sys.h"
#include "tests/unit/pipeline.h"

#define SECOND ((uint64_t)OP_NS_PER_S)
#define HOUR   (3600 * SECOND)
#define MINUTE (60 * SECOND)
#define BEGIN  (1795226400 * SECOND + 17 * MINUTE) /* 2026-11-21 02:17:00 UTC */

/* ---- clocks and faults ---- */

static uint64_t wall_ns, boot_ns;
static int nr_calls_to_kill; /* 0: never */
static struct {
	int mkdir, rename_new, exchange, write_all, fsync;
} fault;
static ino_t synced[256];
static size_t nr_synced;

uint64_t __wrap_op_sys_wall_ns(void);
uint64_t __wrap_op_sys_boot_ns(void);
int __real_op_sys_mkdirat(int dir_fd, const char *path, mode_t mode);
int __wrap_op_sys_mkdirat(int dir_fd, const char *path, mode_t mode);
int __real_op_sys_rename_new(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __wrap_op_sys_rename_new(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __real_op_sys_rename_exchange(int dir_fd, const char *path, const char *other_path);
int __wrap_op_sys_rename_exchange(int dir_fd, const char *path, const char *other_path);
int __real_op_sys_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __wrap_op_sys_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __real_op_sys_write_all(int fd, const void *buffer, size_t nr_bytes);
int __wrap_op_sys_write_all(int fd, const void *buffer, size_t nr_bytes);
int __real_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset);
int __wrap_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset);
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

static void maybe_kill(void)
{
	if (nr_calls_to_kill && !--nr_calls_to_kill)
		_exit(9);
}

int __wrap_op_sys_mkdirat(int dir_fd, const char *path, mode_t mode)
{
	maybe_kill();
	return fault.mkdir ? fault.mkdir : __real_op_sys_mkdirat(dir_fd, path, mode);
}

int __wrap_op_sys_rename_new(int old_fd, const char *old_path, int new_fd, const char *new_path)
{
	maybe_kill();
	return fault.rename_new ? fault.rename_new : __real_op_sys_rename_new(old_fd, old_path, new_fd, new_path);
}

int __wrap_op_sys_rename_exchange(int dir_fd, const char *path, const char *other_path)
{
	maybe_kill();
	return fault.exchange ? fault.exchange : __real_op_sys_rename_exchange(dir_fd, path, other_path);
}

/* The disk is slow where a closed session gets its table. */
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static bool held;
static unsigned int nr_held;

static void hold_renames(bool yes)
{
	pthread_mutex_lock(&hold_lock);
	held = yes;
	pthread_cond_broadcast(&hold_changed);
	pthread_mutex_unlock(&hold_lock);
}

static void wait_for_held(unsigned int nr)
{
	pthread_mutex_lock(&hold_lock);
	while (nr_held < nr)
		pthread_cond_wait(&hold_changed, &hold_lock);
	pthread_mutex_unlock(&hold_lock);
}

static void maybe_hold(const char *path)
{
	if (strncmp(path, OP_SESSION_CLOSED_COOKIES, strlen(OP_SESSION_CLOSED_COOKIES)))
		return;
	pthread_mutex_lock(&hold_lock);
	nr_held += held;
	pthread_cond_broadcast(&hold_changed);
	while (held)
		pthread_cond_wait(&hold_changed, &hold_lock);
	pthread_mutex_unlock(&hold_lock);
}

int __wrap_op_sys_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path)
{
	maybe_kill();
	maybe_hold(old_path);
	return __real_op_sys_renameat(old_fd, old_path, new_fd, new_path);
}

int __wrap_op_sys_write_all(int fd, const void *buffer, size_t nr_bytes)
{
	maybe_kill();
	return fault.write_all ? fault.write_all : __real_op_sys_write_all(fd, buffer, nr_bytes);
}

int __wrap_op_sys_fsync(int fd)
{
	struct stat st;

	maybe_kill();
	if (!fstat(fd, &st)) {
		size_t at = __atomic_fetch_add(&nr_synced, 1, __ATOMIC_RELAXED); /* write-outs may go on beside each other */

		if (at < op_array_size(synced))
			synced[at] = st.st_ino;
	}
	return fault.fsync ? fault.fsync : __real_op_sys_fsync(fd);
}

static unsigned int nr_written_anew;

int __wrap_op_sys_pwrite_all(int fd, const void *buffer, size_t nr_bytes, off_t offset)
{
	nr_written_anew++;
	return __real_op_sys_pwrite_all(fd, buffer, nr_bytes, offset);
}

/* ---- a daemon's life ---- */

static struct op_config config;
static struct opd_pipeline pipeline;
static struct opd_sync sync_thread;
static struct op_event kind;
static struct opd_event event;
static struct opd_cpu cpu;
static char dir[PIPELINE_DIR_BYTES];
static int session_fd;
static uint64_t now_ns, nr_taken;

/* What a daemon does before its first turn. */
static void start(void)
{
	sync_thread =
		(struct opd_sync){ .pipeline = &pipeline, .config = &config, .running_since_ns = 1, .epoll_fd = -1, .wake_fd = -1 };
	sync_thread.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&sync_thread.lock, NULL);
	pthread_cond_init(&sync_thread.dump_ended, NULL);
	memset(&event, 0, sizeof(event));
	event.fd = -1;
	assert_int_equal(opd_resolver_init(&pipeline.resolver, op_dcookie_table_new(), 1000, NULL), 0);
	assert_int_equal(opd_cookie_file_open(&pipeline.cookie_file, session_fd, pipeline.resolver.table), 0);
	pipeline.count = (struct opd_count){ .session_fd = session_fd,
					     .table = pipeline.resolver.table,
					     .events = &kind,
					     .cookie_file = &pipeline.cookie_file,
					     .separate_lib = true,
					     .max_open = 100,
					     .max_closed = 100 };
	assert_int_equal(opd_book_open(&sync_thread.book, session_fd, &pipeline.capture), 0);
	opd_book_begin(&sync_thread.book);
	opd_sync_write_book(&sync_thread, OP_SESSION_open);
}

static void wait_for_threads(void)
{
	pthread_mutex_lock(&sync_thread.lock);
	while (sync_thread.nr_dumps_under_way)
		pthread_cond_wait(&sync_thread.dump_ended, &sync_thread.lock);
	pthread_mutex_unlock(&sync_thread.lock);
}

/* In order, or not at all. */
static void end(bool in_order)
{
	wait_for_threads();
	if (in_order)
		opd_sync_write_book(&sync_thread, OP_SESSION_stopped);
	opd_count_close_files(&pipeline.count);
	opd_unwritten_free(&sync_thread);
	opd_cookie_file_close(&pipeline.cookie_file);
	opd_book_close(&sync_thread.book);
	op_dcookie_table_free(pipeline.resolver.table);
	opd_resolver_free(&pipeline.resolver);
	close(sync_thread.done_fd);
}

static void take(unsigned int nr_samples)
{
	for (unsigned int i = 0; i < nr_samples; i++) {
		struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = i % 2 ? "/bin/a" : "/bin/b" },
					  .inode = 5 + i % 2 };
		struct opd_resolved resolved = { .location = { op_dcookie_get(pipeline.resolver.table, &id), 16 * i } };
		struct opd_counted counted = { .resolved = &resolved, .account = &event, .amount = 1 };

		event.received++;
		opd_count_sample(&pipeline.count, &counted);
	}
	opd_count_flush(&pipeline.count);
	nr_taken += nr_samples;
}

/* Time goes on for the clock that never steps, and for the wall clock unless it says otherwise. */
static void pass(uint64_t ns)
{
	boot_ns += ns;
	wall_ns += ns;
	now_ns += ns;
}

static void turn(void)
{
	pass(SECOND / 4);
	opd_rotate_if_due(&sync_thread, now_ns);
	opd_unwritten_retry(&sync_thread, now_ns);
	wait_for_threads();
}

static int setup(void **state OP_UNUSED)
{
	memset(&fault, 0, sizeof(fault));
	wall_ns = BEGIN;
	boot_ns = 1000 * SECOND;
	now_ns = 500 * SECOND;
	nr_taken = nr_synced = 0;
	nr_written_anew = 0;
	config = (struct op_config){ .session_interval_us = HOUR / 1000 };
	kind = (struct op_event){ .name = "TIMER", .count = 1000 };
	cpu = (struct opd_cpu){ .events = &event };
	pipeline = (struct opd_pipeline){ .capture = { .events = &kind, .nr_events = 1, .cpus = &cpu, .nr_cpus = 1 } };
	snprintf(dir, sizeof(dir), "/tmp/opd-unit.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	session_fd = op_session_open(dir);
	if (session_fd < 0)
		return -1;
	start();
	return 0;
}

static int teardown(void **state OP_UNUSED)
{
	char command[64];

	end(false);
	close(session_fd);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* ---- what there is ---- */

static uint64_t stored(const struct op_session_ledger *ledger)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ledger->nr_events; i++)
		sum += ledger->events[i].stored;
	return sum;
}

/* Samples of a session by its files; by its ledger they must be as many, but for one whose daemon was killed. */
static uint64_t samples_of(const char *name)
{
	struct op_session_ledger ledger, files = { 0 };
	char path[300];
	uint64_t nr_bad, sum;
	int fd, err;

	snprintf(path, sizeof(path), "samples/%s", name);
	fd = openat(session_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(op_session_ledger_add_files(&files, fd, &nr_bad), 0);
	assert_int_equal(nr_bad, 0);
	sum = stored(&files);
	err = op_session_ledger_read(fd, &ledger, NULL);
	if (err)
		assert_true(err == -ENOENT && !sum);
	else if (ledger.ended != OP_SESSION_open)
		assert_int_equal(stored(&ledger), sum);
	if (!err)
		op_session_ledger_free(&ledger);
	op_session_ledger_free(&files);
	close(fd);
	return sum;
}

/* Names of all sessions but the current one, sorted, with a blank behind each; *ret_sum, all samples. */
static void look(char names[512], uint64_t *ret_sum)
{
	int fd = openat(session_fd, "samples", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries;
	int nr = scandirat(fd, ".", &entries, NULL, alphasort);

	*names = '\0';
	*ret_sum = 0;
	for (int i = 0; i < nr; i++) {
		if (entries[i]->d_name[0] != '.') {
			*ret_sum += samples_of(entries[i]->d_name);
			if (strcmp(entries[i]->d_name, "current"))
				snprintf(names + strlen(names), 512 - strlen(names), "%s ", entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	close(fd);
}

static void check(const char *expected)
{
	char names[512];
	uint64_t sum;

	opd_sync_write_book(&sync_thread, OP_SESSION_open);
	look(names, &sum);
	assert_string_equal(names, expected);
	assert_int_equal(sum, nr_taken);
}

/* ---- time ---- */

static void test_boundaries(void **state OP_UNUSED)
{
	take(10);
	turn();
	check("");
	pass(42 * MINUTE);
	turn();
	check("");
	take(3);
	pass(MINUTE);
	turn();
	check("2026-11-21T02:17Z ");
	assert_int_equal(samples_of("2026-11-21T02:17Z"), 13);
	take(5);
	turn();
	pass(HOUR);
	turn();
	take(1);
	check("2026-11-21T02:17Z 2026-11-21T03:00Z ");
	assert_int_equal(samples_of("2026-11-21T03:00Z"), 5);
	assert_int_equal(samples_of("current"), 1);
}

/* A session that takes more than a quarter of SessionMaxUse does not wait for its boundary; the next one has that still. */
static void test_too_large(void **state OP_UNUSED)
{
	config.session_max_use = 12 * OPD_FILE_BYTES;
	take(10);
	turn();
	check(""); /* two files */
	pipeline.count.limit.weighed_bytes = 3 * OPD_FILE_BYTES;
	pipeline.count.limit.weighed_nr = 1;
	pass(SECOND / 2);
	turn();
	check("2026-11-21T02:17:00Z ");
	assert_int_equal(samples_of("2026-11-21T02:17:00Z"), 10);
	assert_int_equal(opd_file_limit_bytes(&pipeline.count.limit), 0);
	take(3);
	turn();
	check("2026-11-21T02:17:00Z ");
	pass(43 * MINUTE);
	turn();
	check("2026-11-21T02:17:00Z 2026-11-21T02:17Z ");
}

/* One that cannot be closed is tried again, but not with each turn. */
static void test_too_large_and_no_space(void **state OP_UNUSED)
{
	config.session_max_use = 4;
	take(10);
	fault.mkdir = -ENOSPC;
	for (int i = 0; i < 30; i++)
		turn();
	check("");
	assert_int_equal(sync_thread.rotation.nr_failed, 1);
	fault.mkdir = 0;
	pass(20 * SECOND);
	turn();
	assert_int_equal(sync_thread.rotation.nr_closed, 1);
}

static void test_nothing_to_close(void **state OP_UNUSED)
{
	pass(5 * HOUR);
	turn();
	check("");
	take(4);
	pass(HOUR);
	turn();
	check("2026-11-21T07:17Z ");
}

static void test_off(void **state OP_UNUSED)
{
	config.session_interval_us = 0;
	take(4);
	pass(100 * HOUR);
	turn();
	check("");
}

static void test_down_over_a_boundary(void **state OP_UNUSED)
{
	take(7);
	end(true);
	pass(3 * HOUR);
	boot_ns = 50 * SECOND; /* the machine was started anew */
	start();
	turn();
	check("2026-11-21T02:17Z ");
	take(2);
	turn();
	check("2026-11-21T02:17Z ");
	pass(HOUR);
	turn();
	check("2026-11-21T02:17Z 2026-11-21T05:17Z ");
}

static void test_down_while_the_clock_went_back(void **state OP_UNUSED)
{
	take(7);
	end(true);
	wall_ns -= 10 * HOUR;
	start();
	turn();
	check("");
	take(1);
	pass(HOUR);
	turn();
	check("2026-11-20T16:17Z ");
	assert_int_equal(samples_of("2026-11-20T16:17Z"), 8);
}

static void test_killed(void **state OP_UNUSED)
{
	take(7);
	opd_sync_write_book(&sync_thread, OP_SESSION_open);
	take(6);
	end(false);
	start();
	take(2);
	pass(HOUR);
	turn();
	check("2026-11-21T02:17Z ");
	assert_int_equal(samples_of("2026-11-21T02:17Z"), 15);
}

static void test_step_forwards(void **state OP_UNUSED)
{
	take(3);
	turn();
	pass(10 * MINUTE);
	wall_ns += 5 * HOUR;
	turn();
	check("2026-11-21T07:17Z "); /* the new time is the right one: it began ten minutes ago */
	take(1);
	pass(32 * MINUTE);
	turn();
	check("2026-11-21T07:17Z ");
	pass(2 * MINUTE);
	turn();
	check("2026-11-21T07:17Z 2026-11-21T07:27Z ");
}

static void test_step_backwards(void **state OP_UNUSED)
{
	take(3);
	turn();
	pass(10 * MINUTE);
	turn();
	wall_ns -= 30 * 24 * HOUR;
	turn();
	check("");
	take(4);
	pass(30 * MINUTE);
	turn();
	check("");
	pass(4 * MINUTE);
	turn();
	check("2026-10-22T02:17Z ");
}

/* Less than a second is the clock being slewed: no boundary is seen twice. */
static void test_slew_back_over_a_boundary(void **state OP_UNUSED)
{
	take(3);
	pass(43 * MINUTE);
	turn();
	take(2);
	wall_ns -= 3 * SECOND / 4;
	turn();
	turn();
	turn();
	check("2026-11-21T02:17Z ");
}

static void test_suspend(void **state OP_UNUSED)
{
	take(3);
	turn();
	boot_ns += 8 * HOUR;
	wall_ns += 8 * HOUR;
	turn();
	check("2026-11-21T02:17Z ");
	take(2);
	turn();
	check("2026-11-21T02:17Z ");
}

static void test_names_that_are_taken(void **state OP_UNUSED)
{
	for (int i = 0; i < 3; i++) {
		wall_ns = BEGIN;
		opd_book_reset(&sync_thread.book);
		event.received = event.stored = 0;
		sync_thread.rotation.due_ns = 0;
		opd_book_begin(&sync_thread.book);
		take(2);
		turn();
		pass(HOUR);
		turn();
	}
	check("2026-11-21T02:17Z 2026-11-21T02:17Z-02 2026-11-21T02:17Z-03 ");
}

/* ---- faults ---- */

static void check_fault(int *injected, int err)
{
	take(5);
	turn();
	pass(HOUR);
	*injected = err;
	turn();
	take(3);
	turn();
	*injected = 0;
	assert_int_equal(sync_thread.rotation.nr_failed, 1); /* not tried every turn */
	check("");
	pass(11 * SECOND);
	turn();
	take(2);
	check("2026-11-21T02:17Z ");
	assert_int_equal(samples_of("2026-11-21T02:17Z"), 8);
	assert_int_equal(samples_of("current"), 2);
}

static void test_no_room_for_a_directory(void **state OP_UNUSED)
{
	check_fault(&fault.mkdir, -ENOSPC);
}

static void test_no_room_for_the_ledger(void **state OP_UNUSED)
{
	check_fault(&fault.write_all, -ENOSPC);
}

static void test_rename_fails(void **state OP_UNUSED)
{
	check_fault(&fault.rename_new, -EIO);
}

static void test_exchange_fails(void **state OP_UNUSED)
{
	check_fault(&fault.exchange, -EIO);
}

/* A file system that cannot exchange: it goes in steps. */
static void test_no_exchange(void **state OP_UNUSED)
{
	fault.exchange = -EINVAL;
	for (int i = 0; i < 3; i++) {
		take(5);
		pass(HOUR);
		turn();
	}
	assert_int_equal(sync_thread.rotation.nr_failed, 0);
	check("2026-11-21T02:17Z 2026-11-21T03:17Z 2026-11-21T04:17Z ");
}

static void check_table(const char *name, bool has_late)
{
	char path[300], text[4096] = "";
	int fd;

	snprintf(path, sizeof(path), "samples/%s/dcookies", name);
	fd = openat(session_fd, path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_non_null(strstr(text, "/bin/a"));
	assert_int_equal(strstr(text, "/bin/late") != NULL, has_late);
}

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

static unsigned int nr_under_way(void)
{
	unsigned int nr;

	pthread_mutex_lock(&sync_thread.lock);
	nr = sync_thread.nr_dumps_under_way;
	pthread_mutex_unlock(&sync_thread.lock);
	return nr;
}

/* What the dump took is on the disk when it says so, wherever it is by then. */
static void test_in_the_middle_of_a_dump(void **state OP_UNUSED)
{
	struct opd_job job = { .kind = OPD_JOB_DUMP };
	struct opd_write_out *out;
	struct stat st;
	bool found = false;

	take(6);
	assert_int_equal(opd_write_out_begin(&sync_thread, &job, false, &out), 0);
	pass(HOUR);
	opd_rotate_if_due(&sync_thread, now_ns);
	take(4);
	while (nr_under_way() > 1)
		usleep(1000);
	nr_synced = 0;
	assert_int_equal(opd_write_out_go(out), 0);
	wait_for_threads();
	assert_ptr_equal(opd_sync_take_done(&sync_thread), &job);
	assert_int_equal(job.error, 0);
	assert_int_equal(
		fstatat(session_fd, "samples/2026-11-21T02:17Z/{root}/bin/a/{dep}/{root}/bin/a/TIMER.1000.0.all.all.all", &st, 0),
		0);
	for (size_t i = 0; i < op_min_u64(nr_synced, op_array_size(synced)); i++)
		found |= synced[i] == st.st_ino;
	assert_true(found);
	check("2026-11-21T02:17Z ");
}

static void take_late(void)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = "/bin/late" }, .inode = 9 };
	struct opd_resolved resolved = { .location = { op_dcookie_get(pipeline.resolver.table, &id), 16 } };
	struct opd_counted counted = { .resolved = &resolved, .account = &event, .amount = 1 };

	event.received++;
	opd_count_sample(&pipeline.count, &counted);
	opd_count_flush(&pipeline.count);
	nr_taken++;
}

/* Two sessions are closed while the disk is slow: each gets its own table. */
static void test_two_at_once(void **state OP_UNUSED)
{
	take(6);
	pass(HOUR);
	hold_renames(true);
	opd_rotate_if_due(&sync_thread, now_ns);
	wait_for_held(1);
	take(6);
	take_late();
	pass(HOUR);
	opd_rotate_if_due(&sync_thread, now_ns);
	wait_for_held(2);
	hold_renames(false);
	wait_for_threads();
	check_table("2026-11-21T02:17Z", false);
	check_table("2026-11-21T03:17Z", true);
	check("2026-11-21T02:17Z 2026-11-21T03:17Z ");
}

/* A child that is killed at its n-th system call; false when it came through. */
static bool rotates_until(int nr_calls)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		nr_calls_to_kill = nr_calls;
		opd_rotate_if_due(&sync_thread, now_ns);
		wait_for_threads();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 9;
}

static void kill_at_every_call(void **state, int exchange_err)
{
	bool killed = true;
	int nr_calls;

	for (nr_calls = 1; killed; nr_calls++) {
		char names[512];
		uint64_t sum;

		fault.exchange = exchange_err;
		take(9);
		turn();
		pass(HOUR);
		killed = rotates_until(nr_calls);
		end(false);
		close(session_fd);
		session_fd = op_session_open(dir);
		assert_true(session_fd >= 0);
		opd_recover(session_fd, true);
		start();
		take(1);
		opd_sync_write_book(&sync_thread, OP_SESSION_open);
		look(names, &sum);
		assert_int_equal(sum, nr_taken);
		turn();
		turn();
		check("2026-11-21T02:17Z ");
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
	assert_in_range(nr_calls, 10, 100);
}

static void test_kill_at_every_call(void **state)
{
	kill_at_every_call(state, 0);
	kill_at_every_call(state, -ENOSYS);
}

/* Of a save that was killed before its last step; whatever has something in it is a session. */
static void test_start_after_a_kill_in_a_save(void **state OP_UNUSED)
{
	take(3);
	end(false);
	assert_int_equal(mkdirat(session_fd, "samples/mine", 0755), 0);
	assert_int_equal(mkdirat(session_fd, "samples/other", 0755), 0);
	assert_int_equal(mkdirat(session_fd, "samples/other/{root}", 0755), 0);
	opd_recover(session_fd, true);
	start();
	check("other ");
}

#define rotate_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rotate_test(test_boundaries), rotate_test(test_too_large), rotate_test(test_too_large_and_no_space),
		rotate_test(test_nothing_to_close),
		rotate_test(test_off),
		rotate_test(test_down_over_a_boundary),
		rotate_test(test_down_while_the_clock_went_back),
		rotate_test(test_killed),
		rotate_test(test_step_forwards),
		rotate_test(test_step_backwards),
		rotate_test(test_slew_back_over_a_boundary),
		rotate_test(test_suspend),
		rotate_test(test_names_that_are_taken),
		rotate_test(test_no_room_for_a_directory),
		rotate_test(test_no_room_for_the_ledger),
		rotate_test(test_rename_fails),
		rotate_test(test_exchange_fails),
		rotate_test(test_no_exchange),
		rotate_test(test_in_the_middle_of_a_dump),
		rotate_test(test_two_at_once),
		rotate_test(test_written_later),
		rotate_test(test_written_much_later),
		rotate_test(test_never_written),
		rotate_test(test_kill_at_every_call),
		rotate_test(test_start_after_a_kill_in_a_save),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
