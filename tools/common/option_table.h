/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The command line of a reporting tool, from one table: what is parsed, --help, --usage and the completion of shells come from its rows. Every tool has
 * --version, --help and --usage, and --completion=SHELL, which writes a script and is not shown.
 */
#ifndef OPR_OPTION_TABLE_H
#define OPR_OPTION_TABLE_H

#include "tools/common/completion.h"
#include "tools/common/words.h"

/* Takes a value into what is at the row's offset. 0, or -errno, and the user has been told why. */
typedef int opr_take_fn(void *field, const char *value);

struct opr_option {
	const char *name;
	char short_name;   /* '\0': none */
	size_t offset;     /* in the structure of the tool's options: of an int, which becomes 1, or of what `take` fills */
	opr_take_fn *take; /* NULL: an option without a value */
	const char *help;
	const char *value_help; /* "a|b" and "a,b" are completed as words; "file", "directory" and "path" as what they say */
};

struct opr_command {
	const char *program;
	const char *arguments; /* what follows the options, for --help */
	const struct opr_option *rows;
	size_t nr_rows;
	opr_tag_fn *tag; /* of the words that are no options; NULL: they have none */
	bool takes_events; /* these words are names of events, and not of files */
	int failed;	   /* the exit status when what it says cannot be written; 0: EXIT_FAILURE */
};

/* What a command line was about. */
enum opr_request { OPR_RUN, OPR_DONE };

/*
 * Reads a command line into `options` and the words that are no options into `words`. 0 with *ret_request; after --version or --completion everything was
 * said and nothing is to be run. -EINVAL or -ENOMEM. --help and --usage end the program with 0, as popt does it.
 * From then on the end of the program looks whether standard output could be written (standard_output.h).
 */
int opr_command_read(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		     enum opr_request *ret_request) OP_NONNULL OP_MUST_CHECK;

/* "PROGRAM ARGUMENT ARGUMENT ", as titles of reports have it. Freed by the caller; NULL: no memory. */
char *opr_command_line(const char *program, int argc, const char **argv) OP_NONNULL OP_MUST_CHECK;

#endif
