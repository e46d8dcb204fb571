/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What opd may do beyond an ordinary process. The table in privileges.c is all that it uses, with what breaks without each; doc/security.md has the reasons.
 * Before there are threads: capabilities belong to a thread.
 */
#ifndef OPD_PRIVILEGES_H
#define OPD_PRIVILEGES_H

#include "libop/base/compiler.h"

/*
 * Gives up every capability that is not in the table, for good (bounding set, inheritance, no_new_privs), and memory that is written and executed. What the
 * kernel does not know is left out. Root becomes the owner of `dir_fd`, the session directory, which is where opd writes. 0 or -errno.
 */
int opd_privileges_drop(int dir_fd) OP_MUST_CHECK;

/* A line in the log for each one that opd has not, with what will be missing; nothing to say as root. */
void opd_privileges_report(void);

#endif
