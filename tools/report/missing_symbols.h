/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hints for a symbol report with images that have no symbols. */
#ifndef OPR_MISSING_SYMBOLS_H
#define OPR_MISSING_SYMBOLS_H

#include "tools/profile/classes.h"
#include "tools/report/symbol_rows.h"
#include "tools/symbols/image_path.h"

/*
 * Warns of each image without symbols that has at least 1 % of the samples of the first class: its
 * build-id and the debug file, package or query that would help. 0 or -errno.
 */
int opr_missing_symbols_warn(const struct opr_profile *profile, const struct opr_classes *classes, struct opr_finder *finder,
			     const struct opr_symbol_report *report) OP_NONNULL OP_MUST_CHECK;

#endif
