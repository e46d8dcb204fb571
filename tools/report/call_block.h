/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The block of a symbol in a call graph: its callers above it, its callees below it. */
#ifndef OPR_CALL_BLOCK_H
#define OPR_CALL_BLOCK_H

#include "tools/report/callgraph.h"

struct opr_block {
	const struct opr_symbol_row *row;
	/* callers: fewest calls first; callees: most first, with the symbol itself */
	struct opr_symbol_row *callers, *callees;
	size_t nr_callers, nr_callees;
	/* also of those below the threshold; for each class */
	uint64_t *caller_totals, *callee_totals;
};

/* Which callers and callees a block shows. */
struct opr_block_limits {
	double percent; /* at least, of their total in the first class */
	size_t top;     /* so many at most, those with most calls; SIZE_MAX: all */
};

/*
 * Makes the block of a row. 0, and then the caller frees it with opr_block_free, or -errno.
 */
int opr_block_make(struct opr_block *block, const struct opr_callgraph *graph, const struct opr_symbol_report *report,
		   const struct opr_symbol_row *row, const struct opr_block_limits *limits,
		   bool long_names) OP_NONNULL OP_MUST_CHECK;

void opr_block_free(struct opr_block *block);

#endif
