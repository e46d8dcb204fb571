/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reports what opcheck finds, counts it, and puts files aside. */
#ifndef OPK_FINDINGS_H
#define OPK_FINDINGS_H

#include <sys/types.h>

#include "tools/opcheck/session.h"

/*
 * Reports a problem. It counts as repaired when a repair was asked for and err, its result, is 0.
 */
void opk_report(struct opk_check *check, struct opk_problem *problem, int err) OP_NONNULL;

/* Reports something that is worth knowing and no problem. */
void opk_note(struct opk_check *check, const char *path, const char *fault) OP_NONNULL;

/*
 * Reports a file that does not belong there, and in a repair moves it to damaged/ below the
 * session. `detail` is reported when it stays. True when it was moved.
 */
bool opk_put_aside(struct opk_check *check, const char *path, const char *fault, uint64_t offset, const char *detail) OP_NONNULL;

/* Whether the path exists and is not of this type (S_IFMT). Does not follow a link. */
bool opk_is_other(const struct opk_check *check, const char *path, mode_t type) OP_NONNULL OP_MUST_CHECK;

/* Puts such a path aside. True: it was not of this type. */
bool opk_put_other_aside(struct opk_check *check, const char *path, mode_t type, const char *fault) OP_NONNULL;

#endif
