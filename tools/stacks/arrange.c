/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/arrange.h"

#include <errno.h>

#include "tools/common/progress.h"
#include "tools/stacks/idle.h"

struct opr_call_node *opr_call_next(const struct opr_call_node *node)
{
	if (node->children)
		return node->children;
	while (!node->next && node->parent)
		node = node->parent;
	return node->next;
}

static bool matches(const regex_t *regex, const struct opr_call_node *node)
{
	return regex && node->function && !regexec(regex, node->function->name, 0, NULL, 0);
}

/* Parents come first, so they know already. */
static bool is_wanted(const struct opr_stack_patterns *patterns, struct opr_call_node *node)
{
	node->is_focused = (node->parent && node->parent->is_focused) || matches(patterns->focus, node);
	node->is_ignored = (node->parent && node->parent->is_ignored) || matches(patterns->ignore, node);
	return (node->is_focused || !patterns->focus) && !node->is_ignored;
}

/* The node of the new tree for the same stack. Stacks are as deep as the store allows. */
static struct opr_call_node *copy_path(struct opr_call_tree *to, const struct opr_call_node *node, bool invert)
{
	const struct opr_call_function *functions[OPR_CALL_DEPTH_MAX];
	struct opr_call_node *copy = &to->root;
	size_t nr = 0;

	for (; node->parent && nr < OPR_CALL_DEPTH_MAX; node = node->parent)
		functions[nr++] = node->function;
	for (size_t i = 0; i < nr && copy; i++)
		copy = opr_call_child(to, copy, functions[invert ? i : nr - 1 - i]);
	return copy;
}

/* Levels that --depth counts: a group, an end and a state are none, unless they come last. */
static bool is_level(const struct opr_call_node *node, bool invert)
{
	enum opr_call_kind kind = node->function->kind;

	return invert || (kind != OPR_CALL_GROUP && kind != OPR_CALL_END && kind != OPR_CALL_STATE);
}

static size_t nr_levels(const struct opr_call_node *node, bool invert)
{
	size_t depth = 0;

	for (; node->parent; node = node->parent)
		depth += is_level(node, invert);
	return depth;
}

/* Adds up those children that are not shown. The children are sorted. */
static int prune(struct opr_call_tree *tree, struct opr_call_node *node, const struct opr_query *query,
		 const struct opr_call_function *less)
{
	double least = query->threshold / 100 * (double)tree->root.total;
	bool is_last = query->depth != SIZE_MAX && nr_levels(node, query->invert) >= query->depth;
	struct opr_call_node **next = &node->children, *rest;
	uint64_t nr_less = 0, nr_records = 0;
	size_t nr = 0;

	while (*next) {
		struct opr_call_node *child = *next;

		if (nr < query->top && (double)child->total >= least && !(is_last && is_level(child, query->invert))) {
			nr++;
			next = &child->next;
			continue;
		}
		nr_less += child->total;
		nr_records += child->records;
		*next = child->next;
	}
	if (!nr_less)
		return 0;
	rest = opr_call_child(tree, node, less);
	if (!rest)
		return -ENOMEM;
	rest->self = rest->total = nr_less;
	rest->self_records = rest->records = nr_records;
	if (nr) { /* it is the first one now, and shall be the last */
		node->children = rest->next;
		*next = rest;
		rest->next = NULL;
	}
	return 0;
}

int opr_call_tree_arrange(struct opr_call_tree *to, struct opr_call_tree *from, const struct opr_query *query,
			  const struct opr_stack_patterns *patterns, uint64_t *ret_nr_left_out)
{
	const struct opr_call_function *less = opr_call_function(to, OPR_CALL_LESS, "(other)", "");
	const struct opr_call_function *idle = opr_call_function(to, OPR_CALL_LESS, OPR_CALL_IDLE, "");
	bool hides_idle = query->view != OPR_VIEW_CPU && !query->show_idle;
	size_t nr_done = 0;
	int err = less && idle ? 0 : -ENOMEM;

	*ret_nr_left_out = 0;
	for (struct opr_call_node *node = &from->root; node && !err; node = opr_call_next(node)) {
		bool wanted = is_wanted(patterns, node);
		struct opr_call_node *copy;

		opr_progress_count("arranging stacks", nr_done++, from->nr_nodes);
		if (!node->self)
			continue;
		if (!wanted) {
			*ret_nr_left_out += node->self;
			continue;
		}
		copy = hides_idle && opr_idle_wait(node) ? opr_call_child(to, &to->root, idle) : copy_path(to, node, query->invert);
		if (!copy)
			err = -ENOMEM;
		if (!err) {
			copy->self += node->self;
			copy->self_records += node->self_records;
		}
	}
	if (!err)
		err = opr_call_tree_sum(to);
	for (struct opr_call_node *node = &to->root; node && !err; node = opr_call_next(node))
		err = node->function == less || node->function == idle ? 0 : prune(to, node, query, less);
	return err;
}
