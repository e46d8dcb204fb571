/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/summary.h"

#include "libop/odb.h"
#include "tools/report_log.h"

int opr_summary_add_file(const struct opr_profile *profile, const struct opr_file *file, uint64_t *counts)
{
	struct op_odb_samples samples;
	int err = opr_profile_read(profile, file, &samples);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < samples.nr_nodes; i++)
		counts[file->class_index] += samples.nodes[i].value;
	op_odb_samples_free(&samples);
	return 0;
}

/* A row whose counts are the next free ones. */
static struct opr_count_row take_row(const char *name, uint64_t **next_counts, size_t nr_classes, size_t order)
{
	struct opr_count_row row = { name, *next_counts, order };

	*next_counts += nr_classes;
	return row;
}

static int add_part(struct opr_summary *summary, const struct opr_profile *profile, size_t index, uint64_t **next_counts,
		    size_t nr_classes)
{
	const struct opr_part *part = &profile->parts[index];
	struct opr_application *application =
		summary->nr_applications ? &summary->applications[summary->nr_applications - 1] : NULL;
	struct opr_count_row *image = &summary->images[index];
	int err = 0;

	if (!application || strcmp(application->row.name, part->app)) {
		application = &summary->applications[summary->nr_applications];
		application->row = take_row(part->app, next_counts, nr_classes, summary->nr_applications++);
		application->images = image;
	}
	*image = take_row(part->image, next_counts, nr_classes, index);
	application->nr_images++;
	for (size_t i = 0; i < part->nr_files && !err; i++)
		err = opr_summary_add_file(profile, &profile->files[part->first_file + i], image->counts);
	for (size_t i = 0; i < nr_classes; i++) {
		application->row.counts[i] += image->counts[i];
		summary->totals[i] += image->counts[i];
	}
	return err;
}

static int compare_rows(const void *left, const void *right)
{
	const struct opr_count_row *a = left, *b = right;

	if (a->counts[0] != b->counts[0])
		return a->counts[0] > b->counts[0] ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int compare_applications(const void *left, const void *right)
{
	const struct opr_application *a = left, *b = right;

	return compare_rows(&a->row, &b->row);
}

static void sort(struct opr_summary *summary)
{
	qsort(summary->applications, summary->nr_applications, sizeof(*summary->applications), compare_applications);
	for (size_t i = 0; i < summary->nr_applications; i++)
		qsort(summary->applications[i].images, summary->applications[i].nr_images, sizeof(*summary->images), compare_rows);
}

int opr_summary_make(struct opr_summary *summary, const struct opr_profile *profile, size_t nr_classes)
{
	uint64_t *next_counts;
	int err = 0;

	summary->applications = calloc(profile->nr_parts, sizeof(*summary->applications));
	summary->images = calloc(profile->nr_parts, sizeof(*summary->images));
	summary->totals = calloc(nr_classes, sizeof(*summary->totals));
	summary->counts = calloc(2 * profile->nr_parts, nr_classes * sizeof(*summary->counts));
	if (!summary->applications || !summary->images || !summary->totals || !summary->counts)
		return opr_no_memory();
	next_counts = summary->counts;
	for (size_t i = 0; i < profile->nr_parts && !err; i++)
		err = add_part(summary, profile, i, &next_counts, nr_classes);
	if (!err)
		sort(summary);
	return err;
}

bool opr_summary_is_plain(const struct opr_application *application)
{
	return application->nr_images == 1 && !strcmp(application->images[0].name, application->row.name);
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
