/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the stack stores of sessions (opd-stacks(5)) to a tree of named functions. Groups are below
 * the root, their stacks below them, the outermost caller first. With several events, each event
 * has its groups below it. Images and applications have their full names: short_images.h.
 */
#ifndef OPR_READ_STACKS_H
#define OPR_READ_STACKS_H

#include "tools/profile/selection.h"
#include "tools/stacks/call_tree.h"
#include "tools/stacks/contexts.h"
#include "tools/stacks/view.h"
#include "tools/symbols/symbols.h"

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
