/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Threads that swap the pairs of several CPUs at once, because a swap is asleep nearly all of its
 * time (libop/ring/kernel_pair.h). The caller is one of the threads. The other threads are started
 * when they are first needed, and sleep between the swaps.
 *
 * Ownership: the caller hands its pairs over with opd_swappers_swap. A thread takes a pair under
 * the lock, swaps it alone, and gives it back under the lock. When the call returns, the caller
 * owns all pairs again and sees what the threads did to them.
 *   call                          one thread   a second thread at the same time
 *   opd_swappers_new, _free            x
 *   opd_swappers_swap                  x
 */
#ifndef OPD_SWAPPERS_H
#define OPD_SWAPPERS_H

#include "libop/base/compiler.h"
#include "libop/ring/kernel_pair.h"

#define OPD_SWAPPERS_MAX 16u

struct opd_swappers;

struct opd_swap {
	struct op_ring_pair *pair;
	int err; /* what op_ring_pair_swap returned */
};

/*
 * Prepares nr_threads threads at most, the caller included, up to OPD_SWAPPERS_MAX; 0 means the
 * caller alone. Starts none of them. 0 or -ENOMEM.
 */
int opd_swappers_new(unsigned int nr_threads, struct opd_swappers **ret_swappers) OP_NONNULL OP_MUST_CHECK;

/*
 * Swaps all pairs and returns after the last swap; each pair is in the list once, and gets its
 * error. The caller swaps a single pair itself. When a thread cannot be started, the other threads
 * do its work.
 */
void opd_swappers_swap(struct opd_swappers *swappers, struct opd_swap *swaps, size_t nr_swaps) OP_NONNULL;

/* Ends the threads. NULL is allowed. */
void opd_swappers_free(struct opd_swappers *swappers);

#endif
