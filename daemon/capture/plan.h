/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How long a turn takes and how large the rings must be for it. A CPU's events are swapped one after another, CPUs beside each
 * other when several threads swap (doc/ring.md, "How large a ring must be"):
 *
 *   turn  = ceil(CPUs / threads) * events * wait        wait: of one event's swap, measured
 *   need  = samples per second * bytes per sample * (turn + visit interval) * 2
 *
 * A timer has the rate that its period gives. How often any other event happens is not known beforehand: 10,000 samples per
 * second and CPU are assumed for each. The factor of two is for what is not computed: resolving, and a scheduler that is late.
 */
#ifndef OPD_PLAN_H
#define OPD_PLAN_H

#include "libop/base/compiler.h"
#include "libop/events/event.h"

#define OPD_PLAN_EVENT_RATE_HZ 10000u
#define OPD_PLAN_RING_MIN      (128u * 1024)
#define OPD_PLAN_RING_MAX      (8u * 1024 * 1024)
#define OPD_PLAN_SIDEBAND_MIN  (256u * 1024)
#define OPD_PLAN_SIDEBAND_MAX  (1024u * 1024)
#define OPD_PLAN_WAIT_NS       10000000u /* of one event, where it could not be measured */

/* What the machine is like when opd starts. */
struct opd_load {
	size_t nr_cpus; /* online */
	const struct op_event *events;
	size_t nr_events;
	uint64_t wait_ns;
	uint64_t visit_ns;        /* VisitInterval= */
	uint64_t watermark_bytes; /* Watermark=, 0: a quarter of the ring */
	uint32_t callgraph;       /* callers in a sample's call chain, at most; 0: samples have none */
};

struct opd_plan {
	unsigned int nr_threads; /* that swap, the sync thread included: 1 to OPD_SWAPPERS_MAX */
	uint64_t wait_ns, turn_ns;
	uint64_t samples_per_second; /* of one CPU, all events */
	uint64_t need_bytes;         /* what one ring must hold */
	uint64_t ring_bytes;         /* that, as a power of two from OPD_PLAN_RING_MIN to OPD_PLAN_RING_MAX */
	uint64_t sideband_bytes;     /* from OPD_PLAN_SIDEBAND_MIN to OPD_PLAN_SIDEBAND_MAX */
};

/* Pure computation. There is at least one CPU and one event. */
void opd_plan_make(const struct opd_load *load, struct opd_plan *ret_plan) OP_NONNULL;

/*
 * Swaps a pair of its own on that CPU a few times and takes the mean: what the kernel of this host makes one event wait. Takes three
 * grace periods. 0, or -errno of opening or swapping.
 */
int opd_plan_measure_wait(int cpu, uint64_t *ret_wait_ns) OP_NONNULL OP_MUST_CHECK;

#endif
