/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How a walk crosses the frame of a runtime: code that a JIT compiler made, or that of an
 * interpreter, has no row table (pipeline/stacks/walk.h). The walk says what it knows of the frame.
 * The runtime says which functions the frame is of, and where its caller is.
 *
 * Sync thread only.
 */
#ifndef OPD_RUNTIME_STEP_H
#define OPD_RUNTIME_STEP_H

#include <string.h>

#include "libop/base/compiler.h"

struct op_row_table; /* libop/unwind/row_table.h */

#define OPD_RUNTIME_INLINED_MAX 32u /* functions of one frame; the outermost of more are left out */

/* A frame. Nothing in it is trusted: registers and copy come from the program. */
struct opd_runtime_frame {
	uint32_t pid;
	uint64_t time_ns;    /* of the sample */
	uint64_t cookie;     /* of the image, or of the memory without a file */
	uint64_t address;    /* in the code: pc, or pc - 1 of a caller */
	uint64_t pc;         /* of a caller: the return address */
	bool is_exact;       /* pc is where the code was: of the leaf, or interrupted by a signal */
	bool may_wait;       /* false: OPD_RUNTIME_WAIT is no answer any more */
	uint64_t sp, fp;     /* of this frame */
	bool has_sp, has_fp; /* they are known */
	bool is_region;      /* the code is in memory without a file */
	/* By DWARF numbers. Of the leaf all are known, of a caller sp, fp and rbx at most. */
	const uint64_t *registers;
	uint64_t known; /* a bit for each register */
	const uint8_t *stack; /* the copy */
	uint64_t stack_start, nr_stack_bytes;
	/*
	 * Finds the row table of an image that the process has mapped at an address; *ret_table is
	 * NULL when there is none. False: it is not made yet. NULL: no tables are made.
	 */
	bool (*find_table)(void *arg, uint64_t cookie, uint64_t address, const struct op_row_table **ret_table);
	void *find_arg;
};

enum opd_runtime_how {
	OPD_RUNTIME_GUESS,  /* nothing is proved: the walk follows the frame pointer as a guess */
	OPD_RUNTIME_PASS,   /* the same, and it is proved that the code keeps the frame pointer */
	OPD_RUNTIME_CALLER, /* the caller is as the answer says */
	OPD_RUNTIME_WAIT,   /* it is not known yet: the stack waits */
	OPD_RUNTIME_END,    /* this frame has no caller */
	OPD_RUNTIME_CUT,    /* the caller is beyond the copy */
};

struct opd_runtime_function {
	uint32_t name; /* of names.h */
	uint32_t line; /* 0: not known */
};

struct opd_runtime_answer {
	/* of OPD_RUNTIME_CALLER; sp is above that of the frame */
	uint64_t pc, sp, fp;
	bool has_fp;
	/* The innermost first. 0: the frame stays native. Also with OPD_RUNTIME_GUESS. */
	size_t nr_functions;
	struct opd_runtime_function functions[OPD_RUNTIME_INLINED_MAX];
};

/* The word at an address of the stack. False: the copy does not have it. */
static inline bool opd_runtime_read_word(const struct opd_runtime_frame *frame, uint64_t address, uint64_t *ret_word)
{
	uint64_t offset = address - frame->stack_start;

	if (offset >= frame->nr_stack_bytes || frame->nr_stack_bytes - offset < sizeof(*ret_word))
		return false;
	memcpy(ret_word, frame->stack + offset, sizeof(*ret_word));
	return true;
}

#endif
