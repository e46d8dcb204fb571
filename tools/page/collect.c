/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/page/collect.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/profile/image_name.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/runtime_function.h"
#include "tools/stacks/idle.h"
#include "tools/symbols/image_identity.h"

#define CONTEXT_BYTES      40u /* of the numbers of a context, at most */
#define CONTEXTS_BYTES_MAX 500000u /* of a side, about */

/* ---- contexts ---- */

struct weighed {
	size_t context;
	double share; /* of all samples, or of all waits */
};

static int compare_weighed(const void *left, const void *right)
{
	const struct weighed *a = left, *b = right;

	if (a->share < b->share || a->share > b->share)
		return a->share > b->share ? -1 : 1;
	return a->context < b->context ? -1 : a->context > b->context;
}

static size_t bytes_of(const struct opr_stack_context *row)
{
	const char *const texts[] = { row->app, row->comm, row->cgroup, row->user, row->thread, row->cpu };
	size_t nr_bytes = CONTEXT_BYTES;

	for (size_t i = 0; i < op_array_size(texts); i++)
		nr_bytes += (size_t)op_min_u64(strlen(texts[i]), OPR_SHOWN_BYTES);
	return nr_bytes;
}

/* Which contexts of a side have room: those with most samples or time. Indexed by context. */
static void keep_contexts(const struct opr_page_side *side, struct weighed *weighed, bool *is_kept)
{
	size_t nr = 0, nr_bytes = 0;

	for (const struct opr_call_node *group = side->tree.root.children; group; group = group->next) {
		size_t context = strtoul(group->function->name, NULL, 10);
		bool is_wait = side->contexts.rows[context].is_wait;
		uint64_t of = is_wait ? side->sums.selected_us : side->sums.nr_samples - side->sums.selected_us;

		weighed[nr++] = (struct weighed){ context, opr_percent(group->total, of) };
	}
	qsort(weighed, nr, sizeof(*weighed), compare_weighed);
	for (size_t i = 0; i < nr; i++) {
		nr_bytes += bytes_of(&side->contexts.rows[weighed[i].context]);
		is_kept[weighed[i].context] = nr_bytes <= CONTEXTS_BYTES_MAX;
	}
}

/* Makes a context that stands for others of its session, event and end. */
static int make_other(struct opr_stack_context *row)
{
	char **const texts[] = { &row->app, &row->comm, &row->cgroup, &row->user, &row->thread, &row->cpu };

	for (size_t i = 0; i < op_array_size(texts); i++) {
		free(*texts[i]);
		*texts[i] = strdup("(other)");
		if (!*texts[i])
			return -ENOMEM;
	}
	return 0;
}

static bool is_same_other(const struct opr_stack_context *a, const struct opr_stack_context *b)
{
	return a->session == b->session && a->end == b->end && a->state == b->state && !strcmp(a->event, b->event);
}

/* Makes one context of those without room. numbers[old] is the new one. */
static int merge_contexts(struct opr_stack_contexts *contexts, const bool *is_kept, size_t *numbers)
{
	size_t nr_rows = contexts->nr_rows, nr = 0, *others = calloc(nr_rows + 1, sizeof(*others)), nr_others = 0, i, other;
	int err = others ? 0 : -ENOMEM;

	for (i = 0; i < nr_rows && !err; i++) {
		struct opr_stack_context row = contexts->rows[i];

		numbers[i] = nr;
		for (other = 0; !is_kept[i] && other < nr_others; other++)
			if (is_same_other(&contexts->rows[others[other]], &row))
				break;
		if (!is_kept[i] && other < nr_others) {
			numbers[i] = others[other];
			opr_stack_context_free(&row);
			continue;
		}
		if (!is_kept[i]) {
			others[nr_others++] = nr;
			err = make_other(&row);
		}
		contexts->rows[nr++] = row;
	}
	/* without memory: the rows that were not looked at yet */
	for (; i < nr_rows; i++)
		contexts->rows[nr++] = contexts->rows[i];
	contexts->nr_rows = nr;
	free(others);
	return err;
}

/* ---- nodes ---- */

/* The name of a function of a runtime has its line, which changes. NULL: no memory. */
static char *name_of_both(const struct opr_call_function *function)
{
	const char *source = function->place.source;
	char *name = NULL;

	if (function->kind != OPR_CALL_RUNTIME || !source)
		return strdup(function->name);
	return asprintf(&name, "%s (%s)", opr_call_bare_name(function), opr_runtime_file_name(source)) < 0 ? NULL : name;
}

