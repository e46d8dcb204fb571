/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rotation with clock steps, a full disk, a dump at the same time, and kills. Every sample is in
 * exactly one session, and the ledger of each session agrees with its files.
 */
#include "libop/session/contents.h"
#include "tests/unit/rotation.h"

#include <sys/wait.h>

#include "libop/base/file.h"
#include "libop/stacks/read.h"
#include "pipeline/count/stack_file.h"
#include "pipeline/ledger/recover.h"

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

static void add_stack(void)
{
	const struct op_stack_path path = { .app = op_dcookie_overflow(pipeline.count.table) };
	const struct op_stack_frame frame = { .value = 1 };
	bool has_room = false;

	assert_int_equal(opd_count_stack(&pipeline.count, &path, &frame, 1, 1, &has_room), 0);
	assert_true(has_room);
}

/* The stacks of a session; *ret_inode is that of the file. */
static uint64_t stacks_of(const char *path, ino_t *ret_inode)
{
	struct op_stack_tree tree;
	uint64_t sum = 0;
	struct stat st;

	assert_int_equal(fstatat(session_fd, path, &st, 0), 0);
	*ret_inode = st.st_ino;
	assert_int_equal(op_stacks_read(session_fd, path, &tree), 0);
	for (uint32_t i = 0; i < tree.nr_nodes; i++)
		sum += tree.nodes[i].count;
	op_stack_tree_free(&tree);
	return sum;
}

/* The file goes with its session, and to the disk. */
static void test_stacks(void **state OP_UNUSED)
{
	bool is_synced = false;
	ino_t inode, next;

	take(2);
	add_stack();
	add_stack();
	nr_synced = 0;
	pass(HOUR);
	turn();
	take(1);
	add_stack();
	check("2026-11-21T02:17Z ");
	assert_int_equal(stacks_of("samples/2026-11-21T02:17Z/stacks", &inode), 2);
	for (size_t i = 0; i < nr_synced && i < op_array_size(synced); i++)
		is_synced |= synced[i] == inode;
	assert_true(is_synced);
	assert_int_equal(faccessat(session_fd, "samples/2026-11-21T02:17Z/closing", F_OK, 0), -1);
	assert_int_equal(stacks_of("samples/current/stacks", &next), 1);
	assert_true(next != inode);
}

static void become_too_large(void)
{
	config.session_max_use = 4 * (20 + 3) * OP_ODB_BLOCK_BYTES;
	take(10);
	turn();
	check("");
	look_after();
	opd_file_limit_weigh(&pipeline.count.limit, config.session_max_use / 4 + 1, opd_file_limit_bytes(&pipeline.count.limit));
}

/*
 * A session that takes more than a quarter of SessionMaxUse is closed before its boundary. The next
 * session then ends at that boundary.
 */
