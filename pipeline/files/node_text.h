/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects, strings and lines in the heap of V8: the lower half of node_heap.c. Each value is
 * checked, and reads are counted. Any thread, one heap at a time.
 */
#ifndef OPD_NODE_TEXT_H
#define OPD_NODE_TEXT_H

#include "libop/base/text.h"
#include "pipeline/files/node_layout.h"

#define OPD_NODE_WORD_BYTES 8u

/* What no constant of V8 says. Offsets are from the start of an object. */
struct opd_node_version {
	int32_t major, minor;
	int32_t code; /* JSFunction: its Code */
	/* Code: DeoptimizationData, or baseline code's bytecode; flags; bytes of instructions */
	int32_t code_deopt, code_flags, code_size;
	int32_t type_stream; /* the object that has the instructions; 0: the Code itself */
	int32_t stream_code; /* InstructionStream: its Code */
	int32_t header;      /* from that object to the instructions */
	uint32_t alignment;  /* of the instructions */
	int32_t deopt_shared;   /* DeoptimizationData: index of SharedFunctionInfo */
	int32_t kind_baseline;  /* in the lowest four bits of the flags */
	uint32_t hashed_locals; /* a scope with so many has a table of their names */
	int32_t script_functions, script_first_line; /* Script */
	int32_t bytecode_positions; /* BytecodeArray: its table of positions in the source */
	int32_t code_positions;     /* Code: the same */
	int32_t deopt_inlined;      /* DeoptimizationData: index of what is inlined where */
	int32_t uncached; /* bit of an external string: it has no pointer to its data */
};

/* The line of a position that was counted last. */
struct opd_node_counted {
	uint64_t script;
	uint32_t position, line;
};

struct opd_node_heap {
	const struct opd_node_layout *layout;
	const struct opd_node_version *version;
	opd_node_memory memory;
	void *arg;
	uint32_t nr_reads_left;
	uint64_t nr_bytes_left;
	enum opd_node_outcome problem; /* the first one of the function; OPD_NODE_NAMED: none */
	struct opd_node_counted counted;
	uint64_t code, deopt; /* of the function, when it is optimized code; code 0: it is not */
};

/* An address of an object, or a number of 32 bits. */
static inline bool opd_node_is_object(uint64_t word)
{
	return (word & 3) == 1;
}

static inline bool opd_node_is_smi(uint64_t word)
{
	return !(word & UINT32_MAX);
}

static inline int32_t opd_node_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

/* Notes a problem. Returns false. */
bool opd_node_fail(struct opd_node_heap *heap, enum opd_node_outcome problem) OP_NONNULL;

/* All of these: false: there is a problem, which is noted. */
bool opd_node_bytes(struct opd_node_heap *heap, uint64_t address, void *to, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;
bool opd_node_field(struct opd_node_heap *heap, uint64_t object, int32_t offset, void *to,
		    size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;
bool opd_node_word(struct opd_node_heap *heap, uint64_t object, int32_t offset, uint64_t *ret_word) OP_NONNULL OP_MUST_CHECK;

/* The type in the map of an object; and whether it is this one. */
bool opd_node_type(struct opd_node_heap *heap, uint64_t object, int32_t *ret_type) OP_NONNULL OP_MUST_CHECK;
bool opd_node_has_type(struct opd_node_heap *heap, uint64_t object, int32_t wanted) OP_NONNULL OP_MUST_CHECK;

/* Adds a string as UTF-8: its first characters, or with `last` its last ones. */
bool opd_node_add_string(struct opd_node_heap *heap, uint64_t string, bool last, struct op_text *to) OP_NONNULL OP_MUST_CHECK;

/* The line of a position in a script; 0: it cannot be found, which is no problem. */
uint32_t opd_node_line(struct opd_node_heap *heap, uint64_t script, int32_t position) OP_NONNULL;

/*
 * Adds the lines of bytecode: struct opd_node_line, by ascending offsets. Returns their number; 0:
 * there are none, which is no problem.
 */
uint32_t opd_node_add_lines(struct opd_node_heap *heap, uint64_t bytecode, uint64_t script, struct op_text *to) OP_NONNULL;

/*
 * The same for optimized code, by offsets in its instructions; `deopt`: its DeoptimizationData. V8
 * notes positions at calls. Where a function is inlined it is the line of that place.
 */
uint32_t opd_node_add_code_lines(struct opd_node_heap *heap, uint64_t code, uint64_t deopt, uint64_t script,
				 struct op_text *to) OP_NONNULL;

#endif
