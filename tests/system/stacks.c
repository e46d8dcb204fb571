// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A program whose call tree has known shares, for MS milliseconds of CPU time: `leaf` works below
 * `direct`, below the comparison of qsort(3), and at the end of a recursion. Which and for how long
 * is random, so that no timer has the program's own period. It is compiled without frame pointers,
 * and prints the work of each path.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LONGEST 60000u /* loops of leaf */
#define DEPTH   40

static volatile uint64_t sink;
static unsigned int nr_loops;

__attribute__((noinline, noclone)) static void leaf(void)
{
	uint64_t x = sink;

	for (unsigned int i = 0; i < nr_loops; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

__attribute__((noinline, noclone)) static int direct(void)
{
	leaf();
	return (int)sink;
}

__attribute__((noinline, noclone)) static int compare(const void *a, const void *b)
{
	leaf();
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline, noclone)) static int sorted(void)
{
	int pair[2] = { 2, 1 }; /* one comparison */

	qsort(pair, 2, sizeof(pair[0]), compare);
	return pair[0];
}

__attribute__((noinline, noclone)) static int deep(int depth)
{
	if (!depth) {
		leaf();
		return 0;
	}
	return deep(depth - 1) + 1; /* no tail call: `sink` is written after it */
}

static unsigned int random_below(unsigned int limit)
{
	static uint64_t state = 42;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)((state >> 33) % limit);
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 1000;
	unsigned long long work[3] = { 0 };
	struct timespec now;
	int sum = 0;

	do {
		unsigned int which = random_below(10);

		nr_loops = random_below(LONGEST);
		if (which < 5) {
			sum += direct();
			work[0] += nr_loops;
		} else if (which < 8) {
			sum += sorted();
			work[1] += nr_loops;
		} else {
			sum += deep(DEPTH);
			work[2] += nr_loops;
		}
		sink = sink + (uint64_t)sum;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
	printf("%llu %llu %llu\n", work[0], work[1], work[2]);
	return 0;
}
