/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Numbers of variable length: 7 bits a byte, the lowest first; the top bit says that another byte
 * follows. At most 10 bytes, and no longer than needed. Signed ones are folded: 0, -1, 1, -2, ...
 * Any thread.
 */
#ifndef OP_TIMELINE_BYTES_H
#define OP_TIMELINE_BYTES_H

#include "libop/base/compiler.h"

/* Bytes that grow. `failed`: no memory; then adding does nothing. */
struct op_bytes {
	uint8_t *data;
	size_t length, capacity;
	bool failed;
};

void op_bytes_add(struct op_bytes *bytes, const void *data, size_t nr_bytes) OP_NONNULL_ARGS(1);
void op_bytes_add_u64(struct op_bytes *bytes, uint64_t value) OP_NONNULL;
void op_bytes_add_s64(struct op_bytes *bytes, int64_t value) OP_NONNULL;
void op_bytes_free(struct op_bytes *bytes) OP_NONNULL;

/* What is left to be read. `failed`: it ended too early, or has a bad number; then all are 0. */
struct op_bytes_input {
	const uint8_t *at, *end;
	bool failed;
};

uint64_t op_bytes_u64(struct op_bytes_input *input) OP_NONNULL;
int64_t op_bytes_s64(struct op_bytes_input *input) OP_NONNULL;

/* The same for a number of at most `most`; a larger one is bad. */
uint64_t op_bytes_long_u64_to(struct op_bytes_input *input, uint64_t most) OP_NONNULL;

static inline uint64_t op_bytes_u64_to(struct op_bytes_input *input, uint64_t most)
{
	/* most numbers of a timeline have one byte */
	if (op_likely(!input->failed && input->at < input->end && *input->at < 0x80 && *input->at <= most))
		return *input->at++;
	return op_bytes_long_u64_to(input, most);
}

/* The next nr_bytes, in place. NULL when there are fewer. */
const uint8_t *op_bytes_take(struct op_bytes_input *input, uint64_t nr_bytes) OP_NONNULL;

#endif
