/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/arcs.h"

#include "pipeline/count/count.h"

/* The chain through the kernel is right even where the code is unknown here. */
static bool is_nowhere(const struct opd_resolved *resolved)
{
	return resolved->unattributed && !resolved->is_kernel;
}

/* OP_ARC_stored, or why the chain ends at this frame. */
static enum op_arc_stat resolve_frame(struct opd_resolver *resolver, const struct op_chain_frame *frame, struct op_sample *at,
				      struct opd_resolved *ret_resolved)
{
	if (frame->mode != OP_CPUMODE_USER && frame->mode != OP_CPUMODE_KERNEL)
		return OP_ARC_ended_other;
	at->ip = frame->ip;
	at->mode = frame->mode;
	if (opd_resolve_caller(resolver, at, ret_resolved) < 0)
		return OP_ARC_lost_no_memory;
	return is_nowhere(ret_resolved) ? OP_ARC_ended_no_mapping : OP_ARC_stored;
}

/* Begins a chain, whose first frame is the sample. OP_ARC_stored: the chain can be followed. */
static enum op_arc_stat begin(const struct perf_event_header *header, const struct op_sample *sample, const struct opd_resolved *of,
			      struct op_chain *chain)
{
	struct op_chain_frame frame;

	if (op_chain_begin(header, sample->mode, chain) < 0)
		return OP_ARC_undecodable;
	if (!op_chain_next(chain, &frame))
		return OP_ARC_stored;
	if (is_nowhere(of))
		return OP_ARC_of_nowhere;
	return frame.mode == sample->mode ? OP_ARC_stored : OP_ARC_of_another;
}

void opd_arcs_follow(struct opd_arcs *arcs, struct opd_resolver *resolver, const struct perf_event_header *header,
		     const struct op_sample *sample, const struct opd_resolved *of, uint64_t stats[OP_NR_ARC_STATS])
{
	struct op_sample at = *sample;
	struct op_chain chain;
	struct op_chain_frame frame;
	enum op_arc_stat end = begin(header, sample, of, &chain);

	arcs->nr_callers = 0;
	while (end == OP_ARC_stored && arcs->nr_callers < op_array_size(arcs->callers) && op_chain_next(&chain, &frame)) {
		end = resolve_frame(resolver, &frame, &at, &arcs->callers[arcs->nr_callers]);
		arcs->nr_callers += end == OP_ARC_stored;
	}
	stats[end] += end != OP_ARC_stored;
}

void opd_arcs_count(const struct opd_arcs *arcs, struct opd_count *count, const struct opd_counted *counted)
{
	const struct opd_resolved *callee = counted->resolved;
	struct opd_counted caller = *counted;

	for (size_t i = 0; i < arcs->nr_callers; i++) {
		caller.resolved = &arcs->callers[i];
		opd_count_call(count, &caller, callee);
		callee = &arcs->callers[i];
	}
}
