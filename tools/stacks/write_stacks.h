/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a tree of calls: text, folded, JSON or CSV. The forms are described in opreport(1). */
#ifndef OPR_WRITE_STACKS_H
#define OPR_WRITE_STACKS_H

#include "tools/stacks/read_stacks.h"

enum opr_stack_form { OPR_STACKS_TEXT, OPR_STACKS_FOLDED, OPR_STACKS_JSON, OPR_STACKS_CSV };

struct opr_stack_report {
	const struct opr_call_tree *tree; /* arranged */
	const struct opr_stack_sums *sums;
	const struct opr_recorded *recorded;
	uint64_t nr_left_out; /* by --focus and --ignore */
	enum opr_view view;
	bool invert, no_header;
	bool short_cgroups; /* in text: groups as container_name.h makes them */
	size_t name_bytes; /* longer names lose arguments of templates in text; 0: never */
};

/* Adds lines about where, when, how many samples, and what is missing. */
void opr_stacks_describe(const struct opr_stack_report *report, struct op_text *text) OP_NONNULL;

/* The same in one line, with semicolons. `text` is empty before. */
void opr_stacks_describe_line(const struct opr_stack_report *report, struct op_text *text) OP_NONNULL;

void opr_stacks_write(const struct opr_stack_report *report, enum opr_stack_form form, FILE *out) OP_NONNULL;

#endif
