/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which process had which address space at which time: fork, exec, exit, pid reuse, records that
 * come late.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>

#include "libop/base/compiler.h"
#include "pipeline/resolve/process.h"

static struct opd_processes processes;
static uint64_t ended_ns; /* by this time every process that opd asks for has ended; 0: none has */

static uint64_t gone_ns(uint32_t pid OP_UNUSED)
{
	return ended_ns;
}

static int processes_setup(void **state OP_UNUSED)
{
	processes = (struct opd_processes){ 0 };
	ended_ns = 0;
	return 0;
}

static int processes_teardown(void **state OP_UNUSED)
{
	opd_processes_free(&processes);
	return 0;
}

static void map(uint32_t pid, uint64_t start, uint64_t cookie, uint64_t from_ns)
{
	struct opd_mapping m = { .start = start, .end = start + 0x1000, .cookie = cookie, .from_ns = from_ns };
	struct opd_process *process = opd_process_find(&processes, pid);

	assert_non_null(process);
	assert_int_equal(opd_process_map(&processes, process->pid, opd_process_mm_at(process, from_ns), &m), 0);
}

static uint64_t cookie_at(uint32_t pid, uint64_t address, uint64_t time_ns)
{
	const struct opd_process *process = opd_process_find(&processes, pid);
	const struct opd_mapping *m;

	assert_non_null(process);
	m = opd_mapset_find(opd_process_mm_at(process, time_ns)->maps, address, time_ns);
	return m ? m->cookie : 0;
}

static struct opd_process *add(uint32_t pid)
{
	struct opd_process *process;

	assert_int_equal(opd_process_get(&processes, pid, 0, &process), 0);
	return process;
}

static void a_child_has_what_its_parent_had(void **state OP_UNUSED)
{
	add(1);
	map(1, 0x1000, 7, 5);
	assert_int_equal(opd_process_fork(&processes, 1, 2, 10), 0);
	map(1, 0x1000, 8, 20); /* the parent goes on without the child */
	assert_int_equal(cookie_at(2, 0x1000, 30), 7);
	assert_int_equal(cookie_at(1, 0x1000, 30), 8);
}

static void exec_begins_anew(void **state OP_UNUSED)
{
	add(1);
	opd_process_find(&processes, 1)->mm->app_cookie = 70;
	map(1, 0x1000, 7, 5);
	assert_int_equal(opd_process_exec(&processes, 1, "x", 10), 0);
	map(1, 0x1000, 9, 11);
	opd_process_find(&processes, 1)->mm->app_cookie = 90;
	assert_int_equal(cookie_at(1, 0x1000, 9), 7);
	assert_int_equal(cookie_at(1, 0x1000, 12), 9);
	assert_int_equal(opd_process_mm_at(opd_process_find(&processes, 1), 9)->app_cookie, 70);
	assert_int_equal(opd_process_mm_at(opd_process_find(&processes, 1), 10)->app_cookie, 90);
}

static void an_old_fork_that_comes_late_goes_behind(void **state OP_UNUSED)
{
	add(1);
	map(1, 0x1000, 7, 1);
	/* exec of pid 2 was read before the fork that made it. */
	assert_int_equal(opd_process_exec(&processes, 2, "x", 20), 0);
	map(2, 0x1000, 9, 21);
	assert_int_equal(opd_process_fork(&processes, 1, 2, 10), 0);
	assert_int_equal(cookie_at(2, 0x1000, 15), 7);
	assert_int_equal(cookie_at(2, 0x1000, 30), 9);
}

static void a_pid_is_used_again(void **state OP_UNUSED)
{
	add(1);
	map(1, 0x1000, 7, 1);
	assert_int_equal(opd_process_fork(&processes, 1, 2, 10), 0);
	map(2, 0x2000, 20, 11);
	opd_process_thread_ended(&processes, 2, 2, 30);
	assert_int_equal(opd_process_fork(&processes, 1, 2, 40), 0);
	map(2, 0x2000, 21, 41);
	assert_int_equal(cookie_at(2, 0x2000, 25), 20);
	assert_int_equal(cookie_at(2, 0x2000, 45), 21);
	opd_processes_prune(&processes, 35, gone_ns);
	assert_int_equal(cookie_at(2, 0x2000, 45), 21);
}

