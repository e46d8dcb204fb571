/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Clocks that stand still until the test moves them, so that a busy machine reaches no time limit.
 * All clocks start at the real time of one moment, so times of files and processes can be compared
 * with them. For programs of one thread that are linked with --wrap=clock_gettime.
 */
#ifndef STILL_CLOCK_H
#define STILL_CLOCK_H

#include <time.h>

#include "libop/base/clock.h"

static uint64_t passed_ns; /* the time that the test lets pass */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static inline uint64_t still_real_ns(clockid_t clock)
{
	struct timespec time;

	__real_clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * OP_NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Reads all clocks at one moment: again when a clock has moved meanwhile. */
static inline void still_clocks_begin(uint64_t began_ns[CLOCK_BOOTTIME + 1])
{
	do {
		for (clockid_t clock = 0; clock <= CLOCK_BOOTTIME; clock++)
			began_ns[clock] = still_real_ns(clock);
	} while (still_real_ns(CLOCK_MONOTONIC) - began_ns[CLOCK_MONOTONIC] > OP_NS_PER_MS);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	static uint64_t began_ns[CLOCK_BOOTTIME + 1];
	uint64_t now_ns;

	if (!began_ns[CLOCK_MONOTONIC])
		still_clocks_begin(began_ns);
	now_ns = began_ns[clock] + passed_ns;
	*time = (struct timespec){ .tv_sec = (time_t)(now_ns / OP_NS_PER_S), .tv_nsec = (long)(now_ns % OP_NS_PER_S) };
	return 0;
}

#endif
