/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion for bash and zsh, made from the table of options that a tool gives to popt. */
#ifndef OPR_COMPLETION_H
#define OPR_COMPLETION_H

#include <limits.h>
#include <popt.h>

#include "libop/base/compiler.h"

/* A row for the table: `--completion=SHELL`, which is not shown. */
#define OPR_COMPLETION_VALUE INT_MAX
#define OPR_COMPLETION_ROW   { "completion", 0, POPT_ARG_STRING | POPT_ARGFLAG_DOC_HIDDEN, NULL, OPR_COMPLETION_VALUE, NULL, NULL },

/* What stands behind the colon of a word "tag:value,value". */
enum opr_tag_kind { OPR_TAG_ANY, OPR_TAG_FILE, OPR_TAG_DIRECTORY, OPR_TAG_SESSION };

/* The nth tag, with its colon, of the words of a program; NULL: there are no more. */
typedef const char *opr_tag_fn(size_t nth, enum opr_tag_kind *ret_kind);

/* The program writes the names of its sessions, one in each line, with this in the place of a shell's name. */
#define OPR_COMPLETION_SESSIONS "sessions"

struct opr_completion {
	const char *program;
	const struct poptOption *table;
	bool takes_files, takes_events; /* not both */
	opr_tag_fn *tag; /* NULL: its words have none */
};

/*
 * Writes the script of a shell, "bash" or "zsh". What an option's value may be is read from its argDescrip: words between '|' or ',', "file", "patterns", "directory",
 * "path", "time" or "event"; of any other value nothing is offered.
 * Words that are no options are files where the program takes_files, names of events, which ophelp(1) is asked for, where it takes_events, and tags where it has them, for sessions of which the script asks the program; else there are none.
 * 0, or -EINVAL: no such shell, and nothing is written or said.
 */
int opr_completion_write(FILE *out, const struct opr_completion *completion, const char *shell) OP_NONNULL OP_MUST_CHECK;

#endif
