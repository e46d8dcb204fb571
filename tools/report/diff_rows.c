/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/diff_rows.h"

#include <errno.h>
#include <math.h>

#include "tools/common/log.h"
#include "tools/report/inlined.h"
#include "tools/symbols/image_identity.h"

/* ---- may they be compared? ---- */

int opr_diff_check(const struct opr_classes *first, const struct opr_classes *second)
{
	bool same = first->nr_classes == second->nr_classes && first->axis == second->axis;

	for (size_t i = 0; same && first->axis == OPR_AXIS_EVENT && i < first->nr_classes; i++)
		same = !strcmp(first->classes[i].event, second->classes[i].event) &&
		       first->classes[i].count == second->classes[i].count;
	return same ? 0 : opr_error(-EINVAL, "profile classes are incompatible: both sides must have the same events and counts");
}

/* ---- the join ---- */

static uint64_t size_of(const struct opr_symbol_row *row)
{
	return row->symbol ? row->symbol->size : 0;
}

static int compare_values(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* After a change an image may have another build-id or inode in its name: it is one program. */
static int compare_paths(const char *a, const char *b)
{
	struct opr_identity x, y;
	int order;

	if (!strcmp(a, b))
		return 0;
	x = opr_identity_of(a);
	y = opr_identity_of(b);
	order = memcmp(x.path, y.path, op_min_u64(x.path_length, y.path_length));
	return order ? order : compare_values(x.path_length, y.path_length);
}

static int compare_frames(const struct opr_frame *a, const struct opr_frame *b)
{
	int order = 0;

	for (; a && b && !order; a = a->outer, b = b->outer)
		order = strcmp(a->name, b->name);
	return order ? order : !b - !a;
}

/* Equal rows are of functions of one name. */
static int compare_names(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = compare_paths(a->image, b->image);

	if (!order)
		order = compare_paths(a->app, b->app);
	if (!order)
		order = strcmp(a->symbol ? a->name : "", b->symbol ? b->name : "");
	return order ? order : compare_frames(a->inlined, b->inlined);
}

static int compare_places(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = compare_values(a->vma, b->vma);

	if (!order)
		order = compare_values(size_of(a), size_of(b));
	return order ? order : opr_inlined_compare(a->inlined, b->inlined);
}

static int compare_rows(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = compare_names(a, b);

	return order ? order : compare_places(a, b);
}

static const char *build_id_of(const struct opr_symbol_row *row)
{
	return row->symbols && row->symbols->build_id ? row->symbols->build_id : "";
}

/* Places in a program that was built again say nothing. */
static bool may_be_one_build(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return !strcmp(build_id_of(a), build_id_of(b));
}

static int compare_pointers(const void *left, const void *right)
{
	return compare_rows(*(struct opr_symbol_row *const *)left, *(struct opr_symbol_row *const *)right);
}

static const struct opr_symbol_row **sorted_rows(const struct opr_symbol_report *report)
{
	const struct opr_symbol_row **rows = calloc(report->nr_rows + 1, sizeof(*rows));

	for (size_t i = 0; rows && i < report->nr_rows; i++)
		rows[i] = &report->rows[i];
	if (rows)
		qsort(rows, report->nr_rows, sizeof(*rows), compare_pointers);
	return rows;
}

#define PAIRS_MAX    64 /* of functions of one name, so many are compared with one */
#define NOISE_ERRORS 2.0 /* standard errors; 95 of 100 differences by chance are within them */
#define ROUNDED	     1e-9 /* more than machines differ when they round */

/* A number of samples out of a total. */
struct part {
	double count, total;
};

static double share_of(struct part part)
{
	return part.total > 0 ? part.count / part.total : 0;
}

/* Samples come as a Poisson process, so a count n has the variance n. */
static double variance_of(struct part part)
{
	return part.total > 0 ? part.count / part.total / part.total : 0;
}

/* `before` and `after` have no samples where the symbol is not in that profile. */
static struct opr_change change_of(struct part before, struct part after)
{
	double difference = share_of(after) - share_of(before);
	struct opr_change change = { .points = 100.0 * difference };

	if (before.count > 0)
		change.percent = difference / share_of(before) * 100.0;
	else
		change.percent = after.count > 0 ? INFINITY : 0;
	change.is_noise = before.count + after.count > 0 &&
			  difference * difference <= NOISE_ERRORS * NOISE_ERRORS * (variance_of(before) + variance_of(after)) *
							     (1 + ROUNDED);
	return change;
}

struct join {
	struct opr_diff *diff;
	const struct opr_classes *classes;
	const struct opr_symbol_report *first, *second;
};

static struct part part_of(const struct opr_symbol_report *report, const uint64_t *counts, size_t class_index)
{
	return (struct part){ counts ? (double)counts[class_index] : 0, (double)report->totals[class_index] };
}

/* Adds a row like `shown`, which is one of both sides; the other one may be NULL. */
static int add_row(struct join *join, const struct opr_symbol_row *shown, const struct opr_symbol_row *before,
		   const struct opr_symbol_row *after)
{
	struct opr_symbol_report *report = &join->diff->report;
	struct opr_change *changes = join->diff->changes + report->nr_rows * report->nr_classes;
	struct opr_symbol_row *row = &report->rows[report->nr_rows];
	const uint64_t *old_counts = before ? &join->first->counts.values[before->counts] : NULL;
	const uint64_t *new_counts = after ? &join->second->counts.values[after->counts] : NULL;

	*row = *shown;
	row->order = report->nr_rows;
	row->changes = changes;
	if (!opr_counts_add(&report->counts, report->nr_classes, &row->counts))
		return opr_no_memory();
	memcpy(&report->counts.values[row->counts], new_counts ? new_counts : old_counts,
	       report->nr_classes * sizeof(*report->counts.values));
	for (size_t i = 0; i < report->nr_classes; i++) {
		changes[i] = change_of(part_of(join->first, old_counts, i), part_of(join->second, new_counts, i));
		if (!new_counts || !old_counts)
			changes[i].percent = new_counts ? INFINITY : -INFINITY;
		changes[i].is_noise &= !strcmp(join->classes->classes[i].unit, "samples");
	}
	report->nr_rows++;
	return 0;
}

/* Pairs rows of two lists that `is_pair` takes, in their order. Rows of pairs become NULL. */
static int join_pairs(struct join *join, const struct opr_symbol_row **before, size_t nr_before,
		      const struct opr_symbol_row **after, size_t nr_after,
		      bool (*is_pair)(const struct opr_symbol_row *a, const struct opr_symbol_row *b))
{
	size_t first = 0;
	int err = 0;

	for (size_t i = 0; i < nr_before && !err; i++) {
		for (; first < nr_after && !after[first]; first++)
			;
		for (size_t j = first; before[i] && j < nr_after && j < first + PAIRS_MAX && !err; j++) {
			if (!after[j] || !is_pair(before[i], after[j]))
				continue;
			err = add_row(join, after[j], before[i], after[j]);
			before[i] = after[j] = NULL;
		}
	}
	return err;
}

static bool is_same(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return may_be_one_build(a, b) && !compare_places(a, b);
}

static bool is_as_long(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return !may_be_one_build(a, b) && size_of(a) == size_of(b);
}

static bool is_of_other_build(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	return !may_be_one_build(a, b);
}

/*
 * Joins the functions of one name: the same ones, then those of one length, then the others.
 * Without build-ids it is not known whether this is one build; then only a function that is the
 * only one of its name is compared with one at another place.
 */
static int join_group(struct join *join, const struct opr_symbol_row **before, size_t nr_before,
		      const struct opr_symbol_row **after, size_t nr_after)
{
	static bool (*const rules[])(const struct opr_symbol_row *a, const struct opr_symbol_row *b) = {
		is_same, is_as_long, is_of_other_build
	};
	int err = 0;

	if (nr_before == 1 && nr_after == 1 && !*build_id_of(*before) && !*build_id_of(*after))
		return add_row(join, *after, *before, *after);
	for (size_t i = 0; i < op_array_size(rules) && !err; i++)
		err = join_pairs(join, before, nr_before, after, nr_after, rules[i]);
	for (size_t i = 0; i < nr_before && !err; i++)
		err = before[i] ? add_row(join, before[i], before[i], NULL) : 0;
	for (size_t i = 0; i < nr_after && !err; i++)
		err = after[i] ? add_row(join, after[i], NULL, after[i]) : 0;
	return err;
}

/* How many rows at the begin have the name of a row. */
static size_t nr_of_name(const struct opr_symbol_row *const *rows, size_t nr_rows, const struct opr_symbol_row *row)
{
	size_t nr = 0;

	while (nr < nr_rows && !compare_names(rows[nr], row))
		nr++;
	return nr;
}

static int join_rows(struct join *join, const struct opr_symbol_row **before, const struct opr_symbol_row **after)
{
	size_t nr_before = join->first->nr_rows, nr_after = join->second->nr_rows, i = 0, j = 0;
	int err = 0;

	while (!err && (i < nr_before || j < nr_after)) {
		int order = i == nr_before ? 1 : j == nr_after ? -1 : compare_names(before[i], after[j]);
		const struct opr_symbol_row *row = order <= 0 ? before[i] : after[j];
		size_t nr_first = nr_of_name(before + i, nr_before - i, row), nr_second = nr_of_name(after + j, nr_after - j, row);

		err = join_group(join, before + i, nr_first, after + j, nr_second);
		i += nr_first;
		j += nr_second;
	}
	return err;
}

int opr_diff_make(struct opr_diff *diff, const struct opr_classes *classes, const struct opr_symbol_report *first,
		  const struct opr_symbol_report *second)
{
	struct join join = { diff, classes, first, second };
	struct opr_symbol_report *report = &diff->report;
	const struct opr_symbol_row **before = sorted_rows(first), **after = sorted_rows(second);
	size_t nr_rows = first->nr_rows + second->nr_rows;
	int err = -ENOMEM;

	report->nr_classes = report->nr_limits = second->nr_classes;
	report->rows = calloc(nr_rows + 1, sizeof(*report->rows));
	report->totals = calloc(report->nr_classes, sizeof(*report->totals));
	diff->changes = calloc((nr_rows + 1) * report->nr_classes, sizeof(*diff->changes));
	if (before && after && report->rows && report->totals && diff->changes) {
		memcpy(report->totals, second->totals, report->nr_classes * sizeof(*report->totals));
		err = join_rows(&join, before, after);
	} else {
		opr_no_memory();
	}
	free(before);
	free(after);
	return err;
}

void opr_diff_limit(struct opr_diff *diff, double percent)
{
	struct opr_symbol_report *report = &diff->report;
	size_t nr_kept = 0;

	for (size_t i = 0; i < report->nr_rows; i++)
		if (fabs(report->rows[i].changes[0].percent) >= percent)
			report->rows[nr_kept++] = report->rows[i];
	report->nr_rows = nr_kept;
}

void opr_diff_keep_grown(struct opr_diff *diff)
{
	struct opr_symbol_report *report = &diff->report;
	size_t nr_kept = 0;

	for (size_t i = 0; i < report->nr_rows; i++)
		if (report->rows[i].changes[0].points > 0 && !report->rows[i].changes[0].is_noise)
			report->rows[nr_kept++] = report->rows[i];
	report->nr_rows = nr_kept;
}

void opr_diff_free(struct opr_diff *diff)
{
	if (!diff)
		return;
	opr_symbol_report_free(&diff->report);
	free(diff->changes);
	*diff = (struct opr_diff){ 0 };
}
