/* SPDX-License-Identifier: GPL-3.0-or-later */
/* After a loss in the side band: what /proc says of real processes and of ended ones. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "pipeline/files/proc_maps.h"
#include "pipeline/resolve/proc_scan.h"
#include "pipeline/resolve/rescan.h"

#define NO_PID      4000001u /* above every pid_max */
#define OLD_CODE    0x10000u
#define NO_LIMIT_NS (3600u * (uint64_t)OP_NS_PER_S)

static struct opd_resolver resolver;
static struct opd_rescan rescan;
static struct op_dcookie_table *table;
static uint64_t began_ns, lost_ns;

static int rescan_setup(void **state OP_UNUSED)
{
	rescan = (struct opd_rescan){ 0 };
	table = op_dcookie_table_new();
	if (!table || opd_resolver_init(&resolver, table, 0, NULL) < 0)
		return -1;
	/* Slow machines and sanitizers: the checks do not depend on how long a look takes. */
	resolver.reread_burst_ns = resolver.reread_allowed_ns = resolver.check_time_ns = NO_LIMIT_NS;
	resolver.now_ns = began_ns = op_now_ns();
	lost_ns = began_ns + 1000;
	return 0;
}

static int rescan_teardown(void **state OP_UNUSED)
{
	opd_rescan_free(&rescan);
	opd_resolver_free(&resolver);
	op_dcookie_table_free(table);
	return 0;
}

static uint64_t some_image(const char *path)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = path }, .inode = 1 };

	return op_dcookie_get(table, &id);
}

/* A process as it was known before the loss: it ran another program. */
static struct opd_process *known_process(uint32_t pid)
{
	struct opd_process *process;
	struct opd_mapping mapping = { .start = OLD_CODE, .end = OLD_CODE + 0x1000, .from_ns = 1 };

	assert_int_equal(opd_process_get(&resolver.processes, pid, 1, &process), 0);
	process->sure_ns = began_ns;
	process->mm->app_cookie = mapping.cookie = some_image("/no/old");
	assert_int_equal(opd_process_map(&resolver.processes, pid, process->mm, &mapping), 0);
	return process;
}

static void lose_and_read(void)
{
	opd_rescan_lost(&rescan, &resolver, lost_ns, lost_ns + 1000);
	assert_true(opd_rescan_left(&rescan));
	resolver.now_ns = lost_ns + 2000;
	for (int visits = 0; opd_rescan_left(&rescan); visits++) {
		assert_in_range(visits, 0, 100000);
		assert_int_equal(opd_rescan_go_on(&rescan, &resolver), 0);
		resolver.now_ns += OP_NS_PER_MS;
	}
	assert_int_equal(resolver.processes.lost_from_ns, 0);
}

static const char *name_at(const struct opd_process *process, uint64_t address, uint64_t time_ns)
{
	const struct opd_mapping *mapping = opd_mapset_find(opd_process_mm_at(process, time_ns)->maps, address, time_ns);

	return mapping ? op_dcookie_row(table, mapping->cookie)->id.name.name : "";
}

static struct opd_resolved resolve_at(uint32_t pid, uint64_t ip, uint64_t time_ns)
{
	struct op_sample sample = { .pid = pid, .tid = pid, .ip = ip, .time_ns = time_ns, .mode = OP_CPUMODE_USER };
	struct opd_resolved resolved;

	assert_int_equal(opd_resolve(&resolver, &sample, &resolved), 0);
	return resolved;
}

static void an_exec_that_was_not_told_is_found(void **state OP_UNUSED)
{
	struct opd_process *process = known_process((uint32_t)getpid());
	uint64_t here = (uint64_t)(uintptr_t)an_exec_that_was_not_told_is_found;

	lose_and_read();
	assert_false(opd_process_is_doubtful(&resolver.processes, process));
	assert_non_null(strstr(name_at(process, here, resolver.now_ns), "test_rescan"));
	assert_string_equal(name_at(process, OLD_CODE, resolver.now_ns), "");
	/* Samples from before the loss are resolved as the records said. */
	assert_string_equal(name_at(process, OLD_CODE, lost_ns - 1), "/no/old");
	assert_string_equal(name_at(process, here, lost_ns - 1), "");
}

