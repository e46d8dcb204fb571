/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory of rings counts as locked. Without CAP_IPC_LOCK a user may lock
 * kernel.perf_event_mlock_kb for each online CPU. Each process may lock RLIMIT_MEMLOCK beyond that:
 * 64 KiB by default before Linux 5.16, 8 MiB since. Mapping a larger ring fails with -EPERM.
 */
#ifndef OPD_RING_MEMORY_H
#define OPD_RING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "libop/base/compiler.h"

/* Raises RLIMIT_MEMLOCK as far as this process may. */
void opd_ring_memory_raise(void);

/* Bytes of one ring, for each kind of rings; NULL: that one stays. */
struct opd_ring_sizes {
	size_t *flat;
	size_t *stacks; /* 0 bytes: there are no such rings */
	size_t *sideband;
};

/*
 * Halves the rings that take the most. A CPU has two rings for flat samples, as for stacks, but
 * they count as one: a stack takes the room of 200 flat samples, and fewer stacks are better than
 * lost samples. False: all are as small as they may be.
 */
bool opd_ring_memory_shrink(const struct opd_ring_sizes *sizes) OP_NONNULL;

/* What is too small and how to raise it, in one line that the caller frees; NULL: no memory. */
char *opd_ring_memory_explain(void) OP_MUST_CHECK;

#endif
