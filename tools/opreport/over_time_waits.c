/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The course of waits, from the stacks of the timelines with their names. */
#include <errno.h>

#include "tools/common/log.h"
#include "tools/opreport/over_time.h"
#include "tools/profile/image_name.h"
#include "tools/stacks/idle.h"
#include "tools/stacks/read_stacks.h"
#include "tools/stacks/short_images.h"
#include "tools/stacks/wait_list.h"

#define BINS_MAX 120u /* neighbours of more become one */
#define ROWS_MAX 10u

struct reading {
	struct opr_course *course;
	const char *name; /* NULL: the functions that waited longest */
	struct opr_call_tree tree;
	struct opr_stack_contexts contexts;
	bool show_idle;
};

static const struct opr_stack_context *context_of(const struct reading *reading, const struct opr_stack_time *time)
{
	return &reading->contexts.rows[time->context];
}

static bool is_idle(const struct reading *reading, const struct opr_stack_time *time)
{
	return !reading->show_idle && context_of(reading, time)->state == OP_WAIT_blocked && opr_idle_blocked(time->node);
}

static bool has_name(const char *full, const char *name)
{
	return !strcmp(full, name) || !strcmp(opr_base_name(full), name);
}

static bool is_called_by(const struct opr_call_node *node, const char *name)
{
	for (; node->parent->parent; node = node->parent)
		if (!strcmp(node->function->name, name))
			return true;
	return false;
}

static bool is_of(const struct reading *reading, const struct opr_stack_time *time, const char *what)
{
	if (!strcmp(what, "application"))
		return has_name(context_of(reading, time)->app, reading->name);
	if (!strcmp(what, "image"))
		return has_name(opr_wait_site(time->node)->image, reading->name);
	return is_called_by(time->node, reading->name);
}

/* What has the name: an application, else an image, else a function. */
static int find_match(struct reading *reading)
{
	static const char *const whats[] = { "application", "image", "function" };

	for (size_t i = 0; i < op_array_size(whats); i++)
		for (size_t t = 0; t < reading->contexts.nr_times; t++)
			if (is_of(reading, &reading->contexts.times[t], whats[i])) {
				reading->course->what = whats[i];
				return opr_words_add(&reading->course->rows, reading->name) < 0 ? opr_no_memory() : 0;
			}
	return opr_error(-ENOENT, "--over-time=%s: no application, image or function that waited has that name", reading->name);
}

struct sum {
	const struct opr_call_function *function;
	uint64_t us;
};

static int compare_sums(const void *left, const void *right)
{
	const struct sum *a = left, *b = right;

	if (a->us != b->us)
		return a->us > b->us ? -1 : 1;
	return a->function && b->function ? strcmp(a->function->name, b->function->name) : 0;
}

/* Of each function the row; functions of one name are one. 0 or -ENOMEM. */
static int choose_functions(struct reading *reading, struct sum *sums, size_t nr_sums)
{
	struct opr_words *rows = &reading->course->rows;
	int err = 0;

	reading->course->what = "function";
	for (size_t i = 0; i < reading->contexts.nr_times; i++) {
		const struct opr_stack_time *time = &reading->contexts.times[i];
		struct sum *sum = &sums[opr_wait_site(time->node)->index];

		sum->function = opr_wait_site(time->node);
		sum->us += is_idle(reading, time) ? 0 : time->count;
	}
	qsort(sums, nr_sums, sizeof(*sums), compare_sums);
	for (size_t i = 0; i < nr_sums && sums[i].us && rows->nr_words < ROWS_MAX && !err; i++)
		if (!opr_words_have(rows, sums[i].function->name))
			err = opr_words_add(rows, sums[i].function->name) < 0 ? opr_no_memory() : 0;
	return err;
}

static size_t row_of(const struct reading *reading, const struct opr_stack_time *time)
{
	const struct opr_words *rows = &reading->course->rows;
	size_t row = 0;

	if (reading->name)
		return is_of(reading, time, reading->course->what) ? 0 : rows->nr_words;
	while (row < rows->nr_words && strcmp(rows->words[row], opr_wait_site(time->node)->name) != 0)
		row++;
	return row;
}

static int make_bins(struct opr_course *course, const struct opr_stack_contexts *contexts)
{
	course->bins = calloc(contexts->nr_spans + 1, sizeof(*course->bins));
	if (!course->bins)
		return opr_no_memory();
	for (; course->nr_bins < contexts->nr_spans; course->nr_bins++) {
		struct opr_bin *bin = &course->bins[course->nr_bins];

		bin->begin_ns = contexts->spans[course->nr_bins].begin_ns;
		bin->end_ns = contexts->spans[course->nr_bins].end_ns;
		bin->values = calloc(course->rows.nr_words + 1, sizeof(*bin->values));
		if (!bin->values)
			return opr_no_memory();
	}
	return 0;
}

static int make_course(struct reading *reading)
{
	size_t nr_functions = reading->tree.functions.nr_entries;
	struct sum *sums = calloc(nr_functions + 1, sizeof(*sums));
	int err = !sums ? opr_no_memory() : reading->name ? find_match(reading) : choose_functions(reading, sums, nr_functions);

	if (!err)
		err = make_bins(reading->course, &reading->contexts);
	for (size_t i = 0; i < reading->contexts.nr_times && !err; i++) {
		const struct opr_stack_time *time = &reading->contexts.times[i];
		size_t row = row_of(reading, time);

		if (is_idle(reading, time))
			continue;
		reading->course->bins[time->span].total += time->count;
		if (row < reading->course->rows.nr_words)
			reading->course->bins[time->span].values[row] += time->count;
	}
	free(sums);
	return err;
}

int opr_course_read_waits(struct opr_course *course, struct opr_run *run, const char *name)
{
	struct reading reading = { .course = course, .name = name, .show_idle = run->query->show_idle };
	struct opr_short_names names = { 0 };
	struct opr_stack_sums sums = { 0 };
	int err;

	reading.contexts.max_spans = BINS_MAX;
	course->is_time = true;
	course->event = strdup(OP_WAITS_NAME);
	err = course->event ? opr_stacks_read(&reading.tree, &sums, &run->selection, run->query, &reading.contexts) :
			      opr_no_memory();
	if (!err && !reading.contexts.nr_times)
		err = opr_error(-ENOENT, "no timeline has waits of that time: opcontrol --history lists what is kept");
	if (!err)
		err = opr_short_images_find(&names, &sums, NULL);
	if (!err) {
		opr_short_images_set(&names, &reading.tree, &reading.contexts);
		err = make_course(&reading);
	}
	opr_short_names_free(&names);
	opr_stack_sums_free(&sums);
	opr_call_tree_free(&reading.tree);
	opr_stack_contexts_free(&reading.contexts);
	return err;
}
