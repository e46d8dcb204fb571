/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The course of waits, or of functions of runtimes, from the stacks of the timelines. */
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
	const char *name; /* NULL: the functions that waited longest, or have most samples */
	bool of_runtimes;
	enum op_runtime runtime; /* of this one only; OP_RUNTIME_none: of all */
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
	if (reading->of_runtimes || reading->show_idle)
		return false;
	return context_of(reading, time)->state == OP_WAIT_blocked && opr_idle_blocked(time->node);
}

static bool is_of_runtime(const struct reading *reading, const struct opr_call_function *function)
{
	return function->kind == OPR_CALL_RUNTIME &&
	       (!reading->runtime || !strcmp(op_runtime_word(reading->runtime), function->image));
}

/* The function a stack counts for: that waited, or the innermost one of a runtime. NULL: none. */
static const struct opr_call_function *site_of(const struct reading *reading, const struct opr_stack_time *time)
{
	if (!reading->of_runtimes)
		return opr_wait_site(time->node);
	for (const struct opr_call_node *node = time->node; node->parent; node = node->parent)
		if (is_of_runtime(reading, node->function))
			return node->function;
	return NULL;
}

static bool has_name(const char *full, const char *name)
{
	return !strcmp(full, name) || !strcmp(opr_base_name(full), name);
}

/* Of a function of a runtime, file and line need not be given. */
static bool is_called_by(const struct reading *reading, const struct opr_call_node *node)
{
	for (; node->parent && node->parent->parent; node = node->parent)
		if ((!reading->of_runtimes || is_of_runtime(reading, node->function)) &&
		    (!strcmp(node->function->name, reading->name) || !strcmp(opr_call_bare_name(node->function), reading->name)))
			return true;
	return false;
}

static bool is_of(const struct reading *reading, const struct opr_stack_time *time, const char *what)
{
	if (!strcmp(what, "application"))
		return has_name(context_of(reading, time)->app, reading->name);
	if (!strcmp(what, "function"))
		return is_called_by(reading, time->node);
	return !reading->of_runtimes && has_name(opr_wait_site(time->node)->image, reading->name);
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
	return opr_error(-ENOENT, "--over-time=%s: no application%s has that name", reading->name,
			 reading->of_runtimes ? " and no function of a runtime" : ", image or function that waited");
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
		const struct opr_call_function *site = site_of(reading, time);

		if (!site)
			continue;
		sums[site->index].function = site;
		sums[site->index].us += is_idle(reading, time) ? 0 : time->count;
	}
	qsort(sums, nr_sums, sizeof(*sums), compare_sums);
	for (size_t i = 0; i < nr_sums && sums[i].us && rows->nr_words < ROWS_MAX && !err; i++)
		if (!opr_words_have(rows, sums[i].function->name))
			err = opr_words_add(rows, sums[i].function->name) < 0 ? opr_no_memory() : 0;
	return err;
}

static size_t row_of(const struct reading *reading, const struct opr_stack_time *time)
{
	const struct opr_call_function *site = site_of(reading, time);
	const struct opr_words *rows = &reading->course->rows;
	size_t row = site ? 0 : rows->nr_words;

	if (reading->name)
		return is_of(reading, time, reading->course->what) ? 0 : rows->nr_words;
	while (row < rows->nr_words && strcmp(rows->words[row], site->name) != 0)
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

static int set_event(struct opr_course *course, const struct opr_stack_sums *sums)
{
	if (!course->is_time && sums->events.nr_words > 1)
		return opr_error(-EINVAL, "the stacks are of several events: event:NAME chooses one");
	course->event = strdup(course->is_time || !sums->events.nr_words ? OP_WAITS_NAME : sums->events.words[0]);
	return course->event ? 0 : opr_no_memory();
}

static int read_course(struct reading *reading, struct opr_run *run, const struct opr_query *query)
{
	struct opr_short_names names = { 0 };
	struct opr_stack_sums sums = { 0 };
	int err;

	reading->contexts.max_spans = BINS_MAX;
	err = opr_stacks_read(&reading->tree, &sums, &run->selection, query, &reading->contexts);
	if (!err && !reading->contexts.nr_times)
		err = opr_error(-ENOENT, "no timeline has %s of that time: opcontrol --history lists what is kept",
				reading->course->is_time ? "waits" : "stacks");
	if (!err)
		err = set_event(reading->course, &sums);
	if (!err)
		err = opr_short_images_find(&names, &sums, NULL);
	if (!err) {
		opr_short_images_set(&names, &reading->tree, &reading->contexts);
		err = make_course(reading);
	}
	if (!err && !reading->course->rows.nr_words && reading->of_runtimes)
		err = opr_error(-ENOENT, "no stack of that time has a function of %s",
				reading->runtime ? op_runtime_word(reading->runtime) : "a runtime");
	opr_short_names_free(&names);
	opr_stack_sums_free(&sums);
	opr_call_tree_free(&reading->tree);
	opr_stack_contexts_free(&reading->contexts);
	return err;
}

int opr_course_read_waits(struct opr_course *course, struct opr_run *run, const char *name)
{
	struct reading reading = { .course = course, .name = name, .show_idle = run->query->show_idle };

	course->is_time = true;
	return read_course(&reading, run, run->query);
}

int opr_course_read_runtimes(struct opr_course *course, struct opr_run *run, const char *name, enum op_runtime runtime)
{
	struct reading reading = { .course = course, .name = name, .of_runtimes = true, .runtime = runtime };
	struct opr_query query = *run->query;

	query.native = OPR_NATIVE_NONE;
	return read_course(&reading, run, &query);
}