/*
 * After a change a function may begin at another line, in another directory, and its image may have
 * another build-id or inode in its name: it is the same one.
 */
static const struct opr_call_function *copy_function(struct opr_page *page, const struct opr_call_function *function)
{
	const char *source = function->place.source;
	bool is_of_runtime = function->kind == OPR_CALL_RUNTIME;
	const struct opr_call_place place = {
		.source = !source ? NULL : is_of_runtime ? opr_runtime_file_name(source) : opr_base_name(source)
	};
	char *image = page->nr_sides == 2 ? opr_identity_path(function->image) : strdup(function->image);
	char *name = page->nr_sides == 2 ? name_of_both(function) : strdup(function->name);
	const struct opr_call_function *copy =
		image && name ? opr_call_function_at(&page->tree, function->kind, name, image, &place) : NULL;

	free(image);
	free(name);
	if (!copy || !op_grow(&page->places, &page->places_capacity, copy->index + 1))
		return NULL;
	page->places[copy->index] = &function->place;
	return copy;
}

/*
 * A function whose source one side of a difference does not know, since its file is gone or has no
 * debugging information, is the one of that name on the other side.
 */
static const struct opr_call_function *copy_of(struct opr_page *page, const struct opr_call_function *function)
{
	const struct opr_call_function *other = NULL;
	char *image;

	if (page->nr_sides == 2 && !function->place.source) {
		image = opr_identity_path(function->image);
		if (!image)
			return NULL;
		other = opr_call_function_with_source(&page->tree, function->kind, function->name, image);
		free(image);
	}
	return other ? other : copy_function(page, function);
}

static int copy_functions_with_source(struct opr_page *page)
{
	for (size_t i = 0; i < page->nr_sides; i++)
		for (const struct opr_call_node *node = opr_call_next(&page->sides[i].tree.root); node; node = opr_call_next(node))
			if (node->function->place.source && !copy_function(page, node->function))
				return -ENOMEM;
	return 0;
}

static struct opr_call_node *copy_node(struct opr_page *page, struct opr_call_node *parent,
				       const struct opr_call_function *function)
{
	const struct opr_call_function *copy = copy_of(page, function);

	return copy ? opr_call_child(&page->tree, parent, copy) : NULL;
}

static int add_count(struct opr_page *page, struct opr_call_node *node, size_t context, uint64_t count, uint64_t nr_records)
{
	if (!op_grow(&page->counts, &page->capacity, page->nr_counts + 1))
		return -ENOMEM;
	page->counts[page->nr_counts++] = (struct opr_page_count){ node, context, count, nr_records };
	node->self += count;
	return 0;
}

/* What is known while a side is added. */
struct adding {
	struct opr_page *page;
	struct opr_page_side *side;
	size_t nr_before;             /* contexts of the side before */
	struct opr_call_node **copies; /* by the index of the node */
	size_t *numbers;              /* of contexts, by those of the reader */
	size_t *idle;                 /* by number: that of its waits for work; 0: none yet */
};

/* The context for the waits for work of another one, which has only the other waits then. */
static int make_idle(struct opr_stack_contexts *contexts, size_t number, size_t *ret_number)
{
	const struct opr_stack_context *from;
	struct opr_stack_context *row;

	if (!op_grow(&contexts->rows, &contexts->capacity, contexts->nr_rows + 1))
		return -ENOMEM;
	from = &contexts->rows[number];
	row = &contexts->rows[contexts->nr_rows];
	*row = *from;
	row->event = strdup(from->event);
	row->app = strdup(from->app);
	row->comm = strdup(from->comm);
	row->cgroup = strdup(from->cgroup);
	row->user = strdup(from->user);
	row->thread = strdup(from->thread);
	row->cpu = strdup(from->cpu);
	row->is_idle = true;
	*ret_number = contexts->nr_rows++;
	return row->event && row->app && row->comm && row->cgroup && row->user && row->thread && row->cpu ? 0 : -ENOMEM;
}

