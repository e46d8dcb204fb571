/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sums of the counters that the pipeline keeps for each event and CPU: the rows of the ledger. They
 * count since the capture was opened or opd_capture_reset_ledger was called. Sync thread only.
 */
#ifndef OPD_EVENT_SUMS_H
#define OPD_EVENT_SUMS_H

#include "libop/base/compiler.h"
#include "libop/control/protocol.h"
#include "pipeline/capture/cpu_rings.h"

/* Losses of all events and CPUs, in samples: without those of WAIT. */
struct opd_losses {
	uint64_t lost[OP_NR_LOSS];
	uint64_t kernel; /* of flat samples */
	uint64_t stacks; /* of STACKS, by the kernel as well */
};

/* One event over all CPUs; index is its number in the capture. */
void opd_sum_event(const struct opd_capture *capture, size_t index, struct op_ledger_event *ret_event) OP_NONNULL;

/* One CPU over all events. */
void opd_sum_cpu(const struct opd_capture *capture, const struct opd_cpu *cpu, struct op_ledger_cpu *ret_sums) OP_NONNULL;

/* Losses over all events and CPUs. */
void opd_sum_losses(const struct opd_capture *capture, struct opd_losses *ret_losses) OP_NONNULL;

#endif
