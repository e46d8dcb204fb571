/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stack of a sample is made (pipeline/stacks/source.h), stored, and its end is booked. A sample
 * of STACKS is booked as received here. Other events with stacks count their samples as always, and
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
 * Makes, stores and books the stack of a sample. later_chain as in opd_stack_make. False, with
 * may_wait only: it should wait for a table or a chain, and nothing is booked.
 */
bool opd_stack_try(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct op_chain *later_chain,
		   bool may_wait) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

#endif
