/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The source lines of the rows and details of a symbol report. */
#ifndef OPR_ROW_LINES_H
#define OPR_ROW_LINES_H

#include "tools/profile/image_cache.h"
#include "tools/report/symbol_rows.h"

/*
 * Sets file and line of the rows, and makes opr_symbols_line answer for the details. 0 or -errno.
 */
int opr_symbol_report_find_lines(struct opr_symbol_report *report, struct opr_image_cache *cache) OP_NONNULL OP_MUST_CHECK;

#endif
