/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ring/overwrite_load.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/sys.h"

#define BLOCK_PAGES 512u /* taken away again at once, so little memory is in use */
#define STACK_BYTES (LOAD_STACK_BYTES + 16384)

/* The process: contexts that take turns, each with a stack of its own. */
struct toucher {
	const struct load *load;
	uint64_t touched;
	size_t nr_contexts;
	size_t current;
	ucontext_t contexts[LOAD_STACKS_MAX];
};

static struct toucher toucher;

static __attribute__((noinline)) void touch_next(void)
{
	const struct load *load = toucher.load;
	size_t page = toucher.touched % LOAD_PAGES;

	while (toucher.touched >= op_load_relaxed(&load->shared->credit))
		sched_yield();
	if (page % BLOCK_PAGES == 0)
		madvise(load->pages + page * load->page_bytes, BLOCK_PAGES * load->page_bytes, MADV_DONTNEED);
	*(volatile uint8_t *)(load->pages + page * load->page_bytes) = 1;
	op_store_relaxed(&load->shared->touched, ++toucher.touched);
}

/* Never returns. The stack is full of one word, so that its copy in a sample is recognised. */
static void touch(void)
{
	volatile uint64_t stack[LOAD_STACK_BYTES / sizeof(uint64_t)];

	for (size_t i = 0; i < op_array_size(stack); i++)
		stack[i] = LOAD_STACK_WORD;
	for (;;) {
		size_t from = toucher.current;

		touch_next();
		if (toucher.nr_contexts == 1)
			continue;
		toucher.current = (from + 1) % toucher.nr_contexts;
		swapcontext(&toucher.contexts[from], &toucher.contexts[toucher.current]);
	}
}

static bool make_context(ucontext_t *context)
{
	void *stack;

	if (op_sys_mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &stack) < 0 ||
	    getcontext(context) < 0)
		return false;
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_BYTES;
	makecontext(context, touch, 0);
	return true;
}

static void run(const struct load *load, int cpu, size_t nr_stacks)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	load_pin(cpu);
	toucher.load = load;
	toucher.nr_contexts = nr_stacks;
	for (size_t i = 0; i < nr_stacks; i++)
		if (!make_context(&toucher.contexts[i]))
			_exit(1);
	setcontext(&toucher.contexts[0]);
	_exit(1);
}

void load_pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int load_start(int cpu, size_t nr_stacks, struct load *ret_load)
{
	struct load load = { .page_bytes = (size_t)sysconf(_SC_PAGESIZE) };
	size_t nr_bytes = LOAD_PAGES * load.page_bytes;
	void *shared, *pages;
	int err;

	if (!nr_stacks || nr_stacks > LOAD_STACKS_MAX)
		return -EINVAL;
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
	if (!load.pid)
		run(&load, cpu, nr_stacks);
	load_give(&load, nr_stacks);
	while (op_load_relaxed(&load.shared->touched) < nr_stacks)
		usleep(1000);
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
