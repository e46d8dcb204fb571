/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/optop/reading.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/base/htable.h"
#include "tools/common/log.h"
#include "tools/profile/image_name.h"
#include "tools/report/run.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/read_stacks.h"
#include "tools/stacks/wait_list.h"

#define PATH_PERCENT 1.0 /* paths with less are added up */
#define RETRIES      3   /* a file was removed while it was read */

/* ---- rows ---- */

static int add_row(struct top_table *table, const char *name, const char *image, uint64_t key, uint64_t count)
{
	struct top_row *row;

	if (!op_grow(&table->rows, &table->capacity, table->nr_rows + 1))
		return opr_no_memory();
	row = &table->rows[table->nr_rows];
	*row = (struct top_row){ .name = strdup(name), .image = strdup(image), .key = key, .count = count };
	if (row->name && row->image) {
		table->nr_rows++;
		return 0;
	}
	free(row->name);
	free(row->image);
	return opr_no_memory();
}

static uint64_t key_of(uint64_t key, const char *text)
{
	return op_hash_bytes(key, text, strlen(text) + 1);
}

static void free_row(struct top_row *row)
{
	free(row->name);
	free(row->image);
}

static int compare_row_keys(const void *left, const void *right)
{
	const struct top_row *a = left, *b = right;

	return a->key < b->key ? -1 : a->key > b->key;
}

