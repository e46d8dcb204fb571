/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The checksums of an archive (archive.h): SHA256SUMS has a line for each file, as sha256sum(1) writes them, the one of opd-archive last. A name with a newline or a backslash has a
 * backslash before the line, and escapes in it.
 */
#ifndef OPR_ARCHIVE_SUMS_H
#define OPR_ARCHIVE_SUMS_H

#include "libop/base/htable.h"
#include "libop/base/text.h"

#define OPR_SUM_DIGITS 64 /* of a SHA-256 sum */

struct opr_sum {
	struct op_hlink link;
	const char *digits; /* OPR_SUM_DIGITS of them, and more behind them */
	const char *name;   /* below the archive */
};

struct opr_sums {
	char *text;
	struct opr_sum *sums;       /* in their order */
	size_t nr_sums, nr_damaged; /* lines that are none */
	bool has_end;               /* the line of opd-archive: without it the list is cut short */
	struct op_htable names;
};

/* Reads the checksums of the archive in dir_fd. To be freed with opr_sums_free in any case. 0, or -errno, and nothing is said; -ENOENT: it has none. */
int opr_sums_read(struct opr_sums *sums, int dir_fd) OP_NONNULL OP_MUST_CHECK;

/* The sum of a file, by its name below the archive; NULL: it has none. */
const struct opr_sum *opr_sums_find(const struct opr_sums *sums, const char *name) OP_NONNULL;

/* Adds the line of a file to a text. */
void opr_sums_write(struct op_text *text, const char *digits, const char *name) OP_NONNULL;

void opr_sums_free(struct opr_sums *sums);

#endif
