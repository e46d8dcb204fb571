/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Values that several tools take. Of an option that is given twice, the last value stays, except
 * with opr_take_more_words.
 */
#ifndef OPR_OPTION_VALUES_H
#define OPR_OPTION_VALUES_H

#include "tools/common/option_table.h"
#include "tools/common/words.h"

/* a char * */
int opr_take_string(void *field, const char *value);

/* a char *: the absolute path of a directory, which must exist; "" for the root itself */
int opr_take_root(void *field, const char *value);

/* a struct opr_words */
int opr_take_words(void *field, const char *value);

/* The same, of names of functions, which may have commas in brackets. */
int opr_take_functions(void *field, const char *value);

/* The same as opr_take_words. An option that is given again adds words. */
int opr_take_more_words(void *field, const char *value);

/* a double: 0 to 100 */
int opr_take_percent(void *field, const char *value);

/* a size_t: 1 or more; SIZE_MAX, which means no limit, is not one of them */
int opr_take_number(void *field, const char *value);

/*
 * no field: turns topics of log.h on; without a value: `details`. The value may be left out where
 * the command has no words of another command.
 */
int opr_take_verbose(void *field, const char *value);

/* Frees a field that one of these functions filled. For other functions it does nothing. */
void opr_value_free(opr_take_fn *take, void *field);

/* "WHAT 'WORD': a, b or c", and which of them comes near. -EINVAL. */
int opr_refuse_word(const char *what, const char *word, const char *const *words, size_t nr_words) OP_NONNULL;

/* True when `word` is one of the words. */
bool opr_find_word(const char *const *words, size_t nr_words, const char *word, size_t *ret_index) OP_NONNULL;

#endif
