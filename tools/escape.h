/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Names come from file systems, sample files and symbol tables of anybody. What a terminal would obey instead of show is written as \x1b: the control
 * characters of ASCII, and those of ISO 8859 and Unicode (U+0080 to U+009F). All else is written as it is.
 */
#ifndef OPR_ESCAPE_H
#define OPR_ESCAPE_H

#include "libop/compiler.h"

/* Writes a name; returns how many bytes it became. */
size_t opr_write_escaped(FILE *out, const char *name) OP_NONNULL;

/* The same for a line of a text, in which tabs, form feeds and carriage returns stay. */
void opr_write_escaped_line(FILE *out, const char *line) OP_NONNULL;

#endif
