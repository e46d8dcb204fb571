// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A program whose signal handler works, for MS milliseconds of CPU time: a timer interrupts
 * `interrupted`, and `in_handler` works below `handler`, which starts the timer again.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define LOOPS 200000u

static const struct itimerval timer = { .it_value.tv_usec = 10000 };
static volatile uint64_t sink;

__attribute__((noinline, noclone)) static void in_handler(void)
{
	for (unsigned int i = 0; i < 10 * LOOPS; i++)
		sink = sink * 6364136223846793005u + 1;
}

__attribute__((noinline, noclone)) static void handler(int number)
{
	in_handler();
	sink = sink + (uint64_t)number;
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

__attribute__((noinline, noclone)) static void interrupted(void)
{
	for (unsigned int i = 0; i < LOOPS; i++)
		sink = sink * 2862933555777941757u + 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler };
	long ms = argc > 1 ? atol(argv[1]) : 1000;
	struct timespec now;

	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	do {
		interrupted();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
	return 0;
}
