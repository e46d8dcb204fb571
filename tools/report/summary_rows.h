/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of the summary: counts of each application and of each image in it. */
#ifndef OPR_SUMMARY_H
#define OPR_SUMMARY_H

#include "tools/profile/profile.h"
#include "tools/profile/classes.h"

struct opr_count_row {
	const char *name; /* full */
	uint64_t *counts; /* for each class */
	size_t order;     /* by name */
};

struct opr_application {
	struct opr_count_row row;
	struct opr_count_row *images; /* by samples in the first class */
	size_t nr_images, nr_shown; /* shown: the first of them */
};

struct opr_summary {
	struct opr_application *applications; /* by samples in the first class */
	size_t nr_applications;
	struct opr_count_row *images;
	uint64_t *totals; /* for each class */
	uint64_t *counts;
};

/*
 * Adds up the files of an arranged profile; `reverse`: few samples come first. Freed with
 * opr_summary_free in any case. 0 or -errno.
 */
int opr_summary_make(struct opr_summary *summary, const struct opr_profile *profile, size_t nr_classes,
		     bool reverse) OP_NONNULL OP_MUST_CHECK;

/* Shows the first nr_rows applications, and of each the first nr_rows images. */
void opr_summary_top(struct opr_summary *summary, size_t nr_rows) OP_NONNULL;

void opr_summary_free(struct opr_summary *summary);

#endif
