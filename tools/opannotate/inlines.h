/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inlined functions behind the samples of a source line. */
#ifndef OPR_ANNOTATE_INLINES_H
#define OPR_ANNOTATE_INLINES_H

#include "tools/report/symbol_rows.h"

/*
 * Code of a line that was inlined: `frame` is its function, in the symbol of `row`. Or a line with
 * a call: `frame` is the function that was inlined there.
 */
struct opr_inline {
	const char *file; /* as the debugging information has it */
	unsigned int line;
	bool is_call;
	const struct opr_frame *frame;
	const struct opr_symbol_row *row;
	size_t counts; /* index of its first count in the counts of opr_inlines */
};

struct opr_inlines {
	const struct opr_symbol_report *report;
	/* by file and line, code before calls, those with the most samples first */
	struct opr_inline *items;
	size_t nr_items, capacity;
	struct opr_counts counts;
};

/*
 * Collects them from a report with details and frames, which must stay as long. To be freed with
 * opr_inlines_free in any case. 0 or -errno.
 */
int opr_inlines_make(struct opr_inlines *inlines, const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds what is known of a line: "inlined by f at a.h:12, main at b.c:3: 30 75.0000; inlines g: 10
 * 25.0000". Adds nothing when that is nothing.
 */
void opr_inlines_describe(struct op_text *text, const struct opr_inlines *inlines, const char *file, unsigned int line) OP_NONNULL;

void opr_inlines_free(struct opr_inlines *inlines);

#endif
