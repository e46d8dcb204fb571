/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists of strings, as comma-valued options and tags give them. */
#ifndef OPR_WORDS_H
#define OPR_WORDS_H

#include "libop/base/compiler.h"

struct opr_words {
	char **words;
	size_t nr_words;
};

/* Adds a copy of a word. 0 or -ENOMEM; says nothing. */
int opr_words_add(struct opr_words *words, const char *word) OP_NONNULL OP_MUST_CHECK;

/* Cuts `text` at its commas, `\,` being a comma that does not cut, and puts the words in the place of the old. 0 or -ENOMEM; says nothing. */
int opr_words_split(struct opr_words *words, const char *text) OP_NONNULL OP_MUST_CHECK;

bool opr_words_have(const struct opr_words *words, const char *word) OP_NONNULL;

/* True when one of the words is the string or, as a shell pattern where '*' matches slashes too, matches it. */
bool opr_words_match(const struct opr_words *words, const char *string) OP_NONNULL;

/* Frees the words; NULL is allowed. */
void opr_words_free(struct opr_words *words);

#endif
