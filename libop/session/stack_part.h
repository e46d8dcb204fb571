/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file of stacks as a part of a session. */
#ifndef OP_SESSION_STACK_PART_H
#define OP_SESSION_STACK_PART_H

#include "libop/session/ledger_file.h"
#include "libop/session/part.h"
#include "libop/stacks/read.h"

/* The functions of its row in op_session_parts. A record is a node of the tree. */
int op_stack_part_read(int dir_fd, const char *path, struct op_part_reading *reading) OP_NONNULL OP_MUST_CHECK;
int op_stack_part_recover(int dir_fd, const char *path, const char *tmp_path, uint64_t *ret_nr_dropped) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the stacks of a session to `stored` and `ends` of the events STACKS and WAIT. The samples of
 * other events are in sample files, too. Stacks without room count as complete ones that have
 * become no_room, as far as there are any. 0 or -ENOMEM.
 */
int op_session_ledger_add_stacks(struct op_session_ledger *ledger, const struct op_stack_tree *tree) OP_NONNULL OP_MUST_CHECK;

#endif
