/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * SHA256SUMS of an archive (tools/common/archive.h): a line for each file, as sha256sum(1) writes
 * it, the line of opd-archive last. A name with a newline or a backslash has a backslash before the
 * line and escapes in the name.
 */
#ifndef OPR_ARCHIVE_SUMS_H
#define OPR_ARCHIVE_SUMS_H

#include "libop/base/htable.h"
#include "libop/base/text.h"

#define OPR_SUM_DIGITS 64 /* of a SHA-256 sum */

struct opr_sum {
	struct op_hlink link;
	const char *digits; /* the first OPR_SUM_DIGITS are the sum */
	const char *name;   /* below the archive */
};

struct opr_sums {
	char *text;
	struct opr_sum *sums;       /* in the order of the file */
	size_t nr_sums, nr_damaged; /* lines without a sum and a name */
	bool has_end;               /* the line of opd-archive is there: the list is complete */
	struct op_htable names;
};

/*
 * Reads SHA256SUMS of the archive dir_fd. Freed with opr_sums_free in any case. 0 or -errno,
 * without a message; -ENOENT: there is none.
 */
int opr_sums_read(struct opr_sums *sums, int dir_fd) OP_NONNULL OP_MUST_CHECK;

/* The sum of a file by its path in the archive; NULL: there is none. */
const struct opr_sum *opr_sums_find(const struct opr_sums *sums, const char *name) OP_NONNULL;

/* Adds the line of one file to a text. */
void opr_sums_write(struct op_text *text, const char *digits, const char *name) OP_NONNULL;

void opr_sums_free(struct opr_sums *sums);

#endif
