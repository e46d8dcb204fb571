/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of options of a tool, which parsing, --help and completion read. */
#ifndef OPR_OPTION_TABLE_H
#define OPR_OPTION_TABLE_H

#include "libop/base/compiler.h"

/* Takes a value into `field`. 0, or -errno after a message to the user. */
typedef int opr_take_fn(void *field, const char *value);

struct opr_option {
	const char *name;  /* NULL: a heading of --help, whose text is `help` */
	char short_name;   /* '\0': none */
	size_t offset;     /* of the field in the structure of the tool's options */
	opr_take_fn *take; /* fills the field; NULL: the field is an int, which becomes 1 */
	const char *help;  /* NULL: the option is not shown */
	/*
	 * Names the value; NULL: the option has none. "[x]": the value is optional. "a|b" and "a,b"
	 * are completed as words; "file", "patterns", "directory", "dir", "path", "time" and
	 * "event" as what they say.
	 */
	const char *value_help;
};

/* What stands behind the colon of a word "tag:value,value". */
enum opr_tag_kind { OPR_TAG_ANY, OPR_TAG_FILE, OPR_TAG_DIRECTORY, OPR_TAG_SESSION };

/* The nth tag, with its colon, of the words of a program; NULL: there are no more. */
typedef const char *opr_tag_fn(size_t nth, enum opr_tag_kind *ret_kind);

/*
 * What the words of a command line are that are no options. After the first word of a command all
 * others are its own, also those with a dash.
 */
enum opr_word_kind { OPR_WORDS_FILES, OPR_WORDS_EVENTS, OPR_WORDS_NONE, OPR_WORDS_COMMAND };

struct opr_command {
	const char *program;
	const char *arguments; /* what follows the options, for --help; NULL: nothing */
	const struct opr_option *rows;
	size_t nr_rows;
	/* instead of `rows`, for a tool whose rows hold more: the row of an index below nr_rows */
	const struct opr_option *(*row)(size_t index);
	/* Takes each option of the tool; NULL: opr_option_take does. */
	int (*take)(void *options, const struct opr_option *option, const char *value);
	enum opr_word_kind words;
	opr_tag_fn *tag; /* of the words; NULL: they have no tags */
	/* the exit status when standard output cannot be written; 0: EXIT_FAILURE */
	int failed;
};

/* The `offset` of the options that every tool has. */
enum opr_common { OPR_COMMON_VERSION, OPR_COMMON_COMPLETION, OPR_COMMON_HELP, OPR_COMMON_USAGE };

/* The row of an index: those of the tool, then those of every tool. NULL: no more. */
const struct opr_option *opr_command_row(const struct opr_command *command, size_t index) OP_NONNULL;

/* Takes an option into its field. 0, or -errno after a message to the user. */
int opr_option_take(void *options, const struct opr_option *option, const char *value) OP_NONNULL OP_MUST_CHECK;

/* Writes the text of --help or --usage, as wide as the terminal. */
void opr_help_write(FILE *out, const struct opr_command *command) OP_NONNULL;
void opr_usage_write(FILE *out, const struct opr_command *command) OP_NONNULL;

#endif
