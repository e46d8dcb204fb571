// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * usage: guessN MS: code that nothing describes, and that keeps something else than a frame pointer
 * in rbp, for MS milliseconds of CPU time. Each digit N is a way to fool a walk by frame pointers.
 * The last one runs in a signal handler. x86-64.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LOOPS      100000
#define CODE_BYTES 64u

enum { ZEROED_BUFFER, ZERO_BEHIND_A_CALL, JIT_ZEROED_BUFFER, JIT_FORGED_FRAME, HANDLER };

volatile uint64_t sink;
static int mode;
static void (*jit)(long loops, void *rbp);

void bare_leaf(long loops, void *rbp);
void bare_caller(long loops);

/* No .cfi directive: no row has them. */
__asm__(".text\n.globl bare_leaf\n.type bare_leaf, @function\nbare_leaf: push %rbp\nmov %rsi, %rbp\n"
	"1: imul %rdi, %rax\ndec %rdi\njnz 1b\npop %rbp\nret\n.size bare_leaf, .-bare_leaf\n"
	".globl bare_caller\n.type bare_caller, @function\nbare_caller: push %rbp\nxor %ebp, %ebp\n"
	"call burn\npop %rbp\nret\n.size bare_caller, .-bare_caller\n");

__attribute__((noinline)) void burn(long loops)
{
	for (long i = 0; i < loops; i++)
		sink += (uint64_t)(i * i);
}

__attribute__((noinline)) void never_called(long loops)
{
	burn(loops);
	sink++;
}

__attribute__((noinline)) static void on_signal(int number)
{
	for (long i = 0; i < 20 * LOOPS; i++)
		sink += (uint64_t)(i * number);
}

__attribute__((noinline)) void work(void)
{
	uint64_t buffer[64];

	memset(buffer, 0, sizeof(buffer));
	if (mode == JIT_FORGED_FRAME)
		buffer[1] = (uintptr_t)never_called + 12;
	if (mode == ZEROED_BUFFER)
		bare_leaf(LOOPS, buffer);
	else if (mode == ZERO_BEHIND_A_CALL)
		bare_caller(LOOPS);
	else if (mode == HANDLER)
		raise(SIGUSR1);
	else
		jit(LOOPS, buffer);
	sink += buffer[5];
}

static long cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long ms = argc == 2 ? atol(argv[1]) : 0;
	void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!ms || place == MAP_FAILED)
		return 2;
	mode = argv[0][strlen(argv[0]) - 1] - '0';
	memcpy(place, (const void *)(uintptr_t)bare_leaf, CODE_BYTES);
	memcpy(&jit, &place, sizeof(jit));
	signal(SIGUSR1, on_signal);
	while (cpu_ms() < ms)
		work();
	return 0;
}
