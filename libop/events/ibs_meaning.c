/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/ibs_meaning.h"

#define PAGE_ENCODINGS 4
#define WIDTH_ENC_MAX  7
#define DATA_SOURCE_IO 7 /* in three bits and in five */

enum { PAGE_ENC_4K, PAGE_ENC_2M, PAGE_ENC_1G };

static void fact(struct op_ibs *ibs, unsigned int bit, bool holds)
{
	ibs->facts |= (uint64_t)holds << bit;
}

static bool is_fact(const struct op_ibs *ibs, unsigned int bit)
{
	return ibs->facts >> bit & 1;
}

static void take_physical(struct op_ibs *ibs, bool is_valid, uint64_t address)
{
	if (!is_valid)
		return;
	if (address) {
		ibs->has |= OP_IBS_HAS_PHYSICAL;
		ibs->physical = address;
	} else {
		ibs->notes |= OP_IBS_NOTE_REDACTED;
	}
}

/* ---- fetches ---- */

static void fetch_page(uint32_t traits, struct op_ibs *ibs)
{
	static const uint8_t plain[PAGE_ENCODINGS] = { OP_IBS_F_PAGE_4K, OP_IBS_F_PAGE_2M, OP_IBS_F_PAGE_1G, OP_IBS_F_ALL };
	static const uint8_t erratum[PAGE_ENCODINGS] = { OP_IBS_F_PAGE_4K, OP_IBS_F_PAGE_16K, OP_IBS_F_PAGE_2M, OP_IBS_F_PAGE_1G };

	bool is_4k = plain[ibs->fetch.l1_tlb_pg_sz] == OP_IBS_F_PAGE_4K, has_erratum = traits & OP_IBS_ERRATUM_1347;

	if (ibs->fetch.phy_addr_valid && (is_4k || !(has_erratum && traits & OP_IBS_GUESSED)))
		fact(ibs, (has_erratum ? erratum : plain)[ibs->fetch.l1_tlb_pg_sz], true);
}

static void fetch_misses(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_fetch *fetch = &ibs->fetch;
	bool is_zen4 = ibs->caps & OP_IBS_CAP_ZEN4;

	if (!(traits & OP_IBS_ERRATUM_1238)) {
		fact(ibs, OP_IBS_F_IC_MISS, fetch->ic_miss);
		fact(ibs, OP_IBS_F_IC_HIT, fetch->comp && !fetch->ic_miss);
	}
	fact(ibs, OP_IBS_F_L2_MISS, traits & OP_IBS_FETCH_L2 && fetch->comp && fetch->l2_miss);
	fact(ibs, OP_IBS_F_L3_MISS, is_zen4 && fetch->comp && fetch->l3_miss);
	fact(ibs, OP_IBS_F_OC_MISS, is_zen4 && fetch->oc_miss);
}

static void fetch_status(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_fetch *fetch = &ibs->fetch;
	bool has_ic_miss = fetch->ic_miss && !(traits & OP_IBS_ERRATUM_1238);
	bool is_killed = !fetch->comp && !has_ic_miss && !fetch->phy_addr_valid && !fetch->l1_tlb_miss && !fetch->l2_tlb_miss;

	fact(ibs, OP_IBS_F_KILLED, is_killed);
	fact(ibs, OP_IBS_F_ATTEMPTED, !is_killed);
	fact(ibs, OP_IBS_F_COMPLETED, fetch->comp);
	fact(ibs, OP_IBS_F_ABORTED, !fetch->comp && !is_killed);
	fact(ibs, OP_IBS_F_ITLB_HIT, fetch->phy_addr_valid && !fetch->l1_tlb_miss);
	fact(ibs, OP_IBS_F_ITLB_L2_HIT, fetch->l1_tlb_miss && !fetch->l2_tlb_miss);
	fact(ibs, OP_IBS_F_ITLB_MISS, fetch->l1_tlb_miss && fetch->l2_tlb_miss);
	fetch_misses(traits, ibs);
	fetch_page(traits, ibs);
	ibs->has |= OP_IBS_HAS_LATENCY;
	ibs->latency = fetch->lat;
	if (fetch->comp && ibs->caps & OP_IBS_CAP_FETCH_EXTD_CTL && !(ibs->notes & (OP_IBS_NOTE_OLD_FETCH | OP_IBS_NOTE_MISSING))) {
		ibs->has |= OP_IBS_HAS_TLB_REFILL;
		ibs->tlb_refill = fetch->itlb_refill_lat;
	}
}

