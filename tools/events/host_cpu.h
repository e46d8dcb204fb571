/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CPU of this host and what it can count. */
#ifndef OPR_HOST_CPU_H
#define OPR_HOST_CPU_H

#include "libop/base/compiler.h"

/* True when the kernel has a PMU of the CPU: a virtual machine often has none. */
bool opr_host_has_pmu(void);

/* oprofile's name for this CPU ("x86-64/generic"); "timer" without countable events. */
const char *opr_host_cpu_type(void);

#endif
