/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How the walk of a stack sample ended. The ledger counts each end, and the store keeps stacks of
 * different ends apart. The numbers are in its file, so they never change.
 */
#ifndef OP_STACK_ENDS_H
#define OP_STACK_ENDS_H

#include "libop/base/compiler.h"

/* Name and meaning. All but no_room are those of the walk (pipeline/stacks/walk.h). */
#define OP_STACK_ENDS(X) \
	X(complete, "the outermost caller is the start of the program or thread, or the kernel's entry") \
	X(cut, "the caller is beyond the copy of the stack: raise StackBytes=") \
	X(no_row, "nothing says how to find the caller") \
	X(left_code, "the return address is not in code") \
	X(no_table_yet, "the row table of an image was not made in time") \
	X(too_deep, "the stack has more frames than opd walks") \
	X(no_room, "the store has no room for the stack: it is counted at the deepest caller that is there") \
	X(guessed, "a frame pointer led through code that nothing describes: callers may be false")

enum op_stack_end {
#define X(name, meaning) OP_STACK_END_##name,
	OP_STACK_ENDS(X)
#undef X
	OP_NR_STACK_ENDS,
};

const char *op_stack_end_name(enum op_stack_end end);
const char *op_stack_end_meaning(enum op_stack_end end);

#endif
