/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Swapping threads: a swap is asleep nearly all of its time (libop/ring/kernel_pair.h), so the pairs of several CPUs are swapped at once. The
 * caller is one of the threads; the others are started when they are first needed and sleep in between.
 *
 * Who has a pair: the caller of opd_swappers_swap hands the pairs over with the call. A thread takes one under the lock, has it
 * alone while it swaps it, and gives it back under the lock. When the call returns, all of them are the caller's again, with
 * everything that the threads did to them seen.
 *
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

/* At most nr_threads, the caller included, up to OPD_SWAPPERS_MAX; 0 is the caller alone. Starts none of them. 0 or -ENOMEM. */
int opd_swappers_new(unsigned int nr_threads, struct opd_swappers **ret_swappers) OP_NONNULL OP_MUST_CHECK;

/*
 * Swaps all pairs, each of them in the list once, and returns when the last one is swapped; each has its error. A single pair
 * is swapped by the caller. A thread that cannot be started is done without: the others do its work.
 */
void opd_swappers_swap(struct opd_swappers *swappers, struct opd_swap *swaps, size_t nr_swaps) OP_NONNULL;

/* Ends the threads. NULL is allowed. */
void opd_swappers_free(struct opd_swappers *swappers);

#endif
