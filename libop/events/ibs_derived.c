/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/events/ibs_derived.h"

#include <strings.h>

#define F(fact) OP_IBS_FACT(OP_IBS_F_##fact)
#define O(fact) OP_IBS_FACT(OP_IBS_O_##fact)
#define OLD	.oprofile = true
#define ROW(row_kind, row_number, row_name, text, row_facts, ...)                                                                  \
	{                                                                                                                          \
		.name = (row_name), .description = (text), .number = (row_number), .kind = (row_kind), .facts = (row_facts),       \
		__VA_ARGS__                                                                                                        \
	}
#define FETCH(...) ROW(OP_IBS_FETCH, __VA_ARGS__)
#define OP(...)	   ROW(OP_IBS_OP, __VA_ARGS__)

/* Sample files contain the numbers: a row never changes its number, and no number is reused. */
static const struct op_ibs_event rows[] = {
	FETCH(0xf000, "IBS_FETCH_ALL", "All fetch samples", F(ALL), OLD),
	FETCH(0xf001, "IBS_FETCH_KILLED", "Fetches given up before anything was looked up", F(KILLED), OLD),
	FETCH(0xf002, "IBS_FETCH_ATTEMPTED", "Fetches that were not killed", F(ATTEMPTED), OLD),
	FETCH(0xf003, "IBS_FETCH_COMPLETED", "Fetches that delivered bytes", F(COMPLETED), OLD),
	FETCH(0xf004, "IBS_FETCH_ABORTED", "Fetches that delivered nothing", F(ABORTED), OLD),
	FETCH(0xf005, "IBS_FETCH_ITLB_HITS", "Fetches that hit the L1 ITLB", F(ITLB_HIT), OLD),
	FETCH(0xf006, "IBS_FETCH_L1_ITLB_MISSES_L2_ITLB_HITS", "Fetches that missed the L1 ITLB and hit the L2 ITLB",
	      F(ITLB_L2_HIT), OLD),
	FETCH(0xf007, "IBS_FETCH_L1_ITLB_MISSES_L2_ITLB_MISSES", "Fetches that missed both ITLBs", F(ITLB_MISS), OLD),
	FETCH(0xf008, "IBS_FETCH_ICACHE_MISSES", "Fetches that missed the instruction cache",
	      F(IC_MISS), OLD, .not_traits = OP_IBS_ERRATUM_1238),
	FETCH(0xf009, "IBS_FETCH_ICACHE_HITS", "Completed fetches that hit the instruction cache",
	      F(IC_HIT), OLD, .not_traits = OP_IBS_ERRATUM_1238),
	FETCH(0xf00a, "IBS_FETCH_4K_PAGE", "Fetches from a page of 4 KiB", F(PAGE_4K), OLD),
	FETCH(0xf00b, "IBS_FETCH_2M_PAGE", "Fetches from a page of 2 MiB", F(PAGE_2M), OLD),
	FETCH(0xf00c, "IBS_FETCH_1G_PAGE", "Fetches from a page of 1 GiB", F(PAGE_1G), .oprofile = false),
	FETCH(0xf00e, "IBS_FETCH_LATENCY", "Cycles from the start of a fetch to its end",
	      F(ATTEMPTED), OLD, .amount = OP_IBS_LATENCY),
	FETCH(0xf010, "IBS_FETCH_16K_PAGE", "Fetches from a page of 16 KiB", F(PAGE_16K), .traits = OP_IBS_ERRATUM_1347),
	FETCH(0xf011, "IBS_FETCH_L2_MISSES", "Completed fetches that missed the L2 cache", F(L2_MISS), .traits = OP_IBS_FETCH_L2),
	FETCH(0xf012, "IBS_FETCH_L3_MISSES", "Completed fetches that missed the L3 cache", F(L3_MISS), .caps = OP_IBS_CAP_ZEN4),
	FETCH(0xf013, "IBS_FETCH_OP_CACHE_MISSES", "Fetches that missed the op cache", F(OC_MISS), .caps = OP_IBS_CAP_ZEN4),
	FETCH(0xf014, "IBS_FETCH_ITLB_REFILL_LAT", "Cycles that completed fetches waited for the ITLB",
	      F(COMPLETED), .amount = OP_IBS_TLB_REFILL, .caps = OP_IBS_CAP_FETCH_EXTD_CTL),
	OP(0xf100, "IBS_OP_ALL", "All op samples", O(ALL), OLD),
	OP(0xf101, "IBS_OP_TAG_TO_RETIRE", "Cycles from the tagging of an op to its retirement",
	   O(ALL), OLD, .amount = OP_IBS_TAG_TO_RET),
	OP(0xf102, "IBS_OP_COMP_TO_RET", "Cycles from the completion of an op to its retirement",
	   O(ALL), OLD, .amount = OP_IBS_COMP_TO_RET),
	OP(0xf103, "IBS_OP_BRANCH_RETIRED", "Branches", O(BRANCH), OLD),
	OP(0xf104, "IBS_OP_MISPREDICTED_BRANCH", "Mispredicted branches", O(MISPREDICTED), OLD),
	OP(0xf105, "IBS_OP_TAKEN_BRANCH", "Taken branches", O(TAKEN), OLD),
	OP(0xf106, "IBS_OP_MISPREDICTED_BRANCH_TAKEN", "Mispredicted branches that were taken", O(MISPREDICTED) | O(TAKEN), OLD),
	OP(0xf107, "IBS_OP_RETURNS", "Returns", O(RETURN), OLD),
	OP(0xf108, "IBS_OP_MISPREDICTED_RETURNS", "Mispredicted returns", O(RETURN) | O(MISPREDICTED), OLD),
	OP(0xf109, "IBS_OP_RESYNC", "Ops that made the pipeline start anew", O(RESYNC), OLD, .traits = OP_IBS_RESYNC),
	OP(0xf10a, "IBS_OP_BRANCH_FUSED", "Branches fused with the compare or test before them",
	   O(FUSED), .caps = OP_IBS_CAP_BRN_FUSE),
	OP(0xf10b, "IBS_OP_MICROCODE", "Ops from microcode", O(MICROCODE), .traits = OP_IBS_MICROCODE),
	OP(0xf200, "IBS_OP_ALL_LOAD_STORE", "Loads and stores", O(MEM), OLD),
	OP(0xf201, "IBS_OP_LOAD", "Loads", O(LOAD), OLD),
	OP(0xf202, "IBS_OP_STORE", "Stores", O(STORE), OLD),
	OP(0xf203, "IBS_OP_L1_DTLB_HITS", "Loads and stores that hit the L1 DTLB", O(TLB_HIT), OLD),
	OP(0xf204, "IBS_OP_L1_DTLB_MISS_L2_DTLB_HIT", "Loads and stores that missed the L1 DTLB and hit the L2 DTLB",
	   O(TLB_L2_HIT), OLD),
	OP(0xf205, "IBS_OP_L1_L2_DTLB_MISS", "Loads and stores that missed both DTLBs", O(TLB_MISS), OLD),
	OP(0xf206, "IBS_OP_DATA_CACHE_MISS", "Loads and stores that missed the data cache", O(DC_MISS), OLD),
	OP(0xf207, "IBS_OP_DATA_HITS", "Loads and stores that hit the data cache", O(DC_HIT), OLD),
	OP(0xf208, "IBS_OP_MISALIGNED_DATA_ACC", "Misaligned loads and stores", O(MISALIGNED), OLD),
	OP(0xf209, "IBS_OP_BANK_CONF_LOAD", "Bank conflicts of loads", O(LOAD_BANK), OLD, .traits = OP_IBS_LD_BANK),
	OP(0xf20a, "IBS_OP_BANK_CONF_STORE", "Bank conflicts of stores", O(STORE_BANK), OLD, .traits = OP_IBS_ST_BANK),
	OP(0xf20b, "IBS_OP_FORWARD", "Loads that got their data from a store before them",
	   O(FORWARD), OLD, .traits = OP_IBS_FORWARD),
	OP(0xf20c, "IBS_OP_CANCELLED", "Loads that could not get their data from a store before them",
	   O(CANCEL), OLD, .traits = OP_IBS_CANCEL),
	OP(0xf20d, "IBS_OP_DCUC_MEM_ACC", "Loads and stores of uncacheable memory", O(UC), OLD),
	OP(0xf20e, "IBS_OP_DCWC_MEM_ACC", "Loads and stores of write-combining memory", O(WC), OLD),
	OP(0xf20f, "IBS_OP_LOCKED", "Locked loads and stores", O(LOCKED), OLD),
	OP(0xf210, "IBS_OP_MAB_HIT", "Misses of a line that was on its way already", O(NO_MAB), OLD),
	OP(0xf211, "IBS_OP_L1_DTLB_4K", "Hits of the L1 DTLB, page of 4 KiB", O(TLB_HIT) | O(PAGE_4K), OLD),
	OP(0xf212, "IBS_OP_L1_DTLB_2M", "Hits of the L1 DTLB, page of 2 MiB", O(TLB_HIT) | O(PAGE_2M), OLD),
	OP(0xf213, "IBS_OP_L1_DTLB_1G", "Hits of the L1 DTLB, page of 1 GiB",
	   O(TLB_HIT) | O(PAGE_1G), OLD, .traits = OP_IBS_DTLB_1G),
	OP(0xf215, "IBS_OP_L2_DTLB_4K", "Hits of the L2 DTLB, page of 4 KiB", O(TLB_L2_HIT) | O(PAGE_4K), OLD),
	OP(0xf216, "IBS_OP_L2_DTLB_2M", "Hits of the L2 DTLB, page of 2 MiB", O(TLB_L2_HIT) | O(PAGE_2M), OLD),
	OP(0xf217, "IBS_OP_L2_DTLB_1G", "Hits of the L2 DTLB, page of 1 GiB",
	   O(TLB_L2_HIT) | O(PAGE_1G), OLD, .traits = OP_IBS_DTLB_1G),
	OP(0xf219, "IBS_OP_DC_LOAD_LAT", "Cycles that loads waited for a line",
	   O(LOAD) | O(DC_MISS), OLD, .amount = OP_IBS_LATENCY),
	OP(0xf21a, "IBS_OP_SW_PREFETCH", "Software prefetches", O(PREFETCH), .traits = OP_IBS_L2),
	OP(0xf21b, "IBS_OP_L2_MISS", "Loads and stores that missed the data cache and the L2 cache",
	   O(L2_MISS), .traits = OP_IBS_L2),
	OP(0xf21c, "IBS_OP_L2_HIT", "Loads and stores that missed the data cache and hit the L2 cache",
	   O(L2_HIT), .traits = OP_IBS_L2),
	OP(0xf21d, "IBS_OP_TLB_REFILL_LAT", "Cycles that loads and stores waited for the DTLB",
	   O(MEM), .amount = OP_IBS_TLB_REFILL, .traits = OP_IBS_L2),
	OP(0xf21e, "IBS_OP_MLP_DEPTH", "Misses outstanding at the end of a miss, added up",
	   O(DC_MISS), .amount = OP_IBS_DEPTH, .traits = OP_IBS_L2),
	OP(0xf21f, "IBS_OP_STREAMING_STORE", "Streaming stores", O(STREAMING), .caps = OP_IBS_CAP_STRM_ST),
	OP(0xf240, "IBS_OP_NB_LOCAL_ONLY", "Loads from beyond the core, from this node", O(LOCAL), OLD),
	OP(0xf241, "IBS_OP_NB_REMOTE_ONLY", "Loads from beyond the core, from another node", O(REMOTE), OLD, .traits = OP_IBS_NODE),
	OP(0xf242, "IBS_OP_NB_LOCAL_L3", "Loads from the L3 cache", O(LOCAL) | O(SRC_L3), OLD),
	OP(0xf243, "IBS_OP_NB_LOCAL_CACHE", "Loads from the cache of another core of this node",
	   O(LOCAL) | O(SRC_CACHE_OF_NODE), OLD),
	OP(0xf244, "IBS_OP_NB_REMOTE_CACHE", "Loads from a cache of another node",
	   O(REMOTE) | O(SRC_FAR_CACHE), OLD, .traits = OP_IBS_NODE),
	OP(0xf245, "IBS_OP_NB_LOCAL_DRAM", "Loads from memory of this node", O(LOCAL) | O(SRC_DRAM), OLD),
	OP(0xf246, "IBS_OP_NB_REMOTE_DRAM", "Loads from memory of another node",
	   O(REMOTE) | O(SRC_DRAM), OLD, .traits = OP_IBS_NODE),
	OP(0xf247, "IBS_OP_NB_LOCAL_OTHER", "Loads from devices of this node", O(LOCAL) | O(SRC_IO), OLD),
	OP(0xf248, "IBS_OP_NB_REMOTE_OTHER", "Loads from devices of another node",
	   O(REMOTE) | O(SRC_IO), OLD, .traits = OP_IBS_NODE),
	OP(0xf249, "IBS_OP_NB_CACHE_MODIFIED", "Loads from another cache, the line was modified there",
	   O(MODIFIED), OLD, .traits = OP_IBS_HIT_STATE),
	OP(0xf24a, "IBS_OP_NB_CACHE_OWNED", "Loads from another cache, the line was owned there",
	   O(OWNED), OLD, .traits = OP_IBS_HIT_STATE),
	OP(0xf24b, "IBS_OP_NB_LOCAL_CACHE_LAT", "Cycles that loads waited for data of this node",
	   O(LOCAL), OLD, .amount = OP_IBS_LATENCY),
	OP(0xf24c, "IBS_OP_NB_REMOTE_CACHE_LAT", "Cycles that loads waited for data of another node",
	   O(REMOTE), OLD, .amount = OP_IBS_LATENCY, .traits = OP_IBS_NODE),
	OP(0xf260, "IBS_OP_SRC_L1", "Loads that hit the L1 cache", O(LOAD) | O(DC_HIT), .oprofile = false),
	OP(0xf261, "IBS_OP_SRC_L2", "Loads from the L2 cache", O(LOAD) | O(L2_HIT), .traits = OP_IBS_L2),
	OP(0xf262, "IBS_OP_SRC_L3", "Loads from the L3 cache or a core below it", O(SRC_L3), .caps = OP_IBS_CAP_ZEN4,
	   .traits_instead = OP_IBS_SRC_L3),
	OP(0xf263, "IBS_OP_SRC_NODE_CACHE", "Loads from the L3 cache or another core of this node, before Zen 4",
	   O(SRC_NODE_CACHE), .oprofile = false),
	OP(0xf264, "IBS_OP_SRC_NEAR_CCX", "Loads from another core complex of this node",
	   O(SRC_NEAR_CACHE), .caps = OP_IBS_CAP_ZEN4),
	OP(0xf265, "IBS_OP_SRC_FAR_CCX", "Loads from a cache of another node", O(SRC_FAR_CACHE), .traits = OP_IBS_NODE),
	OP(0xf266, "IBS_OP_SRC_LOCAL_DRAM", "Loads from memory of this node", O(LOCAL) | O(SRC_DRAM), .oprofile = false),
	OP(0xf267, "IBS_OP_SRC_REMOTE_DRAM", "Loads from memory of another node", O(REMOTE) | O(SRC_DRAM), .traits = OP_IBS_NODE),
	OP(0xf268, "IBS_OP_SRC_LOCAL_PMEM", "Loads from persistent memory of this node",
	   O(LOCAL) | O(SRC_PMEM), .caps = OP_IBS_CAP_ZEN4),
	OP(0xf269, "IBS_OP_SRC_REMOTE_PMEM", "Loads from persistent memory of another node",
	   O(REMOTE) | O(SRC_PMEM), .caps = OP_IBS_CAP_ZEN4),
	OP(0xf26a, "IBS_OP_SRC_LOCAL_CXL", "Loads from extension memory (CXL) of this node",
	   O(LOCAL) | O(SRC_CXL), .caps = OP_IBS_CAP_ZEN4),
	OP(0xf26b, "IBS_OP_SRC_REMOTE_CXL", "Loads from extension memory (CXL) of another node",
	   O(REMOTE) | O(SRC_CXL), .caps = OP_IBS_CAP_ZEN4),
	OP(0xf26c, "IBS_OP_SRC_IO", "Loads from devices", O(SRC_IO), .oprofile = false),
	OP(0xf26d, "IBS_OP_SRC_PEER", "Loads from coherent memory of another type of processor",
	   O(SRC_PEER), .caps = OP_IBS_CAP_ZEN4),
	OP(0xf26e, "IBS_OP_SRC_REMOTE_SOCKET", "Loads from another socket", O(REMOTE_SOCKET), .caps = OP_IBS_CAP_STRM_ST),
};

