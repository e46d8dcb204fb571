/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A known number of samples: one instruction touches so many new pages, with one page fault for
 * each. Every program and library that includes this file has its own touch_pages, so the file of a
 * sample shows which program ran.
 */
#ifndef STORM_TOUCH_H
#define STORM_TOUCH_H

#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/compiler.h"

__attribute__((noinline, aligned(64))) static void touch_pages(volatile char *memory, size_t nr_pages, size_t page_bytes)
{
	for (size_t i = 0; i < nr_pages; i++)
		memory[i * page_bytes] = 1;
}

/*
 * 0, or -1 without memory. The first call touches no page: its page faults are of the function
 * itself.
 */
static inline int touch_new_pages(size_t nr_pages)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), nr_bytes = (nr_pages + 1) * page_bytes;
	char *memory = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	/* A kernel without huge pages refuses, and that is as good. */
	if (madvise(memory, nr_bytes, MADV_NOHUGEPAGE) < 0)
		touch_pages(memory, 0, page_bytes);
	touch_pages(memory, 0, page_bytes);
	touch_pages(memory, nr_pages, page_bytes);
	return munmap(memory, nr_bytes);
}

#endif
