/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A command that is profiled or counted: a child that waits until the events are open. It is forked
 * before the tool changes its own limits, mask and mode, so the command finds everything as its
 * caller left it. One thread.
 */
#ifndef OPR_WORKLOAD_H
#define OPR_WORKLOAD_H

#include <sys/signalfd.h>
#include <sys/types.h>

#include "libop/base/compiler.h"
#include "tools/common/words.h"

/* Exit codes of a shell. */
#define OPR_CANNOT_RUN 126
#define OPR_NOT_FOUND  127
#define OPR_BY_SIGNAL  128

struct opr_workload {
	pid_t pid; /* 0: there is none */
	char *path; /* of its file, as execvp(3) finds it; NULL: not known */
	int go_fd, error_fd;
	bool ended;
	int exit_code; /* as the shell has it */
};

/* To be called first: remembers which signals the caller of the tool ignores. */
void opr_workload_note_signals(void);

/*
 * Starts the child, which waits. Nothing has been run yet when this fails: -ENOENT or -EACCES, and
 * exit_code is set.
 */
int opr_workload_start(struct opr_workload *command, const struct opr_words *words) OP_NONNULL OP_MUST_CHECK;

/* Lets the child run the command. 0; or -errno of exec(2) after a message, and exit_code is set. */
int opr_workload_go(struct opr_workload *command, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Takes the end of the command, if it has ended. */
void opr_workload_check(struct opr_workload *command) OP_NONNULL;

/*
 * The tool got a signal. One of the terminal has reached the command as well; any other one is
 * passed on.
 */
void opr_workload_pass(const struct opr_workload *command, const struct signalfd_siginfo *info) OP_NONNULL;

/* Ends a child that still waits, and closes everything. */
void opr_workload_end(struct opr_workload *command) OP_NONNULL;

#endif
