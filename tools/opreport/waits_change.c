/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions that waited in two profiles, and how their shares changed. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/opreport/waits.h"
#include "tools/report/quote.h"
#include "tools/stacks/short_images.h"
#include "tools/symbols/image_identity.h"

#define NOISE_ERRORS 2.0 /* standard errors, as of samples (tools/report/diff_rows.c) */

struct side {
	struct opr_call_tree tree;
	struct opr_stack_sums sums;
	struct opr_wait_list list;
	double total_us; /* without waits for work */
	double record_us; /* for how much a record stands, on average */
};

struct change {
	const struct opr_call_function *function;
	const struct opr_wait_row *rows[2]; /* before and after; NULL: it did not wait there */
	double points, noise;
};

struct changes {
	struct side sides[2];
	struct change *rows;
	size_t nr_rows;
};

static int read_side(struct side *side, struct opr_run *run)
{
	return opr_stacks_read(&side->tree, &side->sums, &run->selection, run->query, NULL);
}

static int list_side(struct side *side, bool show_idle)
{
	int err = opr_wait_list_make(&side->list, &side->tree, show_idle);
	uint64_t nr_records = side->sums.nr_records - op_min_u64(side->list.nr_idle_records, side->sums.nr_records);

	side->total_us = (double)(side->list.all_us - side->list.idle_us);
	side->record_us = side->total_us / (double)op_max_u64(nr_records, 1);
	return err;
}

static uint64_t us_of(const struct change *change, size_t side)
{
	return change->rows[side] ? change->rows[side]->self_us : 0;
}

static double percent_of(const struct changes *changes, const struct change *change, size_t side)
{
	return changes->sides[side].total_us > 0 ? 100.0 * (double)us_of(change, side) / changes->sides[side].total_us : 0;
}

/* A time is a number of records that stand for as much each; their number varies by chance. */
static void weigh(const struct changes *changes, struct change *change)
{
	double variance = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct side *side = &changes->sides[i];
		double us = (double)us_of(change, i);

		us = us < side->record_us ? side->record_us : us;
		if (side->total_us > 0)
			variance += us * side->record_us / side->total_us / side->total_us;
	}
	change->points = percent_of(changes, change, 1) - percent_of(changes, change, 0);
	change->noise = 100.0 * NOISE_ERRORS * sqrt(variance);
}

/* By name and image; a program may have been built again. */
static int compare_functions(const void *left, const void *right)
{
	const struct opr_call_function *a = ((const struct change *)left)->function, *b = ((const struct change *)right)->function;
	struct opr_identity x = opr_identity_of(a->image), y = opr_identity_of(b->image);
	int order = strcmp(a->name, b->name);

	if (!order)
		order = memcmp(x.path, y.path, op_min_u64(x.path_length, y.path_length));
	return order ? order : (x.path_length > y.path_length) - (x.path_length < y.path_length);
}

/* What is sure of a change comes first, then what is noise. */
static int compare_changes(const void *left, const void *right)
{
	const struct change *a = left, *b = right;
	double x = fabs(a->points) - a->noise, y = fabs(b->points) - b->noise;

	return x > y ? -1 : x < y ? 1 : compare_functions(left, right);
}

static int join(struct changes *changes)
{
	size_t nr = 0, nr_rows = changes->sides[0].list.nr_rows + changes->sides[1].list.nr_rows;

	changes->rows = calloc(nr_rows + 1, sizeof(*changes->rows));
	if (!changes->rows)
		return opr_no_memory();
	for (size_t i = 0; i < 2; i++)
		for (size_t r = 0; r < changes->sides[i].list.nr_rows; r++) {
			struct change *change = &changes->rows[nr++];

			change->function = changes->sides[i].list.rows[r].function;
			change->rows[i] = &changes->sides[i].list.rows[r];
		}
	qsort(changes->rows, nr, sizeof(*changes->rows), compare_functions);
	for (size_t i = 0; i < nr; i++) {
		struct change *last = changes->nr_rows ? &changes->rows[changes->nr_rows - 1] : NULL, *change = &changes->rows[i];

		if (!last || compare_functions(last, change) || last->rows[1] || !change->rows[1])
			changes->rows[changes->nr_rows++] = *change;
		else
			last->rows[1] = change->rows[1];
	}
	for (size_t i = 0; i < changes->nr_rows; i++)
		weigh(changes, &changes->rows[i]);
	qsort(changes->rows, changes->nr_rows, sizeof(*changes->rows), compare_changes);
	return 0;
}

/* --top-changes, --threshold, --top. */
static void limit(struct changes *changes, const struct opr_options *options)
{
	size_t nr = 0;

	for (size_t i = 0; i < changes->nr_rows && nr < options->query.top; i++) {
		const struct change *change = &changes->rows[i];
		bool has_grown = change->points > change->noise;

		if (fabs(change->points) >= options->query.threshold && (has_grown || !options->top_changes))
			changes->rows[nr++] = *change;
	}
	changes->nr_rows = nr;
}

