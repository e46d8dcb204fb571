/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/select_stacks.h"

#include <errno.h>

#include "libop/session/layout.h"
#include "tools/common/log.h"

int opr_stacks_subtract(struct op_stack_tree *tree, struct opr_before *earlier, int dir_fd)
{
	struct opr_count *counts = earlier ? calloc(tree->nr_nodes, sizeof(*counts)) : NULL;
	int err = earlier && !counts ? -ENOMEM : 0;

	for (uint32_t i = 0; counts && i < tree->nr_nodes; i++)
		counts[i] = (struct opr_count){ i, tree->nodes[i].count };
	if (counts)
		err = opr_before_subtract(earlier, dir_fd, OP_SESSION_STACKS, counts, tree->nr_nodes);
	for (uint32_t i = 0; counts && !err && i < tree->nr_nodes; i++)
		tree->nodes[i].count = counts[i].count;
	free(counts);
	return err ? opr_error(err, "cannot compare the stacks: %s", strerror(-err)) : 0;
}

int opr_stacks_keep(struct opr_before *earlier, int dir_fd)
{
	int err = opr_before_keep(earlier, dir_fd, OP_SESSION_STACKS);

	return err ? opr_error(err, "cannot compare the stacks: %s", strerror(-err)) : 0;
}

/* The node of a kind on the way from a node to the root; NULL: none. */
static const struct op_stack_node *above(const struct op_stack_tree *tree, uint32_t index, enum op_stack_kind kind)
{
	while (index && tree->nodes[index].kind != kind)
		index = tree->nodes[index].parent;
	return index ? &tree->nodes[index] : NULL;
}

static char *text_above(const struct op_stack_tree *tree, uint32_t index, enum op_stack_kind kind)
{
	const struct op_stack_node *node = above(tree, index, kind);

	return node && node->value ? op_stack_text(tree, node->value) : strdup("");
}

/* Decides by what the store keeps apart. */
static int decide(const struct op_stack_tree *tree, const struct opr_spec *spec, bool any_event, uint32_t index, uint8_t *flags)
{
	const struct op_stack_node *thread = above(tree, index, OP_STACK_THREAD);
	char *event = text_above(tree, index, OP_STACK_EVENT), *cgroup = text_above(tree, index, OP_STACK_CGROUP);
	int err = event && cgroup ? 0 : opr_no_memory();
	bool wanted = !err;

	if (wanted && !any_event)
		wanted = opr_spec_match_word(&spec->event, strtok_r(event, ":", &(char *){ NULL }) ?: "");
	if (wanted && spec->cgroup.nr_words)
		wanted = opr_spec_match_cgroup(spec, cgroup);
	wanted &= opr_spec_match_number(&spec->tgid, thread ? thread->value >> 32 : 0) &&
		  opr_spec_match_number(&spec->tid, thread ? thread->value & UINT32_MAX : 0) &&
		  opr_spec_match_number(&spec->cpu, thread && thread->image ? thread->image - 1 : UINT64_MAX);
	flags[index] |= OPR_STACK_DECIDED | (wanted ? OPR_STACK_WANTED : 0);
	free(event);
	free(cgroup);
	return err;
}

/*
 * The image of the innermost frame; 0: none. A function of a runtime whose image is not told has
 * that of the native frame above.
 */
static uint64_t image_of(const struct op_stack_tree *tree, uint32_t index)
{
	while (tree->nodes[index].kind == OP_STACK_RUNTIME_FRAME && !tree->nodes[index].image)
		index = tree->nodes[index].parent;
	return op_stack_is_frame(&tree->nodes[index]) ? tree->nodes[index].image : 0;
}

static bool wants_images(const struct op_stack_tree *tree, const struct opr_spec *spec, const struct opr_stack_names *names,
			 uint32_t index)
{
	const struct op_stack_node *context = above(tree, index, OP_STACK_APP);
	const char *application = NULL, *none, *app = context ? names->name(names->arg, context->image, &application) : "";
	uint64_t cookie = image_of(tree, index);
	const char *image = cookie ? names->name(names->arg, cookie, &none) : "";

	return opr_spec_match_images(spec, app, application, image);
}

int opr_stacks_select(const struct op_stack_tree *tree, const struct opr_spec *spec, bool any_event,
		      const struct opr_stack_names *names, uint8_t *flags)
{
	bool by_image = opr_spec_has_images(spec);

	for (uint32_t i = 1; i < tree->nr_nodes; i++) {
		const struct op_stack_node *node = &tree->nodes[i];
		uint32_t context = op_stack_is_frame(node) ? node->parent : i;
		bool is_first = !op_stack_is_frame(&tree->nodes[context]);

		if (node->kind == OP_STACK_TEXT || (!op_stack_is_frame(node) && !node->count))
			continue;
		if (is_first && !(flags[context] & OPR_STACK_DECIDED) && decide(tree, spec, any_event, context, flags) < 0)
			return -ENOMEM;
		flags[i] |= flags[context] & OPR_STACK_WANTED;
		if (node->count && flags[i] & OPR_STACK_WANTED && (!by_image || wants_images(tree, spec, names, i)))
			flags[i] |= OPR_STACK_COUNTED | OPR_STACK_NEEDED;
	}
	for (uint32_t i = tree->nr_nodes; i-- > 1;)
		flags[tree->nodes[i].parent] |= flags[i] & OPR_STACK_NEEDED;
	return 0;
}
