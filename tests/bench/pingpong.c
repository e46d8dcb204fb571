// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * pingpong CPU SECONDS: two threads on one CPU wake each other over pipes; each step is a switch.
 * Prints how many switches there were, and the CPU time of both threads in ns.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static double clock_s(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *answer(void *arg)
{
	char byte;

	while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
		continue;
	return arg;
}

int main(int argc, char **argv)
{
	unsigned long nr = 0;
	pthread_t thread;
	double end_s;
	char byte = 0;
	cpu_set_t set;

	if (argc != 3 || pipe(there) || pipe(back))
		return 2;
	CPU_ZERO(&set);
	CPU_SET(strtoul(argv[1], NULL, 10), &set);
	if (sched_setaffinity(0, sizeof(set), &set) || pthread_create(&thread, NULL, answer, NULL))
		return 3;
	for (end_s = clock_s(CLOCK_MONOTONIC) + strtod(argv[2], NULL); clock_s(CLOCK_MONOTONIC) < end_s; nr += 2)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 3;
	printf("%lu %.0f\n", nr, clock_s(CLOCK_PROCESS_CPUTIME_ID) * 1e9);
	return 0;
}