void op_ibs_fetch_meaning(const struct op_ibs_cpu *cpu, struct op_ibs *ibs)
{
	const struct op_ibs_fetch *fetch = &ibs->fetch;

	ibs->has = OP_IBS_HAS_IP;
	ibs->ip = fetch->lin_ad;
	fact(ibs, OP_IBS_F_ALL, true);
	take_physical(ibs, fetch->phy_addr_valid, fetch->phys_ad);
	if (fetch->phy_addr_valid || !(cpu->traits & OP_IBS_FETCH_GATED))
		fetch_status(cpu->traits, ibs);
}

/* ---- ops ---- */

static void op_branch(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;

	fact(ibs, OP_IBS_O_RESYNC, traits & OP_IBS_RESYNC && op->brn_resync);
	fact(ibs, OP_IBS_O_MICROCODE, traits & OP_IBS_MICROCODE && op->microcode);
	if (!op->brn_ret)
		return;
	fact(ibs, OP_IBS_O_BRANCH, true);
	fact(ibs, OP_IBS_O_TAKEN, op->brn_taken);
	fact(ibs, OP_IBS_O_MISPREDICTED, op->brn_misp);
	fact(ibs, OP_IBS_O_RETURN, op->op_return);
	fact(ibs, OP_IBS_O_FUSED, ibs->caps & OP_IBS_CAP_BRN_FUSE && op->brn_fuse);
	if (op->br_target && !(traits & OP_IBS_ERRATUM_717)) {
		ibs->has |= OP_IBS_HAS_TARGET;
		ibs->target = op->br_target;
	}
}

static void op_tlb(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;
	bool is_number = ibs->caps & OP_IBS_CAP_DTLB_STATS, has_1g = traits & OP_IBS_DTLB_1G;
	unsigned int page = op->dc_l1_tlb_hit_2m | (unsigned int)op->dc_l1_tlb_hit_1g << 1;
	bool is_2m = op->dc_l1_tlb_hit_2m, is_1g = has_1g && op->dc_l1_tlb_hit_1g && !is_2m, is_4k = !is_2m && !is_1g;

	if (!op->dc_lin_addr_valid || (is_number && !op->dc_phy_addr_valid))
		return;
	fact(ibs, OP_IBS_O_TLB_HIT, !op->dc_l1_tlb_miss);
	fact(ibs, OP_IBS_O_TLB_L2_HIT, op->dc_l1_tlb_miss && !op->dc_l2_tlb_miss);
	fact(ibs, OP_IBS_O_TLB_MISS, op->dc_l1_tlb_miss && op->dc_l2_tlb_miss);
	if (op->dc_l1_tlb_miss && traits & OP_IBS_L2 && (op->dc_phy_addr_valid || !(ibs->caps & OP_IBS_CAP_ZEN4))) {
		ibs->has |= OP_IBS_HAS_TLB_REFILL;
		ibs->tlb_refill = op->tlb_refill_lat;
	}
	if (is_number) {
		is_4k = page == PAGE_ENC_4K;
		is_2m = page == PAGE_ENC_2M;
		is_1g = page == PAGE_ENC_1G;
	} else if (op->dc_l1_tlb_miss) {
		bool is_l2_1g = has_1g && op->dc_l2_tlb_hit_1g;

		is_2m = op->dc_l2_tlb_hit_2m && !is_l2_1g;
		is_1g = is_l2_1g && !op->dc_l2_tlb_hit_2m;
		is_4k = !is_l2_1g && !op->dc_l2_tlb_hit_2m;
	}
	fact(ibs, OP_IBS_O_PAGE_4K, is_4k);
	fact(ibs, OP_IBS_O_PAGE_2M, is_2m);
	fact(ibs, OP_IBS_O_PAGE_1G, is_1g);
}

static void op_access(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;

	fact(ibs, OP_IBS_O_LOAD, op->ld_op);
	fact(ibs, OP_IBS_O_STORE, op->st_op);
	fact(ibs, OP_IBS_O_PREFETCH, traits & OP_IBS_L2 && op->sw_pf);
	fact(ibs, OP_IBS_O_MISALIGNED, op->dc_mis_acc);
	fact(ibs, OP_IBS_O_LOCKED, op->dc_locked_op);
	fact(ibs, OP_IBS_O_UC, op->uc_mem_acc);
	fact(ibs, OP_IBS_O_WC, op->wc_mem_acc);
	fact(ibs, OP_IBS_O_LOAD_BANK, traits & OP_IBS_LD_BANK && op->ld_bnk_con);
	fact(ibs, OP_IBS_O_STORE_BANK, traits & OP_IBS_ST_BANK && op->st_bnk_con);
	fact(ibs, OP_IBS_O_FORWARD, traits & OP_IBS_FORWARD && op->ld_op && op->st_to_ld_fwd);
	fact(ibs, OP_IBS_O_CANCEL, traits & OP_IBS_CANCEL && op->ld_op && op->st_to_ld_can);
	fact(ibs, OP_IBS_O_STREAMING, ibs->caps & OP_IBS_CAP_STRM_ST && op->st_op && op->strm_st);
	if (traits & OP_IBS_L2 && op->mem_width_enc && op->mem_width_enc <= WIDTH_ENC_MAX)
		ibs->width_bytes = (uint8_t)(1u << (op->mem_width_enc - 1));
	if (op->dc_lin_addr_valid) {
		ibs->has |= OP_IBS_HAS_LINEAR;
		ibs->linear = op->dc_lin_ad;
	}
	take_physical(ibs, op->dc_phy_addr_valid, op->dc_phys_ad);
}

