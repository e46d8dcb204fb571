/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-events/filter.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <seccomp.h>

/* int arguments: their upper halves are not the kernel's business */
#define ALL_BITS UINT32_MAX
#define IS_INT(argument, value) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, ALL_BITS, (uint32_t)(value))

/*
 * perf_event_open(attr, pid, cpu, group_fd, flags): all processes, no group. The rest of the
 * request lies in memory, where a filter does not see it (rule.h).
 */
static int add_rules(scmp_filter_ctx filter, int socket_fd)
{
	const struct scmp_arg_cmp opening[] = { IS_INT(1, -1), IS_INT(3, -1), IS_INT(4, PERF_FLAG_FD_CLOEXEC) };
	static const int free_calls[] = { SCMP_SYS(close), SCMP_SYS(exit_group), SCMP_SYS(exit) };
	/* both only where the C library uses no socketcall(2) */
	static const int socket_calls[] = { SCMP_SYS(recvfrom), SCMP_SYS(sendmsg) };
	int err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), op_array_size(opening), opening);

	for (size_t i = 0; i < op_array_size(free_calls) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, free_calls[i], 0);
#ifdef __NR_socketcall
	(void)socket_fd;
	for (size_t i = 0; i < op_array_size(socket_calls) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, socket_calls[i], 0);
#else
	for (size_t i = 0; i < op_array_size(socket_calls) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, socket_calls[i], 1, IS_INT(0, socket_fd));
#endif
	return err;
}

/* The filter is not released: that would be calls of the heap after it. */
int ope_filter_apply(int socket_fd)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err = filter ? add_rules(filter, socket_fd) : -ENOMEM;

	return err ? err : seccomp_load(filter);
}
