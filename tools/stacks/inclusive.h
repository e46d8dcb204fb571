/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The inclusive counts of a call graph: how many stack samples have a function somewhere. A
 * function that is several times in a stack, by recursion, counts once. Arcs cannot tell: they
 * count each call.
 */
#ifndef OPR_INCLUSIVE_H
#define OPR_INCLUSIVE_H

#include "tools/profile/selection.h"
#include "tools/report/callgraph.h"
#include "tools/symbols/symbols.h"

/*
 * Sets `inclusive` of all rows of the report and of the graph, and what they are counts of. They
 * are of STACKS, else of the event of the first class. Without stacks nr_stacks stays 0. 0 or
 * -errno after a message.
 */
int opr_inclusive_count(struct opr_callgraph *graph, struct opr_symbol_report *report, struct opr_selection *selection,
			const struct opr_query *query) OP_NONNULL OP_MUST_CHECK;

#endif
