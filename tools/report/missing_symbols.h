/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help for a report of symbols in which images have none. */
#ifndef OPR_MISSING_SYMBOLS_H
#define OPR_MISSING_SYMBOLS_H

#include "tools/profile/classes.h"
#include "tools/report/symbol_rows.h"
#include "tools/symbols/image_path.h"

/*
 * For each image that has a file, no symbols and 1 % of the samples of the first class or more: a warning with its build-id and the debug file, package or
 * query that would bring them. Looks for nothing when there is no such image. 0 or -errno.
 */
int opr_missing_symbols_tell(const struct opr_profile *profile, const struct opr_classes *classes, struct opr_finder *finder,
			     const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

#endif
