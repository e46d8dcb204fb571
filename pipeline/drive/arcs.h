/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Arcs: the calls in the call chain of a sample. An arc goes from a caller, at its return address,
 * to its callee. The last callee is the sample itself, at its own address, because the chain of an
 * IBS sample begins a few instructions later. Addresses are resolved at the time of the sample. The
 * return address is used as it is: the address after the call. The step from user code into the
 * kernel is a call, too.
 *
 * The chain ends at the first address outside all mappings: after a wrong frame pointer the rest is
 * garbage. opd_count.arcs counts why chains ended. A call is no sample, so no arc is in the ledger.
 * stacks.h has the calls of whole stacks.
 *
 * Sync thread only.
 */
#ifndef OPD_ARCS_H
#define OPD_ARCS_H

#include "libop/base/compiler.h"
#include "libop/control/arc_stats.h"
#include "libop/perf/chain.h"
#include "pipeline/resolve/resolver.h"

struct opd_count;
struct opd_counted;

/* The callers of a sample, innermost first. */
struct opd_arcs {
	size_t nr_callers;
	struct opd_resolved callers[OP_CHAIN_DEPTH_MAX];
};

/* Resolves the callers of a sample, resolved to `of`. Counts in `stats` why the chain ended. */
void opd_arcs_follow(struct opd_arcs *arcs, struct opd_resolver *resolver, const struct perf_event_header *header,
		     const struct op_sample *sample, const struct opd_resolved *of, uint64_t stats[OP_NR_ARC_STATS]) OP_NONNULL;

/* Counts the calls of a sample that is counted as `counted`. */
void opd_arcs_count(const struct opd_arcs *arcs, struct opd_count *count, const struct opd_counted *counted) OP_NONNULL;

#endif
