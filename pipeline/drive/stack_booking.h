/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stack goes to the sinks, and its end is booked, here alone. A sample of an event of stacks is
 * booked as received with its stack. Other events with stacks count their samples as always, and
 * the stack beside it.
 *
 * The calls of --callgraph are those of the stack. STACKS has no files of calls: its calls are
 * counted for the event with calls_of_stacks (libop/events/event_def.h).
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_BOOKING_H
#define OPD_STACK_BOOKING_H

#include "libop/base/compiler.h"
#include "pipeline/drive/pipeline.h"
#include "pipeline/stacks/state.h"

/*
 * Books a stack that any source has made: its sample, frames, leaf_start and end. The sample was
 * resolved to `of`. The rest of the stack is set here. What the image filter does not want is
 * booked as filtered. Needs pipeline->stacks.
 */
void opd_stack_book(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct opd_resolved *of,
		    struct opd_stack *stack) OP_NONNULL;

/* Books a sample whose stack cannot be made: -EBADMSG or -ENOMEM. */
void opd_stack_lose(const struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, int err) OP_NONNULL;

/*
 * Makes the stack of a sample from the copy or the chain in its record (pipeline/stacks/source.h),
 * and books it. later_chain as in opd_stack_make. False, with may_wait only: it should wait for a
 * table or a chain, and nothing is booked.
 */
bool opd_stack_try(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct op_chain *later_chain,
		   bool may_wait) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

#endif