/*
 * The memory of old address spaces is freed also where no process is ever forgotten, because its
 * pid comes back first.
 */
static void address_spaces_of_a_pid_that_is_used_again_are_freed(void **state OP_UNUSED)
{
	for (uint64_t now_ns = 10; now_ns < 1000; now_ns += 10) {
		assert_int_equal(opd_process_fork(&processes, 1, 2, now_ns), 0);
		assert_int_equal(opd_process_exec(&processes, 2, "x", now_ns + 1), 0);
		opd_process_thread_ended(&processes, 2, 2, now_ns + 2);
		opd_processes_prune(&processes, now_ns, gone_ns);
		assert_non_null(opd_process_find(&processes, 2));
	}
	/* The two newest are kept, and the one that late samples may need. */
	assert_int_equal(processes.nr_freed, 99 * 2 - 3);
}

static void stays_until_its_last_samples_are_through(void **state OP_UNUSED)
{
	assert_int_equal(opd_process_fork(&processes, 1, 2, 10), 0);
	opd_process_thread_began(&processes, 2);
	opd_process_thread_ended(&processes, 2, 2, 20); /* the leader; a thread goes on */
	opd_processes_prune(&processes, 100, gone_ns);
	assert_non_null(opd_process_find(&processes, 2));
	opd_process_thread_ended(&processes, 2, 3, 150);
	opd_processes_prune(&processes, 150, gone_ns);
	assert_non_null(opd_process_find(&processes, 2));
	opd_processes_prune(&processes, 151, gone_ns);
	assert_null(opd_process_find(&processes, 2));
}

static void one_that_was_there_before_is_asked_for(void **state OP_UNUSED)
{
	add(5);
	opd_process_thread_ended(&processes, 5, 6, 10); /* some thread */
	opd_processes_prune(&processes, 20, gone_ns);
	opd_process_thread_ended(&processes, 5, 5, 30); /* the leader; other threads may live */
	opd_processes_prune(&processes, 40, gone_ns);
	assert_non_null(opd_process_find(&processes, 5));
	ended_ns = 55;
	opd_processes_prune(&processes, 50, gone_ns);
	assert_int_equal(opd_process_find(&processes, 5)->exit_ns, 55);
	opd_processes_prune(&processes, 60, gone_ns);
	assert_null(opd_process_find(&processes, 5));
}

static void what_proc_said_is_newer_than_old_records(void **state OP_UNUSED)
{
	struct opd_process *process = add(3);

	process->snapshot_ns = 100;
	map(3, 0x1000, 7, 0);
	assert_int_equal(opd_process_fork(&processes, 1, 3, 90), 0);
	assert_int_equal(opd_process_exec(&processes, 3, "x", 95), 0);
	assert_int_equal(cookie_at(3, 0x1000, 120), 7);
	assert_int_equal(opd_process_exec(&processes, 3, "x", 101), 0);
	assert_int_equal(cookie_at(3, 0x1000, 120), 0);
}

static void lost_records_leave_nobody_behind(void **state OP_UNUSED)
{
	assert_int_equal(opd_process_fork(&processes, 1, 2, 10), 0);
	assert_int_equal(opd_process_fork(&processes, 1, 3, 10), 0);
	opd_process_find(&processes, 3)->listed_ns = 100; /* /proc still has it */
	ended_ns = 105;
	opd_processes_resync(&processes, 100, gone_ns);
	/* The process ran on while /proc was read. */
	assert_int_equal(opd_process_find(&processes, 2)->exit_ns, 105);
	opd_processes_prune(&processes, 106, gone_ns);
	assert_null(opd_process_find(&processes, 2));
	assert_non_null(opd_process_find(&processes, 3));
	assert_int_equal(opd_process_find(&processes, 3)->nr_threads, 0);
}

