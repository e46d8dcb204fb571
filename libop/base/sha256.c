/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/sha256.h"

#define ROUNDS       64
#define LENGTH_BYTES 8 /* at the end of the last block */

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
	0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
	0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
	0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t value, unsigned int bits)
{
	return value >> bits | value << (32 - bits);
}

static void expand(const uint8_t block[OP_SHA256_BLOCK_BYTES], uint32_t words[ROUNDS])
{
	for (size_t i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
			   block[4 * i + 3];
	for (size_t i = 16; i < ROUNDS; i++) {
		uint32_t near = words[i - 15], far = words[i - 2];

		words[i] = words[i - 16] + words[i - 7] + (rotate(near, 7) ^ rotate(near, 18) ^ near >> 3) +
			   (rotate(far, 17) ^ rotate(far, 19) ^ far >> 10);
	}
}

static void take_block(struct op_sha256 *sha, const uint8_t block[OP_SHA256_BLOCK_BYTES])
{
	uint32_t words[ROUNDS], v[8];

	expand(block, words);
	memcpy(v, sha->state, sizeof(v));
	for (size_t i = 0; i < ROUNDS; i++) {
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]), majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		uint32_t first = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) + choice + constants[i] + words[i];
		uint32_t second = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) + majority;

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += first;
		v[0] = first + second;
	}
	for (size_t i = 0; i < 8; i++)
		sha->state[i] += v[i];
}

void op_sha256_begin(struct op_sha256 *sha)
{
	static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	*sha = (struct op_sha256){ .nr_bytes = 0 };
	memcpy(sha->state, initial, sizeof(initial));
}

void op_sha256_add(struct op_sha256 *sha, const void *bytes, size_t nr_bytes)
{
	const uint8_t *next = bytes;

	while (nr_bytes) {
		size_t used = sha->nr_bytes % OP_SHA256_BLOCK_BYTES, part = op_min_u64(nr_bytes, OP_SHA256_BLOCK_BYTES - used);

		memcpy(sha->block + used, next, part);
		sha->nr_bytes += part;
		next += part;
		nr_bytes -= part;
		if (used + part == OP_SHA256_BLOCK_BYTES)
			take_block(sha, sha->block);
	}
}

void op_sha256_end(struct op_sha256 *sha, char digits[2 * OP_SHA256_BYTES + 1])
{
	uint8_t padding[2 * OP_SHA256_BLOCK_BYTES] = { 0x80 };
	size_t used = sha->nr_bytes % OP_SHA256_BLOCK_BYTES;
	size_t wanted = (used < OP_SHA256_BLOCK_BYTES - LENGTH_BYTES ? 1 : 2) * OP_SHA256_BLOCK_BYTES - used;
	uint64_t nr_bits = 8 * sha->nr_bytes;

	for (size_t i = 0; i < LENGTH_BYTES; i++)
		padding[wanted - 1 - i] = (uint8_t)(nr_bits >> 8 * i);
	op_sha256_add(sha, padding, wanted);
	for (size_t i = 0; i < 8; i++)
		snprintf(digits + 8 * i, 9, "%08x", sha->state[i]);
}
