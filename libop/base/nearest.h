/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * "did you mean": the candidate that a misspelt word comes nearest to. A case does not count. The
 * distance is the number of letters that are wrong, missing, too many, or swapped with the next
 * one. A candidate that begins with the word is near, too.
 *
 *	struct op_nearest nearest;
 *
 *	op_nearest_init(&nearest, word);
 *	for each candidate
 *		op_nearest_try(&nearest, candidate);
 *	op_nearest_add_hint(&nearest, "", &text);
 *
 * The time for one candidate is bounded, whatever the names are: longer names than OP_NEAREST_BYTES
 * are not compared.
 */
#ifndef OP_NEAREST_H
#define OP_NEAREST_H

#include "libop/base/text.h"

#define OP_NEAREST_BYTES 128

struct op_nearest {
	const char *word;
	size_t length, limit; /* of the word; of the distance */
	size_t distance;
	char best[OP_NEAREST_BYTES]; /* "": none is near */
};

void op_nearest_init(struct op_nearest *nearest, const char *word) OP_NONNULL;

/*
 * Compares a candidate. The first of several equally near ones counts. The word itself is no
 * candidate.
 */
void op_nearest_try(struct op_nearest *nearest, const char *candidate) OP_NONNULL;

/*
 * Adds "; did you mean 'BEST'?", with `prefix` before BEST and control characters replaced, if a
 * candidate is near.
 */
void op_nearest_add_hint(const struct op_nearest *nearest, const char *prefix, struct op_text *text) OP_NONNULL;

#endif
