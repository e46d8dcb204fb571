/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsort_r(3) by as many threads as there are CPUs, where there are enough items. */
#ifndef OPR_PARALLEL_SORT_H
#define OPR_PARALLEL_SORT_H

#include "libop/base/compiler.h"

/*
 * Sorts nr_items items; `compare` is called by several threads at once, and finds no two items equal. 0 or -ENOMEM, and then they are as they were.
 */
int opr_sort_by_threads(void *items, size_t nr_items, size_t item_bytes, int (*compare)(const void *a, const void *b, void *arg),
			void *arg) OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* The same by so many threads at the most, for tests: how many there are makes no difference to what comes out. */
int opr_sort_by_some(void *items, size_t nr_items, size_t item_bytes, int (*compare)(const void *a, const void *b, void *arg),
		     void *arg, size_t nr_threads) OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

#endif
