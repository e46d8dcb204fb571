/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "libop/events/event.h"
#include "libop/events/event_list.h"
#include "libop/base/sys.h"

/* The result of the next perf_event_open: an errno, or 0 and a descriptor that can be read. */
static int next_err;
static int next_fd = -1;
static struct perf_event_attr last_attr;
static pid_t last_pid;

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	assert_true(flags & PERF_FLAG_FD_CLOEXEC);
	assert_int_equal(group_fd, -1);
	assert_int_equal(cpu < 0, pid == 0);
	last_attr = *attr;
	last_pid = pid;
	return next_err ? -next_err : next_fd;
}

static struct op_event parse(const char *spec)
{
	struct op_event event = { 0 };
	char *why = NULL;
	int err = op_event_parse(spec, &event, &why);

	if (err)
		fail_msg("%s: %s", spec, why);
	return event;
}

static void assert_refused(const char *spec, const char *word)
{
	struct op_event event, before;
	char *why = NULL;

	memset(&event, 0xa5, sizeof(event));
	before = event;
	assert_int_equal(op_event_parse(spec, &event, &why), -EINVAL);
	assert_memory_equal(&event, &before, sizeof(event));
	assert_non_null(why);
	if (!strstr(why, word) || !strstr(why, spec) || strchr(why, '\n'))
		fail_msg("%s: '%s' has no '%s'", spec, why, word);
	free(why);
}

