/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * IBS: one record becomes samples of the derived events that the user chose, and entries of the
 * memory view (libop/session/memory_view.h). All are counted at the address in the registers of the
 * record. Sync thread only.
 */
#ifndef OPD_IBS_H
#define OPD_IBS_H

#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"

/* Takes a sample of the event `index`, a sampler, which has booked the sample as received. */
void opd_ibs_take(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header, uint32_t index,
		  struct op_sample *sample) OP_NONNULL;

#endif
