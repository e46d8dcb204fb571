/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For test_poisoned_table.py. LIBRARY: a library without frame pointers. USER: a program that works
 * in it, for so many milliseconds. Else: poison L F OFFSET LENGTH FUNCTION MS
 * maps the text of L and runs it for MS, then maps the file F at the same place for 9 times that
 * time, and so on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

#if defined(LIBRARY)

void work(long nr);

void work(long nr)
{
	volatile char bytes[1000] = { 0 };

	for (long i = 0; i < nr; i++)
		bytes[i % 1000]++;
}

#elif defined(USER)

void work(long nr);

__attribute__((noinline)) static void inner(void)
{
	work(100000);
	__asm__ volatile("");
}

__attribute__((noinline)) static void outer(void)
{
	inner();
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	double end_ms = now_ms() + atof(argv[argc - 1]);

	while (now_ms() < end_ms)
		outer();
	return 0;
}

#else

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static char *map(int fd, size_t nr_bytes, off_t offset)
{
	char *at = mmap((void *)0x7e0000000000, nr_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, offset);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return at;
}

int main(int argc, char **argv)
{
	int library = open(argv[1], O_RDONLY), file = open(argv[2], O_RDONLY);
	off_t offset = strtol(argv[3], NULL, 0);
	size_t nr_bytes = strtoul(argv[4], NULL, 0);
	long function = strtol(argv[5], NULL, 0);
	double text_ms = atof(argv[argc - 1]), end_ms;

	if (library < 0 || file < 0) {
		perror("open");
		return 1;
	}
	for (;;) {
		char *text = map(library, nr_bytes, offset);

		for (end_ms = now_ms() + text_ms; now_ms() < end_ms;)
			((void (*)(long))(text + function - offset))(100000);
		map(file, nr_bytes, offset);
		usleep((useconds_t)(9 * text_ms * 1000));
	}
}

#endif