static void one_that_nobody_told_of_is_taken_in(void **state OP_UNUSED)
{
	lose_and_read();
	assert_non_null(opd_process_find(&resolver.processes, (uint32_t)getpid()));
}

static void one_that_is_gone_has_ended(void **state OP_UNUSED)
{
	struct opd_process *process = known_process(NO_PID);

	lose_and_read();
	assert_int_not_equal(process->exit_ns, UINT64_MAX);
	opd_processes_prune(&resolver.processes, op_now_ns() + 1, opd_proc_gone_ns);
	assert_null(opd_process_find(&resolver.processes, NO_PID));
}

/* The process lives when a visit begins, is sampled, and is gone when the visit reads /proc. */
static void one_that_ends_meanwhile_has_its_samples(void **state OP_UNUSED)
{
	pid_t child = fork();
	uint64_t sample_ns;

	if (!child)
		for (;;)
			pause();
	known_process((uint32_t)child);
	opd_rescan_lost(&rescan, &resolver, lost_ns, lost_ns + 1000);
	resolver.now_ns = op_max_u64(op_now_ns(), lost_ns + 2000);
	do
		sample_ns = op_now_ns();
	while (sample_ns <= resolver.now_ns);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(opd_rescan_go_on(&rescan, &resolver), 0);
	assert_int_not_equal(opd_process_find(&resolver.processes, (uint32_t)child)->exit_ns, UINT64_MAX);
	/* More records are lost, so another process may have the number by now. */
	opd_rescan_lost(&rescan, &resolver, op_now_ns(), op_now_ns());
	resolver.now_ns = op_now_ns();
	assert_false(resolve_at((uint32_t)child, OLD_CODE, sample_ns).unattributed);
	assert_true(resolve_at((uint32_t)child, OLD_CODE, op_now_ns()).unattributed);
}

static void a_number_is_taken_until_it_was_waited_for(void **state OP_UNUSED)
{
	pid_t child = fork();
	siginfo_t info;

	if (!child)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_false(op_sys_is_gone((uint32_t)child));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(op_sys_is_gone((uint32_t)child));
	assert_false(op_sys_is_gone((uint32_t)getpid()));
	assert_false(op_sys_is_gone(1));
}

/* The record of its end was read. The record of the new process with its number was lost. */
static void a_number_that_was_given_again_lives(void **state OP_UNUSED)
{
	struct opd_process *process = known_process((uint32_t)getpid());

	process->exit_ns = lost_ns - 10;
	lose_and_read();
	assert_int_equal(process->exit_ns, UINT64_MAX);
	assert_non_null(strstr(name_at(process, (uint64_t)(uintptr_t)rescan_setup, resolver.now_ns), "test_rescan"));
}

/* A running process is read before its turn comes, also when a sample has found it before. */
static void a_sample_asks_at_once(void **state OP_UNUSED)
{
	uint32_t pid = (uint32_t)getpid();
	uint64_t here = (uint64_t)(uintptr_t)a_sample_asks_at_once;

	known_process(pid);
	assert_false(resolve_at(pid, OLD_CODE, began_ns).unattributed);
	opd_rescan_lost(&rescan, &resolver, lost_ns, lost_ns + 1000);
	resolver.now_ns = lost_ns + 2000;
	resolver.reread_ns = 0; /* there is time for it */
	assert_false(resolve_at(pid, here, lost_ns + 1500).unattributed);
	assert_true(resolve_at(pid, OLD_CODE, lost_ns + 1500).unattributed);
	assert_int_equal(rescan.nr_lists, 0);
}

/* Code of an ended process belongs to another one now: no living process gets its samples. */
static void a_sample_after_the_end_is_nobodys(void **state OP_UNUSED)
{
	struct opd_process *process = known_process(NO_PID);

	process->exit_ns = lost_ns - 10;
	assert_false(resolve_at(NO_PID, OLD_CODE, lost_ns - 20).unattributed);
	opd_rescan_lost(&rescan, &resolver, lost_ns, lost_ns + 1000);
	resolver.now_ns = lost_ns + 2000;
	assert_false(resolve_at(NO_PID, OLD_CODE, lost_ns - 20).unattributed);
	assert_true(resolve_at(NO_PID, OLD_CODE, lost_ns + 10).unattributed);
}

