/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/inclusive.h"

#include <errno.h>

#include "libop/events/event_def.h"
#include "tools/common/log.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/read_stacks.h"

/* A node of the tree on the way from the root, and the row of its function; NULL: none. */
struct step {
	const struct opr_call_node *node;
	struct opr_symbol_row *row;
};

struct counting {
	struct opr_callgraph *graph;
	struct opr_symbol_row **sorted; /* the nodes of the graph: image, application, address */
	uint32_t *nr_on_path;           /* of each row, by its order */
	struct step *path;
	const char *event; /* the one that is counted */
	const char *app;   /* of the path */
	bool is_of_event;
};

/* ---- rows ---- */

static int compare(const struct opr_symbol_row *row, const char *image, const char *app, uint64_t vma)
{
	int order = strcmp(row->image, image);

	if (!order)
		order = strcmp(row->app, app);
	return order ? order : (row->vma > vma) - (row->vma < vma);
}

static int compare_rows(const void *left, const void *right)
{
	struct opr_symbol_row *const *a = left, *const *b = right;

	return compare(*a, (*b)->image, (*b)->app, (*b)->vma);
}

/* The row of a function in an application. */
static struct opr_symbol_row *find_in(const struct counting *counting, const struct opr_call_function *function, const char *app)
{
	const struct opr_call_place *place = &function->place;
	size_t nr = op_nr_leading(counting->sorted, counting->graph->nr_nodes, row,
				  compare(*row, place->image->name, app, place->vma) <= 0);
	struct opr_symbol_row *row = nr ? counting->sorted[nr - 1] : NULL;

	if (!row || strcmp(row->image, place->image->name) != 0 || strcmp(row->app, app) != 0)
		return NULL;
	return !row->symbol || !strcmp(row->name, function->name) ? row : NULL;
}

/* Without separation by application a row is filed under its image. */
static struct opr_symbol_row *find_row(const struct counting *counting, const struct opr_call_function *function)
{
	struct opr_symbol_row *row;

	if (!counting->is_of_event || !function->place.image)
		return NULL;
	row = find_in(counting, function, counting->app);
	return row ? row : find_in(counting, function, function->place.image->name);
}

/* ---- the tree ---- */

static void enter(struct counting *counting, size_t depth, const struct opr_call_node *node)
{
	const struct opr_call_function *function = node->function;
	struct opr_symbol_row *row = NULL;

	if (function->kind == OPR_CALL_GROUP && function->place.label == OP_STACK_EVENT) {
		counting->is_of_event = !strcmp(function->name, counting->event);
		counting->graph->nr_stacks += counting->is_of_event ? node->total : 0;
	} else if (function->kind == OPR_CALL_GROUP && function->place.label == OP_STACK_APP) {
		counting->app = function->name;
	} else if (function->kind == OPR_CALL_USER || function->kind == OPR_CALL_KERNEL) {
		row = find_row(counting, function);
	}
	if (row && !counting->nr_on_path[row->order]++)
		row->inclusive += node->total;
	counting->path[depth] = (struct step){ node, row };
}

static void count_tree(struct counting *counting, const struct opr_call_tree *tree)
{
	size_t depth = 0;

	for (const struct opr_call_node *node = opr_call_next(&tree->root); node; node = opr_call_next(node)) {
		for (; depth && counting->path[depth - 1].node != node->parent; depth--)
			if (counting->path[depth - 1].row)
				counting->nr_on_path[counting->path[depth - 1].row->order]--;
		enter(counting, depth++, node);
	}
}

/* ---- events ---- */

static bool is_named(const char *event, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(event, name, length) && event[length] == ':';
}

static const char *choose_event(const struct opr_words *events, const struct opr_classes *classes)
{
	for (size_t i = 0; i < events->nr_words; i++)
		if (is_named(events->words[i], OP_STACKS_NAME))
			return events->words[i];
	for (size_t i = 0; i < events->nr_words && classes->nr_classes; i++)
		if (is_named(events->words[i], classes->classes[0].event))
			return events->words[i];
	return NULL;
}

static int count_all(struct opr_callgraph *graph, struct opr_symbol_report *report, const struct opr_call_tree *tree)
{
	struct counting counting = { .graph = graph, .event = graph->stack_event, .app = "" };
	int err = 0;

	counting.sorted = calloc(graph->nr_nodes + 1, sizeof(*counting.sorted));
	counting.nr_on_path = calloc(graph->nr_nodes + 1, sizeof(*counting.nr_on_path));
	counting.path = calloc(OPR_CALL_DEPTH_MAX + 2, sizeof(*counting.path));
	if (counting.sorted && counting.nr_on_path && counting.path) {
		for (size_t i = 0; i < graph->nr_nodes; i++)
			counting.sorted[i] = &graph->nodes[i];
		qsort(counting.sorted, graph->nr_nodes, sizeof(struct opr_symbol_row *), compare_rows);
		count_tree(&counting, tree);
		for (size_t i = 0; i < report->nr_rows; i++)
			report->rows[i].inclusive = graph->nodes[report->rows[i].order].inclusive;
	} else {
		err = opr_no_memory();
	}
	free(counting.sorted);
	free(counting.nr_on_path);
	free(counting.path);
	return err;
}

int opr_inclusive_count(struct opr_callgraph *graph, struct opr_symbol_report *report, struct opr_selection *selection,
			const struct opr_query *query)
{
	struct opr_query of_stacks = *query;
	struct opr_call_tree tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	const char *event = NULL;
	int err;

	/* Names alone do not tell functions apart, so each address is a node, with its place. */
	of_stacks.places = of_stacks.optional = 1;
	of_stacks.native = OPR_NATIVE_SHOW;
	of_stacks.lines = of_stacks.naming.fetch_lines = 0;
	err = opr_stacks_read(&tree, &sums, selection, &of_stacks, NULL);
	if (!err && sums.nr_samples)
		event = choose_event(&sums.events, &selection->classes);
	if (event) {
		snprintf(graph->stack_event, sizeof(graph->stack_event), "%s", event);
		err = opr_call_tree_sum(&tree) < 0 ? opr_no_memory() : count_all(graph, report, &tree);
	}
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}
