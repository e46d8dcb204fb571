/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * That a program is to stop, as a signal says: a flag for what computes, and a descriptor for what waits, so that a signal just before a wait is not missed.
 *
 *   call                 thread that works   signal handler
 *   op_stop_set                  x                 x
 *   everything else              x
 */
#ifndef OP_STOP_H
#define OP_STOP_H

#include <signal.h>

#include "libop/base/compiler.h"

struct op_stop {
	volatile sig_atomic_t is_set;
	int fd; /* can be read from then on; -1: not open */
};

/* Before a handler may call op_stop_set. 0 or -errno. */
int op_stop_open(struct op_stop *stop) OP_NONNULL OP_MUST_CHECK;

/* Leaves errno as it is. */
void op_stop_set(struct op_stop *stop) OP_NONNULL;

/* Waits until a read of the descriptor does not have to wait. 0; -EINTR: it is to stop. NULL: 0 at once, and the read waits. */
int op_stop_wait(const struct op_stop *stop, int fd) OP_MUST_CHECK;

/* True when it is to stop; NULL: it never is. */
static inline bool op_stop_is_set(const struct op_stop *stop)
{
	return stop && stop->is_set;
}

/* When no handler calls op_stop_set any more. */
void op_stop_close(struct op_stop *stop) OP_NONNULL;

#endif
