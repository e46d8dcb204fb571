/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory view: facts of IBS_OP samples about memory and branches at an address, beyond the
 * derived events. It lies in mem/ of a session, in files with the names and the form of sample
 * files (doc/format.md, "mem/"). Only the key differs:
 *
 *   key = offset << 8 | fact      the offset as in a sample file, sign-extended in 56 bits
 *
 * The value is a number of samples; for OP_MEM_LATENCY_SUM it is a number of cycles.
 */
#ifndef OP_MEM_H
#define OP_MEM_H

#include "libop/events/ibs.h"

#define OP_MEM_DIR        "mem"
#define OP_MEM_FACT_BITS  8
#define OP_MEM_ADDS_MAX   11 /* of one sample */
#define OP_MEM_NR_BUCKETS 112u

/* The lower eight bits of a key. The numbers are in files and never change. */
enum op_memory_view_fact {
	OP_MEM_LOAD,
	OP_MEM_STORE,
	OP_MEM_TLB_HIT,     /* of the L1 DTLB; this and the next two only where known */
	OP_MEM_TLB_L2_HIT,
	OP_MEM_TLB_MISS,    /* of both */
	OP_MEM_BRANCH,
	OP_MEM_MISPREDICTED,
	OP_MEM_LATENCY_SUM, /* of loads that missed the L1 cache: cycles */
	OP_MEM_REMOTE,      /* loads from another node */
	OP_MEM_NR_COUNTS,
	OP_MEM_SOURCE = 32,   /* + enum op_ibs_source, of loads */
	OP_MEM_LATENCY = 128, /* + bucket: loads that missed the L1 cache, by their latency */
};

struct op_memory_view_add {
	uint8_t fact;
	uint32_t amount;
};

/* Gives what a sample adds to which facts, and returns how many facts. 0 for a fetch. */
size_t op_memory_view_adds(const struct op_ibs *ibs, struct op_memory_view_add ret_adds[OP_MEM_ADDS_MAX]) OP_NONNULL OP_MUST_CHECK;

static inline uint64_t op_memory_view_key(uint64_t offset, uint8_t fact)
{
	return offset << OP_MEM_FACT_BITS | fact;
}

static inline uint64_t op_memory_view_offset(uint64_t key)
{
	return (uint64_t)((int64_t)key >> OP_MEM_FACT_BITS);
}

/*
 * The last latency of a bucket, as which reports show it. There is a bucket for each latency up to
 * OP_MEM_EXACT_LATENCY cycles, then eight for each doubling: no bucket is wider than an eighth of
 * its latencies.
 */
#define OP_MEM_EXACT_LATENCY 15u
uint16_t op_memory_view_bucket_last(unsigned int bucket) OP_MUST_CHECK;

#endif
