/* SPDX-License-Identifier: GPL-3.0-or-later */
/* perf record on all CPUs, as the peer of a capture in the same minute. */
#ifndef PERF_PEER_H
#define PERF_PEER_H

#include "libop/base/compiler.h"

/*
 * CPU time of `perf record -a -e cpu-clock -c period_ns` for each sample, with rings of the same
 * size. The start and the end of perf are left out. It measures for the given seconds, or longer
 * when perf empties its rings less than four times in that time. 0; -ENOENT without perf; another
 * -errno.
 */
int perf_peer_ns_per_sample(uint64_t period_ns, unsigned int nr_cpus, size_t ring_bytes, unsigned int seconds, double *ret_ns)
	OP_NONNULL OP_MUST_CHECK;

#endif
