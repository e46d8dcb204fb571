/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What changed between two profiles, symbol by symbol. */
#ifndef OPR_DIFF_REPORT_H
#define OPR_DIFF_REPORT_H

#include "tools/profile/classes.h"
#include "tools/report/symbol_rows.h"

struct opr_diff {
	struct opr_symbol_report report; /* rows of both, each symbol once; totals are the second's */
	double *changes;
};

/* 0 when the columns of two profiles can be compared: as many, and of the same events. -EINVAL. */
int opr_diff_check(const struct opr_classes *first, const struct opr_classes *second) OP_NONNULL OP_MUST_CHECK;

/*
 * Joins two reports of as many classes, which must stay as long as the difference. A row has the samples of the second and the change of its percentage; one that is
 * only in the first has that one's samples and the change -INFINITY, one that is only in the second INFINITY. To be freed with opr_diff_free in any case.
 * 0 or -errno.
 */
int opr_diff_make(struct opr_diff *diff, const struct opr_symbol_report *first,
		  const struct opr_symbol_report *second) OP_NONNULL OP_MUST_CHECK;

/* Drops rows that changed by less than `percent` in the first class. */
void opr_diff_limit(struct opr_diff *diff, double percent) OP_NONNULL;

void opr_diff_free(struct opr_diff *diff);

#endif
