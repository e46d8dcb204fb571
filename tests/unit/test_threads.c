/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work that is shared out among threads, and sorting by them. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "tests/unit/cmocka_all.h"

#include "libop/base/atomic.h"
#include "libop/session/memory_view.h"
#include "libop/process/threads.h"
#include "tools/common/parallel_sort.h"

#define NR_ITEMS_MAX 5000

struct seen {
	pthread_t caller;
	/* the last: other threads in which a signal is not blocked */
	uint64_t nr_calls, nr_callers, nr_open;
};

static void look(void *arg)
{
	struct seen *seen = arg;
	bool is_caller = pthread_equal(pthread_self(), seen->caller);
	sigset_t set;

	pthread_sigmask(SIG_SETMASK, NULL, &set);
	op_fetch_add_relaxed(&seen->nr_calls, 1);
	op_fetch_add_relaxed(&seen->nr_callers, is_caller);
	op_fetch_add_relaxed(&seen->nr_open, !is_caller && !(sigismember(&set, SIGTERM) && sigismember(&set, SIGINT)));
}

static void test_calls(void **state OP_UNUSED)
{
	for (size_t nr_threads = 0; nr_threads < 9; nr_threads++) {
		struct seen seen = { .caller = pthread_self() };
		sigset_t set;

		op_run_threads(nr_threads, look, &seen);
		assert_int_equal(seen.nr_calls, nr_threads ? nr_threads : 1);
		assert_int_equal(seen.nr_callers, 1);
		assert_int_equal(seen.nr_open, 0);
		pthread_sigmask(SIG_SETMASK, NULL, &set);
		assert_false(sigismember(&set, SIGTERM));
	}
}

static void test_cpus(void **state OP_UNUSED)
{
	cpu_set_t before, one;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(op_nr_cpus(), op_min_u64((uint64_t)CPU_COUNT(&before), OP_THREADS_MAX));
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(op_nr_cpus(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

struct item {
	uint32_t value, order;
	uint32_t spare[3];
};

static int compare(const void *left, const void *right, void *arg OP_UNUSED)
{
	const struct item *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void check_sort(size_t nr_items, uint32_t nr_values, size_t nr_threads)
{
	static struct item items[NR_ITEMS_MAX], wanted[NR_ITEMS_MAX];
	uint32_t chance = (uint32_t)(nr_items + nr_values + nr_threads);

	for (size_t i = 0; i < nr_items; i++) {
		chance = chance * 1664525 + 1013904223;
		items[i] = (struct item){ .value = (chance >> 8) % nr_values, .order = (uint32_t)i, .spare = { chance } };
	}
	memcpy(wanted, items, sizeof(items));
	qsort_r(wanted, nr_items, sizeof(*wanted), compare, NULL);
	assert_int_equal(opr_sort_by_some(items, nr_items, sizeof(*items), compare, NULL, nr_threads), 0);
	assert_memory_equal(items, wanted, sizeof(items));
}

static void test_sort(void **state OP_UNUSED)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 7, 8, 9, 31, 100, 1023, 1024, 4999, NR_ITEMS_MAX };
	static const uint32_t values[] = { 1, 2, 10, 1000000 };

	for (size_t i = 0; i < op_array_size(sizes); i++)
		for (size_t j = 0; j < op_array_size(values); j++)
			for (size_t nr_threads = 0; nr_threads < 18; nr_threads++)
				check_sort(sizes[i], values[j], nr_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_calls), cmocka_unit_test(test_cpus),
					    cmocka_unit_test(test_sort) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
