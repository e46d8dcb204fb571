/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a report goes: a file, standard output, or a pager when that is a terminal. */
#ifndef OPR_OUTPUT_H
#define OPR_OUTPUT_H

#include <sys/types.h>

#include "libop/compiler.h"

struct opr_output {
	FILE *out;
	const char *file;  /* NULL: standard output */
	pid_t pager;       /* 0: none */
	bool colour;       /* a terminal that shows colours */
	size_t nr_columns; /* of the terminal; 0: it is none */
};

/*
 * Opens `file`, or standard output when it is NULL. On a terminal the report goes through $PAGER, less(1) when it is not set, unless no_pager; LESS and LV are set as
 * git(1) does. `colour`: "always", "never", or "auto", colours on a terminal unless NO_COLOR is set. 0, to be closed with opr_output_close, or -errno.
 */
int opr_output_open(struct opr_output *output, const char *file, bool no_pager, const char *colour)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* Flushes, closes, and waits for the pager's end. 0, also when the user left the pager before the end; -errno when not all was written. */
int opr_output_close(struct opr_output *output) OP_NONNULL OP_MUST_CHECK;

#endif
