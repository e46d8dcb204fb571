/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The load of kernel_overwrite: a process on one CPU that touches pages at known addresses in a
 * known order, each for the first time since it gave it back, so that each is a page fault. It goes
 * on as long as it has credit, so that it cannot outrun a reader that must not be outrun.
 */
#ifndef OVERWRITE_LOAD_H
#define OVERWRITE_LOAD_H

#include <sys/types.h>

#include "libop/base/compiler.h"

#define LOAD_PAGES       65536u
#define LOAD_STACK_WORD  UINT64_C(0x6f76657277726974) /* what the stack of the process is full of */
#define LOAD_STACK_BYTES 49152u
#define LOAD_STACKS_MAX  2048u

struct load_shared {
	uint64_t touched; /* by the load: pages so far */
	uint64_t credit;  /* by the reader: pages it may touch, ever */
};

struct load {
	pid_t pid;
	uint8_t *pages; /* the same address in both processes */
	size_t page_bytes;
	struct load_shared *shared;
};

/* Puts the calling thread on the CPU. */
void load_pin(int cpu);

/*
 * Starts the process. It uses its stacks in turn: a handler that copies a stack finds it in the
 * cache when there are few, and takes several times longer when there are many. Returns when each
 * stack is full and the credit of as many pages is used up. 0 or -errno.
 */
int load_start(int cpu, size_t nr_stacks, struct load *ret_load) OP_NONNULL OP_MUST_CHECK;

/* As many pages more than it has touched by now. */
void load_give(const struct load *load, uint64_t nr_pages) OP_NONNULL;

/* Allowed on a zeroed load. */
void load_end(struct load *load) OP_NONNULL;

/* The number of the page of this address; LOAD_PAGES for an address of another process. */
static inline uint64_t load_page(const struct load *load, uint64_t address)
{
	uint64_t offset = address - (uint64_t)(uintptr_t)load->pages;

	return offset < LOAD_PAGES * load->page_bytes ? offset / load->page_bytes : LOAD_PAGES;
}

#endif
