/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/runtimes.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/stacks/runtime_name.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/write_stacks.h"

struct row {
	const struct opr_call_function *function; /* of the tree */
	uint64_t self, total;
	size_t nr_on_path; /* how often the function is in the stack that is looked at */
};

struct list {
	struct row *rows; /* by index of the function; then those of runtimes, most samples first */
	size_t nr_rows;
	uint64_t of_runtimes[OP_NR_RUNTIMES]; /* stacks whose innermost function it is */
	uint64_t all;
};

static enum op_runtime runtime_of(const struct opr_call_function *function)
{
	enum op_runtime runtime = OP_NR_RUNTIMES;

	while (--runtime > OP_RUNTIME_none)
		if (function->kind == OPR_CALL_RUNTIME && !strcmp(op_runtime_word(runtime), function->image))
			break;
	return runtime;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int order;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	order = strcmp(a->function->name, b->function->name);
	return order ? order : strcmp(a->function->place.source ?: "", b->function->place.source ?: "");
}

static void leave(struct list *list, const struct opr_call_node *node)
{
	list->rows[node->function->index].nr_on_path--;
}

/* A function that calls itself is in its stack once. `only`: OP_RUNTIME_none for all. */
static void count_tree(struct list *list, const struct opr_call_tree *tree, enum op_runtime only)
{
	const struct opr_call_node *last = &tree->root;

	list->all = tree->root.total;
	for (const struct opr_call_node *node = opr_call_next(&tree->root); node; last = node, node = opr_call_next(node)) {
		enum op_runtime runtime = runtime_of(node->function);
		struct row *row = &list->rows[node->function->index];

		for (; last != node->parent; last = last->parent)
			leave(list, last);
		list->of_runtimes[runtime] += node->self;
		if (!row->nr_on_path++)
			row->total += node->total;
		row->self += node->self;
		if (runtime && (!only || only == runtime))
			row->function = node->function;
	}
}

static int make_list(struct list *list, struct opr_call_tree *tree, enum op_runtime only)
{
	size_t nr_functions = tree->functions.nr_entries;

	list->rows = calloc(nr_functions + 1, sizeof(*list->rows));
	if (!list->rows || opr_call_tree_sum(tree) < 0)
		return opr_no_memory();
	count_tree(list, tree, only);
	for (size_t i = 0; i < nr_functions; i++)
		if (list->rows[i].function)
			list->rows[list->nr_rows++] = list->rows[i];
	if (list->nr_rows)
		qsort(list->rows, list->nr_rows, sizeof(*list->rows), compare_rows);
	return 0;
}

/* ---- forms ---- */

static void write_text(const struct list *list, size_t nr_rows, const struct opr_stack_report *report, FILE *out)
{
	struct op_text text = { 0 };

	if (!report->no_header) {
		opr_stacks_describe(report, &text);
		fputs(op_text_get(&text), out);
		for (enum op_runtime runtime = OP_RUNTIME_none + 1; runtime < OP_NR_RUNTIMES; runtime++)
			if (list->of_runtimes[runtime])
				fprintf(out, "Runtime: %s has %" PRIu64 " samples, %.4g %%\n", op_runtime_word(runtime),
					list->of_runtimes[runtime], opr_percent(list->of_runtimes[runtime], list->all));
		fputs("    self    % self    total   % total  runtime  function (file:line)\n", out);
		op_text_free(&text);
	}
	for (size_t i = 0; i < nr_rows; i++) {
		const struct row *row = &list->rows[i];

		fprintf(out, "%8" PRIu64 "  %8.4f %8" PRIu64 "  %8.4f  %-7s  ", row->self, opr_percent(row->self, list->all),
			row->total, opr_percent(row->total, list->all), row->function->image);
		opr_write_escaped(out, row->function->name);
		fputc('\n', out);
	}
}

