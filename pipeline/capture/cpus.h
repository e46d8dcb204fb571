/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CPUs of this host and their speed, from sysfs and /proc. */
#ifndef OPD_CPUS_H
#define OPD_CPUS_H

#include "libop/base/compiler.h"

#define OPD_CPUS_ONLINE   "/sys/devices/system/cpu/online"   /* now */
#define OPD_CPUS_POSSIBLE "/sys/devices/system/cpu/possible" /* while this kernel runs */

/*
 * Reads a file that has a list of CPUs as sysfs writes it ("0-3,8"). 0 and at least one number,
 * which the caller frees; -EINVAL, -ENOMEM, or -errno of opening.
 */
int opd_cpus_read(const char *path, uint32_t **ret_cpus, size_t *ret_nr_cpus) OP_NONNULL OP_MUST_CHECK;

/* True when the list has the CPU. */
bool opd_cpus_has(const uint32_t *cpus, size_t nr_cpus, uint32_t cpu) OP_NONNULL;

/*
 * A number that stays the same while a CPU is online, and changes when it goes and comes back: the
 * inode of a directory that sysfs makes anew each time (the kernel's drivers/base/topology.c and
 * cacheinfo.c). 0: sysfs has none.
 */
uint64_t opd_cpu_online_id(uint32_t cpu);

/*
 * The speed of the CPUs as oprofile determines it: the maximum of cpufreq, else the first "cpu MHz"
 * of /proc/cpuinfo, else 0.
 */
double opd_cpu_speed_mhz(void);

#endif
