/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The table of the functions of one process's JIT code. A function has a number, which is its
 * index, and a count of the pieces of addresses that it holds (pieces.h). A function without pieces
 * and without samples is forgotten, and its number is given to another one.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_FUNCTIONS_H
#define OPD_JIT_FUNCTIONS_H

#include "libop/base/compiler.h"

#define OPD_JIT_NO_OFFSET UINT64_MAX

struct opd_jit_function {
	uint64_t offset;    /* in the synthetic range; OPD_JIT_NO_OFFSET: no samples yet */
	uint64_t code_at;   /* offset of its code in the jitdump; 0: unknown */
	uint64_t lines_at;  /* offset of its DEBUG_INFO record in the jitdump; 0: none */
	uint64_t start;     /* its first address */
	char *name;         /* NULL: this row is free */
	uint32_t bytes;     /* of a free row: number of the next free one */
	uint32_t nr_pieces; /* that hold, or that samples may still lie in */
	bool is_exact;      /* its file says when it appeared */
};

/* All zero: empty. */
struct opd_jit_functions {
	struct opd_jit_function *rows;
	size_t nr_rows, capacity; /* free rows are among them */
	size_t nr_free;
	uint32_t first_free;   /* when nr_free is not 0 */
	uint64_t nr_bytes;     /* memory of the functions */
	uint64_t nr_forgotten; /* since the beginning */
};

/* The memory that a function takes. */
static inline uint64_t opd_jit_function_cost(size_t name_length)
{
	return sizeof(struct opd_jit_function) + name_length + 1 + 2 * sizeof(size_t);
}

/* Adds a function without pieces; the name is copied. 0 or -ENOMEM. */
int opd_jit_functions_add(struct opd_jit_functions *functions, const struct opd_jit_function *function, const char *name,
			  uint32_t *ret_number) OP_NONNULL OP_MUST_CHECK;

/*
 * Counts one more piece of a function, or one less. With the last piece a function without samples
 * goes.
 */
void opd_jit_functions_hold(struct opd_jit_functions *functions, uint32_t number) OP_NONNULL;
void opd_jit_functions_let_go(struct opd_jit_functions *functions, uint32_t number) OP_NONNULL;

void opd_jit_functions_free(struct opd_jit_functions *functions) OP_NONNULL;

#endif
