/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs one function in several threads for the time of a call. Any thread. */
#ifndef OP_THREADS_H
#define OP_THREADS_H

#include "libop/base/compiler.h"

#define OP_THREADS_MAX 64

/* The number of CPUs that this process may run on, from 1 to OP_THREADS_MAX. */
size_t op_nr_cpus(void) OP_MUST_CHECK;

/*
 * Calls `work` in nr_threads threads at once, and returns when all calls have returned. The
 * caller's thread is one of them, and the only one when no thread can be created: the work must not
 * depend on their number. The other threads block all signals. Creating and joining them orders
 * memory.
 */
void op_run_threads(size_t nr_threads, void (*work)(void *arg), void *arg) OP_NONNULL_ARGS(2);

#endif