const struct op_ibs_event *op_ibs_event(size_t index)
{
	return index < op_array_size(rows) ? &rows[index] : NULL;
}

static const struct op_ibs_event *find(const char *name, size_t length)
{
	for (size_t i = 0; i < op_array_size(rows); i++)
		if (!strncasecmp(rows[i].name, name, length) && !rows[i].name[length])
			return &rows[i];
	return NULL;
}

const struct op_ibs_event *op_ibs_event_find(const char *name)
{
	return find(name, strlen(name));
}

/* "_2" and so on. */
static bool is_repetition(const char *end)
{
	size_t nr_digits = *end == '_' ? strspn(end + 1, "0123456789") : 0;

	return nr_digits && !end[1 + nr_digits] && end[1] != '0' && (nr_digits > 1 || end[1] > '1');
}

const struct op_ibs_event *op_ibs_event_of_session(const char *name)
{
	const struct op_ibs_event *event = op_ibs_event_find(name);
	const char *end = strrchr(name, '_');

	if (!event && end && is_repetition(end))
		event = find(name, (size_t)(end - name));
	return event;
}

bool op_ibs_event_is_there(const struct op_ibs_event *event, const struct op_ibs_cpu *cpu, uint32_t caps)
{
	uint32_t need = event->kind == OP_IBS_FETCH ? OP_IBS_CAP_FETCH : OP_IBS_CAP_OP;

	if (!(cpu->traits & event->traits_instead))
		need |= event->caps;
	return (caps & need) == need && (cpu->traits & event->traits) == event->traits && !(cpu->traits & event->not_traits);
}

