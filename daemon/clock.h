/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The time of the events, for what is compared with their time stamps. Any thread. */
#ifndef OPD_CLOCK_H
#define OPD_CLOCK_H

#include <time.h>

#include "libop/ring_pair.h"

#define OPD_NS_PER_MS 1000000u
#define OPD_NS_PER_S  1000000000u

static inline uint64_t opd_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * OPD_NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t opd_now_ns(void)
{
	return opd_clock_ns(OP_CLOCK);
}

#endif
