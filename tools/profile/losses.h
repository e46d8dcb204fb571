/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Warns of samples that were lost while a session was recorded, or were removed from it since. The
 * ledger of the session has the numbers; sessions of the genuine tools only have stats/
 * (libop/session/stats_files.h).
 */
#ifndef OPR_LOSSES_H
#define OPR_LOSSES_H

#include "tools/profile/profile.h"

/*
 * Checks the sessions of a profile that was read. Shows the ledgers (--verbose=stats). Warns of
 * overflows, throttling, losses above 0.01 %, ledgers that do not add up, and samples that are
 * missing from the files. Missing or unreadable files in stats/ are skipped.
 */
void opr_losses_check(const struct opr_profile *profile) OP_NONNULL;

/*
 * Tells how many samples each session does not have because of opcontrol --image. opr_losses_check
 * does this, too.
 */
void opr_losses_note_filtered(const struct opr_profile *profile) OP_NONNULL;

#endif
