/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the samples of a process are counted under: the kind of a kernel thread, or the application
 * divided by name and user; names over time, and processes that change theirs without end.
 */
#include "tests/unit/cmocka_all.h"

#include <unistd.h>

#include "libop/base/compiler.h"
#include "pipeline/resolve/program.h"

#define KTHREADD 2
#define MS       1000000u

static struct opd_processes processes;
static struct op_dcookie_table *table;
static uint64_t app_cookie;

static int programs_setup(void **state OP_UNUSED)
{
	struct op_image_id id = { .name = { .kind = OP_IMAGE_FILE, .name = "/bin/app" }, .inode = 5 };

	processes = (struct opd_processes){ 0 };
	table = op_dcookie_table_new();
	app_cookie = op_dcookie_get(table, &id);
	return !table || app_cookie == OP_DCOOKIE_NONE;
}

static int programs_teardown(void **state OP_UNUSED)
{
	opd_processes_free(&processes);
	op_dcookie_table_free(table);
	return 0;
}

static struct opd_process *add(uint32_t pid, const char *comm)
{
	struct opd_process *process;

	assert_int_equal(opd_process_get(&processes, pid, 0, &process), 0);
	assert_int_equal(opd_name_add(&process->name, comm, 0), 0);
	return process;
}

static uint64_t program_at(uint32_t pid, uint64_t cookie, uint64_t time_ns, bool is_foreign)
{
	struct opd_process *process = opd_process_find(&processes, pid);

	return opd_program_at(&processes, table, process, opd_process_mm_at(process, time_ns), cookie, time_ns, is_foreign).cookie;
}

/* NULL: none. */
static const char *kernel_thread_at(uint32_t pid, uint64_t time_ns, bool is_foreign)
{
	uint64_t cookie = program_at(pid, OP_DCOOKIE_NONE, time_ns, is_foreign);
	const struct op_dcookie_row *row = cookie == OP_DCOOKIE_NONE ? NULL : op_dcookie_row(table, cookie);

	if (row)
		assert_true(row->id.name.kind == OP_IMAGE_KERNEL && !row->id.is_kernel && !row->id.is_pseudo);
	return row ? row->id.name.name : NULL;
}

static void the_number_of_a_kernel_thread_is_cut(void **state OP_UNUSED)
{
	static const struct {
		const char *comm, *name;
	} cases[] = {
		{ "ksoftirqd/0", "[ksoftirqd]" },   { "kworker/u8:1-ext", "[kworker]" }, { "kworker/R-rcu_g", "[kworker]" },
		{ "jbd2/sda1-8", "[jbd2]" },        { "irq/24-nvme0q1", "[irq]" },       { "kswapd0", "[kswapd]" },
		{ "scsi_eh_0", "[scsi_eh]" },       { "rcu_preempt", "[rcu_preempt]" },  { "card0-crtc12", "[card0-crtc]" },
		{ "vhost-12345", "[vhost]" },       { "i915/signal:0", "[i915]" },       { "abc:def", "[abc]" },
		{ "123456789012345", "[123456789012345]" }, { "/", "[/]" },              { "", "[]" },
		{ "0", "[0]" },                     { "a-", "[a-]" },                    { "-7", "[-7]" },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		char name[OPD_KERNEL_THREAD_BYTES];

		opd_kernel_thread_name(cases[i].comm, name);
		assert_string_equal(name, cases[i].name);
	}
}

static void children_of_kthreadd_are_kernel_threads_until_they_run_a_program(void **state OP_UNUSED)
{
	add(KTHREADD, "kthreadd")->mm->is_kernel_thread = true;
	assert_int_equal(opd_process_fork(&processes, KTHREADD, 10, 100), 0);
	assert_string_equal(kernel_thread_at(10, 150, false), "[kthreadd]");
	assert_int_equal(opd_process_named(&processes, 10, "kworker/0:1", 200), 0);
	assert_string_equal(kernel_thread_at(10, 150, false), "[kthreadd]");
	assert_string_equal(kernel_thread_at(10, 250, false), "[kworker]");
	assert_int_equal(opd_process_exec(&processes, 10, "modprobe", 300), 0);
	assert_string_equal(kernel_thread_at(10, 250, false), "[kworker]");
	assert_null(kernel_thread_at(10, 350, false));
}

