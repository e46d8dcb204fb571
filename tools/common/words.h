/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists of strings, as in the values of options and tags: "a,b,c". */
#ifndef OPR_WORDS_H
#define OPR_WORDS_H

#include "libop/base/compiler.h"

struct opr_words {
	char **words;
	size_t nr_words, capacity;
};

/* Adds a copy of a word. 0; -ENOMEM without a message. */
int opr_words_add(struct opr_words *words, const char *word) OP_NONNULL OP_MUST_CHECK;

/* Replaces the words by those of "a,b,c"; `\,` is a comma in a word. 0; -ENOMEM, no message. */
int opr_words_split(struct opr_words *words, const char *text) OP_NONNULL OP_MUST_CHECK;

/*
 * The same for names of functions: commas in brackets, as in "f(int, int)" and "g<int, int>",
 * separate nothing, unless the brackets make no pairs.
 */
int opr_words_split_functions(struct opr_words *words, const char *text) OP_NONNULL OP_MUST_CHECK;

/* The length of "operator" and the characters of the operator; 0: there is none. */
size_t opr_operator_length(const char *text) OP_NONNULL;

/* Letters, digits, '_', '$' and '~'. */
bool opr_is_of_name(char c);

bool opr_words_have(const struct opr_words *words, const char *word) OP_NONNULL;

/* True when a word is the string, or a shell pattern for it ('*' also matches slashes). */
bool opr_words_match(const struct opr_words *words, const char *string) OP_NONNULL;

/* Frees the words. NULL is allowed. */
void opr_words_free(struct opr_words *words);

#endif
