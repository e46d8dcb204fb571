/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A host with the IBS of a Zen 4, linked with --wrap in place of libop's look at this host. The
 * samplers can be opened and take no samples. For tests only.
 */
#include <linux/perf_event.h>

#include "libop/events/ibs_host.h"
#include "libop/base/sys.h"

#define FAMILY   0x19u
#define MODEL    0x11u
#define CAPS     0xbffu
#define PMU_TYPE 0x7fff0000u /* and the kind: no kernel has so many */

int __wrap_op_ibs_host_read(struct op_ibs_host *ret_host, const char **ret_why) OP_NONNULL;
int __real_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);

int __wrap_op_ibs_host_read(struct op_ibs_host *ret_host, const char **ret_why)
{
	const struct op_ibs_cpuid cpuid = { "AuthenticAMD", FAMILY, MODEL, false, true, CAPS };
	const uint32_t pmu_types[OP_IBS_NR_KINDS] = { PMU_TYPE + OP_IBS_FETCH, PMU_TYPE + OP_IBS_OP };

	return op_ibs_host_make(&cpuid, pmu_types, ret_host, ret_why);
}

int __wrap_op_sys_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	struct perf_event_attr dummy = *attr;

	if (attr->type >= PMU_TYPE) {
		dummy.type = PERF_TYPE_SOFTWARE;
		dummy.config = PERF_COUNT_SW_DUMMY;
		dummy.config1 = dummy.config2 = 0;
	}
	return __real_op_sys_perf_event_open(&dummy, pid, cpu, group_fd, flags);
}
