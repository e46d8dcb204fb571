// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * deep WHERE BYTES MS: works at the end of a recursion that takes BYTES of a stack, for MS
 * milliseconds of CPU time. WHERE is main, thread, or other: a stack that the program has mapped
 * itself and entered by a signal; hole is main, and in the middle is a frame with an array of three
 * pages that were never used. It prints how many frames the recursion has.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define FRAME_BYTES 1024u
#define OTHER_BYTES (1u << 20)

static volatile uint64_t sink;
static long nr_ms;
static int nr_frames;

static uint64_t cpu_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

__attribute__((noinline)) static void leaf(void)
{
	uint64_t until = cpu_ms() + (uint64_t)nr_ms, x = sink;

	while (cpu_ms() < until)
		for (unsigned int i = 0; i < 100000; i++)
			x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

__attribute__((noinline)) static int descend(int depth)
{
	volatile char frame[FRAME_BYTES];

	frame[0] = (char)depth;
	if (!depth)
		leaf();
	else
		frame[1] = (char)descend(depth - 1);
	return frame[0];
}

__attribute__((noinline)) static int leave_hole(void)
{
	volatile char unused[3 * 4096];

	unused[0] = (char)descend(2);
	return unused[0];
}

__attribute__((noinline)) static int above_hole(int depth)
{
	volatile char frame[FRAME_BYTES];

	frame[0] = (char)depth;
	frame[1] = (char)(depth ? above_hole(depth - 1) : leave_hole());
	return frame[0] + frame[1];
}

static void *run(void *arg)
{
	descend(nr_frames);
	return arg;
}

static void on_signal(int number)
{
	descend(nr_frames + number - number);
}

static int run_on_other(void)
{
	const stack_t stack = { .ss_sp = mmap(NULL, OTHER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				.ss_size = OTHER_BYTES };
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0)
		return 1;
	return raise(SIGUSR1);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 4)
		return 2;
	nr_frames = (int)strtol(argv[2], NULL, 10) / (int)FRAME_BYTES;
	nr_ms = strtol(argv[3], NULL, 10);
	printf("%d\n", nr_frames + 1);
	if (!strcmp(argv[1], "other"))
		return run_on_other();
	if (!strcmp(argv[1], "hole"))
		return !above_hole(nr_frames);
	if (!strcmp(argv[1], "main"))
		return !!run(NULL);
	return pthread_create(&thread, NULL, run, NULL) || pthread_join(thread, NULL);
}
