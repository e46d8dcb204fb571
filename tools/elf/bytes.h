/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads numbers from bytes that are not trusted. A read past the end gives 0 and sets `is_bad`, so
 * a caller checks once, at the end.
 */
#ifndef OPR_ELF_BYTES_H
#define OPR_ELF_BYTES_H

#include <endian.h>
#include <string.h>

#include "libop/base/compiler.h"

struct opr_bytes {
	const uint8_t *at, *end;
	bool is_bad;
	bool is_big; /* the numbers are big-endian */
};

static inline const uint8_t *opr_bytes_take(struct opr_bytes *bytes, uint64_t nr_bytes)
{
	const uint8_t *at = bytes->at;

	if (nr_bytes > (uint64_t)(bytes->end - at)) {
		bytes->is_bad = true;
		bytes->at = bytes->end;
		return NULL;
	}
	bytes->at += nr_bytes;
	return at;
}

/* An unsigned number of 1, 2, 4 or 8 bytes. */
static inline uint64_t opr_bytes_unsigned(struct opr_bytes *bytes, size_t nr_bytes)
{
	const uint8_t *at = opr_bytes_take(bytes, nr_bytes);
	uint64_t number = 0;

	if (!at)
		return 0;
	if (op_unlikely(bytes->is_big)) {
		memcpy((char *)&number + sizeof(number) - nr_bytes, at, nr_bytes);
		return be64toh(number);
	}
	memcpy(&number, at, nr_bytes);
	return le64toh(number);
}

/* The same with a sign. */
static inline int64_t opr_bytes_signed(struct opr_bytes *bytes, size_t nr_bytes)
{
	unsigned int shift = 64 - 8 * (unsigned int)nr_bytes;

	return (int64_t)(opr_bytes_unsigned(bytes, nr_bytes) << shift) >> shift;
}

/* DWARF 5, section 7.6: LEB128. Bits beyond 64 are dropped. */
static inline uint64_t opr_bytes_leb(struct opr_bytes *bytes, bool has_sign)
{
	uint64_t number = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)opr_bytes_unsigned(bytes, 1);
		if (shift < 64)
			number |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (has_sign && byte & 0x40 && shift < 64)
		number |= UINT64_MAX << shift;
	return number;
}

static inline uint64_t opr_bytes_uleb(struct opr_bytes *bytes)
{
	return opr_bytes_leb(bytes, false);
}

static inline int64_t opr_bytes_sleb(struct opr_bytes *bytes)
{
	return (int64_t)opr_bytes_leb(bytes, true);
}

#endif
