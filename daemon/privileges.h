/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The capabilities of opd. The table in privileges.c lists all of them, with what fails without
 * each; doc/security.md has the reasons. Call this before there are other threads: each thread has
 * capabilities of its own.
 */
#ifndef OPD_PRIVILEGES_H
#define OPD_PRIVILEGES_H

#include "libop/base/compiler.h"

/*
 * Gives up every capability that is not in the table, for good (bounding set, inheritance,
 * no_new_privs), and memory that is both writable and executable. What the kernel does not know is
 * skipped. Nor is there a core dump from then on. Root becomes the owner of `dir_fd`, the session
 * directory. 0 or -errno.
 */
int opd_privileges_drop(int dir_fd) OP_MUST_CHECK;

/*
 * The same for a looker, which keeps only what /proc of other users' processes needs, and the
 * system calls for it (call_filter.h). 0 or -errno.
 */
int opd_privileges_of_looker(void) OP_MUST_CHECK;

/*
 * The same for the process that runs opd-tables (pipeline/stacks/tabler.h), which keeps nothing.
 * Where opd was started by root, the process gets the user 65534 (nobody). 0 or -errno.
 */
int opd_privileges_of_tabler(void) OP_MUST_CHECK;

/*
 * Gives up what only lookers need. CAP_SYS_PTRACE stays where /proc hides processes without it. To
 * be called when the nursery has started. 0 or -errno.
 */
int opd_privileges_leave_to_lookers(void) OP_MUST_CHECK;

/* In a process that executes a program next: the program has the capabilities, too. */
void opd_privileges_pass_on(void);

/* Logs each capability that opd did not get and what fails without it. Nothing for root. */
void opd_privileges_report(void);

#endif
