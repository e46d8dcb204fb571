/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory view (opreport --mem): for each symbol loads, stores, data sources, latencies, TLB and
 * branches. Facts: libop/session/memory_view.h.
 */
#ifndef OPR_MEM_REPORT_H
#define OPR_MEM_REPORT_H

#include "tools/report/writer.h"

#define OPR_MEM_NR_LIMITS 2 /* the threshold applies to the first facts: loads and stores */

struct opr_mem_row {
	uint64_t loads, stores;
	uint64_t sources[OP_IBS_NR_SOURCES]; /* loads by known source */
	uint64_t nr_sources, remote;
	uint64_t nr_latencies, latency_sum; /* of loads that missed the L1 cache, in cycles */
	uint16_t latency_p95;               /* up to one eighth too long */
	/* of known accesses; walks: missed in both TLBs */
	uint64_t tlb_accesses, tlb_misses, tlb_walks;
	uint64_t branches, mispredicted;
};

enum opr_mem_format { OPR_MEM_TEXT, OPR_MEM_CSV, OPR_MEM_JSON };

/* Makes a row from OPR_NR_FACTS counts. */
void opr_mem_row_make(const uint64_t *counts, struct opr_mem_row *ret_row) OP_NONNULL;

/* Writes the rows of a report that was made with facts. 0 or -errno. */
int opr_mem_report_write(const struct opr_symbol_report *report, const struct opr_layout *layout, enum opr_mem_format format,
			 FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
