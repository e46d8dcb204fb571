/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of opreport --images: samples, build-id, symbols, and the debug file that would help. */
#ifndef OPR_IMAGE_REPORT_H
#define OPR_IMAGE_REPORT_H

#include "tools/profile/classes.h"
#include "tools/profile/profile.h"
#include "tools/report/symbol_rows.h"
#include "tools/symbols/image_debug.h"
#include "tools/symbols/image_path.h"

struct opr_image_row {
	/* full; of a file its path, without the suffix of a file that is counted apart */
	const char *name;
	char *identity;   /* build-id, "inode 12", or "-" */
	uint64_t *counts; /* for each class */
	struct opr_debug debug;
	char *package; /* that has the debug file, also when the image is gone; NULL: not known */
	size_t first_file; /* a sample file of this image */
};

struct opr_image_report {
	uint32_t sources; /* those that count as symbols: set before */
	/* set before: the images to look at, as in struct opr_file, up to a NULL; NULL: all */
	const char **only;
	struct opr_image_row *rows; /* by samples in the first class, then by name */
	size_t nr_rows;
	uint64_t *totals; /* for each class */
	uint64_t *counts;
};

/*
 * Adds up an arranged profile by image, and searches the files of images with at least `percent` of
 * the samples of the first class. Others are left out. An image is a row in the table of images of
 * its session; without a table, a name. `reverse`: few samples come first. Freed with
 * opr_image_report_free in any case. 0 or -errno.
 */
int opr_image_report_make(struct opr_image_report *report, const struct opr_profile *profile, size_t nr_classes,
			  struct opr_finder *finder, double percent, bool reverse) OP_NONNULL OP_MUST_CHECK;

/* The text of the last column, about the debug file. Freed by the caller; NULL: no memory. */
char *opr_image_row_hint(const struct opr_image_row *row) OP_NONNULL OP_MUST_CHECK;

/* Tells the user once where the package of a row is, if its archive is not the usual one. */
void opr_image_row_note_archive(const struct opr_image_row *row, const struct opr_finder *finder) OP_NONNULL;

void opr_image_report_free(struct opr_image_report *report);

/*
 * Warns of each image that has at least 1 % of the samples of the first class in functions without
 * a name: its build-id and the debug file, package or query that would help. `sources` made the
 * report. 0 or -errno.
 */
int opr_missing_symbols_warn(const struct opr_profile *profile, const struct opr_classes *classes, struct opr_finder *finder,
			     const struct opr_symbol_report *report, uint32_t sources) OP_NONNULL OP_MUST_CHECK;

#endif
