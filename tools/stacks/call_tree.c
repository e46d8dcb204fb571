/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/call_tree.h"

#include <errno.h>

static uint64_t hash_function(enum opr_call_kind kind, const char *name, const char *image, const struct opr_call_place *place)
{
	uint64_t hash = op_hash_bytes(op_hash_bytes(kind, name, strlen(name)), image, strlen(image));

	return op_hash_add(op_hash_add(hash, place->position + place->thread), place->label);
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_same_place(const struct opr_call_place *a, const struct opr_call_place *b)
{
	return a->image == b->image && a->position == b->position && a->vma == b->vma && a->line == b->line &&
	       a->first_line == b->first_line && a->label == b->label && a->thread == b->thread &&
	       is_same_text(a->source, b->source) && is_same_text(a->function, b->function);
}

static void free_one(struct opr_call_function *function)
{
	free(function->source);
	free(function->bare_name);
	free(function->name);
	free(function->image);
	free(function);
}

const struct opr_call_function *opr_call_function_at(struct opr_call_tree *tree, enum opr_call_kind kind, const char *name,
						     const char *image, const struct opr_call_place *place)
{
	uint64_t hash = hash_function(kind, name, image, place);
	struct opr_call_function *function;

	for (struct op_hlink *link = op_htable_first(&tree->functions, hash); link; link = op_htable_next(link)) {
		function = op_container_of(link, struct opr_call_function, link);
		if (function->kind == kind && !strcmp(function->name, name) && !strcmp(function->image, image) &&
		    is_same_place(&function->place, place))
			return function;
	}
	function = calloc(1, sizeof(*function));
	if (!function)
		return NULL;
	function->kind = kind;
	function->index = tree->functions.nr_entries;
	function->name = strdup(name);
	function->image = strdup(image);
	function->place = *place;
	function->source = place->source ? strdup(place->source) : NULL;
	function->place.source = function->source;
	function->bare_name = place->function ? strdup(place->function) : NULL;
	function->place.function = function->bare_name;
	if (function->name && function->image && !place->source == !function->source &&
	    !place->function == !function->bare_name && !op_htable_insert(&tree->functions, &function->link, hash))
		return function;
	free_one(function);
	return NULL;
}

const struct opr_call_function *opr_call_function(struct opr_call_tree *tree, enum opr_call_kind kind, const char *name,
						  const char *image)
{
	static const struct opr_call_place nowhere;

	return opr_call_function_at(tree, kind, name, image, &nowhere);
}

const struct opr_call_function *opr_call_function_with_source(const struct opr_call_tree *tree, enum opr_call_kind kind,
							      const char *name, const char *image)
{
	static const struct opr_call_place nowhere;
	uint64_t hash = hash_function(kind, name, image, &nowhere);
	const struct opr_call_function *found = NULL;

	for (struct op_hlink *link = op_htable_first(&tree->functions, hash); link; link = op_htable_next(link)) {
		const struct opr_call_function *function = op_container_of(link, struct opr_call_function, link);

		if (function->kind != kind || !function->source || strcmp(function->name, name) != 0 ||
		    strcmp(function->image, image) != 0)
			continue;
		if (found)
			return NULL;
		found = function;
	}
	return found;
}

struct opr_call_image *opr_call_image(struct opr_call_tree *tree, const char *name, const char *path)
{
	struct opr_call_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->made_before = tree->images;
	tree->images = image;
	image->name = strdup(name);
	image->path = strdup(path);
	return image->name && image->path ? image : NULL;
}

struct opr_call_node *opr_call_child(struct opr_call_tree *tree, struct opr_call_node *parent,
				     const struct opr_call_function *function)
{
	uint64_t hash = op_hash_add(op_hash_u64((uintptr_t)parent), (uintptr_t)function);
	struct opr_call_node *node;

	if (parent->depth == OPR_CALL_DEPTH_MAX)
		return parent;
	for (struct op_hlink *link = op_htable_first(&tree->nodes, hash); link; link = op_htable_next(link)) {
		node = op_container_of(link, struct opr_call_node, link);
		if (node->parent == parent && node->function == function)
			return node;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	if (op_htable_insert(&tree->nodes, &node->link, hash) < 0) {
		free(node);
		return NULL;
	}
	node->function = function;
	node->parent = parent;
	node->depth = parent->depth + 1;
	node->next = parent->children;
	parent->children = node;
	node->made_before = tree->made_last;
	tree->made_last = node;
	node->index = ++tree->nr_nodes;
	return node;
}

size_t opr_call_path(const struct opr_call_node *node, const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1])
{
	const struct opr_call_node *above = node;
	size_t nr = 0, i;

	for (; above->parent && nr < OPR_CALL_DEPTH_MAX + 1; above = above->parent)
		nr++;
	for (i = nr; i--; node = node->parent)
		path[i] = node->function;
	return nr;
}

size_t opr_call_depth(const struct opr_call_node *node)
{
	return node->depth;
}

static int compare_nodes(const void *left, const void *right)
{
	const struct opr_call_node *a = *(struct opr_call_node *const *)left, *b = *(struct opr_call_node *const *)right;
	int order;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	order = strcmp(a->function->name, b->function->name);
	if (!order)
		order = strcmp(a->function->image, b->function->image);
	return order ? order : (int)a->function->kind - (int)b->function->kind;
}

static int sort_children(struct opr_call_node *node)
{
	struct opr_call_node **children, **next = &node->children;
	size_t nr = 0;

	for (struct opr_call_node *child = node->children; child; child = child->next)
		nr++;
	if (nr < 2)
		return 0;
	children = malloc(nr * sizeof(*children));
	if (!children)
		return -ENOMEM;
	nr = 0;
	for (struct opr_call_node *child = node->children; child; child = child->next)
		children[nr++] = child;
	qsort(children, nr, sizeof(*children), compare_nodes);
	for (size_t i = 0; i < nr; i++) {
		*next = children[i];
		next = &children[i]->next;
	}
	*next = NULL;
	free(children);
	return 0;
}

int opr_call_tree_sum(struct opr_call_tree *tree)
{
	int err;

	tree->root.total = tree->root.self;
	tree->root.records = tree->root.self_records;
	for (struct opr_call_node *node = tree->made_last; node; node = node->made_before) {
		node->total = node->self;
		node->records = node->self_records;
	}
	for (struct opr_call_node *node = tree->made_last; node; node = node->made_before) {
		node->parent->total += node->total;
		node->parent->records += node->records;
	}
	err = sort_children(&tree->root);
	for (struct opr_call_node *node = tree->made_last; node && !err; node = node->made_before)
		err = sort_children(node);
	return err;
}

static void free_function(struct op_hlink *link, void *arg)
{
	struct opr_call_function *function = op_container_of(link, struct opr_call_function, link);

	op_htable_remove(arg, link);
	free_one(function);
}

void opr_call_tree_free(struct opr_call_tree *tree)
{
	struct opr_call_node *before;
	struct opr_call_image *image_before;

	for (struct opr_call_node *node = tree->made_last; node; node = before) {
		before = node->made_before;
		free(node);
	}
	for (struct opr_call_image *image = tree->images; image; image = image_before) {
		image_before = image->made_before;
		free(image->name);
		free(image->path);
		free(image);
	}
	free(tree->wakers);
	op_htable_visit(&tree->functions, free_function, &tree->functions);
	op_htable_free(&tree->functions);
	op_htable_free(&tree->nodes);
	*tree = (struct opr_call_tree){ 0 };
}
