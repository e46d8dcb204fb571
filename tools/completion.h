/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion for bash and zsh, made from the table of options that a tool gives to popt. */
#ifndef OPR_COMPLETION_H
#define OPR_COMPLETION_H

#include <limits.h>
#include <popt.h>

#include "libop/compiler.h"

/* A row for the table: `--completion=SHELL`, which is not shown. */
#define OPR_COMPLETION_VALUE INT_MAX
#define OPR_COMPLETION_ROW   { "completion", 0, POPT_ARG_STRING | POPT_ARGFLAG_DOC_HIDDEN, NULL, OPR_COMPLETION_VALUE, NULL, NULL },

/*
 * Writes the script of a shell, "bash" or "zsh". What an option's value may be is read from its argDescrip: words between '|' or ',', "file", "directory" or "path".
 * Words that are no options are files where the program takes_files; else there are none.
 * 0, or -EINVAL: no such shell, and nothing is written or said.
 */
int opr_completion_write(FILE *out, const char *program, const struct poptOption *table, bool takes_files,
			 const char *shell) OP_NONNULL OP_MUST_CHECK;

#endif