/* A long storm: /proc is listed once a second, not at each visit. */
static void lists_once_a_second(void **state OP_UNUSED)
{
	for (int i = 0; i < 20; i++) {
		opd_rescan_lost(&rescan, &resolver, lost_ns, lost_ns + 1000);
		assert_int_equal(opd_rescan_go_on(&rescan, &resolver), 0);
		resolver.now_ns += OP_NS_PER_S / 10 + 1;
	}
	assert_int_equal(rescan.nr_lists, 2);
}

/* ---- the kernel's run-time code ---- */

#define TEXT 0xffffffff81000000u
#define MADE 0xffffffffc0200000u

static char list_dir[] = "/tmp/test_rescan.XXXXXX";

static void list_code(const char *name)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/kallsyms", list_dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%llx T _text\n%llx T _etext\n%llx t %s\t[bpf]\n", (unsigned long long)TEXT, TEXT + 0x1000ull,
		(unsigned long long)MADE, name);
	fclose(file);
}

static struct opd_resolved resolve_kernel(uint64_t time_ns)
{
	struct op_sample sample = { .pid = NO_PID, .tid = NO_PID, .ip = MADE + 8, .time_ns = time_ns, .mode = OP_CPUMODE_KERNEL };
	struct opd_resolved resolved;

	assert_int_equal(opd_resolve(&resolver, &sample, &resolved), 0);
	return resolved;
}

static const char *kernel_name(uint64_t time_ns)
{
	return op_dcookie_row(table, resolve_kernel(time_ns).location.cookie)->id.name.name;
}

static void lose_at(uint64_t from_ns, uint64_t now_ns)
{
	opd_rescan_lost(&rescan, &resolver, from_ns, now_ns);
	resolver.now_ns = now_ns;
	assert_int_equal(opd_rescan_go_on(&rescan, &resolver), 0);
}

static void remove_list(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/kallsyms", list_dir);
	unlink(path);
	rmdir(list_dir);
}

/* At once, and at most once in ten seconds: losses in between are not forgotten. */
static void code_of_the_kernel_is_listed_again(void **state OP_UNUSED)
{
	uint64_t now_ns = lost_ns + 1000;

	assert_non_null(mkdtemp(list_dir));
	list_code("bpf_prog_first");
	resolver.kernel.proc_path = list_dir;
	opd_spans_free(&resolver.kernel.ranges);
	resolver.kernel.text_start = TEXT;
	resolver.kernel.text_end = TEXT + 0x1000;
	assert_string_equal(kernel_name(now_ns), "no-vmlinux");
	lose_at(lost_ns, now_ns);
	assert_string_equal(kernel_name(now_ns), "bpf_prog_first");
	assert_string_equal(kernel_name(lost_ns - 1), "no-vmlinux");

	list_code("bpf_prog_second");
	lose_at(now_ns + 100, now_ns + 200);
	lose_at(now_ns + 300, now_ns + 400);
	assert_string_equal(kernel_name(now_ns + 400), "bpf_prog_first");
	assert_true(opd_rescan_left(&rescan));
	resolver.now_ns = now_ns + 20ull * OP_NS_PER_S;
	assert_int_equal(opd_rescan_go_on(&rescan, &resolver), 0);
	assert_string_equal(kernel_name(now_ns + 99), "bpf_prog_first");
	assert_string_equal(kernel_name(now_ns + 100), "bpf_prog_second");

	list_code("bpf_prog_third");
	resolver.now_ns += 20ull * OP_NS_PER_S;
	assert_int_equal(opd_rescan_go_on(&rescan, &resolver), 0);
	assert_string_equal(kernel_name(resolver.now_ns), "bpf_prog_second");
	remove_list();
}