static void write_csv(const struct list *list, size_t nr_rows, const struct opr_stack_report *report, FILE *out)
{
	if (!report->no_header)
		fputs("self,percent,total,runtime,function,file,line\n", out);
	for (size_t i = 0; i < nr_rows; i++) {
		const struct row *row = &list->rows[i];

		fprintf(out, "%" PRIu64 ",%.6g,%" PRIu64 ",%s,", row->self, opr_percent(row->self, list->all), row->total,
			row->function->image);
		opr_write_csv(out, row->function->place.function);
		fputc(',', out);
		opr_write_csv(out, row->function->place.source ?: "");
		fprintf(out, ",%u\n", row->function->place.line);
	}
}

static void write_json(const struct list *list, size_t nr_rows, const struct opr_stack_report *report, FILE *out)
{
	bool any = false;

	fprintf(out, "{\n  \"runtimes\": {\n    \"samples\": %" PRIu64 ", \"lost\": %" PRIu64 ",\n    \"of\": {", list->all,
		report->sums->nr_lost);
	for (enum op_runtime runtime = OP_RUNTIME_none + 1; runtime < OP_NR_RUNTIMES; runtime++) {
		if (!list->of_runtimes[runtime])
			continue;
		fprintf(out, "%s \"%s\": %" PRIu64, any ? "," : "", op_runtime_word(runtime), list->of_runtimes[runtime]);
		any = true;
	}
	fputs(" },\n    \"functions\": [", out);
	for (size_t i = 0; i < nr_rows; i++) {
		const struct row *row = &list->rows[i];

		fprintf(out, "%s\n      { \"runtime\": \"%s\", \"function\": ", i ? "," : "", row->function->image);
		opr_write_json(out, row->function->place.function);
		fputs(", \"file\": ", out);
		opr_write_json(out, row->function->place.source ?: "");
		fprintf(out, ", \"line\": %u, \"self\": %" PRIu64 ", \"percent\": %.6g, \"total\": %" PRIu64 " }",
			row->function->place.line, row->self, opr_percent(row->self, list->all), row->total);
	}
	fputs("\n    ]\n  }\n}\n", out);
}

static int write_list(const struct list *list, const struct opr_stack_report *report, const struct opr_options *options)
{
	const struct opr_query *query = &options->query;
	struct opr_output output = { 0 };
	size_t nr_rows = 0;
	int err = opr_output_open(&output, options->output_file, options->no_pager, options->colour);

	if (err)
		return err;
	/* A function that only calls others has no samples of its own, and may have many in all. */
	for (size_t i = 0; i < list->nr_rows && nr_rows < query->top; i++)
		if (opr_percent(list->rows[i].total, list->all) >= query->threshold)
			list->rows[nr_rows++] = list->rows[i];
	if (options->format == OPR_FORMAT_JSON)
		write_json(list, nr_rows, report, output.out);
	else if (options->format == OPR_FORMAT_CSV)
		write_csv(list, nr_rows, report, output.out);
	else
		write_text(list, nr_rows, report, output.out);
	return opr_output_close(&output);
}

int opr_runtimes_report(struct opr_run *run, const struct opr_options *options)
{
	struct opr_query query = *run->query;
	struct opr_call_tree tree = { 0 };
	struct opr_stack_sums sums = { 0 };
	struct list list = { 0 };
	const struct opr_stack_report report = { .tree = &tree, .sums = &sums, .recorded = &run->selection.recorded,
						 .no_header = query.no_header };
	int err;

	/* What a function calls in native code is its own. */
	query.native = OPR_NATIVE_NONE;
	err = opr_stacks_read(&tree, &sums, &run->selection, &query, NULL);
	if (!err && sums.events.nr_words > 1)
		err = opr_error(-EINVAL, "the stacks are of several events: event:NAME chooses one");
	if (!err)
		err = make_list(&list, &tree, options->runtime);
	if (!err && !list.nr_rows)
		err = opr_error(-ENOENT, "no stack has a function of %s: opcontrol --status says which runtimes opd reads",
				options->runtime ? op_runtime_word(options->runtime) : "a runtime");
	if (!err)
		err = write_list(&list, &report, options);
	free(list.rows);
	opr_call_tree_free(&tree);
	opr_stack_sums_free(&sums);
	return err;
}
