/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SHA-256. Source: FIPS 180-4, sections 4 to 6. */
#ifndef OP_SHA256_H
#define OP_SHA256_H

#include "libop/base/compiler.h"

#define OP_SHA256_BYTES       32
#define OP_SHA256_BLOCK_BYTES 64

struct op_sha256 {
	uint32_t state[8];
	uint64_t nr_bytes; /* so far */
	uint8_t block[OP_SHA256_BLOCK_BYTES];
};

void op_sha256_begin(struct op_sha256 *sha) OP_NONNULL;
void op_sha256_add(struct op_sha256 *sha, const void *bytes, size_t nr_bytes) OP_NONNULL_ARGS(1);

/* Ends it; the digest as hexadecimal digits, as sha256sum(1) prints it. */
void op_sha256_end(struct op_sha256 *sha, char digits[2 * OP_SHA256_BYTES + 1]) OP_NONNULL;

#endif
