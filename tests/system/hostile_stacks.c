// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * usage: hostile_stacks MS: processes whose stacks mislead whoever walks them, each named
 * after what it does, for MS milliseconds of CPU time each. x86-64.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORDS 2048u
#define LOOPS 200000ull /* with another stack; a fraction of a millisecond */
#define START 1024u     /* the word to which the stack pointer points */

typedef void (*spin_fn)(uint64_t sp, uint64_t bp, uint64_t loops);

/* Loops with another stack and frame pointer. The functions differ in their .eh_frame. */
#define SPIN(name, before, rules, after)                                                                                           \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" before rules                                   \
		"mov %rsp,%r8\nmov %rbp,%r9\nmov %rdi,%rsp\nmov %rsi,%rbp\n1: dec %rdx\njnz 1b\n"                                  \
		"mov %r8,%rsp\nmov %r9,%rbp\nret\n" after ".size " #name ", .-" #name "\n");                                       \
	void name(uint64_t sp, uint64_t bp, uint64_t loops)

/* the return address is where the stack pointer points */
SPIN(spin_plain, ".cfi_startproc\n", "", ".cfi_endproc\n");
/* the frame pointer leads to the caller */
SPIN(spin_frame, ".cfi_startproc\n", ".cfi_def_cfa rbp,16\n.cfi_offset rip,-16+8\n.cfi_offset rbp,-16\n", ".cfi_endproc\n");
/* the caller has the same stack pointer */
SPIN(spin_still, ".cfi_startproc\n", ".cfi_def_cfa rsp,0\n.cfi_offset rip,0\n", ".cfi_endproc\n");
/* a signal frame, which may lead to any stack: CFA = *rsp, the return address at CFA + 8 */
SPIN(spin_rows, ".cfi_startproc\n", ".cfi_signal_frame\n.cfi_escape 0x0f,0x03,0x77,0x00,0x06\n.cfi_offset rip,8\n",
     ".cfi_endproc\n");
/* no row at all */
SPIN(spin_bare, "", "", "");

static uint64_t *stack; /* nothing is mapped behind it */

enum where { MIDDLE, LAST_WORD, BEHIND, ZERO, KERNEL, NO_ADDRESS, NOTHING };

/* What the words of the stack are. */
enum filling { OWN_ADDRESSES, CODE, FRAMES, SIGNAL_FRAMES };

static const struct hostile {
	const char *name;
	spin_fn spin;
	enum where where;
	enum filling filling;
	int is_anonymous; /* the code is in no file */
} hostiles[] = {
	{ "h-itself", spin_plain, MIDDLE, OWN_ADDRESSES, 0 }, { "h-upwards", spin_plain, MIDDLE, CODE, 0 },
	{ "h-frames", spin_frame, MIDDLE, FRAMES, 0 },        { "h-still", spin_still, MIDDLE, CODE, 0 },
	{ "h-rows", spin_rows, MIDDLE, SIGNAL_FRAMES, 0 },    { "h-bare", spin_bare, MIDDLE, FRAMES, 0 },
	{ "h-no-file", spin_bare, MIDDLE, FRAMES, 1 },        { "h-last-word", spin_plain, LAST_WORD, CODE, 0 },
	{ "h-behind", spin_plain, BEHIND, CODE, 0 },          { "h-zero", spin_plain, ZERO, CODE, 0 },
	{ "h-kernel", spin_plain, KERNEL, CODE, 0 },          { "h-no-address", spin_plain, NO_ADDRESS, CODE, 0 },
	{ "h-alternative", NULL, NOTHING, CODE, 0 },
};

static long ms;

static long cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t pointer_to(enum where where)
{
	switch (where) {
	case MIDDLE:
		return (uintptr_t)&stack[START];
	case LAST_WORD:
		return (uintptr_t)&stack[WORDS - 1];
	case BEHIND:
		return (uintptr_t)&stack[WORDS];
	case KERNEL:
		return 0xffffffff81000000;
	case NO_ADDRESS:
		return 0x8000000000000000;
	case ZERO:
	case NOTHING:
		break;
	}
	return 0;
}

static void fill(enum filling filling, uint64_t code)
{
	for (unsigned int i = 0; i < WORDS; i++)
		stack[i] = filling == OWN_ADDRESSES ? (uintptr_t)&stack[i] : code;
	if (filling == FRAMES || filling == SIGNAL_FRAMES)
		stack[START] = (uintptr_t)&stack[START]; /* and the code behind it */
}

static uint64_t *map(size_t nr_bytes, int rights)
{
	void *place = mmap(NULL, nr_bytes + 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED || mprotect((char *)place + nr_bytes, 4096, PROT_NONE) < 0) {
		perror("mmap");
		exit(1);
	}
	return place;
}

static __attribute__((noinline)) void on_signal(int number)
{
	static volatile uint64_t sink;

	for (long end = cpu_ms() + ms; cpu_ms() < end;)
		for (uint64_t i = 0; i < LOOPS; i++)
			sink += i + (uint64_t)number;
}

static void *be_on_another_stack(void *unused)
{
	stack_t other = { .ss_sp = map(65536, PROT_READ | PROT_WRITE), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	(void)unused;
	if (sigaltstack(&other, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0)
		exit(1);
	pthread_kill(pthread_self(), SIGUSR1);
	return NULL;
}

static int run_in_a_thread(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, be_on_another_stack, NULL) || pthread_join(thread, NULL);
}

static int run(const struct hostile *hostile)
{
	spin_fn spin = hostile->spin;
	uint64_t pointer;

	prctl(PR_SET_NAME, hostile->name);
	if (!spin)
		return run_in_a_thread();
	stack = map(WORDS * sizeof(*stack), PROT_READ | PROT_WRITE);
	if (hostile->is_anonymous) {
		void *code = map(4096, PROT_READ | PROT_WRITE | PROT_EXEC);

		memcpy(code, (void *)(uintptr_t)spin, 64);
		spin = (spin_fn)(uintptr_t)code;
	}
	fill(hostile->filling, (uintptr_t)spin + 14);
	pointer = pointer_to(hostile->where);
	for (long end = cpu_ms() + ms; cpu_ms() < end;)
		spin(pointer, pointer, LOOPS);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0, failed = 0;

	ms = argc > 1 ? atol(argv[1]) : 100;
	for (size_t i = 0; i < sizeof(hostiles) / sizeof(*hostiles); i++)
		if (!fork())
			_exit(run(&hostiles[i]));
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