static void a_name_makes_no_kernel_thread(void **state OP_UNUSED)
{
	add(1, "init");
	assert_int_equal(opd_process_fork(&processes, 1, 10, 100), 0);
	processes.keeps_names = true;
	assert_int_equal(opd_process_named(&processes, 10, "kworker/0:1", 200), 0);
	assert_null(kernel_thread_at(10, 250, false));
	/* nor does the number of its parent, on this machine */
	add(KTHREADD, "kthreadd");
	assert_int_equal(opd_process_fork(&processes, KTHREADD, 11, 100), 0);
	assert_null(kernel_thread_at(11, 250, false));
}

/* Imported: there is only the parent, and that a kernel thread maps nothing. */
static void records_show_kernel_threads_by_their_parent(void **state OP_UNUSED)
{
	struct opd_mapping mapping = { .start = 0x1000, .end = 0x2000, .cookie = app_cookie };

	processes.keeps_names = true;
	add(KTHREADD, "kthreadd");
	assert_string_equal(kernel_thread_at(KTHREADD, 5, true), "[kthreadd]");
	assert_int_equal(opd_process_fork(&processes, KTHREADD, 10, 0), 0);
	assert_int_equal(opd_process_named(&processes, 10, "ksoftirqd/1", 0), 0);
	assert_string_equal(kernel_thread_at(10, 5, true), "[ksoftirqd]");
	assert_int_equal(opd_process_map(&processes, 10, opd_process_find(&processes, 10)->mm, &mapping), 0);
	assert_null(kernel_thread_at(10, 5, true));
	/* the second process of a container is none */
	assert_int_equal(opd_process_fork(&processes, KTHREADD, 11, 0), 0);
	assert_int_equal(opd_name_add(&opd_process_find(&processes, KTHREADD)->name, "bash", 1), 0);
	assert_null(kernel_thread_at(11, 5, true));
}

/* In a container any process may be the second one, and call itself so. */
static void who_poses_as_kthreadd_has_mappings(void **state OP_UNUSED)
{
	struct opd_mapping mapping = { .start = 0x1000, .end = 0x2000, .cookie = app_cookie };

	processes.keeps_names = true;
	add(KTHREADD, "kthreadd");
	assert_int_equal(opd_process_fork(&processes, KTHREADD, 10, 0), 0);
	assert_int_equal(opd_process_named(&processes, 10, "kworker/0:1", 0), 0);
	assert_string_equal(kernel_thread_at(10, 5, true), "[kworker]");
	assert_int_equal(opd_process_map(&processes, KTHREADD, opd_process_find(&processes, KTHREADD)->mm, &mapping), 0);
	assert_null(kernel_thread_at(10, 5, true));
}

static const struct op_image_id *program_id(uint32_t pid, uint64_t time_ns)
{
	uint64_t cookie = program_at(pid, app_cookie, time_ns, false);

	assert_int_not_equal(cookie, app_cookie);
	return &op_dcookie_row(table, cookie)->id;
}

static uint64_t still_there(uint32_t pid OP_UNUSED)
{
	return 0;
}

static void a_sample_has_the_name_of_its_time(void **state OP_UNUSED)
{
	processes.keeps_names = processes.by_name = true;
	add(10, "first");
	assert_int_equal(opd_process_named(&processes, 10, "second", 200), 0);
	assert_int_equal(opd_process_exec(&processes, 10, "third", 300), 0);
	assert_string_equal(program_id(10, 199)->comm, "first");
	assert_string_equal(program_id(10, 200)->comm, "second");
	assert_string_equal(program_id(10, 300)->comm, "third");
	assert_int_equal(program_id(10, 300)->program_of, app_cookie);
	assert_int_equal(program_id(10, 300)->user, OP_USER_NONE);
	assert_int_equal(opd_process_fork(&processes, 10, 11, 250), 0);
	assert_string_equal(program_id(11, 400)->comm, "second");
	/* equal names of two processes are one program */
	assert_int_equal(program_at(11, app_cookie, 400, false), program_at(10, app_cookie, 250, false));
	opd_processes_prune(&processes, 280, still_there);
	assert_string_equal(program_id(10, 290)->comm, "second");
	opd_processes_prune(&processes, 301, still_there);
	assert_string_equal(program_id(10, 290)->comm, "third");
}

