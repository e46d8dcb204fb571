/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opreport/runtimes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "libop/stacks/runtime_name.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"
#include "tools/stacks/runtime_function.h"
#include "tools/stacks/write_stacks.h"

#define NOISE_ERRORS 2.0 /* standard errors, as of samples (tools/report/diff_rows.c) */

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

/* ---- a profile ---- */

struct side {
	struct opr_call_tree tree;
	struct opr_stack_sums sums;
	struct list list;
};

static int read_side(struct side *side, struct opr_run *run, enum op_runtime runtime)
{
	struct opr_query query = *run->query;
	int err;

	/* What a function calls in native code is its own. */
	query.native = OPR_NATIVE_NONE;
	err = opr_stacks_read(&side->tree, &side->sums, &run->selection, &query, NULL);
	if (!err && side->sums.events.nr_words > 1)
		err = opr_error(-EINVAL, "the stacks are of several events: event:NAME chooses one");
	return err ? err : make_list(&side->list, &side->tree, runtime);
}

static void free_side(struct side *side)
{
	free(side->list.rows);
	opr_call_tree_free(&side->tree);
	opr_stack_sums_free(&side->sums);
}

static int no_function(enum op_runtime runtime)
{
	return opr_error(-ENOENT, "no stack has a function of %s: opcontrol --status says which runtimes opd reads",
			 runtime ? op_runtime_word(runtime) : "a runtime");
}

int opr_runtimes_report(struct opr_run *run, const struct opr_options *options)
{
	struct side side = { 0 };
	const struct opr_stack_report report = { .tree = &side.tree, .sums = &side.sums, .recorded = &run->selection.recorded,
						 .no_header = run->query->no_header };
	int err = read_side(&side, run, options->runtime);

	if (!err && !side.list.nr_rows)
		err = no_function(options->runtime);
	if (!err)
		err = write_list(&side.list, &report, options);
	free_side(&side);
	return err;
}

/* ---- two profiles ---- */

/* A function before and after, by its name and file: a new version has another line and folder. */
struct change {
	const struct opr_call_function *function;
	uint64_t self[2];
	double percent[2], points, noise;
};

struct changes {
	struct change *rows;
	size_t nr_rows;
	uint64_t all[2];
};

static int compare_names(const struct opr_call_function *a, const struct opr_call_function *b)
{
	int order = strcmp(a->image, b->image);

	order = order ?: strcmp(opr_call_bare_name(a), opr_call_bare_name(b));
	return order ?: strcmp(opr_runtime_file_name(a->place.source ?: ""), opr_runtime_file_name(b->place.source ?: ""));
}

static int by_name(const void *left, const void *right)
{
	const struct change *a = left, *b = right;

	return compare_names(a->function, b->function);
}

/* Those that are sure come first, the largest first. */
static int by_points(const void *left, const void *right)
{
	const struct change *a = left, *b = right;
	bool is_noise[] = { fabs(a->points) <= a->noise, fabs(b->points) <= b->noise };

	if (is_noise[0] != is_noise[1])
		return is_noise[0] ? 1 : -1;
	if (fabs(a->points) > fabs(b->points))
		return -1;
	return fabs(a->points) < fabs(b->points) ? 1 : compare_names(a->function, b->function);
}

/* Functions of one name and file are one. */
static void join(struct changes *changes)
{
	size_t nr = 0;

	if (changes->nr_rows)
		qsort(changes->rows, changes->nr_rows, sizeof(*changes->rows), by_name);
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change row = changes->rows[i];

		if (!nr || compare_names(changes->rows[nr - 1].function, row.function) != 0) {
			changes->rows[nr++] = row;
			continue;
		}
		if (row.self[1]) /* the line of today */
			changes->rows[nr - 1].function = row.function;
		for (size_t side = 0; side < 2; side++)
			changes->rows[nr - 1].self[side] += row.self[side];
	}
	changes->nr_rows = nr;
}

static void compute(struct changes *changes, const struct opr_options *options)
{
	size_t nr = 0;

	for (size_t i = 0; i < changes->nr_rows; i++) {
		struct change *change = &changes->rows[i];
		double square = 0;

		for (size_t side = 0; side < 2; side++) {
			double all = (double)op_max_u64(changes->all[side], 1);

			change->percent[side] = 100.0 * (double)change->self[side] / all;
			square += (double)change->self[side] / all / all;
		}
		change->points = change->percent[1] - change->percent[0];
		change->noise = NOISE_ERRORS * 100.0 * sqrt(square);
	}
	if (changes->nr_rows)
		qsort(changes->rows, changes->nr_rows, sizeof(*changes->rows), by_points);
	for (size_t i = 0; i < changes->nr_rows && nr < options->query.top; i++) {
		const struct change *change = &changes->rows[i];

		if (fabs(change->points) >= options->query.threshold && (change->self[0] || change->self[1]) &&
		    (!options->top_changes || change->points > change->noise))
			changes->rows[nr++] = *change;
	}
	changes->nr_rows = nr;
}

