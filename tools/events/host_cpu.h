/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What this host can count. */
#ifndef OPR_HOST_CPU_H
#define OPR_HOST_CPU_H

#include "libop/events/ibs_cpu.h"

/* True when the kernel has a PMU of the CPU: a virtual machine often has none. */
bool opr_host_has_pmu(void);

/* oprofile's name for the type of this CPU ("x86-64/generic"); "timer" where its events cannot be counted, or when it has no type. */
const char *opr_host_cpu_type(void);

/* True when the kernel offers IBS, with what it is capable of. */
bool opr_host_ibs(struct op_ibs_cpu *ret_cpu, uint32_t *ret_caps) OP_NONNULL OP_MUST_CHECK;

#endif