static uint32_t amount(enum op_ibs_amount what, const struct op_ibs *ibs)
{
	switch (what) {
	case OP_IBS_LATENCY:
		return ibs->latency;
	case OP_IBS_TLB_REFILL:
		return ibs->tlb_refill;
	case OP_IBS_TAG_TO_RET:
		return ibs->tag_to_ret;
	case OP_IBS_COMP_TO_RET:
		return ibs->comp_to_ret;
	case OP_IBS_DEPTH:
		return ibs->depth;
	case OP_IBS_SAMPLES:
	case OP_IBS_NR_AMOUNTS:
		break;
	}
	return 1;
}

uint32_t op_ibs_event_adds(const struct op_ibs_event *event, const struct op_ibs *ibs)
{
	if (event->kind != ibs->kind || (ibs->facts & event->facts) != event->facts)
		return 0;
	return amount(event->amount, ibs);
}

const char *op_ibs_event_unit(const struct op_ibs_event *event)
{
	static const char *const units[OP_IBS_NR_AMOUNTS] = {
		[OP_IBS_SAMPLES] = "samples",	 [OP_IBS_LATENCY] = "cycles",	  [OP_IBS_TLB_REFILL] = "cycles",
		[OP_IBS_TAG_TO_RET] = "cycles", [OP_IBS_COMP_TO_RET] = "cycles", [OP_IBS_DEPTH] = "misses",
	};

	return units[event->amount];
}

const char *op_ibs_sampler_name(enum op_ibs_kind kind)
{
	return kind == OP_IBS_FETCH ? "ibs_fetch" : "ibs_op";
}

const struct op_ibs_unit_mask *op_ibs_unit_mask(enum op_ibs_kind kind, size_t index)
{
	static const struct op_ibs_unit_mask fetch[] = { { 0, "none", 0 } };
	static const struct op_ibs_unit_mask op[] = {
		{ 1, "An op is tagged every so many dispatched ops", OP_IBS_CAP_OP_CNT },
		{ 0, "An op is tagged every so many cycles", 0 },
	};

	if (kind == OP_IBS_FETCH)
		return index < op_array_size(fetch) ? &fetch[index] : NULL;
	return index < op_array_size(op) ? &op[index] : NULL;
}
