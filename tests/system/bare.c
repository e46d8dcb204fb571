// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The smallest program that runs a known function, hot, without a library: for programs of another
 * word size and for odd linker scripts. Waits for the end of its standard input, then spends about
 * a second of CPU time in hot. x86 only.
 */
#define STEPS 1000000u

#ifdef __x86_64__
#define NR_READ		 0
#define NR_CLOCK_GETTIME 228
#define NR_EXIT		 60
#else
#define NR_READ		 3
#define NR_CLOCK_GETTIME 265
#define NR_EXIT		 1
#endif
#define CLOCK_CPU 2
#define CPU_MS	  700

static long call(long number, long a, void *b, long c)
{
	long result;

#ifdef __x86_64__
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
#endif
	return result;
}

__attribute__((noinline, section(".text.hot"))) unsigned int hot(unsigned int steps)
{
	unsigned int x = 1;

	for (; steps; steps--) {
		x = x * 1664525u + 1013904223u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static long cpu_ms(void)
{
	long now[2]; /* as the kernel's struct of this word size */

	call(NR_CLOCK_GETTIME, CLOCK_CPU, now, 0);
	return now[0] * 1000 + now[1] / 1000000;
}

void _start(void);
__attribute__((force_align_arg_pointer)) void _start(void)
{
	char c;

	while (call(NR_READ, 0, &c, 1) > 0)
		;
	while (cpu_ms() < CPU_MS)
		hot(STEPS);
	call(NR_EXIT, 0, 0, 0);
}
