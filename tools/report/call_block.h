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

/*
 * Makes the block of a row, without callers and callees below `percent` of their total in the first
 * class. 0, and then the caller frees it with opr_block_free, or -errno.
 */
int opr_block_make(struct opr_block *block, const struct opr_callgraph *graph, const struct opr_symbol_report *report,
		   const struct opr_symbol_row *row, double percent, bool long_names) OP_NONNULL OP_MUST_CHECK;

void opr_block_free(struct opr_block *block);

#endif
