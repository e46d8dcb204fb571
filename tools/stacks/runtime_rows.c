/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/runtime_rows.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/stacks/arrange.h"

/* A function at a line: each is a function of its own in a tree with places. */
struct line {
	const struct opr_call_function *function;
	size_t counts; /* in detail_counts */
};

struct lines {
	struct line *lines;
	size_t nr_lines, capacity;
	size_t *numbers; /* by index of the function: 1 + its line; 0: it has no samples yet */
};

static const struct opr_call_function *event_of(const struct opr_call_node *node)
{
	while (node->parent->parent)
		node = node->parent;
	return node->function;
}

static size_t class_of(const struct opr_words *events, const struct opr_call_node *node)
{
	size_t class = 0;

	while (class + 1 < events->nr_words && strcmp(events->words[class], event_of(node)->name) != 0)
		class++;
	return class;
}

static bool is_wanted(const struct opr_query *query, const struct opr_call_function *function)
{
	const struct opr_words *include = &query->include_symbols, *exclude = &query->exclude_symbols;
	const char *bare = opr_call_bare_name(function);

	if (function->kind != OPR_CALL_RUNTIME || !function->place.source)
		return false;
	return (!include->nr_words || opr_words_have(include, bare) || opr_words_have(include, function->name)) &&
	       !opr_words_have(exclude, bare) && !opr_words_have(exclude, function->name);
}

static int add_node(struct opr_runtime_rows *rows, struct lines *lines, const struct opr_query *query,
		    const struct opr_call_node *node)
{
	const struct opr_call_function *function = node->function;
	struct opr_symbol_report *report = &rows->report;
	size_t class = class_of(&rows->sums.events, node), *number = &lines->numbers[function->index];

	report->totals[class] += node->self;
	if (!is_wanted(query, function))
		return 0;
	if (!*number) {
		struct line line = { .function = function };

		if (!op_grow(&lines->lines, &lines->capacity, lines->nr_lines + 1) ||
		    !opr_counts_add(&report->detail_counts, report->nr_classes, &line.counts))
			return -ENOMEM;
		lines->lines[lines->nr_lines++] = line;
		*number = lines->nr_lines;
	}
	report->detail_counts.values[lines->lines[*number - 1].counts + class] += node->self;
	return 0;
}

/* By function, then by line. */
static int compare_functions(const struct opr_call_function *a, const struct opr_call_function *b)
{
	int order = strcmp(a->place.source, b->place.source);

	if (!order)
		order = (a->place.first_line > b->place.first_line) - (a->place.first_line < b->place.first_line);
	if (!order)
		order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->image, b->image);
}

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	int order = compare_functions(a->function, b->function);

	if (order)
		return order;
	return (a->function->place.line > b->function->place.line) - (a->function->place.line < b->function->place.line);
}

static int add_detail(struct opr_symbol_report *report, const struct line *line)
{
	struct opr_symbol_row *row = &report->rows[report->nr_rows - 1];

	if (!op_grow(&report->details, &report->details_capacity, report->nr_details + 1))
		return -ENOMEM;
	report->details[report->nr_details++] = (struct opr_detail){ line->function->place.line, line->counts };
	row->nr_details++;
	for (size_t i = 0; i < report->nr_classes; i++)
		report->counts.values[row->counts + i] += report->detail_counts.values[line->counts + i];
	return 0;
}

/* The path of a file, also where the runtime has its URL. */
static const char *path_of(const char *source)
{
	static const char url[] = "file://";

	return strncmp(source, url, strlen(url)) ? source : source + strlen(url);
}

static int add_rows(struct opr_symbol_report *report, const struct lines *lines)
{
	const struct opr_call_function *before = NULL;
	size_t index;

	for (size_t i = 0; i < lines->nr_lines; i++) {
		const struct opr_call_function *function = lines->lines[i].function;

		if (!before || compare_functions(before, function)) {
			const struct opr_symbol_row row = { .name = function->name,
							    .app = "",
							    .image = function->image,
							    .app_shown = "",
							    .image_shown = function->image,
							    .file = strdup(path_of(function->place.source)),
							    .line = function->place.first_line };

			if (!row.file || opr_symbol_report_add(report, &row, &index)) {
				free(row.file);
				return -ENOMEM;
			}
		}
		before = function;
		if (add_detail(report, &lines->lines[i]))
			return -ENOMEM;
	}
	return 0;
}

static int make_rows(struct opr_runtime_rows *rows, const struct opr_query *query)
{
	struct opr_symbol_report *report = &rows->report;
	struct lines lines = { .numbers = calloc(rows->tree.functions.nr_entries + 1, sizeof(*lines.numbers)) };
	int err;

	report->nr_classes = report->nr_limits = rows->sums.events.nr_words;
	report->totals = calloc(report->nr_classes + 1, sizeof(*report->totals));
	err = lines.numbers && report->totals ? 0 : -ENOMEM;
	for (const struct opr_call_node *node = opr_call_next(&rows->tree.root); node && !err; node = opr_call_next(node))
		if (node->self)
			err = add_node(rows, &lines, query, node);
	if (lines.nr_lines)
		qsort(lines.lines, lines.nr_lines, sizeof(*lines.lines), compare_lines);
	if (!err)
		err = add_rows(report, &lines);
	free(lines.lines);
	free(lines.numbers);
	return err ? opr_no_memory() : 0;
}

int opr_runtime_rows_read(struct opr_runtime_rows *rows, struct opr_selection *selection, const struct opr_query *query)
{
	struct opr_query of_stacks = *query;
	int err;

	of_stacks.places = of_stacks.optional = of_stacks.stacks = 1;
	of_stacks.lines = of_stacks.inlined = of_stacks.frames = of_stacks.naming.fetch_lines = 0;
	of_stacks.view = OPR_VIEW_CPU;
	of_stacks.native = OPR_NATIVE_NONE;
	err = opr_stacks_read(&rows->tree, &rows->sums, selection, &of_stacks, NULL);
	return err || !rows->sums.nr_samples ? err : make_rows(rows, query);
}

void opr_runtime_rows_free(struct opr_runtime_rows *rows)
{
	opr_symbol_report_free(&rows->report);
	opr_call_tree_free(&rows->tree);
	opr_stack_sums_free(&rows->sums);
}
