/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From the record of a sample to its stack (stack.h): the sample is resolved, and its frames are
 * found (frames.h).
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_SOURCE_H
#define OPD_STACK_SOURCE_H

#include "libop/base/compiler.h"
#include "pipeline/stacks/state.h"

/* Decodes and resolves a sample. 0, -EBADMSG or -ENOMEM. */
int opd_stack_decode(const struct opd_stacks *stacks, const struct opd_capture *capture, struct opd_resolver *resolver,
		     const struct opd_stack_sample *taken, struct op_stack_record *ret_record, struct opd_resolved *ret_of)
	OP_NONNULL OP_MUST_CHECK;

/*
 * Makes the stack of a decoded sample, in stacks->walk. later_chain: its deferred user part; NULL:
 * none has come. may_wait: the stack can be made again later. 0 or -ENOMEM.
 */
int opd_stack_make(struct opd_stacks *stacks, const struct opd_capture *capture, struct opd_resolver *resolver,
		   const struct opd_stack_sample *taken, const struct op_stack_record *record, const struct opd_resolved *of,
		   const struct op_chain *later_chain, bool may_wait) OP_NONNULL_ARGS(1, 2, 3, 4, 5, 6) OP_MUST_CHECK;

#endif