static void test_too_large(void **state OP_UNUSED)
{
	become_too_large();
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

/* A session that cannot be closed is closed later; opd does not try again in each turn. */
static void test_too_large_and_no_space(void **state OP_UNUSED)
{
	become_too_large();
	disk_fails.mkdirat = -ENOSPC;
	for (int i = 0; i < 30; i++)
		turn();
	check("");
	assert_int_equal(rotation.nr_failed, 1);
	disk_fails.mkdirat = 0;
	pass(20 * SECOND);
	turn();
	assert_int_equal(rotation.nr_closed, 1);
}

static uint64_t bytes_of(const char *path)
{
	uint64_t nr_bytes;

	assert_int_equal(op_session_disk_bytes(session_fd, path, &nr_bytes), 0);
	return nr_bytes;
}

/*
 * While closed sessions cannot be removed, opd closes only as many sessions as fit. Then the
 * current session goes on, and no sample is lost.
 */
static void test_too_large_and_nothing_goes(void **state OP_UNUSED)
{
	uint64_t peak = 0, sum;
	char names[512];

	take(10);
	config.session_max_use = 4 * bytes_of(OP_SESSION_CURRENT) - 1;
	fault.remove = -EPERM;
	for (int i = 0; i < 30; i++) {
		take(10);
		turn();
		look_after();
		peak = op_max_u64(peak, bytes_of("samples"));
	}
	assert_int_equal(rotation.nr_closed, 3);
	assert_true(peak <= config.session_max_use / 2 * 3);
	assert_int_equal(pipeline.count.limit.space.max_bytes, config.session_max_use - config.session_max_use / 2);
	look(names, &sum);
	assert_int_equal(sum, nr_taken);
	fault.remove = 0;
	pass(MINUTE);
	look_after();
	turn();
	assert_int_equal(rotation.nr_closed, 4);
}

/* The session knows its size without a walk, and by a walk after a kill. */
static void test_size_after_a_kill(void **state OP_UNUSED)
{
	config.session_max_use = 1ull << 30;
	take(10);
	end(false);
	opd_recover(session_fd, true);
	start_after(true);
	assert_int_equal(pipeline.count.limit.nr, 2);
	assert_in_range(opd_file_limit_bytes(&pipeline.count.limit), 1, bytes_of(OP_SESSION_CURRENT));
	take(20);
	look_after();
	look_after();
	assert_int_equal(opd_file_limit_bytes(&pipeline.count.limit), bytes_of(OP_SESSION_CURRENT));
}

/* Files that come and go below the current session, without the daemon. */
static void test_size_behind_its_back(void **state OP_UNUSED)
{
	static const char path[] = OP_SESSION_CURRENT "/{root}/bin/a/copy";
	uint64_t before;

	config.session_max_use = 1ull << 30;
	take(10);
	look_after();
	pass(MINUTE);
	look_after();
	before = bytes_of(OP_SESSION_CURRENT);
	assert_int_equal(opd_file_limit_bytes(&pipeline.count.limit), before);
	assert_int_equal(op_file_copy_below(session_fd, OP_SESSION_CURRENT "/dcookies", path), 0);
	assert_true(bytes_of(OP_SESSION_CURRENT) > before);
	pass(MINUTE);
	look_after();
	assert_int_equal(opd_file_limit_bytes(&pipeline.count.limit), bytes_of(OP_SESSION_CURRENT));
	assert_int_equal(unlinkat(session_fd, path, 0), 0);
	pass(MINUTE);
	look_after();
	assert_int_equal(opd_file_limit_bytes(&pipeline.count.limit), before);
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
	boot_ns = 50 * SECOND; /* the machine was restarted */
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
	opd_recording_write_ledger(&recording, OP_SESSION_open, false);
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
	check("2026-11-21T07:17Z "); /* by the new time the session began ten minutes ago */
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

/* A change of less than a second is a slewed clock: a boundary does not come twice. */
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

static void times_of(const char *name, uint64_t *ret_begin_ns, uint64_t *ret_end_ns)
{
	struct op_session_ledger ledger;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "samples/%s", name);
	fd = openat(session_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(op_session_ledger_read(fd, &ledger, NULL), 0);
	*ret_begin_ns = ledger.begin_ns;
	*ret_end_ns = ledger.end_ns;
	op_session_ledger_free(&ledger);
	close(fd);
}

/* A session begins when the one before it ends, also when closing takes long. */
static void test_slow_close(void **state OP_UNUSED)
{
	uint64_t begin_ns, end_ns, next_ns, last_ns;

	take(3);
	turn();
	pass(43 * MINUTE);
	rename_takes_ns = 5 * SECOND;
	turn();
	rename_takes_ns = 0;
	take(1);
	check("2026-11-21T02:17Z ");
	times_of("2026-11-21T02:17Z", &begin_ns, &end_ns);
	times_of("current", &next_ns, &last_ns);
	assert_int_equal(begin_ns, BEGIN);
	assert_int_equal(next_ns, end_ns);
	assert_int_equal(last_ns, end_ns + 5 * SECOND);
}

/* The same when the thread is delayed between reading one clock and the other. */
static void test_held_up(void **state OP_UNUSED)
{
	static const char *const names[] = { "2026-11-21T02:17Z", "2026-11-21T03:17Z", "2026-11-21T04:17Z", "2026-11-21T05:17Z" };
	uint64_t begin_ns, end_ns, next_ns = BEGIN, last_ns;

	turn();
	held_up_every = 2;
	for (size_t i = 0; i < op_array_size(names); i++) {
		nr_wall_looks = (unsigned int)i;
		take(1);
		pass(HOUR);
		turn();
		times_of(names[i], &begin_ns, &end_ns);
		assert_int_equal(begin_ns, next_ns);
		times_of("current", &next_ns, &last_ns);
		assert_int_equal(next_ns, end_ns);
	}
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
		opd_ledger_reset(&pipeline.ledger);
		event.received = event.stored = 0;
		rotation.due_ns = 0;
		opd_ledger_begin(&pipeline.ledger);
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
	assert_int_equal(rotation.nr_failed, 1); /* not one attempt in each turn */
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
	check_fault(&disk_fails.mkdirat, -ENOSPC);
}

static void test_no_room_for_the_ledger(void **state OP_UNUSED)
{
	check_fault(&disk_fails.write_all, -ENOSPC);
}

static void test_rename_fails(void **state OP_UNUSED)
{
	check_fault(&fault.rename_new, -EIO);
}

static void test_exchange_fails(void **state OP_UNUSED)
{
	check_fault(&fault.exchange, -EIO);
}

/* On a file system without RENAME_EXCHANGE the session is closed in several steps. */
static void test_no_exchange(void **state OP_UNUSED)
{
	fault.exchange = -EINVAL;
	for (int i = 0; i < 3; i++) {
		take(5);
		pass(HOUR);
		turn();
	}
	assert_int_equal(rotation.nr_failed, 0);
	check("2026-11-21T02:17Z 2026-11-21T03:17Z 2026-11-21T04:17Z ");
}

static unsigned int nr_under_way(void)
{
	unsigned int nr;

	pthread_mutex_lock(&background.lock);
	nr = background.nr_running;
	pthread_mutex_unlock(&background.lock);
	return nr;
}

/* When a dump reports success, its samples are on the disk, also when the session was closed. */
static void test_in_the_middle_of_a_dump(void **state OP_UNUSED)
{
	struct opd_job job = { .kind = OPD_JOB_DUMP };
	struct opd_dump *out;
	struct stat st;
	bool found = false;

	take(6);
	assert_int_equal(opd_dump_begin(&recording.dumps, &job, false, &out), 0);
	pass(HOUR);
	opd_rotate_if_due(&rotation, now_ns);
	take(4);
	while (nr_under_way() > 0)
		usleep(1000);
	nr_synced = 0;
	assert_int_equal(opd_dump_go(out), 0);
	wait_for_threads();
	assert_ptr_equal(opd_job_queue_take_done(&queue), &job);
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
	opd_rotate_if_due(&rotation, now_ns);
	wait_for_held(1);
	take(6);
	take_late();
	pass(HOUR);
	opd_rotate_if_due(&rotation, now_ns);
	wait_for_held(2);
	hold_renames(false);
	wait_for_threads();
	check_table("2026-11-21T02:17Z", false);
	check_table("2026-11-21T03:17Z", true);
	check("2026-11-21T02:17Z 2026-11-21T03:17Z ");
}

/* Rotates in a child that is killed at its n-th system call. False: it made fewer calls. */
static bool rotates_until(int nr_calls)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		nr_calls_to_kill = nr_calls;
		opd_rotate_if_due(&rotation, now_ns);
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
		opd_recording_write_ledger(&recording, OP_SESSION_open, false);
		look(names, &sum);
		assert_int_equal(sum, nr_taken);
		turn();
		turn();
		check("2026-11-21T02:17Z ");
		assert_int_equal(daemon_teardown(state), 0);
		assert_int_equal(daemon_setup(state), 0);
	}
	assert_in_range(nr_calls, 10, 100);
}

