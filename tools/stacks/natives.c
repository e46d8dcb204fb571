/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/natives.h"

#include <errno.h>

#define IMAGES_MAX 16u /* of interpreters in one stack */

/*
 * Frames of native code are named again for each node where the images change, up to the root. So
 * many steps for each node are enough for real stacks, which change once or twice.
 */
#define STEPS_A_NODE 64u

/* A list that grows at its front: lists of nodes below share what is behind. */
struct opr_own_images {
	uint64_t image;
	const struct opr_own_images *more;
	unsigned int nr;
	struct opr_own_images *made_before;
};

static const struct opr_own_images everything; /* all native frames are left out */

static bool has_image(const struct opr_own_images *own, uint64_t image)
{
	while (own && own->image != image)
		own = own->more;
	return own;
}

/* The list with an image more, or the same one: it has the image, or is full. NULL: no memory. */
static const struct opr_own_images *add_image(struct opr_natives *natives, const struct opr_own_images *own, uint64_t image)
{
	struct opr_own_images *longer;

	if (!image || has_image(own, image) || (own && own->nr == IMAGES_MAX))
		return own;
	longer = malloc(sizeof(*longer));
	if (!longer)
		return NULL;
	*longer = (struct opr_own_images){ image, own, own ? own->nr + 1 : 1, natives->made_last };
	natives->made_last = longer;
	return longer;
}

/* 0 or -ENOMEM. */
static int find_of_frame(struct opr_natives *natives, uint32_t index)
{
	const struct op_stack_node *node = &natives->tree->nodes[index], *parent = &natives->tree->nodes[node->parent];
	const struct opr_own_images **own = &natives->own[index];
	const uint64_t images[] = { node->image, parent->kind == OP_STACK_FRAME ? parent->image : 0 };

	if (natives->native >= OPR_NATIVE_ONLY) {
		*own = &everything;
		return 0;
	}
	for (size_t i = 0; i < op_array_size(images); i++) {
		const struct opr_own_images *longer = add_image(natives, *own, images[i]);

		if (!longer && images[i])
			return -ENOMEM;
		*own = longer ? longer : *own;
	}
	return 0;
}

int opr_natives_find(struct opr_natives *natives, const struct op_stack_tree *tree, enum opr_native native)
{
	uint64_t nr_steps = 0, most_steps = (uint64_t)tree->nr_nodes * STEPS_A_NODE;
	uint32_t *depths = calloc(tree->nr_nodes, sizeof(*depths));
	int err = 0;

	natives->native = native;
	natives->tree = tree;
	natives->own = calloc(tree->nr_nodes, sizeof(*natives->own));
	if (!depths || !natives->own)
		err = -ENOMEM;
	for (uint32_t i = 1; i < tree->nr_nodes && native != OPR_NATIVE_SHOW && !err; i++) {
		uint32_t parent = tree->nodes[i].parent;

		depths[i] = depths[parent] + 1;
		natives->own[i] = native == OPR_NATIVE_NONE ? &everything : natives->own[parent];
		if (tree->nodes[i].kind != OP_STACK_RUNTIME_FRAME)
			continue;
		err = find_of_frame(natives, i);
		if (natives->own[i] == natives->own[parent])
			continue;
		if (nr_steps + depths[i] > most_steps) {
			natives->own[i] = natives->own[parent];
			natives->is_cut = true;
		} else {
			nr_steps += depths[i];
		}
	}
	free(depths);
	return err;
}

bool opr_native_is_left_out(const struct opr_natives *natives, uint32_t frame, uint32_t node)
{
	const struct opr_own_images *own = natives->own[node];
	uint16_t kind = natives->tree->nodes[frame].kind;

	if (own == &everything)
		return op_stack_is_native(&natives->tree->nodes[frame]);
	return kind == OP_STACK_FRAME && has_image(own, natives->tree->nodes[frame].image);
}

void opr_natives_free(struct opr_natives *natives)
{
	struct opr_own_images *before;

	for (struct opr_own_images *own = natives->made_last; own; own = before) {
		before = own->made_before;
		free(own);
	}
	free(natives->own);
	*natives = (struct opr_natives){ 0 };
}
