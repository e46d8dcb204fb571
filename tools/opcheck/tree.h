/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whose a session is, and what a kill has left in it. Files and directories that belong to another than the owner of the session directory, or whose mode keeps him out, are
 * in the way of a daemon that is not root: it cannot count in the current session, nor remove one that it has closed. Where root is the owner nothing is in the way.
 */
#ifndef OPK_CHECK_TREE_H
#define OPK_CHECK_TREE_H

#include "tools/opcheck/session.h"

/* Why the daemon cannot write to a file of the current session, a constant text; NULL: it can, or has no need to. */
const char *opk_access_fault(const struct opk_check *check, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Looks at a directory below the session, tells, and gives it back to the owner. */
void opk_check_dir(struct opk_check *check, const char *path) OP_NONNULL;

/* Looks at the session's own directory and that of its numbers, and for files that were in the making when somebody was killed. */
void opk_check_left(struct opk_check *check) OP_NONNULL;

#endif