static void forgets_old_address_spaces(void **state OP_UNUSED)
{
	const struct opd_mm *mm;
	size_t nr = 0;

	add(1);
	for (uint64_t t = 10; t <= 1000; t += 10)
		assert_int_equal(opd_process_exec(&processes, 1, "x", t), 0);
	opd_processes_prune(&processes, 985, gone_ns);
	for (mm = opd_process_find(&processes, 1)->mm; mm; mm = mm->older)
		nr++;
	assert_int_equal(nr, 3); /* of time 1000, of 990, and of 980, which held at 985 */
}

/* Sleeping processes are not looked at, however many there are. */
static void pruning_looks_at_those_that_change(void **state OP_UNUSED)
{
	for (uint32_t pid = 1; pid <= 1000; pid++)
		assert_int_equal(opd_process_fork(&processes, 0, pid, 10), 0);
	assert_null(processes.prunable);
	assert_int_equal(opd_process_exec(&processes, 7, "x", 20), 0);
	opd_process_thread_ended(&processes, 8, 8, 20);
	assert_ptr_equal(processes.prunable, opd_process_find(&processes, 8));
	assert_ptr_equal(processes.prunable->next_prunable, opd_process_find(&processes, 7));
	assert_null(processes.prunable->next_prunable->next_prunable);
	opd_processes_prune(&processes, 15, gone_ns);
	assert_non_null(processes.prunable);
	opd_processes_prune(&processes, 21, gone_ns);
	assert_null(processes.prunable);
	assert_null(opd_process_find(&processes, 8));
	assert_null(opd_process_find(&processes, 7)->mm->older);
	assert_int_equal(processes.nr_freed, 2);
	/* It can come back. */
	assert_int_equal(opd_process_exec(&processes, 7, "x", 30), 0);
	assert_ptr_equal(processes.prunable, opd_process_find(&processes, 7));
}

static bool is_doubtful(uint32_t pid)
{
	return opd_process_is_doubtful(&processes, opd_process_find(&processes, pid));
}

static void who_began_after_a_loss_is_not_in_doubt(void **state OP_UNUSED)
{
	assert_int_equal(opd_process_fork(&processes, 0, 1, 10), 0);
	opd_process_find(&processes, 1)->sure_ns = 10;
	assert_int_equal(opd_process_fork(&processes, 1, 2, 20), 0);
	assert_false(is_doubtful(1) || is_doubtful(2));
	opd_processes_lost(&processes, 25, 30);
	assert_true(is_doubtful(1) && is_doubtful(2));
	assert_int_equal(opd_process_doubtful_from_ns(&processes, opd_process_find(&processes, 2)), 25);
	/*
	 * A child has the address space of its parent, and its doubt. After an exec it has what its
	 * records say.
	 */
	assert_int_equal(opd_process_fork(&processes, 1, 3, 40), 0);
	assert_int_equal(opd_process_fork(&processes, 2, 4, 40), 0);
	assert_int_equal(opd_process_exec(&processes, 4, "x", 41), 0);
	assert_true(is_doubtful(3));
	assert_false(is_doubtful(4));
	assert_int_equal(opd_process_fork(&processes, 4, 5, 50), 0);
	assert_false(is_doubtful(5));
	/* The next loss goes on from the first one for processes that were not asked in between. */
	opd_processes_lost(&processes, 60, 70);
	assert_int_equal(opd_process_doubtful_from_ns(&processes, opd_process_find(&processes, 1)), 25);
	assert_true(is_doubtful(5));
}

