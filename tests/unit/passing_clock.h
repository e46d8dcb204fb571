/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The real clocks, which the test can put forward. For programs that are linked with
 * --wrap=clock_gettime; where it has one thread, still_clock.h is better.
 */
#ifndef PASSING_CLOCK_H
#define PASSING_CLOCK_H

#include <stdatomic.h>
#include <time.h>

static atomic_long passed_s; /* the time that the test lets pass, beside the real one */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	int err = __real_clock_gettime(clock, time);

	time->tv_sec += passed_s;
	return err;
}

#endif
