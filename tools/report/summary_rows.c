/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/summary_rows.h"

#include "tools/common/log.h"

/* Makes a row that takes its counts from *next. */
static struct opr_count_row make_row(const char *name, uint64_t **next_counts, size_t nr_classes, size_t order)
{
	struct opr_count_row row = { name, *next_counts, order };

	*next_counts += nr_classes;
	return row;
}

static void add_part(struct opr_summary *summary, const struct opr_profile *profile, size_t index, uint64_t **next_counts,
		     size_t nr_classes)
{
	const struct opr_part *part = &profile->parts[index];
	struct opr_application *application =
		summary->nr_applications ? &summary->applications[summary->nr_applications - 1] : NULL;
	struct opr_count_row *image = &summary->images[index];

	if (!application || strcmp(application->row.name, part->app)) {
		application = &summary->applications[summary->nr_applications];
		application->row = make_row(part->app, next_counts, nr_classes, summary->nr_applications++);
		application->images = image;
	}
	*image = make_row(part->image, next_counts, nr_classes, index);
	application->nr_images++;
	for (size_t i = part->first_file; i < part->first_file + part->nr_files; i++)
		image->counts[profile->files[i].class_index] += profile->files[i].total;
	for (size_t i = 0; i < nr_classes; i++) {
		application->row.counts[i] += image->counts[i];
		summary->totals[i] += image->counts[i];
	}
}

/* Rows with equal counts stay in the order of their names, also in reverse. */
static int compare_rows(const void *left, const void *right, void *reverse)
{
	const struct opr_count_row *a = left, *b = right;

	if (a->counts[0] != b->counts[0])
		return (a->counts[0] > b->counts[0]) != *(const bool *)reverse ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int compare_applications(const void *left, const void *right, void *reverse)
{
	const struct opr_application *a = left, *b = right;

	return compare_rows(&a->row, &b->row, reverse);
}

static void sort_rows(struct opr_summary *summary, bool reverse)
{
	qsort_r(summary->applications, summary->nr_applications, sizeof(*summary->applications), compare_applications, &reverse);
	for (size_t i = 0; i < summary->nr_applications; i++) {
		struct opr_application *application = &summary->applications[i];

		qsort_r(application->images, application->nr_images, sizeof(*application->images), compare_rows, &reverse);
		application->nr_shown = application->nr_images;
	}
}

int opr_summary_make(struct opr_summary *summary, const struct opr_profile *profile, size_t nr_classes, bool reverse)
{
	uint64_t *next_counts;

	summary->applications = calloc(profile->nr_parts, sizeof(*summary->applications));
	summary->images = calloc(profile->nr_parts, sizeof(*summary->images));
	summary->totals = calloc(nr_classes, sizeof(*summary->totals));
	summary->counts = calloc(2 * profile->nr_parts, nr_classes * sizeof(*summary->counts));
	if (!summary->applications || !summary->images || !summary->totals || !summary->counts)
		return opr_no_memory();
	next_counts = summary->counts;
	for (size_t i = 0; i < profile->nr_parts; i++)
		add_part(summary, profile, i, &next_counts, nr_classes);
	sort_rows(summary, reverse);
	return 0;
}

void opr_summary_top(struct opr_summary *summary, size_t nr_rows)
{
	summary->nr_applications = op_min_u64(summary->nr_applications, nr_rows);
	for (size_t i = 0; i < summary->nr_applications; i++) {
		struct opr_application *application = &summary->applications[i];

		application->nr_shown = op_min_u64(application->nr_images, nr_rows);
	}
}

void opr_summary_free(struct opr_summary *summary)
{
	if (!summary)
		return;
	free(summary->applications);
	free(summary->images);
	free(summary->totals);
	free(summary->counts);
	*summary = (struct opr_summary){ 0 };
}