/* Erratum 1293: L2Miss and the fields behind it belong to another access. */
static bool is_miss_lost(uint32_t traits, const struct op_ibs_op *op)
{
	return traits & OP_IBS_ERRATUM_1293 && (op->sw_pf || op->dc_miss_no_mab_alloc);
}

static unsigned int data_source_code(const struct op_ibs *ibs)
{
	unsigned int high = ibs->caps & OP_IBS_CAP_ZEN4 ? ibs->op.data_src_hi : 0;

	return high << 3 | ibs->op.data_src_lo;
}

/*
 * OP_DATA2 is valid only for loads that missed every cache of the core; for other ops it is stale.
 * On CPUs without L2Miss a source other than 0 means that.
 */
static bool has_data2(uint32_t traits, const struct op_ibs_op *op)
{
	if (!op->ld_op || !op->dc_miss || (traits & OP_IBS_L2 && !op->l2_miss))
		return false;
	/* An unknown CPU may have L2Miss or not. */
	if (traits & OP_IBS_GUESSED && !(traits & OP_IBS_L2))
		return false;
	return !is_miss_lost(traits, op) && !(traits & OP_IBS_ERRATUM_484 && op->wc_mem_acc);
}

/*
 * For uncacheable memory the miss bits are valid only for devices, when a valid OP_DATA2 says so.
 */
static bool is_cacheable(uint32_t traits, const struct op_ibs *ibs)
{
	return !ibs->op.uc_mem_acc || (has_data2(traits, &ibs->op) && data_source_code(ibs) == DATA_SOURCE_IO);
}

static void op_caches(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;
	bool has_l2 = traits & OP_IBS_L2 && !is_miss_lost(traits, op);

	if (!is_cacheable(traits, ibs))
		return;
	fact(ibs, OP_IBS_O_DC_MISS, op->dc_miss);
	fact(ibs, OP_IBS_O_DC_HIT, !op->dc_miss);
	fact(ibs, OP_IBS_O_NO_MAB, op->dc_miss_no_mab_alloc && (op->dc_miss || !(traits & OP_IBS_ERRATUM_717)));
	if (!op->dc_miss)
		return;
	if (op->ld_op && !is_fact(ibs, OP_IBS_O_PREFETCH)) {
		ibs->has |= OP_IBS_HAS_LATENCY;
		ibs->latency = op->dc_miss_lat;
	}
	if (!has_l2)
		return;
	fact(ibs, OP_IBS_O_L2_MISS, op->l2_miss);
	fact(ibs, OP_IBS_O_L2_HIT, !op->l2_miss);
	ibs->has |= OP_IBS_HAS_DEPTH;
	ibs->depth = op->open_mem_reqs;
}

/* A data source, its own fact, and further facts. */
struct source_row {
	enum op_ibs_source source;
	uint8_t bit;                       /* enum op_ibs_op_fact; 0: none */
	/* a cache with a state; on another node; RmtNode tells the node */
	bool is_cache, is_far, is_by_node;
};

static const struct source_row three_bits[8] = {
	[1] = { OP_IBS_SOURCE_L3, OP_IBS_O_SRC_L3, false, false, true },
	[2] = { OP_IBS_SOURCE_NODE_CACHE, OP_IBS_O_SRC_NODE_CACHE, true, false, false },
	[3] = { OP_IBS_SOURCE_DRAM, OP_IBS_O_SRC_DRAM, false, false, true },
	[4] = { OP_IBS_SOURCE_FAR_CACHE, OP_IBS_O_SRC_FAR_CACHE, false, true, false },
	[7] = { OP_IBS_SOURCE_IO, OP_IBS_O_SRC_IO, false, false, true },
};

