/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The call graph: the arcs of callgraph files, added up by symbol. An arc is (caller, callee), two
 * symbols of one application, with a count for each class.
 */
#ifndef OPR_CALLGRAPH_H
#define OPR_CALLGRAPH_H

#include "tools/profile/image_cache.h"
#include "tools/report/symbol_rows.h"

struct opr_arc {
	size_t caller, callee; /* indices of nodes */
	size_t counts;         /* in the counts of the report */
};

struct opr_callgraph {
	/* the rows of the report in the order in which they were made */
	struct opr_symbol_row *nodes;
	size_t nr_nodes;
	struct opr_arc *by_caller, *by_callee; /* the same arcs, sorted */
	size_t nr_arcs;
};

/* A symbol with its callers and callees. */
struct opr_block {
	const struct opr_symbol_row *row;
	/* callers: fewest calls first; callees: most first, with the symbol itself */
	struct opr_symbol_row *callers, *callees;
	size_t nr_callers, nr_callees;
	/* also of those below the threshold; for each class */
	uint64_t *caller_totals, *callee_totals;
};

/*
 * Reads the callgraph files of an arranged profile, after its rows were made. A symbol with arcs
 * and without samples becomes a row. Freed with opr_callgraph_free in any case, after the blocks
 * and before the report. 0 or -errno.
 */
int opr_callgraph_make(struct opr_callgraph *graph, struct opr_symbol_report *report, const struct opr_profile *profile,
		       struct opr_image_cache *cache, const struct opr_symbol_choice *choice) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes the block of a row, without callers and callees below `percent` of their total in the first
 * class. 0, and then the caller frees it with opr_block_free, or -errno.
 */
int opr_block_make(struct opr_block *block, const struct opr_callgraph *graph, const struct opr_symbol_report *report,
		   const struct opr_symbol_row *row, double percent, bool long_names) OP_NONNULL OP_MUST_CHECK;

void opr_block_free(struct opr_block *block);
void opr_callgraph_free(struct opr_callgraph *graph);

#endif