/* While addresses are hidden, the whole kernel is no-vmlinux, and its samples belong there. */
static void kernel_code_that_is_nowhere_is_counted(void **state OP_UNUSED)
{
	opd_spans_free(&resolver.kernel.ranges);
	resolver.kernel.text_start = TEXT;
	resolver.kernel.text_end = TEXT + 0x1000;
	assert_string_equal(kernel_name(lost_ns), "no-vmlinux");
	assert_true(resolve_kernel(lost_ns).unattributed);
	resolver.kernel.text_end = MADE + 0x1000;
	assert_false(resolve_kernel(lost_ns).unattributed);
	resolver.kernel.text_start = resolver.kernel.text_end = 0;
	assert_string_equal(kernel_name(lost_ns), "no-vmlinux");
	assert_false(resolve_kernel(lost_ns).unattributed);
}

/* ---- what no record tells ---- */

static void *map_new_file(const char *name, void *at)
{
	int fd, flags = at ? MAP_FIXED : 0;
	char path[64];
	void *memory;

	snprintf(path, sizeof(path), "/tmp/%s.XXXXXX", name);
	fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, 4096), 0);
	memory = mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | flags, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	return memory;
}

static const char *sampled_name(uint64_t ip)
{
	struct opd_resolved resolved = resolve_at((uint32_t)getpid(), ip, resolver.now_ns + 1);

	return op_dcookie_row(table, resolved.location.cookie)->id.name.name;
}

/* The next check takes the most frequent answers. */
static void what_lies_over_other_code_is_seen(void **state OP_UNUSED)
{
	uint32_t pid = (uint32_t)getpid();
	void *memory = map_new_file("opd-first", NULL), *rare = map_new_file("opd-rare", NULL);
	uint64_t at = (uint64_t)(uintptr_t)memory, rare_at = (uint64_t)(uintptr_t)rare, nr_rereads;

	assert_int_equal(opd_proc_scan_pid(&resolver.processes, table, pid, resolver.now_ns), 0);
	for (int i = 0; i < 5; i++) {
		assert_non_null(strstr(sampled_name(at + 8), "opd-first"));
		assert_non_null(strstr(sampled_name(rare_at + 8 * (i > 2)), "opd-rare"));
	}
	assert_non_null(strstr(sampled_name(at + 8), "opd-first"));
	nr_rereads = resolver.nr_rereads;
	resolver.now_ns = op_now_ns();
	opd_resolve_check(&resolver);
	assert_int_equal(resolver.nr_rereads, nr_rereads);
	map_new_file("opd-second", memory);
	for (int i = 0; i < 10; i++)
		assert_non_null(strstr(sampled_name(at + 8), "opd-first"));
	resolver.now_ns += OP_NS_PER_MS;
	opd_resolve_check(&resolver);
	assert_non_null(strstr(sampled_name(at + 8), "opd-first"));
	resolver.now_ns += OP_NS_PER_S;
	opd_resolve_check(&resolver);
	assert_non_null(strstr(sampled_name(at + 8), "opd-second"));
	assert_int_equal(resolver.nr_rereads, nr_rereads + 1);
	assert_non_null(strstr(sampled_name(rare_at), "opd-rare"));
	munmap(memory, 4096);
	munmap(rare, 4096);
}

