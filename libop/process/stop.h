/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A request to stop, made by a signal: a flag for code that computes, and a descriptor for code
 * that waits, so that a signal just before the wait is not missed.
 *
 *   call                 working thread   signal handler
 *   op_stop_set                x                x
 *   everything else            x
 */
#ifndef OP_STOP_H
#define OP_STOP_H

#include <signal.h>

#include "libop/base/compiler.h"

struct op_stop {
	volatile sig_atomic_t is_set;
	int fd; /* an eventfd that becomes readable */
};

/* To be called before a handler may call op_stop_set. 0 or -errno. */
int op_stop_open(struct op_stop *stop) OP_NONNULL OP_MUST_CHECK;

/* Leaves errno unchanged. */
void op_stop_set(struct op_stop *stop) OP_NONNULL;

/*
 * Waits until fd can be read without waiting. 0, or -EINTR when the stop is set. With `stop` NULL
 * it returns 0 at once, and the read does the waiting.
 */
int op_stop_wait(const struct op_stop *stop, int fd) OP_MUST_CHECK;

/* NULL: never set. */
static inline bool op_stop_is_set(const struct op_stop *stop)
{
	return stop && stop->is_set;
}

#endif
