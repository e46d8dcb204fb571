// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Storms of processes that know what samples they cause: a page fault in touch_pages of a known
 * file for each page.
 *
 *   storm sleepers N MAPS PROGRAM             N processes with MAPS mappings of their code; prints
 *                                             "ready"; they end with its input
 *   storm execs RATE MS PAGES SPINS PROGRAM...  RATE processes per second for MS, half of them by
 *   fork, half by vfork, each with exec of one
 *                                             of the programs in turn: the first touches PAGES
 *                                             pages, the next one more ...
 *   storm forks RATE MS PAGES LIB LIB2        children without exec: each PAGES pages in this
 *                                             program, PAGES + 1 in LIB, which it has loaded; every
 *                                             fourth loads LIB2 and touches PAGES + 2 there
 *   storm threads RATE MS PAGES               RATE threads per second, PAGES pages each; every
 *                                             eighth in a process whose first thread has ended
 *
 * The last three print a line for each file in the order of the arguments (this program first): how
 * many pages were touched there. After them a line with the processes or threads that there were,
 * and the ms that it took.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "libop/base/clock.h"
#include "tests/system/storm_touch.h"
#include "tests/die.h"

#define MAX_UNDER_WAY 64 /* on a machine that is too slow, the rate is lower */
#define MAX_FILES     64
#define MAX_TRIES     1000

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text) {
		fprintf(stderr, "storm: bad number '%s'\n", text);
		exit(2);
	}
	return value;
}

/* ---- the rate ---- */

struct pace {
	uint64_t begin_ns, end_ns, rate;
	uint64_t nr_begun, nr_under_way;
};

static struct pace pace_begin(const char *rate, const char *ms)
{
	uint64_t now_ns = op_now_ns();

	return (struct pace){ .begin_ns = now_ns, .end_ns = now_ns + number(ms) * OP_NS_PER_MS, .rate = number(rate) };
}

/* Waits until the next one is due; false: the storm is over. */
static bool pace_next(struct pace *pace)
{
	uint64_t due_ns = pace->begin_ns + pace->nr_begun * OP_NS_PER_S / pace->rate, now_ns = op_now_ns();
	struct timespec rest = { .tv_nsec = 1000000 };

	while (now_ns < due_ns && now_ns < pace->end_ns) {
		nanosleep(&rest, NULL);
		now_ns = op_now_ns();
	}
	pace->nr_begun++;
	return now_ns < pace->end_ns;
}

/*
 * Waits for children that have ended: for all at the end, else for those that have ended, and for
 * more while too many run.
 */
static void reap(struct pace *pace, bool all)
{
	while (pace->nr_under_way) {
		bool wait = all || pace->nr_under_way >= MAX_UNDER_WAY;
		int status;
		pid_t pid = waitpid(-1, &status, wait ? 0 : WNOHANG);

		if (!pid)
			return;
		if (pid < 0 && errno != EINTR)
			die("waitpid", -errno);
		if (pid > 0 && status) {
			fprintf(stderr, "storm: a child ended with status %d\n", status);
			exit(1);
		}
		pace->nr_under_way -= pid > 0;
	}
}

static void report(const uint64_t *touched, size_t nr_files, uint64_t nr, const struct pace *pace)
{
	for (size_t i = 0; i < nr_files; i++)
		printf("%llu\n", (unsigned long long)touched[i]);
	printf("%llu %llu\n", (unsigned long long)nr, (unsigned long long)((op_now_ns() - pace->begin_ns) / OP_NS_PER_MS));
}

/*
 * A machine that has no room for another process has it again soon, unless it is too small for the
 * test.
 */
static bool try_again(unsigned int *nr_tries)
{
	if (errno != EAGAIN || ++*nr_tries > MAX_TRIES)
		return false;
	usleep(10000);
	return true;
}

/* ---- sleepers ---- */

static void become(char **args)
{
	execv(args[0], args);
	_exit(127);
}

static int do_sleepers(int argc, char **argv)
{
	unsigned long nr = number(argv[0]);
	char *args[] = { argv[2], (char[]){ "sleep" }, argv[1], NULL };
	unsigned int nr_tries = 0;
	int ready[2];
	char byte;

	if (argc != 3 || pipe(ready) < 0)
		die("pipe", -errno);
	signal(SIGCHLD, SIG_IGN);
	for (unsigned long i = 0; i < nr; i++) {
		pid_t pid;

		do
			pid = fork();
		while (pid < 0 && try_again(&nr_tries));
		if (!pid) {
			dup2(ready[1], STDOUT_FILENO);
			close(ready[0]);
			close(ready[1]);
			become(args);
		}
		if (pid < 0 || read(ready[0], &byte, 1) != 1)
			die("a sleeper does not begin", -errno);
	}
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	return 0;
}

