/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/leaf_rows.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/odb/format.h"
#include "tools/common/log.h"
#include "tools/stacks/arrange.h"

#define NO_FRAME "(no frame)"

/* Stacks of one event that were taken in one function. */
struct leaf {
	const char *app, *image, *name;
	size_t class_index;
	uint64_t count;
};

struct leaf_list {
	struct leaf *leaves;
	size_t nr_leaves;
};

/* ---- classes ---- */

/* "STACKS:10101010:0x0"; the name may have colons. */
static int add_class(struct opr_leaves *leaves, struct opr_classes *classes, const char *event)
{
	struct opr_class *class = &classes->classes[classes->nr_classes++];
	char *name = strdup(event), *mask = name ? strrchr(name, ':') : NULL, *count;

	if (!name)
		return opr_no_memory();
	leaves->events[leaves->nr_events++] = name;
	if (mask)
		*mask = '\0';
	count = strrchr(name, ':');
	*class = (struct opr_class){ .event = name, .unit = "samples", .tgid = OP_CLASS_ALL, .tid = OP_CLASS_ALL,
				     .cpu = OP_CLASS_ALL };
	class->title = strdup(name);
	if (count) {
		*count = '\0';
		class->count = strtoull(count + 1, NULL, 10);
		class->unit_mask = mask ? (int64_t)strtoul(mask + 1, NULL, 0) : 0;
	}
	if (asprintf(&class->description, "Stacks of %s", event) < 0)
		class->description = NULL;
	return class->title && class->description ? 0 : opr_no_memory();
}

static int add_classes(struct opr_leaves *leaves, struct opr_classes *classes)
{
	const struct opr_words *events = &leaves->sums.events;
	int err = 0;

	leaves->events = calloc(events->nr_words + 1, sizeof(*leaves->events));
	classes->classes = calloc(events->nr_words + 1, sizeof(*classes->classes));
	classes->cpu_line = strdup("Stacks, each counted for the function that it was taken in");
	if (!leaves->events || !classes->classes || !classes->cpu_line)
		return opr_no_memory();
	for (size_t i = 0; i < events->nr_words && !err; i++)
		err = add_class(leaves, classes, events->words[i]);
	return err;
}

/* ---- leaves ---- */

/* Of several events each has a node below the root. */
static size_t class_of(const struct opr_leaves *leaves, const struct opr_call_node *node)
{
	const struct opr_words *events = &leaves->sums.events;

	if (events->nr_words == 1)
		return 0;
	while (node->parent->function)
		node = node->parent;
	for (size_t i = 0; i < events->nr_words; i++)
		if (!strcmp(node->function->name, events->words[i]))
			return i;
	return 0;
}

static const struct opr_call_function *group_of(const struct opr_call_node *node)
{
	while (node->function->kind != OPR_CALL_GROUP)
		node = node->parent;
	return node->function;
}

static struct leaf leaf_of(const struct opr_leaves *leaves, const struct opr_call_node *node)
{
	const struct opr_call_function *function = node->function;
	bool is_frame = function->kind != OPR_CALL_GROUP && function->kind != OPR_CALL_END;

	return (struct leaf){ .app = group_of(node)->name,
			      .image = is_frame && *function->image ? function->image : NO_FRAME,
			      .name = is_frame ? function->name : NO_FRAME,
			      .class_index = class_of(leaves, node),
			      .count = node->self };
}

static int compare_images(const struct leaf *a, const struct leaf *b)
{
	int order = strcmp(a->app, b->app);

	return order ? order : strcmp(a->image, b->image);
}

static int compare_leaves(const void *left, const void *right)
{
	const struct leaf *a = left, *b = right;
	int order = compare_images(a, b);

	if (!order)
		order = strcmp(a->name, b->name);
	return order ? order : (a->class_index > b->class_index) - (a->class_index < b->class_index);
}

static int list_leaves(struct leaf_list *list, const struct opr_leaves *leaves)
{
	list->leaves = calloc(leaves->tree.nr_nodes + 1, sizeof(*list->leaves));
	if (!list->leaves)
		return opr_no_memory();
	for (const struct opr_call_node *node = opr_call_next(&leaves->tree.root); node; node = opr_call_next(node))
		if (node->self)
			list->leaves[list->nr_leaves++] = leaf_of(leaves, node);
	if (list->nr_leaves)
		qsort(list->leaves, list->nr_leaves, sizeof(*list->leaves), compare_leaves);
	return 0;
}

/* ---- what the steps of a run make ---- */

/* A file for each image of an application and each event, and a part for each image. */
static int add_files(struct opr_profile *profile, const struct leaf_list *list)
{
	const struct leaf *before = NULL;

	profile->files = calloc(list->nr_leaves + 1, sizeof(*profile->files));
	profile->parts = calloc(list->nr_leaves + 1, sizeof(*profile->parts));
	if (!profile->files || !profile->parts)
		return opr_no_memory();
	for (size_t i = 0; i < list->nr_leaves; before = &list->leaves[i++]) {
		const struct leaf *leaf = &list->leaves[i];
		struct opr_file *file = &profile->files[profile->nr_files];

		*file = (struct opr_file){ .app = strdup(leaf->app), .image = strdup(leaf->image), .is_group = true,
					   .class_index = leaf->class_index, .total = leaf->count };
		profile->nr_files++;
		if (!file->app || !file->image)
			return opr_no_memory();
		if (!before || compare_images(before, leaf))
			profile->parts[profile->nr_parts++] =
				(struct opr_part){ .app = file->app, .image = file->image, .first_file = i };
		profile->parts[profile->nr_parts - 1].nr_files++;
	}
	return 0;
}

static int add_rows(struct opr_symbol_report *report, const struct leaf_list *list, size_t nr_classes)
{
	const struct leaf *before = NULL;
	size_t index = 0;
	int err = 0;

	report->nr_classes = report->nr_limits = nr_classes;
	report->no_addresses = true;
	report->totals = calloc(nr_classes + 1, sizeof(*report->totals));
	if (!report->totals)
		return opr_no_memory();
	for (size_t i = 0; i < list->nr_leaves && !err; before = &list->leaves[i++]) {
		const struct leaf *leaf = &list->leaves[i];
		const struct opr_symbol_row row = { .name = leaf->name, .app = leaf->app, .image = leaf->image,
						    .app_shown = leaf->app, .image_shown = leaf->image };

		if (!before || compare_images(before, leaf) || strcmp(before->name, leaf->name) != 0)
			err = opr_symbol_report_add(report, &row, &index);
		if (!err) {
			report->counts.values[report->rows[index].counts + leaf->class_index] += leaf->count;
			report->totals[leaf->class_index] += leaf->count;
		}
	}
	report->nr_made = report->nr_rows;
	return err;
}

int opr_leaves_read(struct opr_leaves *leaves, struct opr_run *run)
{
	struct opr_selection *selection = &run->selection;
	struct leaf_list list = { 0 };
	int err = opr_stacks_read(&leaves->tree, &leaves->sums, selection, run->query, NULL);

	if (!err)
		err = add_classes(leaves, &selection->classes);
	if (!err)
		err = list_leaves(&list, leaves);
	if (!err)
		err = add_files(&selection->profile, &list);
	if (!err)
		err = add_rows(&run->rows, &list, selection->classes.nr_classes);
	free(list.leaves);
	return err;
}

void opr_leaves_free(struct opr_leaves *leaves)
{
	for (size_t i = 0; i < leaves->nr_events; i++)
		free(leaves->events[i]);
	free(leaves->events);
	opr_call_tree_free(&leaves->tree);
	opr_stack_sums_free(&leaves->sums);
}
