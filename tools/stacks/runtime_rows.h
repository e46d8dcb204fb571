/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions of runtimes with the source lines that have samples, as rows for opannotate and the
 * page. A stack counts for the line of its innermost function of a runtime, also while that runs
 * native code. One thread.
 */
#ifndef OPR_RUNTIME_ROWS_H
#define OPR_RUNTIME_ROWS_H

#include "tools/report/symbol_rows.h"
#include "tools/stacks/read_stacks.h"

/* Zeroed at first; opr_runtime_rows_free in any case. */
struct opr_runtime_rows {
	struct opr_call_tree tree;
	struct opr_stack_sums sums;
	/*
	 * A class for each event of the sums. A row has no symbols; its name is that of a function
	 * of the tree, its image the word of the runtime. The address of a detail is the line. The
	 * totals are those of all stacks.
	 */
	struct opr_symbol_report report;
};

/* Reads the stacks of a selection. None is no error. 0 or -errno after a message. */
int opr_runtime_rows_read(struct opr_runtime_rows *rows, struct opr_selection *selection,
			  const struct opr_query *query) OP_NONNULL OP_MUST_CHECK;

void opr_runtime_rows_free(struct opr_runtime_rows *rows) OP_NONNULL;

#endif
