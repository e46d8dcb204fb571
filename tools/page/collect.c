/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/page/collect.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/stacks/arrange.h"

static struct opr_call_node *copy_node(struct opr_call_tree *to, struct opr_call_node *parent,
				       const struct opr_call_function *function)
{
	const struct opr_call_function *copy =
		opr_call_function_at(to, function->kind, function->name, function->image, &function->place);

	return copy ? opr_call_child(to, parent, copy) : NULL;
}

static int add_count(struct opr_page *page, struct opr_call_node *node, size_t context, uint64_t count)
{
	if (!count)
		return 0;
	if (!op_grow(&page->counts, &page->capacity, page->nr_counts + 1))
		return -ENOMEM;
	page->counts[page->nr_counts++] = (struct opr_page_count){ node, context, count };
	node->self += count;
	return 0;
}

/* Copies what is below a group; `copies` has the copies by the index of the node. */
static int copy_group(struct opr_page *page, const struct opr_call_node *group, size_t context, struct opr_call_node **copies)
{
	const struct opr_call_node *node = group;
	int err = add_count(page, &page->tree.root, context, group->self);

	copies[group->index] = &page->tree.root;
	while (!err) {
		node = opr_call_next(node);
		if (!node || node->parent == group->parent)
			return 0;
		copies[node->index] = copy_node(&page->tree, copies[node->parent->index], node->function);
		err = copies[node->index] ? add_count(page, copies[node->index], context, node->self) : -ENOMEM;
	}
	return err;
}

static int compare_counts(const void *left, const void *right)
{
	const struct opr_page_count *a = left, *b = right;

	if (a->node->index != b->node->index)
		return a->node->index < b->node->index ? -1 : 1;
	return a->context < b->context ? -1 : a->context > b->context;
}

int opr_page_collect(struct opr_page *page)
{
	size_t nr_before = 0;
	int err = 0;

	for (size_t i = 0; i < page->nr_sides && !err; i++) {
		struct opr_page_side *side = &page->sides[i];
		struct opr_call_node **copies = calloc(side->tree.nr_nodes + 1, sizeof(struct opr_call_node *));

		if (!copies)
			return opr_no_memory();
		for (const struct opr_call_node *group = side->tree.root.children; group && !err; group = group->next)
			err = copy_group(page, group, nr_before + strtoul(group->function->name, NULL, 10), copies);
		nr_before += side->contexts.nr_rows;
		free(copies);
	}
	if (!err)
		err = opr_call_tree_sum(&page->tree);
	if (err)
		return opr_no_memory();
	if (page->nr_counts)
		qsort(page->counts, page->nr_counts, sizeof(*page->counts), compare_counts);
	return 0;
}

void opr_page_free(struct opr_page *page)
{
	for (size_t i = 0; i < page->nr_sides; i++) {
		opr_call_tree_free(&page->sides[i].tree);
		opr_stack_contexts_free(&page->sides[i].contexts);
		opr_stack_sums_free(&page->sides[i].sums);
	}
	opr_call_tree_free(&page->tree);
	free(page->counts);
	op_text_free(&page->code);
	*page = (struct opr_page){ 0 };
}