static void write_changes_text(const struct changes *changes, bool no_header, FILE *out)
{
	if (!no_header) {
		fprintf(out, "Stacks: %" PRIu64 " before, %" PRIu64 " after\n", changes->all[0], changes->all[1]);
		fputs("  before    after  % before   % after   points  runtime  function (file:line)\n", out);
	}
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change *change = &changes->rows[i];

		fprintf(out, "%8" PRIu64 " %8" PRIu64 " %9.4f %9.4f %+8.2f  %-7s  ", change->self[0], change->self[1],
			change->percent[0], change->percent[1], change->points, change->function->image);
		opr_write_escaped(out, change->function->name);
		fputs(fabs(change->points) <= change->noise ? "  noise\n" : "\n", out);
	}
}

static void write_changes_csv(const struct changes *changes, bool no_header, FILE *out)
{
	if (!no_header)
		fputs("before,after,before-percent,after-percent,points,noise,runtime,function,file,line\n", out);
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change *change = &changes->rows[i];

		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%s,", change->self[0], change->self[1],
			change->percent[0], change->percent[1], change->points, change->noise, change->function->image);
		opr_write_csv(out, opr_call_bare_name(change->function));
		fputc(',', out);
		opr_write_csv(out, change->function->place.source ?: "");
		fprintf(out, ",%u\n", change->function->place.line);
	}
}

static void write_changes_json(const struct changes *changes, FILE *out)
{
	fprintf(out, "{\n  \"runtimes\": {\n    \"samples\": [%" PRIu64 ", %" PRIu64 "],\n    \"functions\": [", changes->all[0],
		changes->all[1]);
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change *change = &changes->rows[i];

		fprintf(out, "%s\n      { \"runtime\": \"%s\", \"function\": ", i ? "," : "", change->function->image);
		opr_write_json(out, opr_call_bare_name(change->function));
		fputs(", \"file\": ", out);
		opr_write_json(out, change->function->place.source ?: "");
		fprintf(out, ", \"line\": %u, \"self\": [%" PRIu64 ", %" PRIu64 "], \"percent\": [%.6g, %.6g], ",
			change->function->place.line, change->self[0], change->self[1], change->percent[0], change->percent[1]);
		fprintf(out, "\"points\": %.6g, \"noise\": %.6g }", change->points, change->noise);
	}
	fputs("\n    ]\n  }\n}\n", out);
}

static int write_changes(const struct changes *changes, const struct opr_options *options)
{
	struct opr_output output = { 0 };
	int err = opr_output_open(&output, options->output_file, options->no_pager, options->colour);

	if (err)
		return err;
	if (options->format == OPR_FORMAT_JSON)
		write_changes_json(changes, output.out);
	else if (options->format == OPR_FORMAT_CSV)
		write_changes_csv(changes, options->query.no_header, output.out);
	else
		write_changes_text(changes, options->query.no_header, output.out);
	return opr_output_close(&output);
}

int opr_runtimes_compare(struct opr_run *before, struct opr_run *after, const struct opr_options *options)
{
	struct side sides[2] = { { .list = { 0 } } };
	struct changes changes = { 0 };
	int err = read_side(&sides[0], before, options->runtime);

	if (!err)
		err = read_side(&sides[1], after, options->runtime);
	if (!err && !sides[0].list.nr_rows && !sides[1].list.nr_rows)
		err = no_function(options->runtime);
	if (!err)
		changes.rows = calloc(sides[0].list.nr_rows + sides[1].list.nr_rows, sizeof(*changes.rows));
	if (!err && !changes.rows)
		err = opr_no_memory();
	for (size_t side = 0; side < 2 && !err; side++) {
		changes.all[side] = sides[side].list.all;
		for (size_t i = 0; i < sides[side].list.nr_rows; i++) {
			struct change *change = &changes.rows[changes.nr_rows++];

			change->function = sides[side].list.rows[i].function;
			change->self[side] = sides[side].list.rows[i].self;
		}
	}
	if (!err) {
		join(&changes);
		compute(&changes, options);
		err = write_changes(&changes, options);
	}
	free(changes.rows);
	for (size_t side = 0; side < 2; side++)
		free_side(&sides[side]);
	return err;
}