/* Two pages so far apart that the answers of both are kept. */
static void map_busy_and_less_busy(void *memory[2])
{
	char *room = mmap(NULL, 1u << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(room, MAP_FAILED);
	memory[0] = map_new_file("opd-busy", room);
	memory[1] = map_new_file("opd-first", room + (1u << 19));
}

/* A check of one answer only would leave the less frequent ones to later checks. */
static void a_check_looks_at_more_than_one(void **state OP_UNUSED)
{
	void *memory[2];
	uint64_t busy, less_busy;

	map_busy_and_less_busy(memory);
	busy = (uint64_t)(uintptr_t)memory[0];
	less_busy = (uint64_t)(uintptr_t)memory[1];
	assert_int_equal(opd_proc_scan_pid(&resolver.processes, table, (uint32_t)getpid(), resolver.now_ns), 0);
	for (int i = 0; i < 10; i++)
		assert_non_null(strstr(sampled_name(busy), "opd-busy"));
	for (int i = 0; i < 5; i++)
		assert_non_null(strstr(sampled_name(less_busy), "opd-first"));
	map_new_file("opd-second", memory[1]);
	resolver.now_ns = op_now_ns();
	opd_resolve_check(&resolver);
	assert_non_null(strstr(sampled_name(busy), "opd-busy"));
	assert_non_null(strstr(sampled_name(less_busy), "opd-second"));
	map_new_file("opd-third", memory[1]);
	resolver.now_ns += OP_NS_PER_S;
	resolver.check_time_ns = 0;
	opd_resolve_check(&resolver);
	assert_non_null(strstr(sampled_name(less_busy), "opd-second"));
	munmap(memory[0], 1u << 20);
}

/* The four most frequent answers, in whatever order they are kept. */
static void a_check_looks_at_what_is_given_most(void **state OP_UNUSED)
{
	static const char *const names[] = { "opd-3", "opd-6", "opd-1", "opd-5", "opd-2", "opd-4" };
	static const uint32_t times[] = { 3, 6, 1, 5, 2, 4 };
	char *room = mmap(NULL, 6u << 19, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t nr_left = 0;

	assert_ptr_not_equal(room, MAP_FAILED);
	for (size_t i = 0; i < op_array_size(names); i++)
		map_new_file(names[i], room + (i << 19));
	assert_int_equal(opd_proc_scan_pid(&resolver.processes, table, (uint32_t)getpid(), resolver.now_ns), 0);
	for (size_t i = 0; i < op_array_size(names); i++)
		for (uint32_t time = 0; time < times[i]; time++)
			assert_non_null(strstr(sampled_name((uint64_t)(uintptr_t)room + (i << 19)), names[i]));
	resolver.now_ns = op_now_ns();
	opd_resolve_check(&resolver);
	for (size_t i = 0; i < OPD_FOUND_SLOTS; i++)
		nr_left += resolver.found[i].nr_uses;
	assert_int_equal(nr_left, 1 + 2);
	munmap(room, 6u << 19);
}

/* Two pids share a change slot when they differ by the number of slots. */
static void what_was_given_before_a_change_counts(void **state OP_UNUSED)
{
	uint32_t pid = (uint32_t)getpid(), other = pid + (NO_PID / OPD_CHANGE_SLOTS + 1) * OPD_CHANGE_SLOTS;
	const struct opd_found *found = NULL;
	void *memory[2];

	map_busy_and_less_busy(memory);
	assert_int_equal(opd_proc_scan_pid(&resolver.processes, table, pid, resolver.now_ns), 0);
	for (int i = 0; i < 5; i++) {
		assert_non_null(strstr(sampled_name((uint64_t)(uintptr_t)memory[0]), "opd-busy"));
		assert_int_equal(opd_process_fork(&resolver.processes, pid, other, resolver.now_ns), 0);
	}
	for (size_t i = 0; i < OPD_FOUND_SLOTS; i++)
		if (resolver.found[i].nr_uses)
			found = &resolver.found[i];
	assert_non_null(found);
	assert_int_equal(found->nr_uses, 5);
	munmap(memory[0], 1u << 20);
}

/* The result that is used most stays, and its uses count, whoever else runs beside it. */
static void busy_results_stay(void **state OP_UNUSED)
{
	const uint32_t nr_others = 20000;
	uint32_t pid = (uint32_t)getpid(), most = 0;
	uint64_t at = (uint64_t)(uintptr_t)map_new_file("opd-busy", NULL);

	assert_int_equal(opd_proc_scan_pid(&resolver.processes, table, pid, resolver.now_ns), 0);
	for (uint32_t i = 1; i <= nr_others; i++) {
		assert_int_equal(opd_process_fork(&resolver.processes, pid, pid + i, resolver.now_ns), 0);
		(void)resolve_at(pid + i, at, resolver.now_ns + 1);
		assert_non_null(strstr(sampled_name(at), "opd-busy"));
	}
	for (size_t i = 0; i < OPD_FOUND_SLOTS; i++)
		most = op_max_u64(most, resolver.found[i].nr_uses);
	assert_in_range(most, nr_others * 9 / 10, nr_others);
	munmap((void *)(uintptr_t)at, 4096); // NOLINT(performance-no-int-to-ptr)
}

static bool has_other(uint32_t pid, uint64_t address, uint64_t inode, const char *name, uint64_t offset)
{
	const struct opd_proc_expected expected = { .address = address, .inode = inode, .path = name, .offset = offset };

	return opd_proc_has_other(NULL, NULL, pid, &expected);
}

static void what_is_not_mapped_is_nothing_else(void **state OP_UNUSED)
{
	uint64_t at = (uint64_t)(uintptr_t)map_new_file("opd-first", NULL);

	assert_false(has_other((uint32_t)getpid(), at + 8, 0, NULL, 8));
	assert_true(has_other((uint32_t)getpid(), at + 8, 0, NULL, 4096 + 8));
	assert_true(has_other((uint32_t)getpid(), at + 8, UINT64_MAX, NULL, 8));
	assert_true(has_other((uint32_t)getpid(), at + 8, 0, "/somewhere/opd-second", 8));
	assert_true(has_other((uint32_t)getpid(), at + 8, 0, "/somewhere/opd-firs", 8));
	munmap((void *)(uintptr_t)at, 4096);
	assert_false(has_other((uint32_t)getpid(), at + 8, UINT64_MAX, NULL, 8));
	assert_false(has_other(NO_PID, at + 8, UINT64_MAX, NULL, 8));
}

/* ---- a number that another process gets between two looks at /proc/PID ---- */

#define IMPOSTOR "impostor"

/* ends when its name is looked at, and another process gets its number; 0: none */
static pid_t ended;
static bool has_number;

int __real_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);
int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode);

