/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which stacks of a tree a report shows, and from which end. One thread. */
#ifndef OPR_ARRANGE_H
#define OPR_ARRANGE_H

#include <regex.h>

#include "tools/profile/query.h"
#include "tools/stacks/call_tree.h"

/* The regular expressions of a query. */
struct opr_stack_patterns {
	const regex_t *focus;  /* only stacks with a function or group that matches; NULL: all */
	const regex_t *ignore; /* none of those; NULL: all */
};

/*
 * Makes `to`, a new tree, from `from`, which must outlive it, and sums it. What is not shown is
 * added up in a node of kind LESS beside its siblings. *ret_nr_left_out: samples of stacks that
 * the patterns leave out. 0 or -ENOMEM.
 */
int opr_call_tree_arrange(struct opr_call_tree *to, struct opr_call_tree *from, const struct opr_query *query,
			  const struct opr_stack_patterns *patterns, uint64_t *ret_nr_left_out) OP_NONNULL OP_MUST_CHECK;

/* The node after `node` when parents come before their children; NULL: it is the last one. */
struct opr_call_node *opr_call_next(const struct opr_call_node *node) OP_NONNULL;

#endif
