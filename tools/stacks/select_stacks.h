/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which stacks the profile specification selects, by the rule of all reports. */
#ifndef OPR_SELECT_STACKS_H
#define OPR_SELECT_STACKS_H

#include "libop/stacks/read.h"
#include "tools/profile/before.h"
#include "tools/profile/spec.h"

/*
 * Leaves the samples that are newer than an earlier reading of the store below dir_fd; NULL: all. 0
 * or -errno after a message.
 */
int opr_stacks_subtract(struct op_stack_tree *tree, struct opr_before *earlier, int dir_fd) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* The store cannot be read now: what an earlier reading found stays. As above. */
int opr_stacks_keep(struct opr_before *earlier, int dir_fd) OP_MUST_CHECK;

/* What is known of a node. */
enum {
	OPR_STACK_DECIDED = 1, /* of a node above frames: the next flag holds */
	OPR_STACK_WANTED = 2,  /* by what the store keeps apart */
	OPR_STACK_COUNTED = 4, /* its own samples are selected */
	OPR_STACK_NEEDED = 8,  /* it, or a node below it, has selected samples */
	OPR_STACK_WAIT = 16,   /* of the event WAIT; set when names are given (read_stacks.h) */
};

/* The name of an image, "" without one; *ret_application: of a program, else NULL. */
struct opr_stack_names {
	const char *(*name)(const void *arg, uint64_t cookie, const char **ret_application);
	const void *arg;
};

/*
 * Sets the flags, which are zero, of all nodes. A sample belongs to the application of its stack
 * and to the image of its innermost frame. 0 or -ENOMEM after a message.
 */
int opr_stacks_select(const struct op_stack_tree *tree, const struct opr_spec *spec, bool any_event,
		      const struct opr_stack_names *names, uint8_t *flags) OP_NONNULL OP_MUST_CHECK;

#endif
