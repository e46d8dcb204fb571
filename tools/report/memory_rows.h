/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory view: loads, stores, where their data came from and how long it took, TLB and branches, for each symbol. Source:
 * libop/session/memory_view.h; opreport(1), --mem.
 */
#ifndef OPR_MEM_REPORT_H
#define OPR_MEM_REPORT_H

#include "tools/report/writer.h"

#define OPR_MEM_NR_LIMITS 2 /* the facts that a threshold looks at: the first ones, loads and stores */

struct opr_mem_row {
	uint64_t loads, stores;
	uint64_t sources[OP_IBS_NR_SOURCES]; /* of loads whose source is known */
	uint64_t nr_sources, remote;
	uint64_t nr_latencies, latency_sum; /* of loads that missed the L1 cache, cycles */
	uint16_t latency_p95;               /* at most an eighth too long */
	uint64_t tlb_accesses, tlb_misses, tlb_walks; /* where it is known; misses of the L1 DTLB, of both */
	uint64_t branches, mispredicted;
};

enum opr_mem_format { OPR_MEM_TEXT, OPR_MEM_CSV, OPR_MEM_JSON };

/* From OPR_NR_FACTS counts. */
void opr_mem_row_make(const uint64_t *counts, struct opr_mem_row *ret_row) OP_NONNULL;

/* Writes the rows of a report that was made with facts, as they stand. 0 or -errno. */
int opr_mem_report_write(const struct opr_symbol_report *report, const struct opr_layout *layout, enum opr_mem_format format,
			 FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
