/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which CPUs there are and how fast: from sysfs and /proc. */
#ifndef OPD_CPUS_H
#define OPD_CPUS_H

#include "libop/base/compiler.h"

/* Reads a list as sysfs writes it ("0-3,8"). 0 and numbers to be freed by the caller, -EINVAL, -ENOMEM. */
int opd_cpus_parse(const char *list, uint32_t **ret_cpus, size_t *ret_nr_cpus) OP_NONNULL OP_MUST_CHECK;

/* The CPUs that are online now. 0 and at least one number, to be freed by the caller, or -errno. */
int opd_cpus_online(uint32_t **ret_cpus, size_t *ret_nr_cpus) OP_NONNULL OP_MUST_CHECK;

/* The CPUs that can ever be online while this kernel runs. The same. */
int opd_cpus_possible(uint32_t **ret_cpus, size_t *ret_nr_cpus) OP_NONNULL OP_MUST_CHECK;

/* Whether a list has a CPU. */
bool opd_cpus_has(const uint32_t *cpus, size_t nr_cpus, uint32_t cpu) OP_NONNULL;

/*
 * A number that a CPU has as long as it is online, and another one after it went and came back: the inode of a directory that sysfs makes anew for
 * each time (drivers/base/topology.c and cacheinfo.c of the kernel). 0: sysfs has none of these.
 */
uint64_t opd_cpu_stay(uint32_t cpu);

/* Speed as oprofile finds it: the maximum of cpufreq, else the first "cpu MHz" of /proc/cpuinfo, else 0. */
double opd_cpu_speed_mhz(void);

#endif
