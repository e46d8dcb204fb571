/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Python (CPython 3.9 to 3.14): where its structures have what is read, and what their bytes mean.
 * interpreters.bpf.h reads them. Any thread.
 */
#ifndef OPD_PYTHON_H
#define OPD_PYTHON_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"
#include "libop/unwind/row_table.h"
#include "pipeline/runtimes/shared.h"

enum opd_python_lines {
	OPD_PYTHON_LNOTAB,    /* 3.9: pairs of steps, of bytes and of lines */
	OPD_PYTHON_PEP_626,   /* 3.10: the same, and lines that there are not */
	OPD_PYTHON_LOCATIONS, /* from 3.11 on: with columns */
};

/*
 * How a Python is read whose image has these words. False: the version is not known, and *ret_why
 * says so in a few words.
 */
bool opd_python_layout(const struct op_row_table *table, struct opd_python_layout *ret_layout, enum opd_python_lines *ret_lines,
		       const char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* The line of a position in the code of a function; 0: there is none, or the table ends before. */
uint32_t opd_python_line(enum opd_python_lines lines, const uint8_t *table, size_t nr_bytes, uint32_t first_line,
			 uint32_t position) OP_NONNULL;

/* Adds the characters of a string of Python, as UTF-8. width: 0, 1, 2 or 4, as in a note. */
void opd_python_add_string(struct op_text *to, const uint8_t *bytes, size_t nr_bytes, uint32_t width) OP_NONNULL;

#endif
