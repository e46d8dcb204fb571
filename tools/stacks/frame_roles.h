/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the position of a native frame is: a return address, or where the sample was. Any thread. */
#ifndef OPR_FRAME_ROLES_H
#define OPR_FRAME_ROLES_H

#include "libop/stacks/read.h"

/*
 * A caller has a callee of its own side, which may be below functions of a runtime. Its position is
 * a return address, which may belong to the next function already. That of a leaf is where the
 * sample was. A frame may be both. Without room in the file, samples of a caller may be those of
 * stacks that go on.
 */
enum opr_role { OPR_ROLE_CALLER = 1, OPR_ROLE_LEAF = 2 };

/* The roles of all nodes, to be freed. NULL: no memory. */
uint8_t *opr_frame_roles(const struct op_stack_tree *tree) OP_NONNULL OP_MUST_CHECK;

#endif
