/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of the rows of a symbol report. */
#ifndef OPR_SYMBOL_SORT_H
#define OPR_SYMBOL_SORT_H

#include "tools/report/symbol_rows.h"

/* The keys of --sort, in the order in which they apply by default. */
#define OPR_SORT_KEYS(X)                                                                                                           \
	X(sample, "sample")                                                                                                        \
	X(image, "image")                                                                                                          \
	X(app_name, "app-name")                                                                                                    \
	X(symbol, "symbol")                                                                                                        \
	X(debug, "debug")                                                                                                          \
	X(vma, "vma")                                                                                                              \
	X(change, "change")

enum opr_sort_key {
#define X(name, word) OPR_SORT_##name,
	OPR_SORT_KEYS(X)
#undef X
		OPR_NR_SORT_KEYS,
};

extern const char *const opr_sort_words[OPR_NR_SORT_KEYS];

struct opr_sort_order {
	enum opr_sort_key keys[OPR_NR_SORT_KEYS]; /* each key once */
	bool reverse;
	bool long_names;
};

/*
 * Puts the named keys first, the others behind them. 0, or -EINVAL with *ret_bad_key, without a
 * message.
 */
int opr_sort_order_make(struct opr_sort_order *order, const struct opr_words *keys,
			const char **ret_bad_key) OP_NONNULL OP_MUST_CHECK;

/*
 * Sorts the rows, which then are in other memory of malloc(3). 0, or -ENOMEM: nothing has changed.
 */
int opr_symbol_sort(struct opr_symbol_report *report, const struct opr_sort_order *order) OP_NONNULL OP_MUST_CHECK;

#endif
