/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * IBS: a sample of a sampler becomes the derived events that were asked for, each counted at the address of the record's own
 * registers, and what the memory view keeps (libop/session/memory_view.h). A record that cannot be decoded is lost, for a reason that is counted.
 *
 * Sync thread only.
 */
#ifndef OPD_IBS_H
#define OPD_IBS_H

#include "libop/base/compiler.h"
#include "libop/events/ibs.h"
#include "libop/perf/record.h"

struct opd_cpu;
struct opd_pipeline;

struct opd_ibs {
	struct op_ibs_cpu cpu; /* that the samples were taken on */
	struct op_ibs_counts counts[OP_IBS_NR_KINDS];
};

/* A sample of the event `index`, which is a SAMPLER and has booked it as received. */
void opd_ibs_take(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header, uint32_t index,
		  struct op_sample *sample) OP_NONNULL;

#endif
