/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/stack_ends.h"

static const struct {
	const char *name, *meaning;
} ends[OP_NR_STACK_ENDS] = {
#define X(end, text) [OP_STACK_END_##end] = { #end, text },
	OP_STACK_ENDS(X)
#undef X
};

const char *op_stack_end_name(enum op_stack_end end)
{
	return ends[end].name;
}

const char *op_stack_end_meaning(enum op_stack_end end)
{
	return ends[end].meaning;
}
