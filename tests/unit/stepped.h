/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A process that dies at every step: it is traced and killed after its first, second, third ... instruction. */
#ifndef STEPPED_H
#define STEPPED_H

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/cmocka_all.h"

#define STEPPED_MAX 70000 /* steps in all for a test: sanitizers make of each instruction many, which are then tried at intervals */

/* The child says where its steps begin and where they end. */
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

/* The child's next instructions. Returns how many it made, fewer when it is through. */
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

/* The child where its steps begin, from `child`, which does not return; -1 when it may not be traced. */
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

/* `die_once` makes one death after so many steps, and returns how many there were until the end; -1: may not trace. */
static inline void stepped_everywhere(long (*die_once)(const void *work, long nr_steps), const void *work)
{
	long nr_steps = die_once(work, 1000000), stride;

	if (nr_steps < 0)
		skip();
	assert_true(nr_steps > 10);
	stride = nr_steps * nr_steps / 2 / STEPPED_MAX + 1;
	for (long steps = 0; steps <= nr_steps; steps += stride)
		die_once(work, steps);
}

#endif
