/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What changed between two profiles, symbol by symbol. */
#ifndef OPR_DIFF_REPORT_H
#define OPR_DIFF_REPORT_H

#include "tools/profile/classes.h"
#include "tools/report/symbol_rows.h"

struct opr_diff {
	/* each symbol of both once; totals are those of the second */
	struct opr_symbol_report report;
	struct opr_change *changes;
};

/* 0, or -EINVAL: the profiles have different columns or events. */
int opr_diff_check(const struct opr_classes *first, const struct opr_classes *second) OP_NONNULL OP_MUST_CHECK;

/*
 * Joins two reports, which must outlive the difference, by the names of functions and the paths of
 * images: a program may have been built again. A row has the samples of the second report
 * and the change of its percentage. The row of a symbol that only the first has has the samples of
 * the first. Only classes that count samples have noise: a sum of cycles is no number of events.
 * Freed with opr_diff_free in any case. 0 or -errno.
 */
int opr_diff_make(struct opr_diff *diff, const struct opr_classes *classes, const struct opr_symbol_report *first,
		  const struct opr_symbol_report *second) OP_NONNULL OP_MUST_CHECK;

/* Drops rows that changed by less than `percent` in the first class. */
void opr_diff_limit(struct opr_diff *diff, double percent) OP_NONNULL;

/* Leaves the rows whose share of the first class grew by more than noise. */
void opr_diff_keep_grown(struct opr_diff *diff) OP_NONNULL;

void opr_diff_free(struct opr_diff *diff);

#endif
