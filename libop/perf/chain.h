/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The call chain of a sample, PERF_SAMPLE_CALLCHAIN: addresses from the sampled one outwards, with markers that say of what kind
 * those are that follow. It stands behind the words of OP_SAMPLE_TYPE. Source: perf_event_open(2), enum perf_callchain_context of
 * <linux/perf_event.h>.
 *
 * Nothing is copied: a chain is a part of the record, and what it holds is anybody's. No function here allocates or has a state;
 * all may run beside all.
 */
#ifndef OP_CHAIN_H
#define OP_CHAIN_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/perf/record.h"

#define OP_CHAIN_DEPTH_MAX 127u /* callers of a sample that are followed at most */

/* Words that the kernel writes of such a chain at most: how many there are, the sample, its callers, and the markers. */
#define OP_CHAIN_WORDS(depth) (2u + (depth) + 8u)

struct op_chain {
	const uint64_t *words;
	size_t nr_words;
	enum op_cpumode mode; /* of the addresses that come next */
};

struct op_chain_frame {
	uint64_t ip;          /* of the first frame the sample's own address, of the others where a call returns to */
	enum op_cpumode mode; /* OP_CPUMODE_UNKNOWN behind a marker that is not known */
};

/*
 * The chain of a sample that was taken in `mode`, with PERF_SAMPLE_CALLCHAIN beside OP_SAMPLE_TYPE. 0; -EBADMSG: it is longer than
 * its record.
 */
int op_chain_begin(const struct perf_event_header *header, enum op_cpumode mode,
		   struct op_chain *ret_chain) OP_NONNULL OP_MUST_CHECK;

/* The next frame, from the sample outwards; false at the end. */
bool op_chain_next(struct op_chain *chain, struct op_chain_frame *ret_frame) OP_NONNULL;

/* kernel.perf_event_max_stack: frames that the kernel of this host follows at most; its default where that is not known. */
uint32_t op_chain_max_stack(void);

#endif
