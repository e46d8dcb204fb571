/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Many processes with memory for JIT code, most of them without any code: which of them costs a
 * slot or a descriptor, and which one is dropped.
 */
#include "pipeline/capture/kernel_source.h"
#include "tests/unit/still_clock.h"
#include "tests/unit/test_box.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "pipeline/capture/cpu_rings.h"
#include "pipeline/jit/space.h"
#include "pipeline/resolve/jit_lookup.h"

#define BASE        UINT64_C(0x7f0000000000)
#define NR_CHILDREN 4
#define FORKED_NS   40
#define LATER_NS    ((uint64_t)10 * OP_NS_PER_S)

struct crowd {
	struct op_dcookie_table *table;
	struct opd_processes processes;
	struct opd_jit jit;
	pid_t pids[NR_CHILDREN];
	size_t nr_fds;
	uint64_t now_ns;
};

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void map_path(pid_t pid, char path[64])
{
	snprintf(path, 64, "/tmp/perf-%d.map", (int)pid);
}

static void write_map(pid_t pid, const char *text)
{
	char path[64];
	int fd;

	map_path(pid, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(op_sys_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	return pid;
}

/* This process and its children, with real numbers. */
static void unlink_map(pid_t pid)
{
	char path[64];

	map_path(pid, path);
	unlink(path);
}

static void begin(struct crowd *crowd)
{
	struct opd_process *process;

	*crowd = (struct crowd){ .table = op_dcookie_table_new(), .now_ns = 100 };
	opd_jit_init(&crowd->jit, crowd->table);
	crowd->processes.jit = &crowd->jit;
	assert_int_equal(opd_process_get(&crowd->processes, (uint32_t)getpid(), 0, &process), 0);
	for (size_t i = 0; i < NR_CHILDREN; i++) {
		crowd->pids[i] = start_child();
		assert_true(crowd->pids[i] > 0);
		unlink_map(crowd->pids[i]); /* of an earlier process with this number */
		assert_int_equal(opd_process_fork(&crowd->processes, (uint32_t)getpid(), (uint32_t)crowd->pids[i], FORKED_NS), 0);
	}
	crowd->nr_fds = count_fds();
}

static void end(struct crowd *crowd)
{
	for (size_t i = 0; i < NR_CHILDREN; i++) {
		kill(crowd->pids[i], SIGKILL);
		waitpid(crowd->pids[i], NULL, 0);
		unlink_map(crowd->pids[i]);
	}
	unlink_map(getpid());
	opd_processes_free(&crowd->processes);
	opd_jit_free(&crowd->jit);
	op_dcookie_table_free(crowd->table);
	assert_int_equal(count_fds(), crowd->nr_fds);
}

/* A sample of a process at an address, in a visit of its own. */
static bool finds(struct crowd *crowd, pid_t pid, uint64_t address)
{
	struct opd_process *process = opd_process_find(&crowd->processes, (uint32_t)pid);
	struct op_sample sample = { .pid = (uint32_t)pid, .ip = address, .time_ns = crowd->now_ns };
	const struct opd_mapping mapping = { .start = BASE, .end = BASE + 4096, .region_end = BASE + 4096 };
	struct op_location location;

	crowd->now_ns += LATER_NS;
	return opd_jit_resolve(&crowd->processes, process, process->mm, &mapping, &sample, crowd->now_ns, &location);
}

static void who_says_nothing_costs_nothing(void **state OP_UNUSED)
{
	struct crowd crowd;

	begin(&crowd);
	for (size_t i = 0; i < 2 * NR_CHILDREN; i++)
		assert_false(finds(&crowd, crowd.pids[i % NR_CHILDREN], BASE));
	assert_int_equal(crowd.jit.nr_spaces, 0);
	assert_int_equal(count_fds(), crowd.nr_fds);
	assert_int_equal(crowd.jit.counters[OP_JIT_refused_processes], 0);
	end(&crowd);
}

/* The parent has no sample of its own in all of this. */
static void children_have_their_parents_code(void **state OP_UNUSED)
{
	struct crowd crowd;

	begin(&crowd);
	assert_false(finds(&crowd, crowd.pids[0], BASE + 4));
	write_map(getpid(), "7f0000000000 40 of_the_parent\n");
	for (size_t i = 0; i < NR_CHILDREN; i++)
		assert_true(finds(&crowd, crowd.pids[i], BASE + 4));
	assert_int_equal(crowd.jit.nr_spaces, 1);
	write_map(crowd.pids[0], "7f0000000040 40 of_the_child\n");
	assert_true(finds(&crowd, crowd.pids[0], BASE + 0x44));
	assert_true(finds(&crowd, crowd.pids[0], BASE + 4));
	assert_false(finds(&crowd, crowd.pids[1], BASE + 0x44));
	assert_int_equal(crowd.jit.nr_spaces, 2);
	end(&crowd);
}

/*
 * A child of a process that had only its parent's code: it has the later code of that process, and
 * the code that both have.
 */
static void grandchildren_have_both(void **state OP_UNUSED)
{
	struct crowd crowd;
	uint32_t grandchild;

	begin(&crowd);
	grandchild = (uint32_t)crowd.pids[1];
	write_map(getpid(), "7f0000000000 40 of_the_parent\n");
	assert_true(finds(&crowd, crowd.pids[0], BASE + 4));
	assert_int_equal(opd_process_fork(&crowd.processes, (uint32_t)crowd.pids[0], grandchild, crowd.now_ns), 0);
	assert_true(finds(&crowd, crowd.pids[1], BASE + 4));
	assert_false(finds(&crowd, crowd.pids[1], BASE + 0x44));
	write_map(crowd.pids[0], "7f0000000040 40 of_the_child\n");
	assert_true(finds(&crowd, crowd.pids[1], BASE + 0x44));
	assert_true(finds(&crowd, crowd.pids[1], BASE + 4));
	assert_int_equal(crowd.jit.nr_spaces, 2);
	end(&crowd);
}

static void a_refused_file_is_counted_once_and_costs_nothing(void **state OP_UNUSED)
{
	struct crowd crowd;
	char path[64];

	begin(&crowd);
	map_path(crowd.pids[0], path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_false(finds(&crowd, crowd.pids[0], BASE));
	assert_false(finds(&crowd, crowd.pids[0], BASE));
	assert_int_equal(crowd.jit.counters[OP_JIT_refused_files], 1);
	assert_int_equal(crowd.jit.nr_spaces, 0);
	assert_int_equal(count_fds(), crowd.nr_fds);
	end(&crowd);
}

static void a_broken_dump_is_let_go(void **state)
{
	const struct box *box = *state;
	char path[64];
	const struct opd_mapped mapped = { .start = BASE, .end = BASE + 4096, .name = path };
	struct opd_process *process;
	struct crowd crowd;
	int fd = openat(box->fd, "jit-1.dump", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(op_sys_write_all(fd, "this is a text that is longer than the header of a dump", 55), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/jit-1.dump", box->path);
	begin(&crowd);
	process = opd_process_find(&crowd.processes, (uint32_t)crowd.pids[0]);
	opd_jit_saw_mapping(&crowd.processes, process, process->mm, &mapped);
	assert_int_equal(crowd.jit.nr_spaces, 1);
	assert_false(finds(&crowd, crowd.pids[0], BASE));
	assert_int_equal(crowd.jit.nr_spaces, 0);
	assert_int_equal(count_fds(), crowd.nr_fds);
	end(&crowd);
}

/* Then the first question about a process waits for a later visit, but for a few of them. */
static void a_user_without_time_is_not_asked_about(void **state OP_UNUSED)
{
	struct opd_process *process;
	struct crowd crowd;

	begin(&crowd);
	write_map(crowd.pids[0], "7f0000000000 40 f\n");
	process = opd_process_find(&crowd.processes, (uint32_t)crowd.pids[0]);
	crowd.jit.budget.left_ns = -3 * (int64_t)OPD_JIT_VISIT_NS / 2;
	opd_jit_budget_begin(&crowd.jit.budget, crowd.now_ns + LATER_NS); /* the visit of finds */
	for (unsigned int i = 0; i < OPD_JIT_FIRST_MAX; i++)
		assert_true(opd_jit_budget_has_time(&crowd.jit.budget, getuid()));
	assert_false(finds(&crowd, crowd.pids[0], BASE));
	assert_false(process->mm->jit_owner.is_known);
	assert_int_equal(crowd.jit.counters[OP_JIT_put_off], 2); /* the child and its parent */
	assert_true(finds(&crowd, crowd.pids[0], BASE));
	end(&crowd);
}

/* The number that the next descriptor gets. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void descriptors_are_left_to_others(void **state OP_UNUSED)
{
	struct crowd crowd;

	begin(&crowd);
	write_map(getpid(), "7f0000000000 40 f\n");
	crowd.jit.max_fd = next_fd();
	assert_false(finds(&crowd, getpid(), BASE));
	assert_false(finds(&crowd, getpid(), BASE));
	assert_int_equal(crowd.jit.counters[OP_JIT_refused_processes], 1);
	assert_int_equal(count_fds(), crowd.nr_fds);
	crowd.jit.max_fd++; /* for the directory in /proc; the map is read, and not kept */
	assert_true(finds(&crowd, getpid(), BASE));
	assert_int_equal(count_fds(), crowd.nr_fds + 1);
	end(&crowd);
}

static void there_are_no_descriptors(void **state OP_UNUSED)
{
	struct rlimit before, none;
	struct crowd crowd;

	begin(&crowd);
	write_map(getpid(), "7f0000000000 40 f\n");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = (rlim_t)next_fd(), .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(finds(&crowd, getpid(), BASE));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(crowd.jit.counters[OP_JIT_refused_processes], 1);
	assert_int_equal(crowd.jit.nr_spaces, 0);
	assert_true(finds(&crowd, getpid(), BASE));
	end(&crowd);
}

static uint64_t never_asked(uint32_t pid OP_UNUSED)
{
	return 0;
}

/* A process that is gone is not read any more. Its functions wait to be written. */
static void who_is_gone_needs_no_directory(void **state OP_UNUSED)
{
	struct crowd crowd;

	begin(&crowd);
	write_map(crowd.pids[0], "7f0000000000 40 f\n");
	assert_true(finds(&crowd, crowd.pids[0], BASE));
	assert_int_equal(count_fds(), crowd.nr_fds + 2);
	opd_process_thread_ended(&crowd.processes, (uint32_t)crowd.pids[0], (uint32_t)crowd.pids[0], crowd.now_ns);
	opd_processes_prune(&crowd.processes, crowd.now_ns + 1, never_asked);
	assert_int_equal(crowd.jit.nr_spaces, 1);
	assert_int_equal(count_fds(), crowd.nr_fds);
	end(&crowd);
}

static void the_limit_is_raised_for_what_can_do_without(void **state OP_UNUSED)
{
	struct opd_capture capture = { .nr_online = 2, .nr_opened = 1 };
	struct rlimit before, low, raised;
	int nr;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = (struct rlimit){ .rlim_cur = 100, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	nr = opd_capture_spare_descriptors(&capture, 150);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &raised), 0);
	assert_int_equal(nr, 150);
	assert_in_range(raised.rlim_cur, 150 + 2 * 4 + 1, before.rlim_max);
	assert_int_equal(opd_capture_spare_descriptors(&capture, 50), 150);
	nr = opd_capture_spare_descriptors(&capture, INT_MAX);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &raised), 0);
	assert_int_equal(raised.rlim_cur, before.rlim_max);
	assert_true(nr < INT_MAX && (rlim_t)nr < before.rlim_max);
	capture.nr_online = raised.rlim_cur;
	assert_int_equal(opd_capture_spare_descriptors(&capture, 1), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_says_nothing_costs_nothing),
		cmocka_unit_test(children_have_their_parents_code),
		cmocka_unit_test(grandchildren_have_both),
		cmocka_unit_test(a_refused_file_is_counted_once_and_costs_nothing),
		box_test(a_broken_dump_is_let_go),
		cmocka_unit_test(a_user_without_time_is_not_asked_about),
		cmocka_unit_test(descriptors_are_left_to_others),
		cmocka_unit_test(there_are_no_descriptors),
		cmocka_unit_test(who_is_gone_needs_no_directory),
		cmocka_unit_test(the_limit_is_raised_for_what_can_do_without),
	};

	return cmocka_run_group_tests_name("jit_crowd", tests, NULL, NULL);
}
