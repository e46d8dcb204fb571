/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the benchmarks share: clocks, threads on their CPU, ratios, aims. */
#ifndef BENCH_H
#define BENCH_H

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "libop/base/compiler.h"

#define BENCH_NS_PER_S 1000000000u

static inline uint64_t bench_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * BENCH_NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t bench_now_ns(void)
{
	return bench_clock_ns(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread. */
static inline uint64_t bench_cpu_ns(void)
{
	return bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* For a loop that waits: lets the other hardware thread of the core run at full speed. */
static inline void bench_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Puts the calling thread on the n-th of these CPUs, modulo their number. */
static inline void bench_pin_within(const cpu_set_t *allowed, unsigned int n)
{
	cpu_set_t one;

	n %= (unsigned int)CPU_COUNT(allowed);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, allowed) || n--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/*
 * The same for the CPUs that the thread may use now. A thread that is pinned, or that a pinned
 * thread made, stays where it is.
 */
static inline void bench_pin(unsigned int n)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
		bench_pin_within(&allowed, n);
}

/* The quotient; 0 when the divisor is 0. */
static inline double bench_per(double what, double nr)
{
	return nr > 0 ? what / nr : 0;
}

/*
 * Prints the line of an aim. True: it is met. False: it is missed, or the run did not measure it
 * (not `shown`).
 */
static inline bool bench_say_aim(const char *aim, double figure, bool shown, bool good)
{
	if (shown)
		printf("aim (%s): %.2f, %s\n", aim, figure, good ? "met" : "NOT met");
	else
		printf("aim (%s): NOT SHOWN, this run has no figure for it\n", aim);
	return shown && good;
}

#endif
