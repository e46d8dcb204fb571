/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers for different things: a string, or a key of bytes, has the same number each time, from 0
 * on. After a failed allocation (`failed`) all calls return 0, so a caller checks once, at the end.
 * One thread.
 */
#ifndef OPR_NUMBERS_H
#define OPR_NUMBERS_H

#include "libop/base/compiler.h"
#include "libop/base/htable.h"

struct opr_numbered {
	struct op_hlink link;
	size_t number, nr_bytes;
	char bytes[]; /* and a NUL */
};

/* Zeroed at first; opr_numbers_free in any case. */
struct opr_numbers {
	struct op_htable table;
	struct opr_numbered **items; /* by number */
	size_t nr_items, capacity;
	bool failed;
};

/* The number of a key, or of a string. *ret_is_new, unless it is NULL: it got its number now. */
size_t opr_number_of(struct opr_numbers *numbers, const void *key, size_t nr_bytes, bool *ret_is_new) OP_NONNULL_ARGS(1, 2);
size_t opr_number_of_string(struct opr_numbers *numbers, const char *string) OP_NONNULL;

/* The number of a name as op_text_add_escaped writes it: valid UTF-8, in one line. */
size_t opr_number_of_escaped(struct opr_numbers *numbers, const char *name) OP_NONNULL;

void opr_numbers_free(struct opr_numbers *numbers) OP_NONNULL;

#endif
