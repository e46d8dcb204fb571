/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory view: what IBS_OP samples say of memory and branches at an address, beyond what the derived events count. It lies
 * below mem/ of a session, in files named and made like sample files (doc/format.md, "mem/"), with another key:
 *
 *   key = offset << 8 | fact      offset as in a sample file, its upper eight bits those of a sign
 *
 * and a value that counts samples, for OP_MEM_LATENCY_SUM cycles. What did not occur takes no room.
 */
#ifndef OP_MEM_H
#define OP_MEM_H

#include "libop/events/ibs.h"

#define OP_MEM_DIR        "mem"
#define OP_MEM_FACT_BITS  8
#define OP_MEM_ADDS_MAX   11 /* of one sample */
#define OP_MEM_NR_BUCKETS 112u

/* The lower eight bits of a key. The numbers are in files: they are kept for ever. */
enum op_memory_view_fact {
	OP_MEM_LOAD,
	OP_MEM_STORE,
	OP_MEM_TLB_HIT,     /* of the L1 DTLB; this and the next two: where it is known */
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

/* What a sample adds; how many there are, at most OP_MEM_ADDS_MAX. 0 for a fetch. */
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
 * Buckets of latencies: one for each up to OP_MEM_EXACT_LATENCY cycles, then eight for each doubling, so that none is wider than an eighth of what is
 * in it. The last latency of a bucket stands for all of it.
 */
#define OP_MEM_EXACT_LATENCY 15u
unsigned int op_memory_view_bucket(uint16_t latency) OP_MUST_CHECK;
uint16_t op_memory_view_bucket_last(unsigned int bucket) OP_MUST_CHECK;

#endif
