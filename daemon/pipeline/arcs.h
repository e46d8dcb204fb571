/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Arcs: from the call chain of a sample to calls. Each call goes from one frame (the caller, at its
 * return address) to the frame inside it. The innermost frame is the sample itself, at its own
 * address: the chain of an IBS sample begins a few instructions later. Addresses are resolved at
 * the time of the sample. A return address stays the address behind the call. The step from user
 * code into the kernel is a call, too.
 *
 * The chain ends at the first address outside all mappings, since a wrong frame pointer leads
 * anywhere from there. Why a chain ended is counted in opd_count.arcs. Calls are no samples, so
 * nothing of this is in the ledger.
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
