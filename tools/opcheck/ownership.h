/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Files and directories that a daemon cannot write because they belong to another user than the
 * session directory, or by their mode; and temporary files that a kill left. A daemon that is root
 * can write all.
 */
#ifndef OPK_OWNERSHIP_H
#define OPK_OWNERSHIP_H

#include "tools/opcheck/findings.h"

/*
 * Why the daemon cannot write a file of the current session, a constant text; NULL: it can, or
 * need not.
 */
const char *opk_access_fault(const struct opk_check *check, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Checks a directory below the session, reports it, and gives it back to the owner. */
void opk_check_dir(struct opk_check *check, const char *path) OP_NONNULL;

/* Checks the directories of the session itself and of its stats/, and looks for temporary files. */
void opk_check_leftovers(struct opk_check *check) OP_NONNULL;

#endif
