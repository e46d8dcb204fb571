/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is said below a report of code without names (tools/report/unnamed_code.h). */
#ifndef OPR_NOTES_H
#define OPR_NOTES_H

#include "tools/profile/profile.h"
#include "tools/report/symbol_rows.h"
#include "tools/stacks/call_tree.h"

/* 0 or -ENOMEM after a message. */
int opr_note_unnamed_files(const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;
int opr_note_unnamed_rows(const struct opr_symbol_report *rows) OP_NONNULL OP_MUST_CHECK;
int opr_note_unnamed_calls(const struct opr_call_tree *tree) OP_NONNULL OP_MUST_CHECK;

#endif
