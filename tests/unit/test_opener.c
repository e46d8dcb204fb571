/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd-events: what opd asks for is allowed, and its filter lets it do nothing but open events of
 * CPUs. What is refused is in tests/system/test_opener.py.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/events/event_list.h"
#include "libop/process/pass.h"
#include "libop/ring/kernel_pair.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/capture/plan.h"
#include "tools/opd-events/filter.h"
#include "tools/opd-events/serve.h"

#define SOCKET   3
#define IBS_TYPE 11u

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

/* All that the code of opd would open, and how much of it the rule refuses. */
static unsigned int nr_asked, nr_refused;

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid OP_UNUSED, int cpu, int group_fd OP_UNUSED,
				  unsigned long flags OP_UNUSED)
{
	const struct ope_samplers samplers = { { IBS_TYPE, 0 } };
	struct op_event_request request = { .cpu = cpu >= 0 ? cpu : 0, .attr = *attr };

	nr_asked++;
	nr_refused += !ope_rule_allows(&samplers, &request);
	return -EACCES;
}

static void open_all(struct opd_capture *capture, const struct op_event *event)
{
	assert_int_equal(opd_capture_open_sampling(capture, event, 0), -EACCES);
}

static void parse(const char *spec, struct op_event *ret_event)
{
	char *why = NULL;

	if (op_event_parse(spec, ret_event, &why) < 0)
		fail_msg("%s: %s", spec, why);
}

static void all_of_opd_is_allowed(void **state OP_UNUSED)
{
	static const char *const specs[] = { "TIMER:100000", "TIMER:100000:0:0:1", "page-faults:1", "cpu-clock:100000",
					     "context-switches:10", "cpu-cycles:100000", "cache-misses:10000:0:1:0" };
	struct opd_capture capture = { .has_format_lost = true, .defers_chains = true, .max_stack = 127 };
	struct perf_event_attr attr;
	struct op_ring_pair pair;
	uint64_t wait_ns;

	nr_asked = nr_refused = 0;
	for (unsigned int variant = 0; variant < 8; variant++) {
		capture.with_cgroup = variant & 1;
		capture.callgraph = variant & 2 ? 8 : 0;
		capture.wakeup_records = variant & 4 ? 100 : 0;
		for (size_t i = 0; i < op_array_size(specs); i++) {
			struct op_event event;

			parse(specs[i], &event);
			open_all(&capture, &event);
			event.stack_bytes = 8192;
			open_all(&capture, &event);
		}
		for (int with_cycles = 0; with_cycles < 2; with_cycles++) {
			struct op_event event;

			op_event_make_stacks(with_cycles, 99, with_cycles ? 8192 : 0, &event);
			open_all(&capture, &event);
		}
		opd_capture_tracking_attr(&capture, 65536, &attr);
		assert_int_equal(opd_capture_open_event(&capture, &attr, -1, 0), -EACCES);
	}
	assert_int_equal(op_ring_pair_open(0, 4096, 4096, &pair), -EACCES);
	assert_int_equal(opd_plan_measure_wait(0, &wait_ns), -EACCES);
	assert_true(nr_asked > 100);
	assert_int_equal(nr_refused, 0);
}

/* Fields of IBS are for IBS alone. */
static void samplers_are_allowed(void **state OP_UNUSED)
{
	const struct ope_samplers samplers = { { IBS_TYPE, 0 } };
	struct op_event_request request = { .attr = { .type = IBS_TYPE, .size = sizeof(request.attr), .config1 = 100, .config2 = 1,
						      .sample_period = 100000,
						      .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW, .disabled = 1 } };

	assert_true(ope_rule_allows(&samplers, &request));
	request.attr.type = IBS_TYPE + 1;
	assert_false(ope_rule_allows(&samplers, &request));
	request.attr.type = PERF_TYPE_RAW;
	assert_false(ope_rule_allows(&samplers, &request));
	request.attr.config1 = request.attr.config2 = 0;
	assert_false(ope_rule_allows(&samplers, &request));
	request.attr.sample_type = PERF_SAMPLE_IP;
	assert_true(ope_rule_allows(&samplers, &request));
	/* data of a BPF program of opd, and of no other software event */
	request.attr.type = PERF_TYPE_SOFTWARE;
	request.attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	request.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW;
	assert_true(ope_rule_allows(&samplers, &request));
	request.attr.config = PERF_COUNT_SW_DUMMY;
	assert_false(ope_rule_allows(&samplers, &request));
	request.attr.config = PERF_COUNT_SW_BPF_OUTPUT + 1;
	request.attr.sample_type = PERF_SAMPLE_IP;
	assert_false(ope_rule_allows(&samplers, &request));
	request.attr.config = 0;
	/* a type of 0 is a hardware event, not the missing sampler */
	request.attr.type = PERF_TYPE_HARDWARE;
	request.attr.config1 = 1;
	assert_false(ope_rule_allows(&samplers, &request));
}

