/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * PERF_SAMPLE_DATA_SRC as the kernel makes it, with its quirks: doc/ibs.md, "The kernel's data
 * source".
 */
#include "tests/ibs/ibs_text.h"

/* By number what the headers of Linux before 6.6 do not name. */
#define NUMBER(value) ((uint64_t)(value) << PERF_MEM_LVLNUM_SHIFT)
#define NUMBER_UNC    NUMBER(0x08)
#define NUMBER_CXL    NUMBER(0x09)
#define NUMBER_IO     NUMBER(0x0a)
#define HOPS(value)   ((uint64_t)(value) << PERF_MEM_HOPS_SHIFT)
#define SAME_NODE     HOPS(1)
#define OTHER_NODE    (PERF_MEM_S(REMOTE, REMOTE) | HOPS(2))
#define HIT(level)    (PERF_MEM_S(LVL, level) | PERF_MEM_S(LVL, HIT))
#define NOTHING                                                                                                                    \
	(PERF_MEM_S(OP, NA) | PERF_MEM_S(LVL, NA) | PERF_MEM_S(SNOOP, NA) | PERF_MEM_S(LOCK, NA) | PERF_MEM_S(TLB, NA) |           \
	 PERF_MEM_S(LVLNUM, NA))

#define FAMILY_ZEN3 0x19u

enum { DRAM = 3, IO = 7, NR_THREE = 8, NR_FIVE = 32 };

struct level {
	uint64_t value;
	bool by_node; /* RmtNode makes it remote */
	bool has_state;
};

static const struct level three_bits[NR_THREE] = {
	[2] = { HIT(L3) | PERF_MEM_S(LVL, REM_CCE1) | PERF_MEM_S(LVLNUM, ANY_CACHE) | SAME_NODE, false, true },
	[DRAM] = { HIT(LOC_RAM) | PERF_MEM_S(LVLNUM, RAM), true, false },
	[4] = { HIT(REM_CCE2) | PERF_MEM_S(LVLNUM, ANY_CACHE) | OTHER_NODE, false, false },
	[IO] = { HIT(IO) | NUMBER_IO, false, false },
};

static const struct level five_bits[NR_FIVE] = {
	[1] = { HIT(L3) | PERF_MEM_S(LVLNUM, L3), false, true },
	[2] = { HIT(REM_CCE1) | PERF_MEM_S(LVLNUM, ANY_CACHE) | PERF_MEM_S(REMOTE, REMOTE) | SAME_NODE, false, true },
	[DRAM] = { HIT(LOC_RAM) | PERF_MEM_S(LVLNUM, RAM), true, false },
	[5] = { HIT(REM_CCE2) | PERF_MEM_S(LVLNUM, ANY_CACHE) | OTHER_NODE, false, true },
	[6] = { PERF_MEM_S(LVLNUM, PMEM), true, false },
	[IO] = { HIT(IO) | NUMBER_IO, false, false },
	[8] = { NUMBER_CXL, true, false },
};

static bool is_lost(const struct op_ibs_cpu *cpu, const struct op_ibs_op *op)
{
	return cpu->traits & OP_IBS_ERRATUM_1293 && (op->sw_pf || op->dc_miss_no_mab_alloc);
}

/*
 * The row of a load whose data did not come from the caches of the core. It has no value when
 * OP_DATA2 does not name the source.
 */
static struct level beyond(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;
	bool has_five = ibs->caps & OP_IBS_CAP_ZEN4;
	unsigned int code = has_five ? op->data_src_lo | (unsigned int)op->data_src_hi << 3 : op->data_src_lo;
	struct level level = has_five ? five_bits[code] : three_bits[code];

	if (is_lost(cpu, op) || !op->ld_op)
		return five_bits[0];
	if (level.by_node && op->rmt_node)
		level.value = (code == DRAM ? HIT(REM_RAM1) | PERF_MEM_S(LVLNUM, RAM) : level.value) | OTHER_NODE;
	return level;
}

/*
 * The kernel uses the state of the cache line even when it is stale, except for data from the
 * caches of the core.
 */
static uint64_t snoop_bits(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs)
{
	bool is_trusted = cpu->family != FAMILY_ZEN3 || cpu->traits & OP_IBS_HIT_STATE;

	if (is_trusted && beyond(cpu, ibs).has_state && !ibs->op.cache_hit_st)
		return PERF_MEM_S(SNOOP, HITM);
	return PERF_MEM_S(SNOOP, NA);
}

static uint64_t level_bits(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;
	bool is_io = op->data_src_lo == IO && !(ibs->caps & OP_IBS_CAP_ZEN4 && op->data_src_hi) && !is_lost(cpu, op);
	uint64_t level = beyond(cpu, ibs).value, snoop = snoop_bits(cpu, ibs);

	if (op->uc_mem_acc && !is_io)
		return HIT(UNC) | NUMBER_UNC | snoop;
	if (!op->dc_miss)
		return HIT(L1) | PERF_MEM_S(LVLNUM, L1) | PERF_MEM_S(SNOOP, NA);
	if (!op->l2_miss && !is_lost(cpu, op))
		return HIT(L2) | PERF_MEM_S(LVLNUM, L2) | PERF_MEM_S(SNOOP, NA);
	if (level)
		return level | snoop;
	if (op->dc_miss_no_mab_alloc)
		return HIT(LFB) | PERF_MEM_S(LVLNUM, LFB) | snoop;
	return PERF_MEM_S(LVL, NA) | PERF_MEM_S(LVLNUM, NA) | snoop;
}

static uint64_t tlb_bits(const struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;

	if (!op->dc_lin_addr_valid || (ibs->caps & OP_IBS_CAP_DTLB_STATS && !op->dc_phy_addr_valid))
		return PERF_MEM_S(TLB, NA);
	if (!op->dc_l1_tlb_miss)
		return PERF_MEM_S(TLB, L1) | PERF_MEM_S(TLB, HIT);
	return PERF_MEM_S(TLB, L2) | (op->dc_l2_tlb_miss ? PERF_MEM_S(TLB, MISS) : PERF_MEM_S(TLB, HIT));
}

uint64_t op_ibs_data_src(const struct op_ibs_cpu *cpu, const struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;

	if (ibs->kind != OP_IBS_OP || (!op->ld_op && !op->st_op))
		return NOTHING;
	return (op->ld_op ? PERF_MEM_S(OP, LOAD) : PERF_MEM_S(OP, STORE)) | level_bits(cpu, ibs) | tlb_bits(ibs) |
	       (op->dc_locked_op ? PERF_MEM_S(LOCK, LOCKED) : PERF_MEM_S(LOCK, NA));
}
