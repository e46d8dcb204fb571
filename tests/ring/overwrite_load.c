/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ring/overwrite_load.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/atomic.h"
#include "libop/sys.h"

#define BLOCK_PAGES 512u /* taken away again at once, so little memory is in use */

/* Never returns. Its stack is full of one word, so that a copy of it in a sample can be told from anything else. */
static void touch(const struct load *load)
{
	volatile uint64_t stack[LOAD_STACK_BYTES / sizeof(uint64_t)];
	uint64_t touched = 0;

	for (size_t i = 0; i < op_array_size(stack); i++)
		stack[i] = LOAD_STACK_WORD;
	for (;;) {
		size_t page = touched % LOAD_PAGES;

		while (touched >= op_load_relaxed(&load->shared->credit))
			sched_yield();
		if (page % BLOCK_PAGES == 0)
			madvise(load->pages + page * load->page_bytes, BLOCK_PAGES * load->page_bytes, MADV_DONTNEED);
		*(volatile uint8_t *)(load->pages + page * load->page_bytes) = (uint8_t)stack[page % op_array_size(stack)];
		op_store_relaxed(&load->shared->touched, ++touched);
	}
}

void load_pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int load_start(int cpu, struct load *ret_load)
{
	struct load load = { .page_bytes = (size_t)sysconf(_SC_PAGESIZE) };
	size_t nr_bytes = LOAD_PAGES * load.page_bytes;
	void *shared, *pages;
	int err;

	err = op_sys_mmap(NULL, load.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0, &shared);
	if (err < 0)
		return err;
	load.shared = shared;
	err = op_sys_mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &pages);
	if (err < 0) {
		load_end(&load);
		return err;
	}
	load.pages = pages;
	madvise(pages, nr_bytes, MADV_NOHUGEPAGE);
	load.pid = fork();
	if (load.pid < 0) {
		err = -errno;
		load_end(&load);
		return err;
	}
	if (!load.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		load_pin(cpu);
		touch(&load);
	}
	*ret_load = load;
	return 0;
}

void load_give(const struct load *load, uint64_t nr_pages)
{
	op_store_relaxed(&load->shared->credit, op_load_relaxed(&load->shared->touched) + nr_pages);
}

void load_end(struct load *load)
{
	if (load->pid > 0) {
		kill(load->pid, SIGKILL);
		waitpid(load->pid, NULL, 0);
	}
	if (load->pages)
		op_sys_munmap(load->pages, LOAD_PAGES * load->page_bytes);
	if (load->shared)
		op_sys_munmap(load->shared, load->page_bytes);
	*load = (struct load){ 0 };
}
