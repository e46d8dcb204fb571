/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Walks a user stack: from the registers and a copy of the top of the stack to the addresses of all
 * callers. For each frame one row of the image's table says where the caller's registers are
 * (libop/unwind/row_table.h). In code without a row a runtime may know the caller
 * (pipeline/runtimes/step.h). Else the walk follows the frame pointer. This is a guess, since such
 * code may keep any number in that register. A stack with a guessed frame is never complete. Where
 * the walk cannot go on, it stops, and says why.
 *
 * The copy and the rows are not trusted. Each step moves up in the copy, so the walk ends.
 *
 * Any thread.
 */
#ifndef OPD_WALK_H
#define OPD_WALK_H

#include "libop/base/compiler.h"
#include "libop/unwind/row_table.h"
#include "pipeline/runtimes/step.h"

#define OPD_WALK_FRAMES_MAX 512u

/* How a walk ends. The names are those of the ledger. */
/* clang-format off */
#define OPD_WALK_ENDS(X) \
	X(complete)     /* at the start of the program or thread: a row says so */ \
	X(cut)          /* the caller is beyond the copy */ \
	X(no_row)       /* nothing says how to find the caller */ \
	X(left_code)    /* the return address is not in code */ \
	X(no_table_yet) /* a table, or what a runtime knows, is not there yet */ \
	X(too_deep)     /* more than OPD_WALK_FRAMES_MAX frames */ \
	X(guessed)      /* anywhere, and a frame pointer led to some of the frames */
/* clang-format on */

enum opd_walk_end {
#define X(name) OPD_WALK_##name,
	OPD_WALK_ENDS(X)
#undef X
		OPD_NR_WALK_ENDS,
};

/*
 * Asks the runtime of a process about the frame in which the walk is. `arg` is that of `find`,
 * which has just added the frame. May change the frames that `arg` keeps: the answer says how many
 * functions stand for this one.
 */
typedef enum opd_runtime_how (*opd_walk_ask)(void *arg, const struct opd_runtime_frame *frame,
					     struct opd_runtime_answer *ret_answer);

/* What a process was doing. Registers have their DWARF numbers; `known` has a bit for each. */
struct opd_walk_start {
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	uint64_t pc;
	uint64_t registers[OP_UNWIND_REGISTERS];
	uint64_t known;
	uint64_t code_end; /* arm64: the end of the highest code of the process */
	const uint8_t *stack; /* the copy: from the stack pointer on */
	size_t nr_stack_bytes;
	opd_walk_ask ask; /* NULL: there are no runtimes */
};

/* What is at an address. */
enum opd_walk_code {
	OPD_CODE_NONE,     /* no executable mapping */
	OPD_CODE_PENDING,  /* its table will come */
	OPD_CODE_NO_TABLE, /* there is none: JIT code, or an image whose table failed */
	OPD_CODE_TABLE,
};

struct opd_walk_frame {
	uint64_t pc;     /* of the leaf: where it was; of a caller: the return address */
	uint64_t cookie; /* image and position, as `find` says */
	uint64_t position; /* of a caller: of the last byte of the call, if it called */
	size_t index;      /* as `find` says: its place among the frames that it keeps */
};

/* Says what is at an address. Sets cookie, position and index of `frame` where there is code. */
typedef enum opd_walk_code (*opd_walk_find)(void *arg, uint64_t address, struct opd_walk_frame *frame,
					    const struct op_row_table **ret_table);

/*
 * Walks. Fills `frames`, the leaf first, and returns their number, at least 1 unless the leaf is
 * not in code.
 */
size_t opd_walk(const struct opd_walk_start *start, opd_walk_find find, void *arg,
		struct opd_walk_frame frames[OPD_WALK_FRAMES_MAX], enum opd_walk_end *ret_end) OP_NONNULL_ARGS(1, 2, 4, 5);

#endif
