/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/stacks/frame_roles.h"

#include <stdlib.h>

uint8_t *opr_frame_roles(const struct op_stack_tree *tree)
{
	uint8_t *roles = calloc(tree->nr_nodes, sizeof(*roles));
	uint32_t *natives = calloc(tree->nr_nodes, sizeof(*natives)); /* the next one above */

	if (!natives) {
		free(roles);
		return NULL;
	}
	for (uint32_t i = 1; roles && i < tree->nr_nodes; i++) {
		uint32_t above = natives[tree->nodes[i].parent];

		natives[i] = tree->nodes[i].kind == OP_STACK_RUNTIME_FRAME ? above : i;
		if (op_stack_is_native(&tree->nodes[i]) && tree->nodes[i].kind == tree->nodes[above].kind)
			roles[above] = OPR_ROLE_CALLER;
	}
	for (uint32_t i = 1; roles && i < tree->nr_nodes; i++)
		if (!roles[i] || (tree->nodes[i].count && !tree->no_room && !tree->no_room_us))
			roles[i] |= OPR_ROLE_LEAF;
	free(natives);
	return roles;
}
