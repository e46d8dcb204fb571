/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a frame of a runtime in a store to the function of a call tree. One thread. */
#ifndef OPR_RUNTIME_FUNCTION_H
#define OPR_RUNTIME_FUNCTION_H

#include "libop/stacks/read.h"
#include "tools/stacks/call_tree.h"

/* The last part of a path or a URL. */
const char *opr_runtime_file_name(const char *source) OP_NONNULL;

/*
 * The function of a node of kind RUNTIME_FRAME. Its image is the word of the runtime, since
 * timelines do not keep the file of its code. With places it is one for each line. NULL: no memory.
 */
const struct opr_call_function *opr_runtime_function(struct opr_call_tree *tree, const struct op_stack_tree *stacks,
						     const struct op_stack_node *node, bool with_places) OP_NONNULL OP_MUST_CHECK;

#endif