static void test_parse_fills_all(void **state)
{
	struct op_event event = parse("timer:100000:0:0:1");

	(void)state;
	assert_string_equal(event.name, "TIMER");
	assert_int_equal(event.count, 100000);
	assert_true(event.is_timer);
	assert_false(event.kernel);
	assert_true(event.user);
	assert_false(event.every_event);
	assert_int_equal(event.number, 0);
	assert_int_equal(event.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(event.config, PERF_COUNT_SW_CPU_CLOCK);
}

static void test_every_event(void **state)
{
	(void)state;
	assert_true(parse("page-faults:1").every_event);
	assert_true(parse("cs:1").every_event);
	assert_false(parse("page-faults:2").every_event);
	assert_false(parse("cpu-clock:10000").every_event);
	assert_false(parse("cycles:500").every_event);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(parse("CPU-CYCLES:100000").name, "cycles");
	assert_string_equal(parse("branch-instructions:100000").name, "branches");
	assert_string_equal(parse("faults:3").name, "page-faults");
	assert_string_equal(parse("ref-cycles:100000").name, "ref-cycles");
	assert_string_equal(parse("R00C0:100000").name, "rc0");
	assert_int_equal(parse("R00C0:100000").config, 0xc0);
	assert_int_equal(parse("rffffffffffffffff:500").config, UINT64_MAX);
	assert_int_equal(parse("r0:500").type, PERF_TYPE_RAW);
}

static void test_refusals(void **state)
{
	static const char *const cases[][2] = {
		{ "", "no such event" },
		{ ":5", "no such event" },
		{ "r", "no such event" },
		{ "r:5", "no such event" },
		{ "rxyz:5", "no such event" },
		{ "r11112222333344445:500", "no such event" },
		{ "NO_SUCH:1000", "no such event" },
		{ "raw:1000", "no such event" },
		{ "TIMER", "count is missing" },
		{ "TIMER:", "is not a number" },
		{ "TIMER:x", "is not a number" },
		{ "TIMER:-5", "is not a number" },
		{ "TIMER: 5", "is not a number" },
		{ "TIMER:0", "not within 10000" },
		{ "TIMER:9999", "not within 10000" },
		{ "TIMER:4294967296", "not within" },
		{ "TIMER:99999999999999999999999", "not within" },
		{ "cycles:499", "not within 500" },
		{ "page-faults:0", "not within 1" },
		{ "TIMER:100000:", "unit mask" },
		{ "TIMER:100000:1", "no unit masks" },
		{ "TIMER:100000:0:2", "kernel flag" },
		{ "TIMER:100000:0:1:7", "user flag" },
		{ "TIMER:100000:0:0:0", "neither" },
		{ "TIMER:100000:0:1:1:1", "too many fields" },
	};

	(void)state;
	for (size_t i = 0; i < op_array_size(cases); i++)
		assert_refused(cases[i][0], cases[i][1]);
}

static void test_format_is_the_inverse(void **state)
{
	static const char *const specs[] = { "TIMER:10000:0:1:1", "cycles:4294967295:0:0:1", "rc0:500:0:1:0",
					     "page-faults:1:0:1:1" };

	(void)state;
	for (size_t i = 0; i < op_array_size(specs); i++) {
		struct op_event event = parse(specs[i]);
		struct op_text text = { 0 };

		op_event_format(&event, &text);
		assert_string_equal(op_text_get(&text), specs[i]);
		op_text_free(&text);
	}
}

static struct op_event parse_named(const char *name)
{
	struct op_text text = { 0 };
	struct op_event event;

	op_text_printf(&text, "%s:100000", name);
	event = parse(op_text_get(&text));
	op_text_free(&text);
	return event;
}

/* Numbers and names are in sample files: each is used once, and old ones stay. */
static void test_table(void **state)
{
	const struct op_event_info *info;

	(void)state;
	for (size_t i = 0; (info = op_event_info(i)); i++) {
		struct op_event event = parse_named(info->name);

		assert_string_equal(event.name, info->name);
		assert_null(strpbrk(info->name, "./:"));
		assert_string_equal(op_event_description(info->name), info->description);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(parse_named(op_event_info(j)->name).number, event.number);
	}
	assert_int_equal(parse("cycles:1000").number, 0x101);
	assert_int_equal(parse("ref-cycles:1000").number, 0x10a);
	assert_int_equal(parse("cpu-clock:100000").number, 0x201);
	assert_int_equal(parse("page-faults:1").number, 0x203);
	assert_int_equal(parse("cgroup-switches:1").number, 0x20a);
	assert_int_equal(parse("rc0:1000").number, 0x800000c0);
	assert_null(op_event_description("rc0"));
	assert_null(op_event_kind(0x203));
	assert_string_equal(op_event_kind(0x800000c0), "Raw event of the CPU");
}

/* What opcontrol makes of a name of libpfm4, and what daemonrc keeps. */
static void test_raw_with_a_name(void **state)
{
	struct op_event event = parse("r00C0=INST_RETIRED_ANY-P:100000:0:1:0");
	struct op_text text = { 0 };

	(void)state;
	assert_string_equal(event.name, "INST_RETIRED_ANY-P");
	assert_int_equal(event.type, PERF_TYPE_RAW);
	assert_int_equal(event.config, 0xc0);
	assert_int_equal(event.number, 0x800000c0);
	op_event_format(&event, &text);
	assert_string_equal(op_text_get(&text), "rc0=INST_RETIRED_ANY-P:100000:0:1:0");
	assert_string_equal(parse(op_text_get(&text)).name, event.name);
	op_text_free(&text);
	event = parse("rc0:1000");
	op_event_format(&event, &text);
	assert_string_equal(op_text_get(&text), "rc0:1000:0:1:1");
	op_text_free(&text);
	assert_refused("rc0=:1000", "no such event");
	assert_refused("rc0=a.b:1000", "no such event");
	assert_refused("rc0=a/b:1000", "no such event");
	assert_refused("rc0=TIMER:1000", "no such event");
	assert_refused("rc0=IBS_OP_ALL:1000", "no such event");
	assert_refused("r=a:1000", "no such event");
}

/* The colon in its name does not separate fields. A system test covers names that exist. */
static void test_tracepoint(void **state)
{
	(void)state;
	assert_refused("opd_none:opd_nothing:1", "trace");
	assert_refused("opd_none:opd_nothing:1:0:1:1", "trace");
	assert_refused("../opd:x:1", "no such event");
	assert_refused("opd_none:..:1", "no such event");
	assert_refused("page-faults:abc", "'abc' is not a number");
	assert_refused("rc0:abc", "'abc' is not a number");
	assert_refused("opd_none:"
		       "an_event_whose_name_has_more_characters_than_a_name_of_an_event_may_have:1",
		       "too long");
}

static void check_number(const char *spec)
{
	const struct op_event event = parse(spec);
	uint32_t number = ~event.number;

	assert_true(op_event_number(event.name, &number));
	assert_int_equal(number, event.number);
}

/* The name in the path of a sample file says what number the header has. */
static void test_numbers(void **state OP_UNUSED)
{
	const struct op_event_info *info;
	uint32_t number;
	char spec[128];

	for (size_t i = 0; (info = op_event_info(i)); i++) {
		snprintf(spec, sizeof(spec), "%s:100000", info->name);
		check_number(spec);
	}
	check_number("r1c2:100000");
	assert_true(op_event_is_raw_number(parse("r1c2=MY_EVENT:100000").number));
	assert_false(op_event_number("MY_EVENT", &number));
	assert_false(op_event_number("r1c2=MY_EVENT", &number));
	assert_true(op_event_number("IBS_OP_ALL", &number));
	assert_true(op_event_number("sched:sched_switch", &number));
	assert_false(op_event_is_raw_number(number));
}

static void test_attr(void **state)
{
	struct op_event timer = parse("TIMER:250000"), user = parse("cycles:100000:0:0:1"), kernel = parse("cpu-clock:10000:0:1:0");
	struct perf_event_attr attr = { 0 };

	(void)state;
	op_event_attr(&timer, &attr);
	assert_int_equal(attr.size, sizeof(attr));
	assert_int_equal(attr.sample_period, 250000);
	assert_false(attr.freq);
	assert_true(attr.exclude_idle);
	assert_false(attr.exclude_kernel || attr.exclude_user || attr.exclude_hv);
	memset(&attr, 0, sizeof(attr));
	op_event_attr(&user, &attr);
	assert_true(attr.exclude_kernel && attr.exclude_hv);
	assert_false(attr.exclude_user || attr.exclude_idle);
	memset(&attr, 0, sizeof(attr));
	op_event_attr(&kernel, &attr);
	assert_true(attr.exclude_user);
	assert_false(attr.exclude_kernel || attr.exclude_idle);
}

/* Of busy CPUs; a rate is what the kernel keeps of a counter, and the period of a clock. */
static void test_attr_of_stacks(void **state)
{
	struct op_event event;
	struct perf_event_attr attr = { 0 };

	(void)state;
	op_event_make_stacks(false, 99, 8192, &event);
	assert_string_equal(event.name, OP_STACKS_NAME);
	assert_int_equal(event.role, OP_EVENT_STACKS);
	assert_int_equal(event.count, 10101010);
	op_event_attr(&event, &attr);
	assert_int_equal(attr.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_false(attr.freq);
	assert_true(attr.exclude_idle);
	assert_int_equal(attr.sample_period, 10101010);
	memset(&attr, 0, sizeof(attr));
	op_event_make_waits(&event);
	assert_string_equal(event.name, OP_WAITS_NAME);
	assert_int_equal(event.role, OP_EVENT_WAITS);
	assert_int_equal(event.count, 1);
	assert_false(op_event_is_clock(&event));
	assert_true(op_event_is_time(event.role) && op_event_is_stacks(event.role) && op_event_is_taken(event.role));
	assert_false(op_event_has_files(event.role));
	op_event_make_stacks(true, 99, 8192, &event);
	op_event_set_stack_rate(&event, 50);
	assert_int_equal(event.count, 20000000);
	op_event_attr(&event, &attr);
	assert_int_equal(attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(attr.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_true(attr.freq);
	assert_int_equal(attr.sample_freq, 50);
}

static void test_check_explains(void **state)
{
	static const struct {
		const char *spec;
		int err;
		const char *word;
	} cases[] = {
		{ "cycles:100000", ENOENT, "hypervisor" }, { "cycles:100000", EOPNOTSUPP, "hypervisor" },
		{ "page-faults:1", ENOENT, "kernel" },     { "TIMER:100000", EACCES, "perf_event_paranoid" },
		{ "rc0:1000", EINVAL, "does not know" },   { "TIMER:100000", EMFILE, "open files" },
		{ "TIMER:100000", EXDEV, "cross-device" },
	};

	(void)state;
	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_event event = parse(cases[i].spec);
		char *why = NULL;

		next_err = cases[i].err;
		assert_int_equal(op_event_check(&event, &why), -cases[i].err);
		assert_non_null(strstr(why, cases[i].word));
		assert_non_null(strstr(why, event.name));
		assert_null(strchr(why, '\n'));
		free(why);
	}
	assert_int_equal(last_pid, -1);
	next_err = 0;
}

static int open_pipe_with(uint64_t count)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], &count, sizeof(count)), sizeof(count));
	close(fds[1]);
	return fds[0];
}