static void without_separation_the_application_counts(void **state OP_UNUSED)
{
	add(10, "first");
	assert_int_equal(program_at(10, app_cookie, 5, false), app_cookie);
	assert_int_equal(opd_process_named(&processes, 10, "second", 200), 0);
	assert_string_equal(opd_process_find(&processes, 10)->name->comm, "first");
}

/* The memory and the walk over names are bounded, however often a process changes its name. */
static void a_process_that_changes_its_name_without_end(void **state OP_UNUSED)
{
	struct opd_process *process = add(10, "first");
	size_t nr = 0;

	processes.keeps_names = processes.by_name = true;
	for (uint64_t i = 0; i < 100000; i++) {
		char comm[OPD_COMM_BYTES];

		snprintf(comm, sizeof(comm), "n%u", (unsigned int)i);
		assert_int_equal(opd_process_named(&processes, 10, comm, MS + i), 0);
	}
	for (const struct opd_name *name = process->name; name; name = name->older)
		nr++;
	assert_int_equal(nr, 1 + OPD_PROCESS_NAMES_MAX);
	assert_int_equal(processes.nr_names_skipped, 100000 - OPD_PROCESS_NAMES_MAX);
	assert_string_equal(program_id(10, UINT64_MAX)->comm, "n15");
	assert_int_equal(opd_process_named(&processes, 10, "later", 500 * MS), 0);
	assert_string_equal(program_id(10, UINT64_MAX)->comm, "later");
}

static void the_user_is_asked_for_once_in_each_program(void **state OP_UNUSED)
{
	uint32_t pid = (uint32_t)getpid();

	processes.keeps_names = processes.by_user = true;
	add(pid, "me");
	assert_int_equal(program_id(pid, 5)->user, geteuid());
	assert_string_equal(program_id(pid, 5)->comm, "");
	/* a child that is gone has the user of its parent */
	opd_process_find(&processes, pid)->mm->user = 4711;
	assert_int_equal(opd_process_fork(&processes, pid, UINT32_MAX - 1, 100), 0);
	opd_process_find(&processes, UINT32_MAX - 1)->exit_ns = 200;
	assert_int_equal(program_id(UINT32_MAX - 1, 150)->user, 4711);
	assert_int_equal(opd_process_exec(&processes, pid, "me", 300), 0);
	assert_int_equal(program_id(pid, 250)->user, 4711);
	assert_int_equal(program_id(pid, 350)->user, geteuid());
}

static void what_is_no_file_has_no_programs(void **state OP_UNUSED)
{
	struct op_image_id pseudo = { .name = { .kind = OP_IMAGE_KERNEL, .name = "too-many-images" }, .is_pseudo = true };
	uint64_t cookie = op_dcookie_get(table, &pseudo);

	processes.keeps_names = processes.by_name = true;
	add(10, "name");
	assert_int_equal(program_at(10, cookie, 5, false), cookie);
	add(11, "");
	assert_int_equal(program_at(11, app_cookie, 5, false), app_cookie);
}

#define program_test(name) cmocka_unit_test_setup_teardown(name, programs_setup, programs_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_number_of_a_kernel_thread_is_cut),
		program_test(children_of_kthreadd_are_kernel_threads_until_they_run_a_program),
		program_test(a_name_makes_no_kernel_thread),
		program_test(records_show_kernel_threads_by_their_parent),
		program_test(who_poses_as_kthreadd_has_mappings),
		program_test(a_sample_has_the_name_of_its_time),
		program_test(without_separation_the_application_counts),
		program_test(a_process_that_changes_its_name_without_end),
		program_test(the_user_is_asked_for_once_in_each_program),
		program_test(what_is_no_file_has_no_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
