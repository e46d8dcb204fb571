/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a store keeps apart above the frames of a stack, and how reports name it. One thread. */
#ifndef OPR_LABELS_H
#define OPR_LABELS_H

#include "tools/profile/groups.h"
#include "tools/stacks/stores.h"

/* The nodes above the frames, by their kind. NULL: none. */
struct opr_labels {
	const struct op_stack_node *of[OP_NR_STACK_KINDS];
};

/* Those of a node, which may be one of them. */
struct opr_labels opr_labels_of(const struct op_stack_tree *tree, uint32_t index) OP_NONNULL;

/* Names, which the caller frees. NULL: no memory. */
char *opr_label_text(const struct op_stack_tree *tree, const struct op_stack_node *node,
		     const char *otherwise) OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;
char *opr_label_app(const struct opr_store *store, const struct op_stack_node *app) OP_NONNULL_ARGS(1) OP_MUST_CHECK;
char *opr_label_group(struct opr_profile *profile, const struct opr_store *store, const struct opr_labels *context,
		      enum opr_by by) OP_NONNULL OP_MUST_CHECK;
char *opr_label_cpu(const struct op_stack_node *thread) OP_MUST_CHECK;

#endif
