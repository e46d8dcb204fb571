/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the stack stores of sessions (opd-stacks(5)) to a tree of named functions. Groups are below
 * the root, their stacks below them, the outermost caller first. With several events, each event
 * has its groups below it. Images and applications have their full names: short_images.h.
 */
#ifndef OPR_READ_STACKS_H
#define OPR_READ_STACKS_H

#include "libop/session/stack_ends.h"
#include "tools/profile/selection.h"
#include "tools/stacks/call_tree.h"
#include "tools/stacks/contexts.h"
#include "tools/symbols/symbols.h"

/* What became of the stack samples that are in the tree. */
struct opr_stack_sums {
	uint64_t nr_samples; /* in the tree */
	uint64_t ends[OP_NR_STACK_ENDS];
	/* of the sessions as a whole, by their ledgers; 0: they have none */
	uint64_t nr_received, nr_lost;
	uint64_t nr_unselected;  /* in the stores, but not in the tree */
	struct opr_words events; /* in the tree, "STACKS:99:0" */
	struct opr_words images; /* names of those in the tree, some more than once */
	size_t nr_put_off;       /* images whose symbols there was no time to read */
};

/*
 * Reads the stores of the selected sessions. 0; -ENOENT with a message: they have no stacks, or the
 * specification selects none, unless they are optional; another -errno after a message. The sums
 * are freed with opr_stack_sums_free in any case. Where the profile has earlier counts, only newer
 * samples are in the tree, and none is no error; the sums have all events, also those without.
 *
 * `contexts`: NULL, or the list that gets all contexts. Each is a group below the root then, named
 * by its index, and there are no nodes for events and ends.
 */
int opr_stacks_read(struct opr_call_tree *tree, struct opr_stack_sums *sums, struct opr_selection *selection,
		    const struct opr_query *query, struct opr_stack_contexts *contexts) OP_NONNULL_ARGS(1, 2, 3, 4) OP_MUST_CHECK;

void opr_stack_sums_free(struct opr_stack_sums *sums) OP_NONNULL;

#endif
