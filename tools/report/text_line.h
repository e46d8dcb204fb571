/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A line of left-justified fields, for text. */
#ifndef OPR_REPORT_TEXT_LINE_H
#define OPR_REPORT_TEXT_LINE_H

#include "tools/report/writer.h"

/* Blanks after a field are written only when another field follows. */
struct opr_line {
	FILE *out;
	size_t pending;     /* blanks before the next field */
	size_t written;     /* columns so far */
	const char *colour; /* of the next field; "" or NULL: none */
};

/* Writes a field, which takes `width` columns with the blanks after it, and one blank at least. */
void opr_line_add(struct opr_line *line, size_t width, const char *text) OP_NONNULL;

/* Writes the last field of a line, which is cut at the right edge of a terminal. */
void opr_line_add_last(struct opr_line *line, const struct opr_layout *layout, const char *text) OP_NONNULL;

/* The colour of a share, or ""; what ends it. */
const char *opr_colour_of(const struct opr_layout *layout, uint64_t count, uint64_t total) OP_NONNULL;
const char *opr_colour_end(const char *colour) OP_NONNULL;

#endif
