/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Kills a process at every step: the child is traced, and killed after its first instruction, its
 * second, its third ...
 */
#ifndef STEPPED_H
#define STEPPED_H

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "tests/unit/cmocka_all.h"

/*
 * Sanitizers multiply the instructions, and the cost grows with the square of their number. With
 * sanitizers only every n-th step is tried, about STEPPED_MAX steps in all. Each run begins at
 * another offset and prints it; OPD_STEPPED_FROM repeats a run. Without sanitizers every step is
 * tried, but with OPD_QUICK, a tenth of STEPPED_MAX.
 */
#define STEPPED_MAX 40000
#if defined(__SANITIZE_ADDRESS__)
#define STEPPED_BY_EACH false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STEPPED_BY_EACH false
#endif
#endif
#ifndef STEPPED_BY_EACH
#define STEPPED_BY_EACH true
#endif

/* The child marks the begin and the end of its steps. */
static inline void stepped_begin(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	raise(SIGSTOP);
}

_Noreturn static inline void stepped_end(void)
{
	raise(SIGUSR1);
	_exit(0);
}

/* Runs the child for some instructions. Returns how many it made: fewer when it has ended. */
static inline long stepped_run(pid_t pid, long nr_steps)
{
	int status;
	long made;

	for (made = 0; made < nr_steps; made++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			break;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGUSR1)
			break;
	}
	return made;
}

/*
 * Starts `child`, which does not return, and stops it where its steps begin. -1: tracing is not
 * allowed.
 */
static inline pid_t stepped_fork(void (*child)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		child(arg);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? -1 : pid;
}

static inline void stepped_kill(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static inline long stepped_stride(long nr_steps)
{
	if (getenv("OPD_QUICK"))
		return nr_steps * nr_steps / 2 / (STEPPED_MAX / 10) + 1;
	return STEPPED_BY_EACH ? 1 : nr_steps * nr_steps / 2 / STEPPED_MAX + 1;
}

static inline long stepped_from(long stride)
{
	const char *wanted = getenv("OPD_STEPPED_FROM");
	long from = (wanted ? strtol(wanted, NULL, 10) : (long)(op_now_ns() / 1000 % LONG_MAX)) % stride;

	if (stride > 1)
		print_message("one step of %ld, OPD_STEPPED_FROM=%ld\n", stride, from);
	return from;
}

/*
 * `die_once` kills the child once after some steps. It returns the number of steps up to the end;
 * -1: tracing is not allowed.
 */
static inline void stepped_everywhere(long (*die_once)(const void *work, long nr_steps), const void *work)
{
	long nr_steps = die_once(work, 1000000), stride;

	if (nr_steps < 0)
		skip();
	assert_in_range(nr_steps, 10, 999999);
	stride = stepped_stride(nr_steps);
	for (long steps = stepped_from(stride); steps <= nr_steps; steps += stride)
		assert_int_equal(die_once(work, steps), steps);
}

#endif
