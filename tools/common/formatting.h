/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names, percentages and lines as a terminal shows them. */
#ifndef OPR_FORMAT_H
#define OPR_FORMAT_H

#include "libop/base/text.h"

/*
 * Names come from file systems, sample files and symbol tables of anybody. A byte that a terminal
 * would obey is written as \x1b, and two different names never look the same (op_escape in
 * libop/base/text.h).
 */

/* Writes a name. Returns how many bytes were written. */
size_t opr_write_escaped(FILE *out, const char *name) OP_NONNULL;

/*
 * A message of more bytes loses its middle: somebody may have made directories in each other for
 * the sake of the message. Their first and last names are left.
 */
#define OPR_SHOWN_BYTES 1000u

struct op_text;
void opr_shorten(struct op_text *shown) OP_NONNULL;

/* Writes a name as opr_write_escaped, shortened. */
void opr_write_shortened(FILE *out, const char *name) OP_NONNULL;

/* Writes a line of text. Tabs, \f, a \r at its end, backslashes and other character sets stay. */
void opr_write_escaped_line(FILE *out, const char *line) OP_NONNULL;

#define OPR_PERCENT_WIDTH 7

struct opr_percent_text {
	char text[64];
};

/* `count` as a percentage of `total`; 0 when the total is 0. */
static inline double opr_percent(uint64_t count, uint64_t total)
{
	return total ? (double)count / (double)total * 100.0 : 0;
}

/* As oprofile writes it, in seven columns: "12.3456", "1.2e-05", or "0". */
struct opr_percent_text opr_format_percent(uint64_t count, uint64_t total);

/*
 * A length of time in at most eight columns, with three digits or more: "  12.3 s", "  450 ms",
 * "   12 us".
 */
#define OPR_TIME_WIDTH 8

struct opr_time_text {
	char text[32];
};

struct opr_time_text opr_format_us(uint64_t us);

/* Adds a length of time in its two largest units: "3 d 4 h", "12 min 5 s", "0.25 s". */
void opr_add_span(struct op_text *text, uint64_t ns) OP_NONNULL;

/*
 * The width of lines on `fd`: the environment variable COLUMNS, else that of the terminal, else 80.
 */
size_t opr_count_columns(int fd);

/* The number of lines: LINES, else that of the terminal, else 24. */
size_t opr_count_rows(int fd);

#endif