static void test_check_accepts(void **state)
{
	struct op_event event = parse("TIMER:100000");
	char *why = NULL;

	(void)state;
	next_fd = open_pipe_with(1);
	assert_int_equal(op_event_check(&event, &why), 0);
	assert_null(why);
	assert_int_equal(last_attr.sample_period, 100000);
}

static void test_default_with_pmu(void **state)
{
	struct op_event event;
	bool has_pmu = false;
	uint64_t unit = 1;

	(void)state;
	next_fd = open_pipe_with(4711);
	op_event_default(&event, &has_pmu);
	assert_true(has_pmu);
	assert_string_equal(event.name, "cycles");
	assert_true(event.kernel && event.user);
	assert_in_range(event.count, 100000, 10000000);
	while (event.count / unit >= 1000)
		unit *= 10;
	assert_int_equal(event.count % unit, 0);
}

static void test_default_without_pmu(void **state)
{
	struct op_event event;
	bool has_pmu = true;

	(void)state;
	next_err = ENOENT;
	op_event_default(&event, &has_pmu);
	assert_false(has_pmu);
	assert_string_equal(event.name, "TIMER");
	assert_int_equal(event.count, 997000);
	next_err = 0;
	has_pmu = true;
	next_fd = open_pipe_with(0);
	op_event_default(&event, &has_pmu);
	assert_false(has_pmu);
	assert_true(event.is_timer && event.kernel && event.user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_fills_all),
		cmocka_unit_test(test_every_event),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_format_is_the_inverse),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_raw_with_a_name),
		cmocka_unit_test(test_tracepoint),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_attr),
		cmocka_unit_test(test_attr_of_stacks),
		cmocka_unit_test(test_check_explains),
		cmocka_unit_test(test_check_accepts),
		cmocka_unit_test(test_default_with_pmu),
		cmocka_unit_test(test_default_without_pmu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
