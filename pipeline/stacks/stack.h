/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A stack: a sample, its frames, how they end, and how much the stack weighs. frames.h
 * makes stacks, and pipeline/drive/stacks.h gives them to the store.
 *
 * It is valid until the next one is made: who keeps something of it copies it.
 */
#ifndef OPD_STACK_H
#define OPD_STACK_H

#include "libop/base/compiler.h"
#include "libop/session/stack_ends.h"
#include "pipeline/resolve/resolver.h"
#include "pipeline/stacks/walk.h"

#define OPD_STACK_KERNEL_MAX 256u /* frames of the kernel */
#define OPD_STACK_FRAMES_MAX (OPD_STACK_KERNEL_MAX + OPD_WALK_FRAMES_MAX)

struct opd_stack {
	const struct op_sample *sample; /* belongs to who called the source */
	/* The leaf first. The offset of a caller is the one behind its call. */
	struct opd_resolved frames[OPD_STACK_FRAMES_MAX];
	size_t nr_frames;    /* at least 1: the sample itself */
	uint64_t leaf_start; /* offset of the function of the leaf; 0: unknown */
	enum op_stack_end end;
	uint64_t weight;     /* in the unit of its event: 1 where it counts samples */
};

#endif