static int compare_rows(const void *left, const void *right)
{
	const struct top_row *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Rows with one key become one. */
static void merge_rows(struct top_table *table)
{
	size_t nr = 0;

	if (table->nr_rows)
		qsort(table->rows, table->nr_rows, sizeof(*table->rows), compare_row_keys);
	for (size_t i = 0; i < table->nr_rows; i++) {
		if (nr && table->rows[nr - 1].key == table->rows[i].key) {
			table->rows[nr - 1].count += table->rows[i].count;
			free_row(&table->rows[i]);
		} else {
			table->rows[nr++] = table->rows[i];
		}
	}
	table->nr_rows = nr;
}

/* Rows with one key become one; the rows with most samples come first. */
static void finish_rows(struct top_table *table)
{
	merge_rows(table);
	for (size_t i = 0; i < table->nr_rows; i++)
		table->total += table->rows[i].count;
	if (table->nr_rows)
		qsort(table->rows, table->nr_rows, sizeof(*table->rows), compare_rows);
}

/* ---- tables ---- */

/* An empty one, which belongs to the reading until the next one is added. NULL after a message. */
static struct top_table *add_table(struct top_reading *reading, enum top_view view, const char *event)
{
	struct top_table *table;

	if (!op_grow(&reading->tables, &reading->capacity, reading->nr_tables + 1)) {
		opr_no_memory();
		return NULL;
	}
	table = &reading->tables[reading->nr_tables];
	*table = (struct top_table){ .view = view, .event = strdup(event) };
	if (!table->event) {
		opr_no_memory();
		return NULL;
	}
	reading->nr_tables++;
	return table;
}

const struct top_table *top_reading_find(const struct top_reading *reading, enum top_view view, size_t event)
{
	size_t nr = top_reading_nr_events(reading, view);

	for (size_t i = 0, index = 0; i < reading->nr_tables; i++)
		if (reading->tables[i].view == view && index++ == event % nr)
			return &reading->tables[i];
	return NULL;
}

size_t top_reading_nr_events(const struct top_reading *reading, enum top_view view)
{
	size_t nr = 0;

	for (size_t i = 0; i < reading->nr_tables; i++)
		nr += reading->tables[i].view == view;
	return nr;
}

size_t top_reading_busy_event(const struct top_reading *reading, enum top_view view)
{
	for (size_t i = 0, index = 0; i < reading->nr_tables; i++) {
		if (reading->tables[i].view != view)
			continue;
		if (reading->tables[i].total)
			return index;
		index++;
	}
	return 0;
}

void top_reading_free(struct top_reading *reading)
{
	for (size_t i = 0; i < reading->nr_tables; i++) {
		struct top_table *table = &reading->tables[i];

		for (size_t n = 0; n < table->nr_rows; n++)
			free_row(&table->rows[n]);
		free(table->rows);
		free(table->event);
	}
	free(reading->tables);
	*reading = (struct top_reading){ 0 };
}

/* ---- from the sample files ---- */

static bool wants(const struct top_query *query, enum top_view view)
{
	return query->views & 1u << view;
}

static int add_images(struct top_table *table, const struct opr_profile *profile, size_t class)
{
	uint64_t seed = key_of(table->view, table->event);
	int err = 0;

	for (size_t i = 0; i < profile->nr_files && !err; i++) {
		const struct opr_file *file = &profile->files[i];

		if (file->class_index == class)
			err = add_row(table, opr_base_name(file->image), "", key_of(seed, file->image), file->total);
	}
	return err;
}

static int add_functions(struct top_table *table, const struct opr_symbol_report *report, struct opr_image_cache *cache,
			 size_t class)
{
	uint64_t seed = key_of(table->view, table->event);
	int err = 0;

	for (size_t i = 0; i < report->nr_rows && !err; i++) {
		const struct opr_symbol_row *row = &report->rows[i];
		const struct opr_image *image = opr_image_cache_find(cache, row->image);
		uint64_t key = op_hash_add(key_of(key_of(seed, row->name), row->image), row->vma);
		uint64_t count = report->counts.values[row->counts + class];

		if (count)
			err = add_row(table, image && image->is_put_off ? OPR_PUT_OFF : row->name, opr_base_name(row->image_shown),
				      key, count);
	}
	return err;
}

static int add_class(struct top_reading *reading, enum top_view view, struct opr_run *run, size_t index)
{
	const struct opr_class *class = &run->selection.classes.classes[index];
	struct top_table *table;
	char event[256];
	int err;

	snprintf(event, sizeof(event), "%s:%llu", class->event, (unsigned long long)class->count);
	table = add_table(reading, view, event);
	if (!table)
		return -ENOMEM;
	err = view == TOP_IMAGES ? add_images(table, &run->selection.profile, index)
				 : add_functions(table, &run->rows, &run->images, index);
	finish_rows(table);
	return err;
}

static int read_samples(struct top_reading *reading, const struct top_query *query, struct opr_run *run)
{
	int err = opr_run_to(run, OPR_STEP_READ);

	if (err || (run->selection.profile.earlier && !run->selection.profile.earlier->is_set))
		return err;
	if (wants(query, TOP_FUNCTIONS))
		err = opr_run_to(run, OPR_STEP_ROWS);
	for (enum top_view view = TOP_FUNCTIONS; view <= TOP_IMAGES; view++)
		for (size_t class = 0; wants(query, view) && class < run->selection.classes.nr_classes && !err; class ++)
			err = add_class(reading, view, run, class);
	reading->nr_put_off = run->images.nr_put_off;
	return err;
}

/* ---- from the stacks ---- */

static int add_groups(struct top_table *table, const struct opr_call_tree *tree)
{
	int err = 0;

	for (const struct opr_call_node *node = opr_call_next(&tree->root); node && !err; node = opr_call_next(node))
		if (node->function->kind == OPR_CALL_GROUP && node->total) {
			err = add_row(table, node->function->name, "", 0, node->total);
			if (!err)
				table->rows[table->nr_rows - 1].depth = (unsigned int)opr_call_depth(node) - 1;
		}
	return err;
}

/* Whether all samples of a function are in one function that it called. */
static bool has_one_way(const struct opr_call_node *node)
{
	return node->function->kind != OPR_CALL_GROUP && !node->self && node->children && !node->children->next &&
	       node->children->function->kind != OPR_CALL_LESS;
}

/* What is left out below a function is its samples less those of the rows below it. */
static bool has_row(const struct opr_call_node *node)
{
	return node->function->kind != OPR_CALL_LESS || !node->parent->parent;
}

/* Functions on the same way share a row, with TOP_STEP between them. */
static int add_paths(struct top_table *table, const struct opr_call_tree *tree)
{
	/* index of the row + 1, by depth of its last node */
	unsigned int indents[OPR_CALL_DEPTH_MAX + 2] = { 0 };
	int err = 0;

	for (const struct opr_call_node *node = opr_call_next(&tree->root), *last; node && !err; node = opr_call_next(last)) {
		size_t depth = opr_call_depth(node);
		struct op_text name = { 0 };

		last = node;
		if (!has_row(node))
			continue;
		op_text_add(&name, node->function->name);
		while (has_one_way(last)) {
			last = last->children;
			op_text_printf(&name, TOP_STEP "%s", last->function->name);
		}
		err = name.failed ? opr_no_memory() :
				    add_row(table, op_text_get(&name), last->function->image, 0, node->total);
		if (!err)
			table->rows[table->nr_rows - 1].depth = indents[depth - 1];
		indents[opr_call_depth(last)] = indents[depth - 1] + 1;
		op_text_free(&name);
	}
	return err;
}

/* The group of a context, and the node for the end of its stacks. NULL: no memory. */
static struct opr_call_node *add_context(struct opr_call_tree *tree, enum top_view view, const struct opr_stack_context *context,
					 bool has_events)
{
	const char *name = view == TOP_NAMES ? context->comm : view == TOP_CGROUPS ? context->cgroup : context->app;
	const struct {
		bool is_wanted;
		enum opr_call_kind kind;
		const char *name;
	} steps[] = {
		{ has_events, OPR_CALL_GROUP, context->event },
		{ true, OPR_CALL_GROUP, name },
		{ view == TOP_PATHS && context->end != OP_STACK_END_complete, OPR_CALL_END, op_stack_end_name(context->end) },
	};
	struct opr_call_node *node = &tree->root;

	for (size_t i = 0; i < op_array_size(steps) && node; i++) {
		const struct opr_call_function *function;
		char text[64];

		if (!steps[i].is_wanted)
			continue;
		snprintf(text, sizeof(text), "[%s]", steps[i].name);
		function = opr_call_function(tree, steps[i].kind, steps[i].kind == OPR_CALL_END ? text : steps[i].name, "");
		node = function ? opr_call_child(tree, node, function) : NULL;
	}
	return node;
}

/* A function that calls itself is one row of a path: recursion, or code without symbols. */
static struct opr_call_node *add_call(struct opr_call_tree *tree, struct opr_call_node *caller,
				      const struct opr_call_function *function)
{
	return caller->function == function ? caller : opr_call_child(tree, caller, function);
}

/* The tree of a view, from the tree of all contexts. Only paths need the functions. */
static int make_tree(struct opr_call_tree *tree, enum top_view view, const struct opr_call_tree *all,
		     const struct opr_stack_contexts *contexts, bool has_events)
{
	/* of this tree, by the depth in the other */
	struct opr_call_node *nodes[OPR_CALL_DEPTH_MAX + 2] = { 0 };
	bool skips = false;

	for (const struct opr_call_node *node = opr_call_next(&all->root); node; node = opr_call_next(node)) {
		size_t depth = opr_call_depth(node);

		const struct opr_stack_context *context =
			depth == 1 ? &contexts->rows[strtoul(node->function->name, NULL, 10)] : NULL;

		skips = context ? context->is_wait : skips;
		if (skips)
			continue;
		if (context)
			nodes[1] = add_context(tree, view, context, has_events);
		else
			nodes[depth] = view == TOP_PATHS ? add_call(tree, nodes[depth - 1], node->function) : nodes[1];
		if (!nodes[depth])
			return opr_no_memory();
		nodes[depth]->self += node->self;
	}
	return 0;
}

static int add_stack_view(struct top_table *table, struct opr_call_tree *all)
{
	const struct opr_query query = { .threshold = table->view == TOP_PATHS ? PATH_PERCENT : 0,
					 .depth = SIZE_MAX,
					 .top = SIZE_MAX };
	const struct opr_stack_patterns none = { 0 };
	struct opr_call_tree tree = { 0 };
	uint64_t nr_left_out;
	int err = opr_call_tree_arrange(&tree, all, &query, &none, &nr_left_out) ? opr_no_memory() : 0;

	if (!err && tree.root.total)
		err = table->view == TOP_PATHS ? add_paths(table, &tree) : add_groups(table, &tree);
	table->total = tree.root.total;
	opr_call_tree_free(&tree);
	return err;
}

/* The waits of all contexts, with their states. */
static int make_waits(struct opr_call_tree *tree, const struct opr_call_tree *all, const struct opr_stack_contexts *contexts)
{
	struct opr_call_node *nodes[OPR_CALL_DEPTH_MAX + 2] = { 0 };
	bool skips = false;

	for (const struct opr_call_node *node = opr_call_next(&all->root); node; node = opr_call_next(node)) {
		size_t depth = opr_call_depth(node);
		const struct opr_call_function *function = node->function;
		char name[32];

		if (depth == 1) {
			const struct opr_stack_context *context = &contexts->rows[strtoul(function->name, NULL, 10)];

			snprintf(name, sizeof(name), "[%s]", op_wait_state_name(context->state));
			function = opr_call_function(tree, OPR_CALL_STATE, name, "");
			skips = !context->is_wait;
		} else if (!skips) {
			function = opr_call_function(tree, function->kind, function->name, function->image);
		}
		if (skips)
			continue;
		nodes[depth] = function ? opr_call_child(tree, depth == 1 ? &tree->root : nodes[depth - 1], function) : NULL;
		if (!nodes[depth])
			return opr_no_memory();
		nodes[depth]->self += node->self;
		nodes[depth]->self_records += node->self_records;
	}
	return 0;
}

static int add_waits(struct top_table *table, const struct opr_call_tree *all, const struct opr_stack_contexts *contexts)
{
	struct opr_call_tree tree = { 0 };
	struct opr_wait_list list = { 0 };
	int err = make_waits(&tree, all, contexts);

	if (!err)
		err = opr_wait_list_make(&list, &tree, false);
	for (size_t i = 0; i < list.nr_rows && !err; i++) {
		const struct opr_call_function *function = list.rows[i].function;

		err = add_row(table, function->name, opr_base_name(function->image), 0, list.rows[i].self_us);
	}
	table->idle_us = list.idle_us;
	table->total = list.all_us - list.idle_us;
	opr_wait_list_free(&list);
	opr_call_tree_free(&tree);
	return err;
}

/* The first event that is not WAIT; NULL: there is none. How many of them there are. */
static char *first_event(const struct opr_stack_sums *sums, size_t *ret_nr)
{
	char *first = NULL;

	*ret_nr = 0;
	for (size_t i = sums->events.nr_words; i--;)
		if (!opr_view_has(OPR_VIEW_WAIT, sums->events.words[i])) {
			first = sums->events.words[i];
			++*ret_nr;
		}
	return first;
}

static int add_stack_table(struct top_reading *reading, enum top_view view, const char *event, const struct opr_call_tree *all,
			   const struct opr_stack_contexts *contexts, bool has_events)
{
	struct top_table *table = add_table(reading, view, event);
	struct opr_call_tree tree = { 0 };
	int err;

	if (!table)
		return -ENOMEM;
	if (view == TOP_WAITS)
		return add_waits(table, all, contexts);
	err = make_tree(&tree, view, all, contexts, has_events);
	if (!err)
		err = add_stack_view(table, &tree);
	opr_call_tree_free(&tree);
	return err;
}

static int add_stack_tables(struct top_reading *reading, const struct top_query *query, const struct opr_call_tree *all,
			    const struct opr_stack_contexts *contexts, const struct opr_stack_sums *sums)
{
	size_t nr_events;
	char *event = first_event(sums, &nr_events);
	bool has_waits = sums->events.nr_words > nr_events;
	int err = 0;

	if (event)
		event[strcspn(event, ":")] = '\0';
	for (enum top_view view = TOP_NAMES; view <= TOP_WAITS && !err; view++)
		if (wants(query, view) && (view == TOP_WAITS ? has_waits : event != NULL))
			err = add_stack_table(reading, view, view == TOP_WAITS ? OP_WAITS_NAME : event, all, contexts,
					      nr_events > 1);
	return err;
}

static int read_stacks(struct top_reading *reading, const struct top_query *query, struct opr_run *run)
{
	struct opr_stack_contexts contexts = { 0 };
	struct opr_call_tree all = { 0 };
	struct opr_stack_sums sums = { 0 };
	const struct opr_before *earlier = query->report.earlier;
	int err = opr_run_to(run, OPR_STEP_READ);

	if (!err)
		err = opr_stacks_read(&all, &sums, &run->selection, run->query, &contexts);
	reading->nr_put_off = sums.nr_put_off;
	if (!err && (!earlier || earlier->is_set))
		err = add_stack_tables(reading, query, &all, &contexts, &sums);
	opr_stack_sums_free(&sums);
	opr_call_tree_free(&all);
	opr_stack_contexts_free(&contexts);
	return err;
}

/* ---- a reading ---- */

enum top_source top_source_of(enum top_view view)
{
	return view == TOP_FUNCTIONS || view == TOP_IMAGES ? TOP_SAMPLES : TOP_STACKS;
}

static int read_once(struct top_reading *reading, const struct top_query *query)
{
	struct opr_run run = { .query = &query->report, .words = &query->report.words };
	struct opr_before *base = query->report.earlier;
	int err = opr_run_to(&run, OPR_STEP_SELECT);

	if (!err)
		err = run.query->stacks ? read_stacks(reading, query, &run) : read_samples(reading, query, &run);
	opr_run_free(&run);
	if (base)
		opr_before_end(base, !err && !(base->is_set && query->keep_base));
	if (err)
		top_reading_free(reading);
	return err;
}

int top_read(struct top_reading *reading, const struct top_query *query)
{
	int err = read_once(reading, query);

	for (int i = 0; i < RETRIES && err == -ESTALE; i++)
		err = read_once(reading, query);
	return err;
}
