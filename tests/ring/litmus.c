/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * litmus [--rounds=N] [private|global|none]: what the light store of a pair's writer rests on. Two
 * threads on two CPUs, in each round: the one stores x lightly and loads y, the other stores y, has
 * the kernel fence, and loads x. One of the two must see the other. The process is made so that the
 * kernel's knowledge of the writer's CPU is old: it ran there before it registered, and the CPU has
 * been idle since. Exit code 1 when a round saw neither; 77 on one CPU, or without membarrier(2).
 *
 * `private` is what libop/ring/memory_pair.c uses. `global` (GLOBAL_EXPEDITED) fails on Linux 6.18,
 * now and then, and `none` at once: they are there to be shown (doc/ring.md). Without one of these
 * words: first `none`, in which this machine has to show within NR_TRIES processes that there is
 * something to see, and then `private`, in which nothing may be seen.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/compiler.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define NR_PROCESSES 25   /* each begins with the old knowledge */
#define NR_TRIES     1000 /* of which some 20 are needed at most */
#define NR_LINES     40

struct method {
	const char *name;
	int enrol, fence;
};

static const struct method methods[] = {
	{ "private", MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED },
	{ "global", MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_GLOBAL_EXPEDITED },
	{ "none", 0, 0 },
};

static struct {
	uint64_t x __attribute__((aligned(128)));
	uint64_t y __attribute__((aligned(128)));
	uint64_t round __attribute__((aligned(128)));
	uint64_t seen_by_writer, done;
	uint64_t lines[NR_LINES][8] __attribute__((aligned(128)));
} shared;

static int cpus[2];
static uint64_t nr_rounds = 100000;

static bool find_cpus(void)
{
	cpu_set_t set;
	int nr = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE && nr < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[nr++] = cpu;
	return nr == 2;
}

static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		exit(2);
}

static void *writer_main(void *arg)
{
	uint64_t nr = *(uint64_t *)arg;

	go_to(cpus[1]);
	for (uint64_t round = 1; round <= nr; round++) {
		while (op_load_acquire(&shared.round) != round)
			;
		/*
		 * Stores that miss the cache, since the other CPU has stored there: x waits behind
		 * them.
		 */
		for (int i = 0; i < NR_LINES; i++)
			op_store_relaxed(&shared.lines[i][0], round);
		op_store_light(&shared.x, round);
		shared.seen_by_writer = op_load_fence(&shared.y);
		op_store_release(&shared.done, round);
	}
	return NULL;
}

/* Rounds in which neither saw the other. */
static uint64_t play(const struct method *method, uint64_t nr)
{
	uint64_t nr_wrong = 0, seen, pause;

	for (uint64_t round = 1; round <= nr; round++) {
		for (int i = 0; i < NR_LINES; i++)
			op_store_relaxed(&shared.lines[i][1], round);
		op_store_release(&shared.round, round);
		/* Until the writer has seen the round, about. */
		for (uint64_t i = 0; i < round * 7 % 40; i++)
			op_store_relaxed(&pause, i);
		op_store_fence(&shared.y, round);
		if (method->fence && op_sys_membarrier(method->fence) < 0)
			exit(2);
		seen = op_load_fence(&shared.x);
		while (op_load_acquire(&shared.done) != round)
			;
		nr_wrong += seen != round && shared.seen_by_writer != round;
	}
	return nr_wrong;
}

static int run_process(const struct method *method, uint64_t nr)
{
	pthread_t writer;
	uint64_t nr_wrong;

	go_to(cpus[1]);
	for (int i = 0; i < 100000; i++)
		op_compiler_fence();
	go_to(cpus[0]);
	usleep(1000); /* the other CPU goes idle */
	if (method->enrol && op_sys_membarrier(method->enrol) < 0)
		return 77;
	if (pthread_create(&writer, NULL, writer_main, &nr))
		return 2;
	usleep(1000);
	nr_wrong = play(method, nr);
	pthread_join(writer, NULL);
	if (nr_wrong)
		printf("%s: in %llu of %llu rounds neither saw the other\n", method->name, (unsigned long long)nr_wrong,
		       (unsigned long long)nr);
	fflush(stdout);
	return nr_wrong != 0;
}

/* The exit code of a process. */
static int try_once(const struct method *method)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(run_process(method, nr_rounds / NR_PROCESSES));
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return 2;
	return WEXITSTATUS(status);
}

static int run(const struct method *method)
{
	int worst = 0;

	for (int i = 0; i < NR_PROCESSES; i++) {
		int code = try_once(method);

		worst = code > worst ? code : worst;
	}
	return worst;
}

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < op_array_size(methods); i++)
		if (!strcmp(methods[i].name, name))
			return &methods[i];
	return NULL;
}

/*
 * ThreadSanitizer puts so much code between a store and a load that no reordering is seen, and a
 * pair in its builds has no light store.
 */
static int run_both(void)
{
	int code = OP_HAVE_LIGHT_STORE ? 0 : 1;

	for (int i = 0; !code && i < NR_TRIES; i++)
		code = try_once(find_method("none"));
	if (!code)
		printf("none: in no round neither saw the other, so this says nothing of private\n");
	if (code != 1)
		return code ? code : 1;
	return run(find_method("private"));
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' }, { 0 } };
	const struct method *method = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (option != 'r' || op_parse_u64(optarg, NR_PROCESSES, UINT64_MAX, &nr_rounds) < 0)
			return 2;
	if (optind < argc) {
		method = find_method(argv[optind]);
		if (!method)
			return 2;
	}
	if (!find_cpus()) {
		printf("skip: one CPU\n");
		return 77;
	}
	return method ? run(method) : run_both();
}
