/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What was lost while a session was taken, as its stats directory tells. */
#ifndef OPR_SESSION_STATS_H
#define OPR_SESSION_STATS_H

#include "tools/profile.h"

/* Warns of overflows, throttling, and losses above 0.01 % in the sessions of a profile. What is missing or no number is passed over. */
void opr_session_stats_check(const struct opr_profile *profile) OP_NONNULL;

#endif
