/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

struct task {
	void (*work)(void *arg);
	void *arg;
};

size_t op_nr_cpus(void)
{
	cpu_set_t set;
	long nr_cpus = sched_getaffinity(0, sizeof(set), &set) < 0 ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);

	return nr_cpus > 0 ? op_min_u64((uint64_t)nr_cpus, OP_THREADS_MAX) : 1;
}

static void *run_task(void *arg)
{
	const struct task *task = arg;

	task->work(task->arg);
	return NULL;
}

void op_run_threads(size_t nr_threads, void (*work)(void *arg), void *arg)
{
	struct task task = { work, arg };
	pthread_t threads[OP_THREADS_MAX];
	size_t nr_started = 0;
	sigset_t all, before;

	if (nr_threads < 2) {
		work(arg);
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	nr_threads = op_min_u64(nr_threads, OP_THREADS_MAX);
	while (nr_started + 1 < nr_threads && !pthread_create(&threads[nr_started], NULL, run_task, &task))
		nr_started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(arg);
	for (size_t i = 0; i < nr_started; i++)
		pthread_join(threads[i], NULL);
}
