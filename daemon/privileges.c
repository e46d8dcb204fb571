/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/privileges.h"

#include <sys/capability.h>

#include "daemon/log.h"

/* CAP_SYS_ADMIN stands for CAP_PERFMON, as it does in the kernel (capabilities(7)). */
static const struct {
	cap_value_t capability, instead;
	const char *name, *without;
} used[] = {
	{ CAP_PERFMON, CAP_SYS_ADMIN, "CAP_PERFMON",
	  "all processes can be sampled only where kernel.perf_event_paranoid is 0 or less" },
	{ CAP_IPC_LOCK, CAP_IPC_LOCK, "CAP_IPC_LOCK", "ring memory is limited to kernel.perf_event_mlock_kb" },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "processes of other users that ran before opd cannot be resolved" },
	{ CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, "CAP_CHECKPOINT_RESTORE",
	  "files that were removed or replaced while they ran, and files of containers, are told by their names only" },
	{ CAP_SYSLOG, CAP_SYSLOG, "CAP_SYSLOG", "kernel addresses may be hidden and kernel samples have no symbols" },
};

static bool has(cap_t capabilities, cap_value_t capability)
{
	cap_flag_value_t value = CAP_CLEAR;

	return !cap_get_flag(capabilities, capability, CAP_EFFECTIVE, &value) && value == CAP_SET;
}

void opd_privileges_report(void)
{
	cap_t capabilities = cap_get_proc();

	if (!capabilities)
		return;
	for (size_t i = 0; i < op_array_size(used); i++)
		if (!has(capabilities, used[i].capability) && !has(capabilities, used[i].instead))
			opd_log(SD_WARNING, "without %s %s", used[i].name, used[i].without);
	cap_free(capabilities);
}
