/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the rows of a symbol report: gives each sample of a profile to a symbol. */
#ifndef OPR_MAKE_ROWS_H
#define OPR_MAKE_ROWS_H

#include "tools/symbols/image_cache.h"
#include "tools/profile/query.h"
#include "tools/report/symbol_rows.h"

/*
 * Makes the rows of an arranged profile, by 1 to n threads. The result does not depend on their
 * number. `bases`: of opr_symbol_names_find_bases. Where an image has symbols, samples outside of
 * them are left out. Freed with opr_symbol_report_free in any case. 0 or -errno.
 */
int opr_symbol_report_make(struct opr_symbol_report *report, const struct opr_profile *profile, size_t nr_classes,
			   struct opr_image_cache *cache, const struct opr_query *query,
			   const struct opr_words *bases) OP_NONNULL OP_MUST_CHECK;

/*
 * The difference between a position in an image, as opr_symbols_find takes it, and the key in a
 * sample file.
 */
uint64_t opr_position_offset(const struct opr_image *image, bool is_kernel, uint64_t anon_start) OP_NONNULL;

#endif
