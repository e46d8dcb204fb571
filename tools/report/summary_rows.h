/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts per application and per image in it, for the report without symbols. */
#ifndef OPR_SUMMARY_H
#define OPR_SUMMARY_H

#include "tools/profile/profile.h"
#include "tools/profile/classes.h"

struct opr_count_row {
	const char *name; /* in full */
	uint64_t *counts; /* one for each class */
	size_t order;     /* by name */
};

struct opr_application {
	struct opr_count_row row;
	struct opr_count_row *images; /* most samples in the first class first */
	size_t nr_images;
};

struct opr_summary {
	struct opr_application *applications; /* likewise */
	size_t nr_applications;
	struct opr_count_row *images;
	uint64_t *totals; /* one for each class */
	uint64_t *counts;
};

/* Adds up the files of an arranged profile, as they were when they were selected. To be freed with opr_summary_free in any case. 0 or -errno. */
int opr_summary_make(struct opr_summary *summary, const struct opr_profile *profile, size_t nr_classes) OP_NONNULL OP_MUST_CHECK;

/* True when an application's images say no more than its own line: there is none but itself. */
bool opr_summary_is_plain(const struct opr_application *application) OP_NONNULL;

void opr_summary_free(struct opr_summary *summary);

#endif
