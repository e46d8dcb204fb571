/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stacks of a session by time: its timeline as a row of spans of one or more blocks each. */
#ifndef OPR_SPANS_H
#define OPR_SPANS_H

#include "libop/stacks/read.h"

struct opr_time_span {
	uint64_t begin_ns, end_ns; /* since 1970 */
	uint64_t nr_lost;          /* stack samples */
	struct op_stack_tree stacks;
};

/* Zeroed at first; opr_time_spans_free in any case. */
struct opr_time_spans {
	struct opr_time_span *spans; /* as they were written */
	size_t nr_spans, capacity;
};

/*
 * Reads the blocks of [since_ns, until_ns) of the session whose directory is open, so many together
 * that there are at most max_spans spans with at most max_nodes nodes. 0, also with none: nothing
 * is kept of that time, or the timeline is missing, damaged as a whole or of a later version;
 * -ENOMEM.
 */
int opr_time_spans_read(int dir_fd, uint64_t since_ns, uint64_t until_ns, size_t max_spans, size_t max_nodes,
			struct opr_time_spans *ret_spans) OP_NONNULL OP_MUST_CHECK;

void opr_time_spans_free(struct opr_time_spans *spans) OP_NONNULL;

#endif
