/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opcheck has found is told, counted, and, when that is all that helps, put aside. */
#ifndef OPK_CHECK_TELL_H
#define OPK_CHECK_TELL_H

#include <sys/types.h>

#include "tools/opcheck/session.h"

/* Tells of a problem and sets its outcome: repaired when that was asked for and err is 0. */
void opk_tell(struct opk_check *check, struct opk_problem *problem, int err) OP_NONNULL;

/* Tells of something that is worth knowing and wrong with nothing. */
void opk_note(struct opk_check *check, const char *path, const char *fault) OP_NONNULL;

/*
 * What is in the place of something else is moved to damaged/ below the session, when it is to be repaired, and told of; `detail` when it stays. True when it was moved.
 */
bool opk_put_aside(struct opk_check *check, const char *path, const char *fault, uint64_t offset, const char *detail) OP_NONNULL;

/* Whether something else than of this type (S_IFMT) is at the path; false where there is nothing. A link is not followed. */
bool opk_is_other(const struct opk_check *check, const char *path, mode_t type) OP_NONNULL OP_MUST_CHECK;

#endif
