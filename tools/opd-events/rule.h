/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opd may ask for. */
#ifndef OPE_RULE_H
#define OPE_RULE_H

#include "libop/base/compiler.h"
#include "libop/events/event_request.h"

/* Numbers of the samplers of IBS on this host, which differ from kernel to kernel; 0: none. */
struct ope_samplers {
	uint32_t types[2];
};

void ope_samplers_read(struct ope_samplers *ret_samplers) OP_NONNULL;

/*
 * True for an event of a CPU that opd uses: a counter, a software event, a tracepoint or a sampler
 * of IBS, with what opd wants to know of a sample. Everything else is refused: breakpoints, probes,
 * branch records, AUX areas, the data of tracepoints, physical addresses, and each field that opd
 * leaves 0, also one that a later kernel has.
 */
bool ope_rule_allows(const struct ope_samplers *samplers, const struct op_event_request *request) OP_NONNULL OP_MUST_CHECK;

#endif
