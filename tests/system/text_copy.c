// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A program that moves its own text to memory, as programs do for huge pages, and then spends MS of
 * CPU time in hot():
 *
 *   text_copy copy MS     memory without a file over the text, and a copy into it
 *   text_copy mremap MS   a copy elsewhere, moved over the text; the kernel does not report it
 *   text_copy memfd MS    a memfd with the text alone, mapped over it
 *
 * While the text is replaced only move() runs, which the linker puts elsewhere. SKIPPED are the
 * bytes at the start of the image that are not moved.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define SKIP 77

extern char etext, __executable_start;

volatile uint64_t result;

__attribute__((noipa)) static void hot(uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		result = result * 2862933555777941757u + i;
}

#ifdef __x86_64__
/* Without the C library, whose stubs are in the text. */
__attribute__((section(".mover"), noipa)) static long raw(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = 0;
	long answer;

	__asm__ volatile("syscall"
			 : "=a"(answer)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return answer;
}

__attribute__((section(".mover"), noipa)) static void move(uint64_t text, uint64_t bytes, uint64_t copy, int fd, int with_mremap)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED : MAP_SHARED | MAP_FIXED;
	int prot = fd < 0 ? PROT_READ | PROT_WRITE | PROT_EXEC : PROT_READ | PROT_EXEC;

	if (with_mremap) {
		raw(SYS_mremap, (long)copy, (long)bytes, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)text);
		return;
	}
	raw(SYS_mmap, (long)text, (long)bytes, prot, flags, fd);
	for (uint64_t i = 0; fd < 0 && i < bytes; i += sizeof(uint64_t))
		*(volatile uint64_t *)(text + i) = *(const uint64_t *)(copy + i);
}
#endif

static void move_text(const char *kind)
{
#ifdef __x86_64__
	uint64_t text = (uint64_t)&__executable_start + SKIPPED, bytes = ((uint64_t)&etext - text + PAGE - 1) / PAGE * PAGE;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = -1;

	if (copy == MAP_FAILED)
		exit(1);
	memcpy(copy, (const void *)text, bytes);
	if (!strcmp(kind, "memfd")) {
		fd = memfd_create("text", 0);
		if (fd < 0 || write(fd, copy, bytes) != (ssize_t)bytes)
			exit(1);
	}
	move(text, bytes, (uint64_t)copy, fd, !strcmp(kind, "mremap"));
#else
	(void)kind;
	exit(SKIP);
#endif
}

static uint64_t cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	uint64_t end = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

	move_text(argc > 1 ? argv[1] : "copy");
	while (cpu_ms() < end)
		hot(1000000);
	return 0;
}
