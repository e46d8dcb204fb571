/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Decodes IBS samples from PERF_SAMPLE_RAW. The payload is a capability word of 32 bits and the
 * sampled registers, 64 bits each, little endian, in a fixed order. The capability word and the
 * length tell which registers are there (doc/ibs.md). The functions keep no state and no pointer to
 * the record. Any thread.
 */
#ifndef OP_IBS_H
#define OP_IBS_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/events/ibs_cpu.h"
#include "libop/events/ibs_decoded.h"

/*
 * Decodes one payload of raw_bytes at any alignment. The kind comes from the event, never from the
 * length. OP_IBS_OK, or the reason why not, and *ret_ibs is untouched.
 */
enum op_ibs_reason op_ibs_decode(const struct op_ibs_cpu *cpu, enum op_ibs_kind kind, const void *raw, size_t raw_bytes,
				 struct op_ibs *ret_ibs) OP_NONNULL OP_MUST_CHECK;

/*
 * Finds the payload in a PERF_RECORD_SAMPLE, whole as op_ring_next gives it, of an event with this
 * sample_type: with PERF_SAMPLE_RAW and without PERF_SAMPLE_READ. OP_IBS_OK or OP_IBS_CUT.
 */
enum op_ibs_reason op_ibs_raw(const struct perf_event_header *header, uint64_t sample_type, const void **ret_raw,
			      size_t *ret_raw_bytes) OP_NONNULL OP_MUST_CHECK;

/* Records by the result of decoding. One writer. */
struct op_ibs_counts {
	uint64_t by_reason[OP_IBS_NR_REASONS]; /* [OP_IBS_OK]: decoded */
	uint64_t unknown_caps, missing, old_fetch, redacted;
};

/* Counts one record; `ibs` is used only with OP_IBS_OK. */
void op_ibs_count(struct op_ibs_counts *counts, enum op_ibs_reason reason, const struct op_ibs *ibs) OP_NONNULL;

#endif