/* The context of a stack that ends at a node. */
static int context_of(struct adding *adding, const struct opr_call_node *node, size_t context, size_t *ret_number)
{
	size_t number = adding->numbers[context];
	int err = 0;

	if (adding->side->contexts.rows[number].state == OP_WAIT_blocked && opr_idle_blocked(node)) {
		if (!adding->idle[number])
			err = make_idle(&adding->side->contexts, number, &adding->idle[number]);
		number = adding->idle[number];
	}
	*ret_number = adding->nr_before + number;
	return err;
}

static int add_stack(struct adding *adding, const struct opr_call_node *node, size_t context)
{
	size_t number;
	int err = node->self ? context_of(adding, node, context, &number) : 0;

	if (err || !node->self)
		return err;
	return add_count(adding->page, adding->copies[node->index], number, node->self, node->self_records);
}

/* Copies what is below a group. */
static int copy_group(struct adding *adding, const struct opr_call_node *group)
{
	struct opr_page *page = adding->page;
	struct opr_call_node **copies = adding->copies;
	size_t context = strtoul(group->function->name, NULL, 10);
	const struct opr_call_node *node = group;
	int err;

	copies[group->index] = &page->tree.root;
	err = add_stack(adding, group, context);
	while (!err) {
		node = opr_call_next(node);
		opr_progress_count("merging stacks", page->tree.nr_nodes,
				   page->sides[0].tree.nr_nodes + page->sides[1].tree.nr_nodes);
		if (!node || node->parent == group->parent)
			return 0;
		copies[node->index] = copy_node(page, copies[node->parent->index], node->function);
		err = copies[node->index] ? add_stack(adding, node, context) : -ENOMEM;
	}
	return err;
}

/* Where a span has samples of a node, the node has a count, so that it is not left out. */
static int add_times(struct adding *adding)
{
	const struct opr_stack_contexts *contexts = &adding->side->contexts;
	struct opr_page *page = adding->page;
	int err = 0;

	for (size_t i = 0; i < contexts->nr_times && !err; i++) {
		const struct opr_stack_time *time = &contexts->times[i];
		struct opr_call_node *node = adding->copies[time->node->index];
		size_t number;

		err = context_of(adding, time->node, time->context, &number);
		if (err || !op_grow(&page->times, &page->times_capacity, page->nr_times + 1))
			return -ENOMEM;
		page->times[page->nr_times++] = (struct opr_page_time){ node, number, time->span, time->count, time->nr_records };
		err = add_count(page, node, number, 0, 0);
	}
	return err;
}

/* Those of both sides have one name: the program of a waker has no build in it. */
static int add_wakers(struct adding *adding)
{
	const struct opr_call_tree *tree = &adding->side->tree;
	struct opr_page *page = adding->page;

	for (size_t i = 0; i < tree->nr_wakers; i++) {
		const struct opr_call_waker *from = &tree->wakers[i];
		const struct opr_call_node *group = from->node;
		const struct opr_call_function *who;
		size_t number;

		while (group->parent->parent)
			group = group->parent;
		who = opr_call_function(&page->tree, OPR_CALL_WAKER, from->who->name, from->who->image);
		if (!who || context_of(adding, from->node, strtoul(group->function->name, NULL, 10), &number) ||
		    !op_grow(&page->wakers, &page->wakers_capacity, page->nr_wakers + 1))
			return -ENOMEM;
		page->wakers[page->nr_wakers++] =
			(struct opr_page_waker){ adding->copies[from->node->index], number, who, from->us };
	}
	return 0;
}

static int compare_wakers(const void *left, const void *right)
{
	const struct opr_page_waker *a = left, *b = right;

	if (a->node->index != b->node->index)
		return a->node->index < b->node->index ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	if (a->who->index != b->who->index)
		return a->who->index < b->who->index ? -1 : 1;
	return 0;
}

static int compare_times(const void *left, const void *right)
{
	const struct opr_page_waker *a = left, *b = right;

	if (a->node->index != b->node->index)
		return a->node->index < b->node->index ? -1 : 1;
	if (a->context != b->context)
		return a->context < b->context ? -1 : 1;
	return (a->us < b->us) - (a->us > b->us);
}

