/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/memory_view.h"

#define BITS_IN_BUCKET 3u /* of a latency, behind the highest one that is set */
#define STEPS          (1u << BITS_IN_BUCKET)

static_assert(OP_MEM_LATENCY + OP_MEM_NR_BUCKETS <= 1u << OP_MEM_FACT_BITS, "facts fit beside the offset");
static_assert(OP_MEM_NR_COUNTS <= OP_MEM_SOURCE, "counts fit before the sources");
static_assert(OP_MEM_SOURCE + OP_IBS_NR_SOURCES <= OP_MEM_LATENCY, "sources fit before the buckets");

static unsigned int bucket_of(uint16_t latency)
{
	unsigned int exponent;

	if (latency < STEPS)
		return latency;
	exponent = 31 - (unsigned int)__builtin_clz(latency);
	return (exponent - BITS_IN_BUCKET + 1) * STEPS + (latency >> (exponent - BITS_IN_BUCKET) & (STEPS - 1));
}

uint16_t op_memory_view_bucket_last(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < STEPS)
		return (uint16_t)bucket;
	shift = bucket / STEPS - 1;
	return (uint16_t)(((STEPS + bucket % STEPS + 1) << shift) - 1);
}

static const struct {
	enum op_ibs_op_fact fact;
	enum op_memory_view_fact becomes;
} rows[] = {
	{ OP_IBS_O_LOAD, OP_MEM_LOAD },
	{ OP_IBS_O_STORE, OP_MEM_STORE },
	{ OP_IBS_O_TLB_HIT, OP_MEM_TLB_HIT },
	{ OP_IBS_O_TLB_L2_HIT, OP_MEM_TLB_L2_HIT },
	{ OP_IBS_O_TLB_MISS, OP_MEM_TLB_MISS },
	{ OP_IBS_O_BRANCH, OP_MEM_BRANCH },
	{ OP_IBS_O_MISPREDICTED, OP_MEM_MISPREDICTED },
	{ OP_IBS_O_REMOTE, OP_MEM_REMOTE },
};

static_assert(op_array_size(rows) + 3 <= OP_MEM_ADDS_MAX, "room for all, a source and a latency");

size_t op_memory_view_adds(const struct op_ibs *ibs, struct op_memory_view_add ret_adds[OP_MEM_ADDS_MAX])
{
	size_t nr = 0;

	if (ibs->kind != OP_IBS_OP)
		return 0;
	for (size_t i = 0; i < op_array_size(rows); i++)
		if (ibs->facts & OP_IBS_FACT(rows[i].fact))
			ret_adds[nr++] = (struct op_memory_view_add){ (uint8_t)rows[i].becomes, 1 };
	if (ibs->has & OP_IBS_HAS_SOURCE && ibs->facts & OP_IBS_FACT(OP_IBS_O_LOAD))
		ret_adds[nr++] = (struct op_memory_view_add){ (uint8_t)(OP_MEM_SOURCE + ibs->source), 1 };
	if (ibs->has & OP_IBS_HAS_LATENCY) {
		ret_adds[nr++] = (struct op_memory_view_add){ (uint8_t)(OP_MEM_LATENCY + bucket_of(ibs->latency)), 1 };
		if (ibs->latency)
			ret_adds[nr++] = (struct op_memory_view_add){ OP_MEM_LATENCY_SUM, ibs->latency };
	}
	return nr;
}
