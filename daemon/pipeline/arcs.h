/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Arcs: from the call chain of a sample to calls, each from a frame (the caller, where the call returns to) to the frame inside it. The
 * sample is the innermost, whatever address its chain begins with: that of an IBS sample is where the interrupt came, a few
 * instructions later. Addresses are resolved at the sample's time, as it is itself, and stay what they are: a return address is that of the
 * instruction behind the call. Where the chain goes over from the kernel to user code is a call, too.
 *
 * The chain ends at the first frame that has no place: what is behind it was found by a frame pointer that is none. Why is counted in
 * opd_count.arcs; a call is no sample, and nothing of this is in the ledger.
 *
 * Sync thread only.
 */
#ifndef OPD_ARCS_H
#define OPD_ARCS_H

#include "daemon/resolve/resolver.h"
#include "libop/control/arc_stats.h"
#include "libop/perf/chain.h"
#include "libop/base/compiler.h"

struct opd_count;
struct opd_counted;

/* The callers of a sample, from the inside outwards. */
struct opd_arcs {
	size_t nr_callers;
	struct opd_resolved callers[OP_CHAIN_DEPTH_MAX];
};

/*
 * Resolves the callers of a sample, whose record has its call chain and which was resolved to `of`. What ends the chain is counted
 * in `stats`.
 */
void opd_arcs_follow(struct opd_arcs *arcs, struct opd_resolver *resolver, const struct perf_event_header *header,
		     const struct op_sample *sample, const struct opd_resolved *of, uint64_t stats[OP_NR_ARC_STATS]) OP_NONNULL;

/* Counts the calls for a sample that was counted like this. */
void opd_arcs_count(const struct opd_arcs *arcs, struct opd_count *count, const struct opd_counted *counted) OP_NONNULL;

#endif
