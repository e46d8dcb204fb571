/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CPU of this host and what it can count. */
#ifndef OP_HOST_CPU_H
#define OP_HOST_CPU_H

#include "libop/base/compiler.h"

/* True when the kernel has a PMU of the CPU: a virtual machine often has none. */
bool op_host_has_pmu(void);

/* True when a PMU of /sys/bus/event_source/devices is of the CPUs, or of one kind of them. */
bool op_is_cpu_pmu(const char *name) OP_NONNULL;

/*
 * oprofile's name for this CPU ("x86-64/generic"), or "arm64" where it has none; "timer" without
 * countable events.
 */
const char *op_host_cpu_type(void);

#endif
