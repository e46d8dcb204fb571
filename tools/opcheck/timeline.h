/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks that the minutes of a session add up to its ledger, its sample files and its stacks. */
#ifndef OPK_TIMELINE_H
#define OPK_TIMELINE_H

#include "tools/opcheck/found.h"

/*
 * Reports a minute whose weights are not what it says was stored, and a minute that does not go on
 * where the one before ended. Notes samples that are in the ledger and in no minute. Reports what
 * shares.h compares, of a session at rest whose files were not changed. 0 or -errno.
 */
int opk_timeline_check(struct opk_check *check, const struct opk_found *found, const struct op_session_ledger *ledger)
	OP_NONNULL OP_MUST_CHECK;

#endif
