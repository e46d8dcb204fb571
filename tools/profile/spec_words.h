/* SPDX-License-Identifier: GPL-3.0-or-later */
/* { first } { second }: the words of a differential report, before spec.h parses each side. */
#ifndef OPR_SPEC_WORDS_H
#define OPR_SPEC_WORDS_H

#include "tools/common/words.h"

struct opr_spec_words {
	/* words outside of the blocks belong to both; without blocks all are in the first */
	struct opr_words sides[2];
	bool differential; /* there are two blocks */
};

/*
 * Splits the words of a command line at { and }. Freed with opr_spec_words_free in any case. 0 or
 * -errno.
 */
int opr_spec_words_split(struct opr_spec_words *words, const struct opr_words *all) OP_NONNULL OP_MUST_CHECK;

void opr_spec_words_free(struct opr_spec_words *words);

#endif
