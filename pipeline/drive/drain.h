/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drain: reads the records of rings, counts the samples and the losses. Sync thread only. */
#ifndef OPD_DRAIN_H
#define OPD_DRAIN_H

#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"

/* Reads everything that is in a ring of this CPU now. */
void opd_drain_ring(struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct op_ring *ring) OP_NONNULL;

/*
 * Reads both kinds of rings of a CPU, each record in the order of time: the calls of a stack count
 * as often as there were samples since the stack before.
 */
void opd_drain_in_order(struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct op_ring *flats, struct op_ring *stacks)
	OP_NONNULL;

#endif
