/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which native frames are left out of stacks with frames of a runtime (--native). A native frame is
 * the interpreter's own when its image is that of a frame of a runtime in the same stack, or that
 * of the native frame which such a frame lies directly below. One thread.
 */
#ifndef OPR_NATIVES_H
#define OPR_NATIVES_H

#include "libop/stacks/read.h"
#include "tools/profile/query.h"

struct opr_own_images;

/* Zeroed at first; opr_natives_free in any case. */
struct opr_natives {
	enum opr_native native;
	const struct op_stack_tree *tree;
	/* by node: the images whose frames are left out of its stack; NULL: none */
	const struct opr_own_images **own;
	struct opr_own_images *made_last;
	bool is_cut; /* the stacks are so deep that some frames stay that would be left out */
};

/* Looks at all stacks of a tree, which stays where it is. 0 or -ENOMEM. */
int opr_natives_find(struct opr_natives *natives, const struct op_stack_tree *tree,
		     enum opr_native native) OP_NONNULL OP_MUST_CHECK;

/* Whether a frame above `node`, or the node itself, is left out of the stack that ends there. */
bool opr_native_is_left_out(const struct opr_natives *natives, uint32_t frame, uint32_t node) OP_NONNULL;

/* Whether the same frames are left out above both nodes, one of which is above the other. */
static inline bool opr_natives_are_same(const struct opr_natives *natives, uint32_t a, uint32_t b)
{
	return natives->own[a] == natives->own[b];
}

void opr_natives_free(struct opr_natives *natives) OP_NONNULL;

#endif
