/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The destination of a report: a file, standard output, or on a terminal a pager. One thread. */
#ifndef OPR_OUTPUT_H
#define OPR_OUTPUT_H

#include <sys/types.h>

#include "libop/base/compiler.h"

struct opr_output {
	FILE *out;
	const char *file;         /* NULL: standard output */
	struct opr_pager *pager;  /* NULL: none */
	/* of opr_output_replace, names in dir_fd; NULL: written at once */
	char *temporary, *target;
	int dir_fd;
	bool replaces;            /* the target exists, and may be replaced */
	uint64_t device, inode;   /* of that file, which was checked */
	bool colour;              /* a terminal that shows colours */
	size_t nr_columns;        /* of the terminal; 0: no terminal */
};

/*
 * Opens `file`; NULL: standard output. On a terminal a report that is longer than the screen goes
 * through $PAGER, else less(1), unless no_pager is set or TERM is missing or dumb; LESS and LV are
 * set as git(1) does. `colour`: "always", "never", or "auto": on a terminal unless NO_COLOR is set.
 * 0, closed with opr_output_close; or -errno.
 */
int opr_output_open(struct opr_output *output, const char *file, bool no_pager, const char *colour)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/*
 * Opens a new file that replaces `file` in opr_output_close, when everything is written. An
 * existing file must be empty or pass `is_own`; else the message says that it is not a `what`. Of
 * a symbolic link, the file behind it is replaced. A pipe, a terminal, and the file that standard
 * output is are written at once; so is standard output itself, whose name is "-". 0, closed with
 * opr_output_close or opr_output_drop; or -errno.
 */
int opr_output_replace(struct opr_output *output, const char *file, bool (*is_own)(int fd),
		       const char *what) OP_NONNULL OP_MUST_CHECK;

/*
 * Says before a long run whether opr_output_replace will refuse the file, as far as that is known
 * then. Without `is_own`: whether opr_output_open will. Makes no file. 0, or -errno after a
 * message.
 */
int opr_output_check(const char *file, bool (*is_own)(int fd), const char *what) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Closes after an error. The file that would be replaced stays as it is. */
void opr_output_drop(struct opr_output *output) OP_NONNULL;

/*
 * Flushes, closes, and waits for the pager's end. 0, also when the user left the pager early. If
 * the pager cannot be run, the report is written to the terminal. -errno: something could not be
 * written, or the pager failed.
 */
int opr_output_close(struct opr_output *output) OP_NONNULL OP_MUST_CHECK;

/* Makes exit(3) flush standard output; on failure the exit status is `failed`. 0 or -ENOMEM. */
int opr_stdout_guard(int failed) OP_MUST_CHECK;

/*
 * Flushes standard output. 0, or -EIO when something could not be written; the user is told once.
 */
int opr_stdout_flush(void) OP_MUST_CHECK;

#endif
