/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Puts the functions of a runtime between the native frames of a stack: those that a loop of the
 * interpreter ran lie below the frame of that loop. Where the walk of the native frames was cut,
 * the outer functions lie above them. No frame is taken away.
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_MERGE_H
#define OPD_STACK_MERGE_H

#include "libop/base/compiler.h"
#include "pipeline/runtimes/interpreters.h"
#include "pipeline/stacks/stack.h"

void opd_stack_merge(struct opd_stack *stack, const struct opd_interpreter_stack *runtime) OP_NONNULL;

#endif
