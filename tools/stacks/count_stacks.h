/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many stacks the profile specification selects, and how their walks ended. */
#ifndef OPR_COUNT_STACKS_H
#define OPR_COUNT_STACKS_H

#include "libop/base/text.h"
#include "tools/profile/selection.h"

/*
 * Appends a line for each event with selected stacks, as opr_ledger_stacks_describe does for whole
 * sessions. 0, or -errno after a message.
 */
int opr_selected_stacks_describe(struct opr_selection *selection, struct op_text *text) OP_NONNULL OP_MUST_CHECK;

#endif