/* ---- fork and exec ---- */

static int do_execs(int argc, char **argv)
{
	struct pace pace = pace_begin(argv[0], argv[1]);
	unsigned long pages = number(argv[2]);
	size_t nr_files = (size_t)argc - 4;
	uint64_t touched[MAX_FILES] = { 0 }, nr = 0;
	unsigned int nr_tries = 0;

	while (pace_next(&pace)) {
		size_t file = nr % nr_files;
		char pages_text[24];
		char *args[] = { argv[4 + file], pages_text, argv[3], NULL };
		pid_t pid;

		snprintf(pages_text, sizeof(pages_text), "%lu", pages + file);
		pid = nr / nr_files % 2 ? vfork() : fork();
		if (pid < 0 && try_again(&nr_tries))
			continue;
		if (pid < 0)
			die("fork", -errno);
		if (!pid)
			become(args);
		touched[file] += pages + file;
		nr++;
		pace.nr_under_way++;
		reap(&pace, false);
	}
	reap(&pace, true);
	report(touched, nr_files, nr, &pace);
	return 0;
}

/* ---- fork without exec ---- */

typedef int (*toucher)(size_t nr_pages);

static toucher load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW), *found = library ? dlsym(library, "storm_touch") : NULL;
	toucher touch;

	memcpy(&touch, &found, sizeof(touch));
	return touch;
}

static int do_forks(int argc OP_UNUSED, char **argv)
{
	toucher touch_library = load(argv[3]), touch_other;
	struct pace pace = pace_begin(argv[0], argv[1]);
	unsigned long pages = number(argv[2]);
	uint64_t touched[3] = { 0 }, nr = 0;

	if (!touch_library)
		die("cannot load the library", -errno);
	while (pace_next(&pace)) {
		bool loads = !(nr++ % 4);
		pid_t pid = fork();

		if (pid < 0)
			die("fork", -errno);
		if (!pid) {
			touch_other = loads ? load(argv[4]) : NULL;
			_exit(touch_new_pages(pages) < 0 || touch_library(pages + 1) < 0 ||
			      (loads && (!touch_other || touch_other(pages + 2) < 0)));
		}
		touched[0] += pages;
		touched[1] += pages + 1;
		touched[2] += loads ? pages + 2 : 0;
		pace.nr_under_way++;
		reap(&pace, false);
	}
	reap(&pace, true);
	report(touched, 3, nr, &pace);
	return 0;
}

/* ---- threads ---- */

static void *touch_in_thread(void *arg)
{
	return touch_new_pages(*(const unsigned long *)arg) < 0 ? arg : NULL;
}

static void *touch_when_left(void *arg)
{
	/* Until the first thread is a zombie: time for opd to read that it has ended. */
	usleep(2000);
	_exit(touch_in_thread(arg) != NULL);
}

/* A process whose first thread ends at once; the second touches the pages and ends it. */
static void leave_to_thread(unsigned long *pages)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, touch_when_left, pages))
		_exit(1);
	pthread_exit(NULL);
}

static int do_threads(int argc OP_UNUSED, char **argv)
{
	struct pace pace = pace_begin(argv[0], argv[1]);
	unsigned long pages = number(argv[2]);
	uint64_t touched = 0, nr = 0;

	while (pace_next(&pace)) {
		pthread_t thread;
		void *failed = NULL;

		if (nr++ % 8 == 0) {
			pid_t pid = fork();

			if (pid < 0)
				die("fork", -errno);
			if (!pid)
				leave_to_thread(&pages);
			pace.nr_under_way++;
			reap(&pace, false);
		} else if (pthread_create(&thread, NULL, touch_in_thread, &pages) || pthread_join(thread, &failed) || failed) {
			die("thread", -errno);
		}
		touched += pages;
	}
	reap(&pace, true);
	report(&touched, 1, nr, &pace);
	return 0;
}

static const struct {
	const char *name;
	int min_args;
	int (*run)(int argc, char **argv);
} kinds[] = {
	{ "sleepers", 3, do_sleepers },
	{ "execs", 5, do_execs },
	{ "forks", 5, do_forks },
	{ "threads", 3, do_threads },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < op_array_size(kinds); i++)
		if (argc >= 2 && argc < MAX_FILES && !strcmp(argv[1], kinds[i].name) && argc - 2 >= kinds[i].min_args)
			return kinds[i].run(argc - 2, argv + 2);
	fprintf(stderr, "usage: storm sleepers|execs|forks|threads ARGUMENTS\n");
	return 2;
}
