/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory view (opreport --mem): for each symbol loads, stores, data sources, latencies, TLB and
 * branches. Facts: libop/session/memory_view.h.
 */
#ifndef OPR_MEM_REPORT_H
#define OPR_MEM_REPORT_H

#include "tools/report/writer.h"

#define OPR_MEM_NR_LIMITS 2 /* the threshold applies to the first facts: loads and stores */

enum opr_mem_format { OPR_MEM_TEXT, OPR_MEM_CSV, OPR_MEM_JSON };

/* Writes the rows of a report that was made with facts. 0 or -errno. */
int opr_mem_report_write(const struct opr_symbol_report *report, const struct opr_layout *layout, enum opr_mem_format format,
			 FILE *out) OP_NONNULL OP_MUST_CHECK;

#endif
