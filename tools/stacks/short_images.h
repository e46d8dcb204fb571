/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Images and applications without their directories. Those of one name keep as many directories as
 * tell them apart. One thread.
 */
#ifndef OPR_SHORT_IMAGES_H
#define OPR_SHORT_IMAGES_H

#include "tools/profile/image_name.h"
#include "tools/stacks/read_stacks.h"

/*
 * Finds the names of one profile, or of two that are compared. A name that only one image of each
 * profile has needs no directory, so a program that was built elsewhere is the same one. `names` is
 * zeroed at first, points into the sums, and is freed with opr_short_names_free in any case. 0 or
 * -ENOMEM after a message.
 */
int opr_short_images_find(struct opr_short_names *names, const struct opr_stack_sums *first,
			  const struct opr_stack_sums *second) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* What is shown of an image. Points into `full` or into the names. */
const char *opr_short_image(const struct opr_short_names *names, const char *full) OP_NONNULL;

/* Shortens the names in a tree and in its contexts, if it has some. */
void opr_short_images_set(const struct opr_short_names *names, struct opr_call_tree *tree,
			  struct opr_stack_contexts *contexts) OP_NONNULL_ARGS(1, 2);

#endif
