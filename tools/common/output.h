/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a report goes: a file, standard output, or a pager when that is a terminal. One thread. */
#ifndef OPR_OUTPUT_H
#define OPR_OUTPUT_H

#include <sys/types.h>

#include "libop/base/compiler.h"

struct opr_output {
	FILE *out;
	const char *file;  /* NULL: standard output */
	struct opr_pager *pager;  /* NULL: none */
	char *temporary, *target; /* of opr_output_replace; NULL: what is written is there at once */
	bool replaces;            /* the target is there, and may be replaced */
	bool colour;       /* a terminal that shows colours */
	size_t nr_columns; /* of the terminal; 0: it is none */
};

/*
 * Opens `file`, or standard output when it is NULL. On a terminal the report goes through $PAGER, less(1) when it is not set, unless no_pager; LESS and LV are set as
 * git(1) does. `colour`: "always", "never", or "auto", colours on a terminal unless NO_COLOR is set. 0, to be closed with opr_output_close, or -errno.
 */
int opr_output_open(struct opr_output *output, const char *file, bool no_pager, const char *colour)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/*
 * Opens a file beside `file`, which takes its place in opr_output_close when all was written. What is there already is replaced when it is a file that is empty or that
 * `is_own` says yes to, else it is told that it is no `what`; through a symbolic link it is the file behind it. What is no file, a pipe or a terminal, and the file that standard output is, are written to at once. 0, to be closed with
 * opr_output_close or opr_output_drop, or -errno.
 */
int opr_output_replace(struct opr_output *output, const char *file, bool (*is_own)(int fd), const char *what) OP_NONNULL OP_MUST_CHECK;

/* Closes after an error: what was to be replaced stays what it was. */
void opr_output_drop(struct opr_output *output) OP_NONNULL;

/*
 * Flushes, closes, and waits for the pager's end. 0, also when the user left the pager before the end, and when the pager could not be run: then the report is written to the
 * terminal. -errno when not all was written, or the pager ended with an error.
 */
int opr_output_close(struct opr_output *output) OP_NONNULL OP_MUST_CHECK;

#endif
