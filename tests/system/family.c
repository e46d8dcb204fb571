// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A family of processes and threads with a known profile, for test_operf.py:
 *
 *   family MS THREADS CHILDREN   MS of CPU time for each of: the main thread in main_part, each
 *                                thread in thread_part, each child without exec in child_part, and
 *                                a child that runs this program again in exec_part; prints the
 *                                nanoseconds of the four functions
 *   family serve FILE            makes FILE when its four threads run, which then spin in
 *                                thread_part; ends when FILE is removed. Each thread starts
 *                                another one when FILE.more exists
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/compiler.h"

#define NS_PER_MS   UINT64_C(1000000)
#define SLICE_STEPS 20000u
#define SERVING     4

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Four functions that are alike and distinct: the asm keeps the loop and the function. */
#define PART(name, factor)                                                                                                         \
	__attribute__((noinline)) static uint64_t name(uint64_t x)                                                                 \
	{                                                                                                                          \
		for (uint64_t steps = SLICE_STEPS; steps; steps--) {                                                               \
			x = x * (factor) + 1442695040888963407u;                                                                   \
			__asm__ volatile("" : "+r"(x));                                                                            \
		}                                                                                                                  \
		return x;                                                                                                          \
	}

PART(main_part, 6364136223846793005u)
PART(thread_part, 2862933555777941757u)
PART(child_part, 3202034522624059733u)
PART(exec_part, 3935559000370003845u)

static uint64_t spin(uint64_t (*part)(uint64_t x), uint64_t ns)
{
	uint64_t begin = cpu_ns(), x = 1;

	while (cpu_ns() - begin < ns)
		x = part(x);
	return cpu_ns() - begin;
}

static uint64_t wanted_ns, thread_ns;

static void *run_thread(void *arg)
{
	(void)arg;
	__atomic_add_fetch(&thread_ns, spin(thread_part, wanted_ns), __ATOMIC_RELAXED);
	return NULL;
}

/* The nanoseconds of a child, through a pipe. */
static int start_child(const char *program, pid_t *ret_pid)
{
	int ends[2];

	if (pipe(ends) < 0 || (*ret_pid = fork()) < 0)
		exit(2);
	if (*ret_pid) {
		close(ends[1]);
		return ends[0];
	}
	if (program) {
		char ms[32];

		snprintf(ms, sizeof(ms), "%llu", (unsigned long long)(wanted_ns / NS_PER_MS));
		dup2(ends[1], STDOUT_FILENO);
		execl(program, program, "exec", ms, NULL);
		_exit(2);
	}
	dprintf(ends[1], "%llu\n", (unsigned long long)spin(child_part, wanted_ns));
	_exit(0);
}

static uint64_t end_child(int fd, pid_t pid)
{
	char text[32] = "";

	if (read(fd, text, sizeof(text) - 1) <= 0 || waitpid(pid, NULL, 0) != pid)
		exit(2);
	close(fd);
	return strtoull(text, NULL, 10);
}

static int run(const char *program, size_t nr_threads, size_t nr_children)
{
	pthread_t *threads = calloc(nr_threads + 1, sizeof(*threads));
	pid_t *pids = calloc(nr_children + 1, sizeof(*pids));
	int *fds = calloc(nr_children + 1, sizeof(*fds));
	uint64_t main_ns, child_ns = 0, exec_ns;

	if (!threads || !pids || !fds)
		return 2;
	for (size_t i = 0; i < nr_children; i++)
		fds[i] = start_child(NULL, &pids[i]);
	fds[nr_children] = start_child(program, &pids[nr_children]);
	for (size_t i = 0; i < nr_threads; i++)
		if (pthread_create(&threads[i], NULL, run_thread, NULL))
			return 2;
	main_ns = spin(main_part, wanted_ns);
	for (size_t i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < nr_children; i++)
		child_ns += end_child(fds[i], pids[i]);
	exec_ns = end_child(fds[nr_children], pids[nr_children]);
	printf("%llu %llu %llu %llu\n", (unsigned long long)main_ns, (unsigned long long)thread_ns, (unsigned long long)child_ns,
	       (unsigned long long)exec_ns);
	free(threads);
	free(pids);
	free(fds);
	return 0;
}

/* ---- serving ---- */

static const char *serving_file;
static char more_file[4096];

static void *spin_on(void *arg)
{
	(void)arg;
	while (!access(serving_file, F_OK))
		spin(thread_part, NS_PER_MS);
	return NULL;
}

static void *serve_thread(void *arg)
{
	bool has_more = false;
	pthread_t more;

	(void)arg;
	while (!access(serving_file, F_OK)) {
		spin(thread_part, NS_PER_MS);
		if (!has_more && !access(more_file, F_OK))
			has_more = !pthread_create(&more, NULL, spin_on, NULL);
	}
	if (has_more)
		pthread_join(more, NULL);
	return NULL;
}

static int serve(const char *file)
{
	FILE *made = fopen(file, "w");
	pthread_t threads[SERVING];

	serving_file = file;
	snprintf(more_file, sizeof(more_file), "%s.more", file);
	if (!made || fclose(made))
		return 2;
	for (size_t i = 0; i < SERVING; i++)
		if (pthread_create(&threads[i], NULL, serve_thread, NULL))
			return 2;
	for (size_t i = 0; i < SERVING; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "exec")) {
		printf("%llu\n", (unsigned long long)spin(exec_part, strtoull(argv[2], NULL, 10) * NS_PER_MS));
		return 0;
	}
	if (argc != 4)
		return 2;
	wanted_ns = strtoull(argv[1], NULL, 10) * NS_PER_MS;
	return run(argv[0], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
}