/* ---- forms ---- */

static uint64_t records_of(const struct change *change, size_t side)
{
	return change->rows[side] ? change->rows[side]->nr_records : 0;
}

static bool is_noise(const struct change *change)
{
	return fabs(change->points) <= change->noise;
}

static void write_text(const struct changes *changes, bool no_header, FILE *out)
{
	static const char *const words[] = { "Before", "After" };

	for (size_t i = 0; i < 2 && !no_header; i++) {
		const struct side *side = &changes->sides[i];

		fprintf(out, "%-7s%s of waits", words[i], opr_format_us((uint64_t)side->total_us).text);
		if (side->list.idle_us)
			fprintf(out, ", and %s of waits for work", opr_format_us(side->list.idle_us).text);
		fputc('\n', out);
	}
	if (!no_header)
		fputs("  before    after  % before   % after   points         records  function that waited\n", out);
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change *change = &changes->rows[i];

		fprintf(out, "%s %s %9.4f %9.4f %+8.2f %6" PRIu64 " %8" PRIu64 "  ", opr_format_us(us_of(change, 0)).text,
			opr_format_us(us_of(change, 1)).text, percent_of(changes, change, 0), percent_of(changes, change, 1),
			change->points, records_of(change, 0), records_of(change, 1));
		opr_write_escaped(out, change->function->name);
		fputs("  (", out);
		opr_write_escaped(out, change->function->image);
		fprintf(out, ")%s\n", is_noise(change) ? "  noise" : "");
	}
}

static void write_csv(const struct changes *changes, bool no_header, FILE *out)
{
	if (!no_header)
		fputs("before-us,after-us,before-percent,after-percent,points,noise,before-records,after-records,symbol,image\n",
		      out);
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change *change = &changes->rows[i];

		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%" PRIu64 ",%" PRIu64 ",", us_of(change, 0),
			us_of(change, 1), percent_of(changes, change, 0), percent_of(changes, change, 1), change->points,
			change->noise, records_of(change, 0), records_of(change, 1));
		opr_write_csv(out, change->function->name);
		fputc(',', out);
		opr_write_csv(out, change->function->image);
		fputc('\n', out);
	}
}

static void write_json(const struct changes *changes, FILE *out)
{
	fprintf(out,
		"{\n  \"waits\": {\n    \"unit\": \"microseconds\", \"total\": [%.0f, %.0f], "
		"\"idle\": [%" PRIu64 ", %" PRIu64 "],\n    \"symbols\": [",
		changes->sides[0].total_us, changes->sides[1].total_us, changes->sides[0].list.idle_us,
		changes->sides[1].list.idle_us);
	for (size_t i = 0; i < changes->nr_rows; i++) {
		const struct change *change = &changes->rows[i];

		fprintf(out, "%s\n      { \"symbol\": ", i ? "," : "");
		opr_write_json(out, change->function->name);
		fputs(", \"image\": ", out);
		opr_write_json(out, change->function->image);
		fprintf(out, ", \"self\": [%" PRIu64 ", %" PRIu64 "], \"percent\": [%.6g, %.6g]", us_of(change, 0),
			us_of(change, 1), percent_of(changes, change, 0), percent_of(changes, change, 1));
		fprintf(out, ", \"points\": %.6g, \"noise\": %.6g, \"records\": [%" PRIu64 ", %" PRIu64 "] }", change->points,
			change->noise, records_of(change, 0), records_of(change, 1));
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
		write_json(changes, output.out);
	else if (options->format == OPR_FORMAT_CSV)
		write_csv(changes, options->query.no_header, output.out);
	else
		write_text(changes, options->query.no_header, output.out);
	return opr_output_close(&output);
}

int opr_waits_compare(struct opr_run *before, struct opr_run *after, const struct opr_options *options)
{
	struct opr_short_names names = { 0 };
	struct changes changes = { 0 };
	struct side *sides = changes.sides;
	int err = read_side(&sides[0], before);

	if (!err)
		err = read_side(&sides[1], after);
	if (!err && !options->query.long_names)
		err = opr_short_images_find(&names, &sides[0].sums, &sides[1].sums);
	for (size_t i = 0; i < 2 && !err; i++) {
		if (!options->query.long_names)
			opr_short_images_set(&names, &sides[i].tree, NULL);
		err = list_side(&sides[i], options->query.show_idle);
	}
	if (!err)
		err = join(&changes);
	if (!err) {
		limit(&changes, options);
		err = write_changes(&changes, options);
	}
	for (size_t i = 0; i < 2; i++) {
		opr_wait_list_free(&sides[i].list);
		opr_call_tree_free(&sides[i].tree);
		opr_stack_sums_free(&sides[i].sums);
	}
	opr_short_names_free(&names);
	free(changes.rows);
	return err;
}
