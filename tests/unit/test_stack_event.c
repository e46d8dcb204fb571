/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which event takes stacks, and what the kernel is asked for. The kernel is a function here that
 * refuses what a case says, and the machine is the one that a case names.
 */
#include "tests/unit/cmocka_all.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>

#include "libop/events/event_list.h"
#include "pipeline/capture/stack_event.h"

#define FLAGS_OFFSET (offsetof(struct perf_event_attr, read_format) + sizeof(uint64_t))
/* bit fields 38 and 39 */
#define DEFER_FLAGS  (UINT64_C(3) << (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 38 : 24))
#define STACK_TYPES  (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* What is refused, and the last attr that was not. */
static struct {
	bool cycles, all, deferral, cgroup;
	struct perf_event_attr attr;
	unsigned int nr_opened;
} kernel;

static struct op_config config;
static uint16_t machine;

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

uint16_t __wrap_op_stack_machine(void);

uint16_t __wrap_op_stack_machine(void)
{
	return machine;
}

static uint64_t flags_of(const struct perf_event_attr *attr)
{
	uint64_t flags;

	memcpy(&flags, (const char *)attr + FLAGS_OFFSET, sizeof(flags));
	return flags;
}

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid OP_UNUSED, int cpu OP_UNUSED, int group_fd OP_UNUSED,
				  unsigned long flags OP_UNUSED)
{
	if (kernel.all)
		return -EACCES;
	if (kernel.cycles && attr->type == PERF_TYPE_HARDWARE)
		return -ENOENT;
	if (kernel.cgroup && attr->sample_type & PERF_SAMPLE_CGROUP)
		return -EINVAL;
	if (kernel.deferral && flags_of(attr) & DEFER_FLAGS)
		return -EINVAL;
	kernel.attr = *attr;
	kernel.nr_opened++;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int kernel_setup(void **state OP_UNUSED)
{
	memset(&kernel, 0, sizeof(kernel));
	machine = EM_X86_64;
	return op_config_init(&config);
}

static int kernel_teardown(void **state OP_UNUSED)
{
	op_config_free(&config);
	return 0;
}

static struct op_event parse(const char *spec)
{
	struct op_event event;
	char *why = NULL;

	assert_int_equal(op_event_parse(spec, &event, &why), 0);
	return event;
}

/* Adds stacks to events of these specifications; returns what opd_stack_event_add says. */
static int add(const char *words, bool has_pmu, const char *const *specs, struct op_event events[8], size_t *ret_nr, char **ret_why)
{
	struct op_stack_setup stacks = { .mode = OP_STACKS_CONFIGURED };
	size_t nr = 0;

	for (; specs[nr]; nr++)
		events[nr] = parse(specs[nr]);
	if (*words)
		assert_true(op_stack_setup_parse(words, &stacks));
	*ret_nr = nr;
	return opd_stack_event_add(&stacks, &config, has_pmu, events, ret_nr, ret_why);
}

static const char *const timer[] = { "TIMER:1000000", NULL };

static void takes_the_clock_without_a_pmu(void **state OP_UNUSED)
{
	struct op_event events[8];
	char *why;
	size_t nr;

	assert_int_equal(add("on", false, timer, events, &nr, &why), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(events[1].role, OP_EVENT_STACKS);
	assert_int_equal(events[1].stack_bytes, 8192);
	assert_int_equal(events[0].stack_bytes, 0);
	assert_int_equal(op_event_nr_opened(events, nr), 2);
	assert_int_equal(kernel.attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(kernel.attr.sample_type & STACK_TYPES, STACK_TYPES);
	assert_int_equal(kernel.attr.sample_stack_user, 8192);
	assert_int_not_equal(kernel.attr.sample_regs_user, 0);
	/* the walk finds the callers of user code, the kernel those of its own */
	assert_true(kernel.attr.exclude_callchain_user);
	assert_false(kernel.attr.exclude_callchain_kernel);
	assert_in_range(kernel.attr.sample_max_stack, 1, 127);
	assert_int_equal(flags_of(&kernel.attr) & DEFER_FLAGS, 0);
}

/* The kernel refuses a sample with registers and none of them. */
static void a_machine_without_a_walk_has_chains(void **state OP_UNUSED)
{
	struct op_event events[8];
	char *why;
	size_t nr;

	machine = EM_NONE;
	assert_int_equal(add("on", false, timer, events, &nr, &why), 0);
	assert_int_equal(events[1].role, OP_EVENT_STACKS);
	assert_int_equal(events[1].stack_bytes, 0);
	assert_int_equal(kernel.attr.sample_type & STACK_TYPES, PERF_SAMPLE_CALLCHAIN);
	assert_int_equal(add("event", false, timer, events, &nr, &why), -EINVAL);
	assert_non_null(strstr(why, "x86-64"));
	free(why);
}

static void takes_cycles_where_a_counter_is_left(void **state OP_UNUSED)
{
	static const char *const three[] = { "cycles:100000", "instructions:100000", "rc0:100000", NULL };
	struct op_event events[8];
	char *why;
	size_t nr;

	assert_int_equal(add("200:16K", true, timer, events, &nr, &why), 0);
	assert_int_equal(kernel.attr.type, PERF_TYPE_HARDWARE);
	assert_true(kernel.attr.freq);
	assert_int_equal(kernel.attr.sample_freq, 200);
	assert_int_equal(kernel.attr.sample_stack_user, 16384);
	assert_int_equal(add("on", true, three, events, &nr, &why), 0);
	assert_int_equal(nr, 4);
	assert_int_equal(kernel.attr.type, PERF_TYPE_SOFTWARE);
	kernel.cycles = true;
	assert_int_equal(add("on", true, timer, events, &nr, &why), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(kernel.attr.type, PERF_TYPE_SOFTWARE);
}

static void a_kernel_without_stacks_changes_nothing(void **state OP_UNUSED)
{
	struct op_event events[8];
	char *why;
	size_t nr;

	kernel.all = true;
	assert_int_equal(add("on", true, timer, events, &nr, &why), -EACCES);
	assert_int_equal(nr, 1);
	assert_non_null(strstr(why, "event " OP_STACKS_NAME ": "));
	free(why);
}

static void the_configuration_decides(void **state OP_UNUSED)
{
	struct op_event events[8];
	char *why;
	size_t nr;

	config.stacks = false;
	assert_int_equal(add("", false, timer, events, &nr, &why), 0);
	assert_int_equal(nr, 1);
	config.stacks = true;
	config.stack_rate_hz = 50;
	config.stack_bytes = 4093; /* the kernel takes words */
	assert_int_equal(add("", false, timer, events, &nr, &why), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(events[1].count, 20000000);
	assert_int_equal(kernel.attr.sample_stack_user, 4096);
	assert_int_equal(add("off", false, timer, events, &nr, &why), 0);
	assert_int_equal(nr, 1);
}

static void events_carry_stacks(void **state OP_UNUSED)
{
	static const char *const two[] = { "TIMER:1000000", "page-faults:100", NULL };
	struct op_event events[8];
	char *why;
	size_t nr;

	assert_int_equal(add("event", true, two, events, &nr, &why), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(events[0].stack_bytes, 8192);
	assert_int_equal(events[1].stack_bytes, 8192);
	assert_int_equal(events[1].role, OP_EVENT_PLAIN);
	assert_true(events[0].with_cgroup && events[1].with_cgroup);
	config.stack_bytes = 0;
	assert_int_equal(add("event", true, two, events, &nr, &why), -EINVAL);
	assert_non_null(why);
	free(why);
}

/* Without a copy the kernel follows frame pointers, later if it can. */
static void chains_without_a_copy_are_deferred(void **state OP_UNUSED)
{
	struct op_event events[8];
	char *why;
	size_t nr;

	assert_int_equal(add("99:0", false, timer, events, &nr, &why), 0);
	assert_int_equal(flags_of(&kernel.attr) & DEFER_FLAGS, DEFER_FLAGS);
	assert_true(kernel.attr.bpf_event); /* or the later part goes nowhere */
	assert_int_equal(kernel.attr.sample_type & STACK_TYPES, PERF_SAMPLE_CALLCHAIN);
	assert_false(kernel.attr.exclude_callchain_user);
	kernel.deferral = true;
	assert_int_equal(add("99:0", false, timer, events, &nr, &why), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(flags_of(&kernel.attr) & DEFER_FLAGS, 0);
	assert_int_equal(kernel.attr.sample_type & STACK_TYPES, PERF_SAMPLE_CALLCHAIN);
}

/* Where the user leaves the kernel out, stacks do, too. */
static void leaves_out_the_kernel(void **state OP_UNUSED)
{
	static const char *const user[] = { "TIMER:1000000:0:0:1", NULL };
	struct op_event events[8];
	char *why;
	size_t nr;

	assert_int_equal(add("on", false, user, events, &nr, &why), 0);
	assert_true(kernel.attr.exclude_kernel && kernel.attr.exclude_callchain_kernel);
}

static void cgroups_where_the_kernel_tells_them(void **state OP_UNUSED)
{
	struct op_event events[8];
	char *why;
	size_t nr;

	for (int refused = 0; refused <= 1; refused++) {
		kernel.cgroup = refused;
		assert_int_equal(add("on", false, timer, events, &nr, &why), 0);
		assert_int_equal(nr, 2);
		assert_int_equal(events[1].with_cgroup, !refused);
		assert_int_equal(!!(kernel.attr.sample_type & PERF_SAMPLE_CGROUP), !refused);
		assert_false(events[0].with_cgroup);
		assert_int_equal(add("event", false, timer, events, &nr, &why), 0);
		assert_int_equal(events[0].with_cgroup, !refused);
	}
}

static void expect_calls_of_stacks(const char *words, const char *first, const char *second, bool of_first, bool of_second)
{
	const char *const specs[] = { first, second, NULL };
	struct op_event events[8];
	char *why;
	size_t nr;

	assert_int_equal(add(words, false, specs, events, &nr, &why), 0);
	op_event_take_calls_of_stacks(events, nr);
	assert_int_equal(events[0].calls_of_stacks, of_first);
	assert_int_equal(events[0].without_chain, of_first);
	assert_int_equal(events[1].calls_of_stacks, of_second);
	assert_int_equal(events[1].without_chain, of_second);
}

/* STACKS counts time, in user code and in the kernel. */
static void calls_of_one_event_that_counts_the_same(void **state OP_UNUSED)
{
	expect_calls_of_stacks("on", "TIMER:1000000", "page-faults:100", true, false);
	expect_calls_of_stacks("on", "page-faults:100", "TIMER:1000000", false, true);
	expect_calls_of_stacks("on", "instructions:1000000", "cycles:1000000", false, true);
	expect_calls_of_stacks("on", "TIMER:1000000", "cycles:1000000", true, false);
	expect_calls_of_stacks("on", "TIMER:1000000:0:0:1", "page-faults:100", false, false);
	expect_calls_of_stacks("on", "TIMER:1000000:0:0:1", "page-faults:100:0:0:1", true, false);
	expect_calls_of_stacks("99:0", "TIMER:1000000", "page-faults:100", false, false);
	expect_calls_of_stacks("event", "TIMER:1000000", "page-faults:100", false, false);
	expect_calls_of_stacks("off", "TIMER:1000000", "page-faults:100", false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(takes_the_clock_without_a_pmu, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(a_machine_without_a_walk_has_chains, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(takes_cycles_where_a_counter_is_left, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(a_kernel_without_stacks_changes_nothing, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(the_configuration_decides, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(events_carry_stacks, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(chains_without_a_copy_are_deferred, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(leaves_out_the_kernel, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(cgroups_where_the_kernel_tells_them, kernel_setup, kernel_teardown),
		cmocka_unit_test_setup_teardown(calls_of_one_event_that_counts_the_same, kernel_setup, kernel_teardown),
	};

	return cmocka_run_group_tests_name("stack_event", tests, NULL, NULL);
}
