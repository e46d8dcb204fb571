/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/diff_rows.h"

#include <errno.h>
#include <math.h>

#include "tools/common/log.h"

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

static int compare_rows(const struct opr_symbol_row *a, const struct opr_symbol_row *b)
{
	int order = strcmp(a->image, b->image);

	if (!order)
		order = strcmp(a->app, b->app);
	if (!order)
		order = strcmp(a->name, b->name);
	if (!order)
		order = compare_values(a->vma, b->vma);
	return order ? order : compare_values(size_of(a), size_of(b));
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

static double change_of(uint64_t before, uint64_t before_total, uint64_t after, uint64_t after_total)
{
	double old_share = before_total ? (double)before / (double)before_total : 0;
	double new_share = after_total ? (double)after / (double)after_total : 0;

	if (old_share > 0)
		return (new_share - old_share) / old_share * 100.0;
	return new_share > 0 ? INFINITY : 0;
}

struct join {
	struct opr_diff *diff;
	const struct opr_symbol_report *first, *second;
};

/* Adds a row; one of both sides may be NULL. */
static int add_row(struct join *join, const struct opr_symbol_row *before, const struct opr_symbol_row *after)
{
	struct opr_symbol_report *report = &join->diff->report;
	double *changes = join->diff->changes + report->nr_rows * report->nr_classes;
	struct opr_symbol_row *row = &report->rows[report->nr_rows];
	const uint64_t *old_counts = before ? &join->first->counts.values[before->counts] : NULL;
	const uint64_t *new_counts = after ? &join->second->counts.values[after->counts] : NULL;

	*row = after ? *after : *before;
	row->order = report->nr_rows;
	row->changes = changes;
	if (!opr_counts_add(&report->counts, report->nr_classes, &row->counts))
		return opr_no_memory();
	memcpy(&report->counts.values[row->counts], new_counts ? new_counts : old_counts,
	       report->nr_classes * sizeof(*report->counts.values));
	for (size_t i = 0; i < report->nr_classes; i++)
		changes[i] = !new_counts ? -INFINITY
			     : !old_counts
				     ? INFINITY
				     : change_of(old_counts[i], join->first->totals[i], new_counts[i], join->second->totals[i]);
	report->nr_rows++;
	return 0;
}

static int join_rows(struct join *join, const struct opr_symbol_row **before, const struct opr_symbol_row **after)
{
	size_t nr_before = join->first->nr_rows, nr_after = join->second->nr_rows, i = 0, j = 0;
	int err = 0;

	while (!err && (i < nr_before || j < nr_after)) {
		int order = i == nr_before ? 1 : j == nr_after ? -1 : compare_rows(before[i], after[j]);

		err = add_row(join, order <= 0 ? before[i] : NULL, order >= 0 ? after[j] : NULL);
		i += order <= 0;
		j += order >= 0;
	}
	return err;
}

int opr_diff_make(struct opr_diff *diff, const struct opr_symbol_report *first, const struct opr_symbol_report *second)
{
	struct join join = { diff, first, second };
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
		if (fabs(report->rows[i].changes[0]) >= percent)
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