static const struct source_row five_bits[32] = {
	[1] = { OP_IBS_SOURCE_L3, OP_IBS_O_SRC_L3, true, false, false },
	[2] = { OP_IBS_SOURCE_NEAR_CACHE, OP_IBS_O_SRC_NEAR_CACHE, true, false, false },
	[3] = { OP_IBS_SOURCE_DRAM, OP_IBS_O_SRC_DRAM, false, false, true },
	[5] = { OP_IBS_SOURCE_FAR_CACHE, OP_IBS_O_SRC_FAR_CACHE, true, true, false },
	[6] = { OP_IBS_SOURCE_PMEM, OP_IBS_O_SRC_PMEM, false, false, true },
	[7] = { OP_IBS_SOURCE_IO, OP_IBS_O_SRC_IO, false, false, true },
	[8] = { OP_IBS_SOURCE_CXL, OP_IBS_O_SRC_CXL, false, false, true },
	[12] = { OP_IBS_SOURCE_PEER, OP_IBS_O_SRC_PEER, false, false, true },
};

/* The row of a load from beyond the core; source NONE for a code that this generation reserves. */
static struct source_row find_source(uint32_t traits, const struct op_ibs *ibs)
{
	unsigned int code = data_source_code(ibs);
	bool is_remote = traits & OP_IBS_NODE && ibs->op.rmt_node;
	struct source_row row;

	if (ibs->caps & OP_IBS_CAP_ZEN4)
		return five_bits[code];
	row = three_bits[code];
	if ((code == 1 && !(traits & OP_IBS_SRC_L3)) || (code == 4 && !(traits & OP_IBS_SRC_FAR)))
		return three_bits[0];
	/* Before SRC_FAR one code meant the caches of both nodes. */
	if (code == 2 && is_remote && !(traits & OP_IBS_SRC_FAR))
		row = (struct source_row){ OP_IBS_SOURCE_FAR_CACHE, OP_IBS_O_SRC_FAR_CACHE, true, true, false };
	return row;
}

static void op_source_facts(uint32_t traits, const struct source_row *row, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;
	bool is_remote = row->is_far || (row->is_by_node && traits & OP_IBS_NODE && op->rmt_node);

	ibs->has |= OP_IBS_HAS_SOURCE;
	ibs->source = row->source;
	fact(ibs, OP_IBS_O_BEYOND, true);
	fact(ibs, row->bit, true);
	fact(ibs, OP_IBS_O_LOCAL, !is_remote);
	fact(ibs, OP_IBS_O_REMOTE, is_remote);
	fact(ibs, OP_IBS_O_REMOTE_SOCKET, is_remote && ibs->caps & OP_IBS_CAP_STRM_ST && op->rmt_socket);
	fact(ibs, OP_IBS_O_SRC_CACHE_OF_NODE, row->source == OP_IBS_SOURCE_NODE_CACHE || row->source == OP_IBS_SOURCE_NEAR_CACHE);
	if (row->is_cache && traits & OP_IBS_HIT_STATE) {
		fact(ibs, OP_IBS_O_OWNED, op->cache_hit_st);
		fact(ibs, OP_IBS_O_MODIFIED, !op->cache_hit_st);
	}
}

static void op_source(uint32_t traits, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;
	struct source_row row;

	if (!op->ld_op || !is_cacheable(traits, ibs))
		return;
	if (!op->dc_miss || is_fact(ibs, OP_IBS_O_L2_HIT)) {
		ibs->has |= OP_IBS_HAS_SOURCE;
		ibs->source = op->dc_miss ? OP_IBS_SOURCE_L2 : OP_IBS_SOURCE_L1;
		return;
	}
	if (!has_data2(traits, op))
		return;
	row = find_source(traits, ibs);
	if (row.source != OP_IBS_SOURCE_NONE)
		op_source_facts(traits, &row, ibs);
}

void op_ibs_op_meaning(const struct op_ibs_cpu *cpu, struct op_ibs *ibs)
{
	const struct op_ibs_op *op = &ibs->op;

	ibs->has = OP_IBS_HAS_RETIRE;
	ibs->tag_to_ret = op->tag_to_ret;
	ibs->comp_to_ret = op->comp_to_ret;
	if (!(ibs->caps & OP_IBS_CAP_RIP_INVALID && op->rip_invalid)) {
		ibs->has |= OP_IBS_HAS_IP;
		ibs->ip = op->op_rip;
	}
	fact(ibs, OP_IBS_O_ALL, true);
	op_branch(cpu->traits, ibs);
	if (!op->ld_op && !op->st_op)
		return;
	fact(ibs, OP_IBS_O_MEM, true);
	op_access(cpu->traits, ibs);
	op_tlb(cpu->traits, ibs);
	op_caches(cpu->traits, ibs);
	op_source(cpu->traits, ibs);
}