/* Adds up those that are the same, and sorts them. */
static void merge_wakers(struct opr_page *page)
{
	size_t nr = 0;

	if (!page->nr_wakers)
		return;
	qsort(page->wakers, page->nr_wakers, sizeof(*page->wakers), compare_wakers);
	for (size_t i = 1; i < page->nr_wakers; i++) {
		if (!compare_wakers(&page->wakers[nr], &page->wakers[i]))
			page->wakers[nr].us += page->wakers[i].us;
		else
			page->wakers[++nr] = page->wakers[i];
	}
	page->nr_wakers = nr + 1;
	qsort(page->wakers, page->nr_wakers, sizeof(*page->wakers), compare_times);
}

static int compare_counts(const void *left, const void *right)
{
	const struct opr_page_count *a = left, *b = right;

	if (a->node->index != b->node->index)
		return a->node->index < b->node->index ? -1 : 1;
	return a->context < b->context ? -1 : a->context > b->context;
}

/* Adds a side, whose contexts are numbered from nr_before on. */
static int add_side(struct opr_page *page, struct opr_page_side *side, size_t nr_before)
{
	size_t nr_rows = side->contexts.nr_rows;
	struct adding adding = { .page = page,
				 .side = side,
				 .nr_before = nr_before,
				 .copies = calloc(side->tree.nr_nodes + 1, sizeof(struct opr_call_node *)),
				 .numbers = calloc(nr_rows + 1, sizeof(*adding.numbers)),
				 .idle = calloc(nr_rows + 1, sizeof(*adding.idle)) };
	struct weighed *weighed = calloc(nr_rows + 1, sizeof(*weighed));
	bool *is_kept = calloc(nr_rows + 1, sizeof(*is_kept));
	bool has_memory = adding.copies && adding.numbers && adding.idle && weighed && is_kept;
	int err = has_memory ? opr_call_tree_sum(&side->tree) : -ENOMEM;

	for (size_t i = 0; page->nr_sides == 2 && i < nr_rows && !err; i++) {
		char *app = opr_identity_path(side->contexts.rows[i].app);

		err = app ? 0 : -ENOMEM;
		if (app) {
			free(side->contexts.rows[i].app);
			side->contexts.rows[i].app = app;
		}
	}
	if (!err) {
		keep_contexts(side, weighed, is_kept);
		err = merge_contexts(&side->contexts, is_kept, adding.numbers);
	}
	for (const struct opr_call_node *group = side->tree.root.children; group && !err; group = group->next)
		err = copy_group(&adding, group);
	if (!err)
		err = add_times(&adding);
	if (!err)
		err = add_wakers(&adding);
	free(adding.copies);
	free(adding.numbers);
	free(adding.idle);
	free(weighed);
	free(is_kept);
	return err;
}

/* Contexts that became one have one count at a node. */
static void merge_counts(struct opr_page *page)
{
	size_t nr = 0;

	for (size_t i = 0; i < page->nr_counts; i++) {
		struct opr_page_count *count = &page->counts[i], *last = nr ? &page->counts[nr - 1] : NULL;

		if (!last || compare_counts(last, count)) {
			page->counts[nr++] = *count;
			continue;
		}
		last->count += count->count;
		last->nr_records += count->nr_records;
	}
	page->nr_counts = nr;
}

int opr_page_collect(struct opr_page *page)
{
	size_t nr_before = 0;
	int err = page->nr_sides == 2 ? copy_functions_with_source(page) : 0;

	for (size_t i = 0; i < page->nr_sides && !err; i++) {
		err = add_side(page, &page->sides[i], nr_before);
		nr_before += page->sides[i].contexts.nr_rows;
	}
	if (!err)
		err = opr_call_tree_sum(&page->tree);
	if (err)
		return opr_no_memory();
	if (page->nr_counts)
		qsort(page->counts, page->nr_counts, sizeof(*page->counts), compare_counts);
	merge_counts(page);
	merge_wakers(page);
	return 0;
}

void opr_page_free(struct opr_page *page)
{
	for (size_t i = 0; i < page->nr_sides; i++) {
		opr_call_tree_free(&page->sides[i].tree);
		opr_stack_contexts_free(&page->sides[i].contexts);
		opr_stack_sums_free(&page->sides[i].sums);
		op_text_free(&page->sides[i].code);
		op_text_free(&page->sides[i].flat);
	}
	opr_call_tree_free(&page->tree);
	free(page->counts);
	free(page->times);
	free(page->wakers);
	free(page->places);
	*page = (struct opr_page){ 0 };
}
