/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The call graph: the arcs of callgraph files, added up by symbol. An arc is (caller, callee), two
 * symbols of one application, with a count for each class.
 */
#ifndef OPR_CALLGRAPH_H
#define OPR_CALLGRAPH_H

#include "tools/symbols/image_cache.h"
#include "tools/profile/query.h"
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
	/* the stacks that `inclusive` of the rows is of, and their event; 0: there are none */
	uint64_t nr_stacks;
	char stack_event[128];
};

/*
 * Reads the callgraph files of an arranged profile, after its rows were made. A symbol with arcs
 * and without samples becomes a row. Freed with opr_callgraph_free in any case, after the blocks
 * and before the report. 0 or -errno.
 */
int opr_callgraph_make(struct opr_callgraph *graph, struct opr_symbol_report *report, const struct opr_profile *profile,
		       struct opr_image_cache *cache, const struct opr_query *query,
		       const struct opr_words *bases) OP_NONNULL OP_MUST_CHECK;

void opr_callgraph_free(struct opr_callgraph *graph);

#endif
