/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Clocks in nanoseconds. Any thread. */
#ifndef OP_CLOCK_H
#define OP_CLOCK_H

#include <time.h>

#include "libop/base/compiler.h"

/* The clock of every event, and of every time that is compared with the time stamps of events. */
#define OP_CLOCK CLOCK_MONOTONIC

#define OP_NS_PER_MS 1000000u
#define OP_NS_PER_S  1000000000u

static inline uint64_t op_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * OP_NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t op_now_ns(void)
{
	return op_clock_ns(OP_CLOCK);
}

#endif
