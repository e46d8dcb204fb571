/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Computes how long a turn takes and how large the rings must be. The events of one CPU are swapped
 * one after another; several threads swap several CPUs at a time (doc/ring.md, "How large a ring
 * must be"):
 *   turn  = ceil(CPUs / threads) * events * wait        wait: for the swap of one event, measured
 *   need  = samples per second * bytes per sample * (turn + visit interval) * 2
 *
 * STACKS has rings of its own, since one of its samples is as large as 200 others. They take
 * StackRingMaxUse= on all CPUs together at most, but OPD_PLAN_RING_MIN each. Where the rate needs
 * more, it falls on all CPUs alike, so that each sample counts as much as any other. Other events
 * that carry stacks (--stacks=event) stay in the ring of the flat samples, which is larger by
 * StackRingMaxUse= then.
 *
 * The rate of a timer is known from its period. Any other event is assumed to happen 10,000 times
 * per second on each CPU. The factor of two covers what is not computed: the time of resolving, and
 * a late scheduler. On a host with many more busy threads than CPUs one swap can take half a
 * second, a turn many seconds. So few CPUs, whose rings take little memory, get up to 16 times
 * that, and four times for stacks.
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
#define OPD_STACK_RING_MAX_USE (64u * 1024 * 1024) /* StackRingMaxUse= where there is no opd.conf */
/* all rings of flat samples, and all of stacks, where they are larger than needed */
#define OPD_PLAN_SPARE_MAX     (8u * 1024 * 1024)
#define OPD_PLAN_WAIT_NS       10000000u /* for one event, where it could not be measured */

/* The machine and the configuration when opd starts. */
struct opd_load {
	size_t nr_cpus; /* online */
	const struct op_event *events;
	size_t nr_events;
	uint64_t wait_ns;
	uint64_t visit_ns;        /* VisitInterval= */
	uint64_t watermark_bytes; /* Watermark=, 0: a quarter of the ring */
	uint32_t callgraph; /* callers in a sample's call chain, at most; 0: samples have none */
	uint64_t ring_bytes; /* RingSize=; 0: auto */
	uint64_t stack_ring_bytes; /* what the memory allows; 0: auto */
	uint64_t wait_bytes; /* in a second, of records of WAIT on a CPU; 0: there are none */
	uint64_t stack_ring_max_use; /* StackRingMaxUse= */
};

struct opd_plan {
	/* threads that swap, with the sync thread: 1 to OPD_SWAPPERS_MAX */
	unsigned int nr_threads;
	uint64_t wait_ns, turn_ns;
	uint64_t samples_per_second; /* of one CPU, for all events */
	uint64_t need_bytes;         /* what one ring must hold, not of STACKS */
	uint64_t fill_ns;            /* in which so much is written, with the margin; 0: never */
	/*
	 * RingSize=, or need_bytes as a power of two, from OPD_PLAN_RING_MIN to OPD_PLAN_RING_MAX
	 */
	uint64_t ring_bytes;
	uint64_t spare_ring_bytes; /* the same or more: what to use where the kernel allows it */
	/* of one ring for STACKS, and what to use where the kernel allows it; 0: no such event */
	uint64_t stack_ring_bytes, spare_stack_ring_bytes;
	/* of STACKS: the rate that the event had, and the rate that fits; 0: no such event */
	uint32_t stack_wanted_hz, stack_rate_hz;
	uint64_t sideband_bytes; /* from OPD_PLAN_SIDEBAND_MIN to OPD_PLAN_SIDEBAND_MAX */
};

/* What a CPU may have of WaitBudget=: twice its share, since CPUs are not busy alike. */
uint64_t opd_plan_wait_bytes(uint64_t budget, size_t nr_cpus);

/* Makes the plan; calls nothing of the system. There is at least one CPU and one event. */
void opd_plan_make(const struct opd_load *load, struct opd_plan *ret_plan) OP_NONNULL;

/* Gives STACKS among the events the rate of the plan. */
void opd_plan_apply(const struct opd_plan *plan, struct op_event *events, size_t nr_events) OP_NONNULL;

/*
 * Measures how long the swap of one event waits on this kernel: the mean of a few swaps of a test
 * pair on that CPU. Takes three grace periods. 0, or -errno of opening or swapping.
 */
int opd_plan_measure_wait(int cpu, uint64_t *ret_wait_ns) OP_NONNULL OP_MUST_CHECK;

#endif
