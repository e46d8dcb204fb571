// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Work in the C library by a process that changes its names: renamed [-m] [NAME [THREAD-NAME ...]]
 *
 * The main thread calls itself NAME and each further thread THREAD-NAME; "" keeps the name. -m
 * moves all of the program's text into memory without a file, as programs do to get huge pages.
 * Prints "PID EXE", what /proc/self/exe says, when all run. Works until standard input ends, and
 * SLICES slices at least.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SLICES 400

static pthread_barrier_t all_run;

static void work(void)
{
	char text[64];

	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%.17g %d", i / 7.0, i);
		if (strtod(text, NULL) > i)
			abort();
	}
}

static void *run(void *name)
{
	prctl(PR_SET_NAME, name);
	pthread_barrier_wait(&all_run);
	for (;;)
		work();
	return NULL;
}

/* The text is a segment of its own. */
static void move_text(void)
{
	unsigned long start = 0, end = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 128], perms[5];
	void *copy;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, perms) == 3 && start <= (unsigned long)move_text &&
		    (unsigned long)move_text < end)
			break;
	}
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!maps || copy == MAP_FAILED)
		abort();
	fclose(maps);
	memcpy(copy, (void *)start, end - start);
	if (mprotect(copy, end - start, PROT_READ | PROT_EXEC) ||
	    mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED)
		abort();
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char exe[PATH_MAX];
	ssize_t length;

	if (argc > 1 && !strcmp(argv[1], "-m")) {
		move_text();
		argc--;
		argv++;
	}
	pthread_barrier_init(&all_run, NULL, argc > 2 ? (unsigned int)argc - 1 : 1);
	for (int i = 2; i < argc; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, argv[i]))
			return 1;
	}
	pthread_barrier_wait(&all_run);
	if (argc > 1 && argv[1][0])
		prctl(PR_SET_NAME, argv[1]);
	length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (length < 0)
		return 1;
	printf("%d %.*s\n", getpid(), (int)length, exe);
	fflush(stdout);
	for (int slices = 0; slices < SLICES || !poll(&input, 1, 0); slices++)
		work();
	return 0;
}
