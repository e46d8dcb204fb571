/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inlined functions as rows of their own, and the functions that they were inlined into. */
#ifndef OPR_INLINED_H
#define OPR_INLINED_H

#include "tools/elf/line_table.h"
#include "tools/report/symbol_rows.h"

/*
 * Splits each row that has details: one row for each chain of inlined functions, and one for the
 * code of the symbol itself. Each detail is in one of them, so the sums stay. Drops rows of which
 * no function is wanted, and their samples. `bases`: of opr_symbol_names_find_bases. 0 or -errno.
 */
int opr_split_inlined(struct opr_symbol_report *report, const struct opr_query *query,
		      const struct opr_words *bases) OP_NONNULL OP_MUST_CHECK;

/* The name of the function that `frame`, in the chain of a row, was inlined into. */
static inline const char *opr_inliner(const struct opr_symbol_row *row, const struct opr_frame *frame)
{
	return frame->outer ? frame->outer->shown : row->symbol->shown;
}

/*
 * Adds the functions that `frame` was inlined into, and where: "f at a.h:12, main at b.c:3", or
 * with the directories of the files. `symbol` is the name of the outermost function.
 */
void opr_inliners_add(struct op_text *text, const struct opr_frame *frame, const char *symbol, bool long_names) OP_NONNULL;

/* Adds the name of the row of an inlined function: "g (inlined by f at a.h:12, main at b.c:3)". */
void opr_inlined_add(struct op_text *text, const struct opr_symbol_row *row, bool long_names) OP_NONNULL;

/* Compares two chains by their contents; either may be NULL. */
int opr_inlined_compare(const struct opr_frame *a, const struct opr_frame *b) OP_MUST_CHECK;

#endif
