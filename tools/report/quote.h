/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fields of CSV, and strings of JSON. */
#ifndef OPR_REPORT_QUOTE_H
#define OPR_REPORT_QUOTE_H

#include "tools/report/symbol_rows.h"

/* Writes a JSON string or a CSV field, with quotes. */
void opr_write_json(FILE *out, const char *string) OP_NONNULL;
void opr_write_csv(FILE *out, const char *text) OP_NONNULL;

/* Writes several fields, with commas between them. */
void opr_write_csv_texts(FILE *out, const char *const *texts, size_t nr_texts) OP_NONNULL;

/*
 * Writes what an inlined function was inlined into: a member of JSON, with a comma behind it, and
 * four fields of CSV, which are empty for other rows.
 */
void opr_write_json_inliners(FILE *out, const struct opr_symbol_row *row) OP_NONNULL;
void opr_write_csv_inliners(FILE *out, const struct opr_symbol_row *row) OP_NONNULL;

#endif
