/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "libop/base/atomic.h"

struct op_guard {
	struct op_guard *next, **here;
	uint8_t *start;
	size_t nr_bytes;
	bool broken;
};

/*
 * `locked` protects `guards` and the writing of `nr_broken`. Nobody touches a guarded mapping while
 * holding it, so the handler never interrupts the holder: it waits for another thread, for a few
 * instructions.
 */
static struct op_guard *guards;
static uint32_t nr_broken;
static uint32_t locked;

/* A, pairs with B in unlock: what the previous holder did with the list is seen. */
static void lock(void)
{
	while (!op_claim(&locked, 1))
		;
}

/* B, pairs with A in lock. */
static void unlock(void)
{
	op_unclaim(&locked, 1);
}

/* ---- the handler: async-signal-safe calls only; mmap is a plain system call ---- */

static struct op_guard *find(const uint8_t *address)
{
	struct op_guard *guard;

	lock();
	for (guard = guards; guard; guard = guard->next)
		if (address >= guard->start && address < guard->start + guard->nr_bytes)
			break;
	unlock();
	return guard;
}

static bool replace_by_zeros(struct op_guard *guard)
{
	void *map = mmap(guard->start, guard->nr_bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return false;
	op_store_relaxed(&guard->broken, true);
	lock();
	op_store_relaxed(&nr_broken, nr_broken + 1);
	unlock();
	return true;
}

static void on_bus_error(int number, siginfo_t *info, void *context OP_UNUSED)
{
	struct op_guard *guard = info->si_code > 0 ? find(info->si_addr) : NULL;
	int saved = errno;

	if (!guard || !replace_by_zeros(guard)) {
		signal(number, SIG_DFL);
		raise(number);
	}
	errno = saved;
}

int op_guard_install(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

/* ---- the list ---- */

int op_guard_new(void *start, size_t nr_bytes, struct op_guard **ret_guard)
{
	struct op_guard *guard = malloc(sizeof(*guard));

	if (!guard)
		return -ENOMEM;
	*guard = (struct op_guard){ .start = start, .nr_bytes = nr_bytes, .here = &guards };
	lock();
	guard->next = guards;
	if (guards)
		guards->here = &guard->next;
	guards = guard;
	unlock();
	*ret_guard = guard;
	return 0;
}

void op_guard_free(struct op_guard *guard)
{
	if (!guard)
		return;
	lock();
	*guard->here = guard->next;
	if (guard->next)
		guard->next->here = guard->here;
	unlock();
	free(guard);
}

bool op_guard_is_broken(const struct op_guard *guard)
{
	return op_load_relaxed(&guard->broken);
}

uint32_t op_guard_nr_broken(void)
{
	return op_load_relaxed(&nr_broken);
}
