/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values of options, as the rows of option_table.h take them in. An option that is given twice has its last value. */
#ifndef OPR_OPTION_VALUES_H
#define OPR_OPTION_VALUES_H

#include "tools/common/option_table.h"
#include "tools/profile/profile.h"

struct opr_merge_option {
	struct opr_words words;
	struct opr_merge merge;
};

/* a char * */
int opr_take_string(void *field, const char *value);

/* a char *: a directory, which must exist, with an absolute path; the root itself is "" */
int opr_take_root(void *field, const char *value);

/* a struct opr_words */
int opr_take_words(void *field, const char *value);

/* a double: 0 to 100 */
int opr_take_percent(void *field, const char *value);

/* a struct opr_merge_option */
int opr_take_merge(void *field, const char *value);

/* Nothing: topics of log.h are turned on. */
int opr_take_verbose(void *field, const char *value);

/* Frees what the functions above took into a tool's options, by the rows of its table. */
void opr_command_free(const struct opr_command *command, void *options) OP_NONNULL;

/*
 * The whole of a tool that has nothing to do beside: reads its command line, runs it, and frees `options` and `words`, which is a part of them or stands beside.
 * The exit code.
 */
int opr_command_run(const struct opr_command *command, int argc, const char **argv, void *options, struct opr_words *words,
		    int (*run)(const void *options)) OP_NONNULL;

/* True when `word` is one of the words. */
bool opr_find_word(const char *const *words, size_t nr_words, const char *word, size_t *ret_index) OP_NONNULL;

#endif