static void test_kill_at_every_call(void **state)
{
	kill_at_every_call(state, 0);
	kill_at_every_call(state, -ENOSYS);
}

/* Start after a save that was killed before its last step. An empty directory is no session. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		rotate_test(test_boundaries),
		rotate_test(test_stacks),
		rotate_test(test_too_large),
		rotate_test(test_too_large_and_no_space),
		rotate_test(test_too_large_and_nothing_goes),
		rotate_test(test_size_after_a_kill), rotate_test(test_size_behind_its_back),
		rotate_test(test_nothing_to_close),
		rotate_test(test_off),
		rotate_test(test_down_over_a_boundary),
		rotate_test(test_down_while_the_clock_went_back),
		rotate_test(test_killed),
		rotate_test(test_step_forwards),
		rotate_test(test_step_backwards),
		rotate_test(test_slew_back_over_a_boundary),
		rotate_test(test_slow_close),
		rotate_test(test_held_up),
		rotate_test(test_suspend),
		rotate_test(test_names_that_are_taken),
		rotate_test(test_no_room_for_a_directory),
		rotate_test(test_no_room_for_the_ledger),
		rotate_test(test_rename_fails),
		rotate_test(test_exchange_fails),
		rotate_test(test_no_exchange),
		rotate_test(test_in_the_middle_of_a_dump),
		rotate_test(test_two_at_once),
		rotate_test(test_kill_at_every_call),
		rotate_test(test_start_after_a_kill_in_a_save),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
