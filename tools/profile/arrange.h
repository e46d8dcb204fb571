/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Puts the files of a profile in order and groups them into parts. */
#ifndef OPR_ARRANGE_H
#define OPR_ARRANGE_H

#include "tools/profile/profile.h"

/*
 * Sorts the files, whose class_index is set, and makes the parts. add_sessions: the same file may
 * be in several sessions; else that is an error. 0 or -errno.
 */
int opr_profile_arrange(struct opr_profile *profile, bool add_sessions) OP_NONNULL OP_MUST_CHECK;

#endif
