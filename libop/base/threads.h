/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work that is shared out among threads, as many as there are CPUs, in one process and for the time of a call. */
#ifndef OP_THREADS_H
#define OP_THREADS_H

#include "libop/base/compiler.h"

#define OP_THREADS_MAX 64

/* How many CPUs this process may run on, from 1 to OP_THREADS_MAX. Any thread. */
size_t op_nr_cpus(void) OP_MUST_CHECK;

/*
 * Calls `work` in nr_threads threads at once, and returns when all calls have. One of them is the caller's own, and where no other one can be made it is all there is: the work must not depend on their
 * number. Signals are the caller's: the others have all of them blocked. What was written before is seen by them, and what they have written is seen after it.
 */
void op_run_threads(size_t nr_threads, void (*work)(void *arg), void *arg) OP_NONNULL_ARGS(2);

#endif