static void who_maps_too_much_is_in_doubt(void **state OP_UNUSED)
{
	struct opd_process *process;

	assert_int_equal(opd_process_exec(&processes, 1, "x", 10), 0);
	process = opd_process_find(&processes, 1);
	for (uint64_t i = 0; i < OPD_PROCESS_MAPS_MAX; i++)
		assert_true(opd_process_may_map(&processes, process, 1000 + i));
	assert_false(is_doubtful(1));
	assert_false(opd_process_may_map(&processes, process, 5000));
	assert_false(opd_process_may_map(&processes, process, 6000));
	assert_int_equal(processes.account.mappings.nr_dropped, 2);
	assert_true(is_doubtful(1));
	assert_int_equal(opd_process_doubtful_from_ns(&processes, process), 5000);
	/* Its child is in doubt, too; other processes are not, and it is not after an exec. */
	assert_int_equal(opd_process_fork(&processes, 1, 2, 7000), 0);
	assert_int_equal(opd_process_fork(&processes, 0, 3, 7000), 0);
	opd_process_find(&processes, 3)->sure_ns = 7000;
	assert_true(is_doubtful(2));
	assert_false(is_doubtful(3));
	assert_int_equal(opd_process_exec(&processes, 2, "x", 8000), 0);
	assert_false(is_doubtful(2));
	/* /proc was read: records that are skipped later are a new doubt. */
	process->sure_ns = 9000;
	assert_false(is_doubtful(1));
	assert_false(opd_process_may_map(&processes, process, 10000));
	assert_int_equal(opd_process_doubtful_from_ns(&processes, process), 10000);
	/* Later it may map again. */
	assert_true(opd_process_may_map(&processes, process, 1000 + OPD_PROCESS_MAPS_NS));
	assert_int_equal(process->nr_mapped, 1);
}

static void an_unknown_parent_leaves_doubt(void **state OP_UNUSED)
{
	opd_processes_lost(&processes, 5, 8);
	assert_int_equal(opd_process_fork(&processes, 77, 2, 10), 0);
	assert_true(is_doubtful(2));
	assert_int_equal(opd_process_exec(&processes, 3, "x", 10), 0);
	assert_false(is_doubtful(3));
}

static void a_process_that_began_anew_lives(void **state OP_UNUSED)
{
	assert_int_equal(opd_process_fork(&processes, 0, 2, 10), 0);
	map(2, 0x1000, 7, 11);
	opd_process_thread_ended(&processes, 2, 2, 20);
	assert_int_equal(opd_process_replaced(&processes, opd_process_find(&processes, 2), 25), 0);
	assert_int_equal(cookie_at(2, 0x1000, 15), 7);
	assert_int_equal(cookie_at(2, 0x1000, 30), 0);
	opd_processes_prune(&processes, 100, gone_ns);
	assert_int_equal(opd_process_find(&processes, 2)->exit_ns, UINT64_MAX);
}

static void there_is_room_for_so_many(void **state OP_UNUSED)
{
	for (uint32_t pid = 1; pid <= OPD_PROCESSES_MAX; pid++)
		assert_int_equal(opd_process_fork(&processes, 1, pid, 10), 0);
	assert_int_equal(opd_process_fork(&processes, 1, OPD_PROCESSES_MAX + 1, 20), -ENOSPC);
	assert_int_equal(opd_process_exec(&processes, OPD_PROCESSES_MAX + 2, "x", 20), -ENOSPC);
	assert_int_equal(processes.nr_dropped, 2);
	assert_null(opd_process_find(&processes, OPD_PROCESSES_MAX + 1));
	/* Known processes go on, and a process that ends makes room. */
	assert_int_equal(opd_process_exec(&processes, 5, "x", 20), 0);
	opd_process_thread_ended(&processes, 7, 7, 30);
	opd_processes_prune(&processes, 40, gone_ns);
	assert_int_equal(opd_process_fork(&processes, 1, OPD_PROCESSES_MAX + 1, 50), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, processes_setup, processes_teardown)
	const struct CMUnitTest tests[] = {
		T(a_child_has_what_its_parent_had), T(exec_begins_anew), T(an_old_fork_that_comes_late_goes_behind),
		T(a_pid_is_used_again), T(address_spaces_of_a_pid_that_is_used_again_are_freed),
		T(stays_until_its_last_samples_are_through), T(one_that_was_there_before_is_asked_for),
		T(what_proc_said_is_newer_than_old_records), T(lost_records_leave_nobody_behind),
		T(pruning_looks_at_those_that_change), T(who_began_after_a_loss_is_not_in_doubt),
		T(who_maps_too_much_is_in_doubt), T(an_unknown_parent_leaves_doubt), T(a_process_that_began_anew_lives),
		T(forgets_old_address_spaces), T(there_is_room_for_so_many),
	};

	return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
