/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of stacks as a part of a session. */
#ifndef OP_SESSION_STACK_PART_H
#define OP_SESSION_STACK_PART_H

#include "libop/session/ledger_file.h"
#include "libop/stacks/read.h"

/*
 * Adds the stacks of a session to `stored` and `ends` of the event OP_STACKS_NAME. The samples of
 * other events are in sample files, too. Stacks without room count as complete ones that have
 * become no_room, as far as there are any. 0 or -ENOMEM.
 */
int op_session_ledger_add_stacks(struct op_session_ledger *ledger, const struct op_stack_tree *tree) OP_NONNULL OP_MUST_CHECK;

#endif
