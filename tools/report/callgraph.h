/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who called whom: the arcs of callgraph files, added up by symbol. An arc is (caller, callee), each a symbol of one application, with a count for each class.
 */
#ifndef OPR_CALLGRAPH_H
#define OPR_CALLGRAPH_H

#include "tools/profile/image_cache.h"
#include "tools/report/symbol_rows.h"

struct opr_arc {
	size_t caller, callee; /* indices of nodes */
	size_t counts;         /* index of the first of nr_classes in the report's counts */
};

struct opr_callgraph {
	struct opr_symbol_row *nodes; /* the report's rows, in the order they were made in */
	size_t nr_nodes;
	struct opr_arc *by_caller, *by_callee; /* the same arcs, sorted */
	size_t nr_arcs;
};

/* A symbol of the report with those around it. */
struct opr_block {
	const struct opr_symbol_row *row;
	struct opr_symbol_row *callers, *callees; /* fewest calls first; most calls first, the symbol itself among them */
	size_t nr_callers, nr_callees;
	uint64_t *caller_totals, *callee_totals; /* of all of them, also those below the threshold; one for each class */
};

/*
 * Reads the callgraph files of an arranged profile whose symbols the report has already counted. Symbols that have arcs and no samples become rows of the report. To be
 * freed with opr_callgraph_free, after the blocks and before the report, in any case. 0 or -errno.
 */
int opr_callgraph_make(struct opr_callgraph *graph, struct opr_symbol_report *report, const struct opr_profile *profile,
		       struct opr_image_cache *cache, const struct opr_symbol_choice *choice) OP_NONNULL OP_MUST_CHECK;

/* What is around one row; what has less than `percent` of its own total in the first class is left out. 0, to be freed with opr_block_free, or -errno. */
int opr_block_make(struct opr_block *block, const struct opr_callgraph *graph, const struct opr_symbol_report *report,
		   const struct opr_symbol_row *row, double percent, bool long_names) OP_NONNULL OP_MUST_CHECK;

void opr_block_free(struct opr_block *block);
void opr_callgraph_free(struct opr_callgraph *graph);

#endif
