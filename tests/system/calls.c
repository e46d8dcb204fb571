/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A known tree of calls, for so many milliseconds: main -> work -> { a, c } -> leaf, a three times
 * as long as c, and into_kernel -> the kernel. With frame pointers.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PART 20000u

static volatile uint64_t sink;

static __attribute__((noinline)) void leaf(unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++)
		sink += i;
}

static __attribute__((noinline)) void a(unsigned int nr)
{
	leaf(3 * nr);
	sink++;
}

static __attribute__((noinline)) void c(unsigned int nr)
{
	leaf(nr);
	sink++;
}

/* Its own instruction: the C library keeps no frame pointer. */
static __attribute__((noinline)) void into_kernel(void)
{
	char block[4096];
	long result;

	for (int i = 0; i < 10; i++)
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "0"((long)SYS_getrandom), "D"(block), "S"(sizeof(block)), "d"(0L)
				 : "rcx", "r11", "memory");
	sink += (uint64_t)result;
}

/*
 * A round is about as long as the time between two samples: rounds of one length would be sampled
 * at the same few places.
 */
static inline __attribute__((always_inline)) unsigned int part_of_round(void)
{
	static uint32_t state;

	state = state * 1664525 + 1013904223;
	return PART / 2 + (state >> 16) % PART;
}

static __attribute__((noinline)) void work(void)
{
	unsigned int nr = part_of_round();

	a(nr);
	c(nr);
	into_kernel();
	sink++;
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;

	while (clock() / (CLOCKS_PER_SEC / 1000) < ms)
		work();
	return 0;
}