static void give_number(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1 };
	int ready[2];
	char byte;
	long got;

	assert_int_equal(pipe(ready), 0);
	got = syscall(SYS_clone3, &args, sizeof(args));
	if (!got) {
		prctl(PR_SET_NAME, IMPOSTOR);
		(void)!write(ready[1], "", 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	has_number = got == pid && read(ready[0], &byte, 1) == 1;
	close(ready[0]);
}

int __wrap_op_sys_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	pid_t pid = ended;

	if (pid && !strcmp(slash ? slash + 1 : path, "comm")) {
		ended = 0;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		give_number(pid);
	}
	return __real_op_sys_openat(dir_fd, path, flags, mode);
}

static void all_of_an_answer_is_of_one_process(void **state OP_UNUSED)
{
	struct opd_proc_wanted wanted = { .any_thread = true, .with_place = true, .until = OPD_PROC_MAPS_ALL };
	struct opd_proc_maps maps;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	wanted.pid = (uint32_t)pid;
	ended = pid;
	has_number = false;
	assert_int_equal(opd_proc_maps_read(&wanted, &maps), 0);
	assert_int_equal(ended, 0);
	if (has_number) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	assert_string_not_equal(maps.comm, IMPOSTOR);
	assert_true(*opd_proc_maps_exe(&maps)); /* it was read before */
	opd_proc_maps_free(&maps);
	if (!has_number)
		skip(); /* only root of the host chooses the number of a process */
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rescan_setup, rescan_teardown)
	const struct CMUnitTest tests[] = {
		T(an_exec_that_was_not_told_is_found),
		T(one_that_nobody_told_of_is_taken_in),
		cmocka_unit_test(a_number_is_taken_until_it_was_waited_for),
		cmocka_unit_test(all_of_an_answer_is_of_one_process),
		T(one_that_is_gone_has_ended), T(one_that_ends_meanwhile_has_its_samples),
		T(a_number_that_was_given_again_lives),
		T(a_sample_asks_at_once),
		T(a_sample_after_the_end_is_nobodys),
		T(lists_once_a_second),
		T(code_of_the_kernel_is_listed_again), T(kernel_code_that_is_nowhere_is_counted),
		T(what_lies_over_other_code_is_seen),
		T(a_check_looks_at_more_than_one),
		T(a_check_looks_at_what_is_given_most),
		T(what_was_given_before_a_change_counts),
		T(busy_results_stay),
		T(what_is_not_mapped_is_nothing_else),
	};

	return cmocka_run_group_tests_name("rescan", tests, NULL, NULL);
}
