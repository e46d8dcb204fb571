/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The report of images: each with its samples, build-id, what symbols there are and which debug file would help. */
#ifndef OPR_IMAGE_REPORT_H
#define OPR_IMAGE_REPORT_H

#include "tools/symbols/image_debug.h"
#include "tools/profile/profile.h"

struct opr_image_row {
	const char *name; /* in full; of a file its path, without what the session tells it apart by */
	char *identity;	  /* build-id, "inode 12", or "-" */
	uint64_t *counts; /* one for each class */
	struct opr_debug debug;
	char *package;     /* that has the debug file, also of an image that is gone; NULL: not known */
	size_t first_file; /* one of the profile's that is of this image */
};

struct opr_image_report {
	struct opr_image_row *rows; /* most samples in the first class first, then by name */
	size_t nr_rows;
	uint64_t *totals; /* one for each class */
	uint64_t *counts;
};

/*
 * Reads all files of an arranged profile, adds up by image, and looks for the files of images that have at least `percent` of the samples of the first class; others
 * are left out. An image is what the dcookie table of its session says; where there is none, a name. To be freed with opr_image_report_free in any case. 0 or -errno.
 */
int opr_image_report_make(struct opr_image_report *report, const struct opr_profile *profile, size_t nr_classes,
			  struct opr_finder *finder, double percent) OP_NONNULL OP_MUST_CHECK;

/* The text for the last column, about the debug file: freed by the caller; NULL without memory. */
char *opr_image_row_hint(const struct opr_image_row *row) OP_NONNULL OP_MUST_CHECK;

void opr_image_report_free(struct opr_image_report *report);

#endif