/* No bit of the attribute can be set beside those that opd uses, at whatever place. */
static void no_other_bit_is_allowed(void **state OP_UNUSED)
{
	const struct ope_samplers samplers = { { 0 } };
	const struct op_event_request good = { .attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
							 .size = sizeof(good.attr), .disabled = 1 } };
	size_t from = offsetof(struct perf_event_attr, read_format) + 2 * sizeof(uint64_t);
	unsigned int nr_allowed = 0;

	assert_true(ope_rule_allows(&samplers, &good));
	for (size_t bit = from * 8; bit < sizeof(good.attr) * 8; bit++) {
		struct op_event_request request = good;

		((unsigned char *)&request.attr)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		nr_allowed += ope_rule_allows(&samplers, &request);
	}
	/* wakeup_events, sample_regs_user, sample_stack_user, sample_max_stack */
	assert_int_equal(nr_allowed, 32 + 64 + 32 + 16);
}

/* ---- the filter ---- */

enum { OPEN, TASK, GROUP, OTHER_FLAGS, READ_IT, MAP_IT, WRITE, FORK, SEND_ELSEWHERE, NR_DEEDS, FOREIGN };

#ifdef __x86_64__
/* exit(2) of i386, whose number is that of write(2) here. */
static void call_as_i386(void)
{
	__asm__ volatile("int $0x80" : : "a"(1), "b"(0) : "memory");
}
#endif

static void do_it(int deed, int other)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .size = sizeof(attr) };
	char byte = 0;
	struct iovec part = { &byte, 1 };
	/* the real call: the kernel's answer is of no matter, only that it is asked */
	long pid = deed == TASK ? 0 : -1, group = deed == GROUP ? other : -1;
	long fd = syscall(SYS_perf_event_open, &attr, pid, 0L, group, deed == OTHER_FLAGS ? 0L : (long)PERF_FLAG_FD_CLOEXEC);

	switch (deed) {
	case READ_IT:
		syscall(SYS_read, fd, &byte, 1L);
		break;
	case MAP_IT:
		syscall(SYS_munmap, 0L, 4096L);
		break;
	case WRITE:
		syscall(SYS_write, other, &byte, 1L);
		break;
	case FORK:
		fork();
		break;
#ifdef __x86_64__
	case FOREIGN:
		call_as_i386();
		break;
#endif
	case SEND_ELSEWHERE:
		(void)!op_pass_send(other, &part, 1, -1, 0);
		break;
	default:
		(void)!op_pass_send(SOCKET, &part, 1, -1, 0);
	}
	syscall(SYS_exit_group, 0L);
}

/* The signal that ended a child which did this under the filter; 0: none. */
static int ended_by(int deed)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int ends[2];

		if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ||
		    dup2(ends[0], 10) < 0 || dup2(10, SOCKET) < 0 || ope_filter_apply(SOCKET) < 0)
			_exit(77);
		do_it(deed, 10);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/* Calls of another architecture have other numbers: none of them is allowed. */
static void foreign_calls_are_killed(void **state OP_UNUSED)
{
#ifdef __x86_64__
	pid_t pid = fork();
	int status;

	if (!pid) {
		call_as_i386();
		_exit(77);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) /* a kernel without CONFIG_IA32_EMULATION */
		skip();
	assert_int_equal(ended_by(FOREIGN), SIGSYS);
#else
	skip();
#endif
}

static void filter_allows_nothing_else(void **state OP_UNUSED)
{
	assert_int_equal(ended_by(OPEN), 0);
	for (int deed = OPEN + 1; deed < NR_DEEDS; deed++) {
		int signal_number = ended_by(deed);

#ifdef __NR_socketcall
		if (deed == SEND_ELSEWHERE)
			continue;
#endif
		if (signal_number != SIGSYS)
			fail_msg("deed %d: the process ended with %d", deed, signal_number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_opd_is_allowed),
		cmocka_unit_test(samplers_are_allowed),
		cmocka_unit_test(no_other_bit_is_allowed),
		cmocka_unit_test(filter_allows_nothing_else),
		cmocka_unit_test(foreign_calls_are_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
