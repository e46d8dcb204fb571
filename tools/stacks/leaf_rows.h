/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A flat report of stacks: each stack counts for the function that it was taken in. It answers what
 * sample files do not keep apart, as cgroups. One thread.
 */
#ifndef OPR_LEAF_ROWS_H
#define OPR_LEAF_ROWS_H

#include "tools/report/run.h"
#include "tools/stacks/read_stacks.h"

/* What the rows point at. Zeroed at first; opr_leaves_free after the run is freed. */
struct opr_leaves {
	struct opr_call_tree tree;
	struct opr_stack_sums sums;
	char **events; /* names of the classes */
	size_t nr_events;
};

/*
 * Fills classes, files, parts and rows of a run whose query is of sessions only (query.h), as its
 * steps would from sample files. Each event is a class. 0 or -errno after a message.
 */
int opr_leaves_read(struct opr_leaves *leaves, struct opr_run *run) OP_NONNULL OP_MUST_CHECK;

void opr_leaves_free(struct opr_leaves *leaves) OP_NONNULL;

#endif
