/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A program to be counted: counted PAGES THREADS CHILDREN. It says "ready", waits for a byte, and
 * then touches so many new pages in its main thread, in each thread and in each child.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t nr_pages;

static void *touch(void *arg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, nr_pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(EXIT_FAILURE);
	madvise((void *)memory, nr_pages * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < nr_pages; i++)
		memory[i * page] = 1;
	return arg;
}

int main(int argc, char **argv)
{
	int nr_threads = argc > 2 ? atoi(argv[2]) : 0, nr_children = argc > 3 ? atoi(argv[3]) : 0;
	pthread_t threads[16];
	char byte;

	nr_pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	puts("ready");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) < 0 || nr_threads > 16)
		return EXIT_FAILURE;
	for (int i = 0; i < nr_children; i++)
		if (!fork()) {
			touch(NULL);
			_exit(EXIT_SUCCESS);
		}
	for (int i = 0; i < nr_threads; i++)
		pthread_create(&threads[i], NULL, touch, NULL);
	touch(NULL);
	for (int i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	while (wait(NULL) > 0)
		;
	return EXIT_SUCCESS;
}
