/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The frames of a stack sample: the kernel's part from the chain in its record, the user part by
 * walking the copied stack (pipeline/stacks), or from the chain where there is no copy. Every frame
 * is resolved at the time of the sample.
 *
 * Sync thread only.
 */
#ifndef OPD_STACK_FRAMES_H
#define OPD_STACK_FRAMES_H

#include "libop/base/compiler.h"
#include "libop/perf/stack_record.h"
#include "pipeline/runtimes/runtimes.h"
#include "pipeline/stacks/stack.h"
#include "pipeline/stacks/tables.h"
#include "pipeline/stacks/walk.h"

/* Walks one stack at a time. */
struct opd_stack_walk {
	struct opd_stack stack; /* the last one */
	bool no_memory;         /* its frames are missing */
	uint64_t deferred;      /* its user part comes with this cookie; 0: it does not */
	/* no_table_yet: of this image */
	uint64_t pending_cookie;
	struct opd_table_source pending_source;
	bool awaits_runtime; /* no_table_yet: of a runtime */
	struct opd_walk_frame walked[OPD_WALK_FRAMES_MAX]; /* scratch */
};

/* Where the addresses of a stack are looked up. */
struct opd_stack_lookup {
	struct opd_resolver *resolver;
	struct opd_tables *tables; /* NULL: there are no tables, only frame pointers */
	struct opd_interpreters *interpreters; /* NULL: their functions are not read */
	struct opd_runtimes *runtimes; /* NULL: none are known */
	bool may_wait;             /* false: the stack is made with what there is */
	uint32_t max_stack;        /* frames that the kernel follows at most */
	uint16_t machine;
};

/*
 * Walks the stack of a sample, which was resolved to `of`, into walk->stack: frames, leaf_start
 * and end. later_chain: the deferred user part; NULL: none has come.
 */
void opd_stack_walk(struct opd_stack_walk *walk, const struct opd_stack_lookup *lookup, const struct op_sample *sample,
		    const struct opd_resolved *of, const struct op_stack_record *record,
		    const struct op_chain *later_chain) OP_NONNULL_ARGS(1, 2, 3, 4, 5);

#endif
