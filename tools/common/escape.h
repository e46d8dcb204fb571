/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names come from file systems, sample files and symbol tables of anybody. What a terminal would obey instead of show is written as \x1b, and two
 * names never look the same: op_escape_shown in libop/base/text.h.
 */
#ifndef OPR_ESCAPE_H
#define OPR_ESCAPE_H

#include "libop/base/compiler.h"

/* Writes a name; returns how many bytes it became. */
size_t opr_write_escaped(FILE *out, const char *name) OP_NONNULL;

/* A name in a list for programs: op_escape. */
void opr_write_listed(FILE *out, const char *name) OP_NONNULL;

/* A line of a text: tabs, form feeds, carriage returns, backslashes and bytes of other character sets stay. */
void opr_write_escaped_line(FILE *out, const char *line) OP_NONNULL;

#endif
