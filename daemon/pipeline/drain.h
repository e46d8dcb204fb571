/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Drain: the records of one CPU's rings, through resolve into count, with the ledger kept on the way.
 *
 * Sync thread only.
 */
#ifndef OPD_DRAIN_H
#define OPD_DRAIN_H

#include "daemon/pipeline/arcs.h"
#include "daemon/capture/cpu_rings.h"
#include "daemon/count/count.h"
#include "daemon/pipeline/ibs_sample.h"
#include "daemon/resolve/resolver.h"
#include "libop/base/compiler.h"

/* The last sample of the ring that is read, for those that differ from it in their time alone: a hot loop is where a hot loop was. */
struct opd_repeat {
	struct op_sample sample;
	struct opd_event *event; /* NULL: the next one has to be resolved */
	uint32_t nr;             /* of those, that resolving was not told of yet */
};

struct opd_pipeline {
	struct opd_capture capture;
	struct opd_resolver resolver;
	struct opd_count count;
	struct opd_repeat repeat;
	struct opd_cookie_file cookie_file;
	struct opd_ibs ibs;
	struct opd_arcs arcs; /* of the last sample */
};

/* Everything that is in the ring now. */
void opd_drain_ring(struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct op_ring *ring) OP_NONNULL;

#endif
