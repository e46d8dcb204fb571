/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsort_r(3) with a thread for each CPU, if there are enough items. */
#ifndef OPR_PARALLEL_SORT_H
#define OPR_PARALLEL_SORT_H

#include "libop/base/compiler.h"

/* Threads call `compare` at once; no two items are equal. 0; -ENOMEM: nothing is sorted. */
int opr_sort_by_threads(void *items, size_t nr_items, size_t item_bytes, int (*compare)(const void *a, const void *b, void *arg),
			void *arg) OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* The same with at most nr_threads threads. Their number does not change the result. */
int opr_sort_by_some(void *items, size_t nr_items, size_t item_bytes, int (*compare)(const void *a, const void *b, void *arg),
		     void *arg, size_t nr_threads) OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

#endif
