/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What was lost while a session was taken, and what is gone of it since, as its ledger tells; that of the genuine tools has a stats directory alone. */
#ifndef OPR_LOSSES_H
#define OPR_LOSSES_H

#include "tools/profile/profile.h"

/*
 * Shows the ledgers (--verbose=stats). Warns of overflows, throttling, losses above 0.01 %, ledgers that do not add up, and samples that were stored and are in no
 * sample file any more, for the sessions of a profile. What is missing or no number in stats/ is passed over.
 */
void opr_losses_check(const struct opr_profile *profile) OP_NONNULL;

/* Says of each session how much was left out by the user's own wish (opcontrol --image); opr_losses_check does so, too. */
void opr_losses_note_filtered(const struct opr_profile *profile) OP_NONNULL;

#endif
