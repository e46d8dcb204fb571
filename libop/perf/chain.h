/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The call chain of a sample (PERF_SAMPLE_CALLCHAIN): the sampled address, then the return
 * addresses outwards, with markers that give the mode of the addresses behind them. It stands
 * behind the words of OP_SAMPLE_TYPE. Source: perf_event_open(2), enum perf_callchain_context of
 * <linux/perf_event.h>.
 *
 * A chain points into its record, and its contents are not trusted. Any thread.
 */
#ifndef OP_CHAIN_H
#define OP_CHAIN_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/perf/record.h"

#define OP_CHAIN_DEPTH_MAX 127u /* callers of a sample */

/*
 * The most words of such a chain: their number, the sample, its callers, and up to eight markers.
 */
#define OP_CHAIN_WORDS(depth) (2u + (depth) + 8u)

/* PERF_CONTEXT_USER_DEFERRED of Linux 6.19; older headers do not have it. A cookie follows. */
#define OP_CONTEXT_USER_DEFERRED ((uint64_t)-640)

struct op_chain {
	const uint64_t *words;
	size_t nr_words;
	enum op_cpumode mode; /* of the next addresses */
	/* a later record has the user part, with this cookie (stack_record.h); 0: none */
	uint64_t deferred;
};

struct op_chain_frame {
	uint64_t ip;          /* first the address of the sample, then return addresses */
	enum op_cpumode mode; /* OP_CPUMODE_UNKNOWN behind an unknown marker */
};

/*
 * The chain of a sample of OP_SAMPLE_TYPE and PERF_SAMPLE_CALLCHAIN, taken in `mode`. 0; -EBADMSG:
 * longer than its record.
 */
int op_chain_begin(const struct perf_event_header *header, enum op_cpumode mode,
		   struct op_chain *ret_chain) OP_NONNULL OP_MUST_CHECK;

/* The next frame outwards; false at the end. */
bool op_chain_next(struct op_chain *chain, struct op_chain_frame *ret_frame) OP_NONNULL;

/*
 * kernel.perf_event_max_stack, the most frames that this kernel follows; the default when it cannot
 * be read.
 */
uint32_t op_chain_max_stack(void);

#endif
