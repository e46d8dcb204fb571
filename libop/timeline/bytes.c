/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "libop/base/grow.h"

#define VARINT_BYTES_MAX 10u

void op_bytes_add(struct op_bytes *bytes, const void *data, size_t nr_bytes)
{
	if (!nr_bytes || bytes->failed)
		return;
	if (!op_grow(&bytes->data, &bytes->capacity, bytes->length + nr_bytes)) {
		bytes->failed = true;
		return;
	}
	memcpy(bytes->data + bytes->length, data, nr_bytes);
	bytes->length += nr_bytes;
}

void op_bytes_add_u64(struct op_bytes *bytes, uint64_t value)
{
	uint8_t pieces[VARINT_BYTES_MAX];
	size_t nr = 0;

	for (; value >= 0x80; value >>= 7)
		pieces[nr++] = (uint8_t)(value | 0x80);
	pieces[nr++] = (uint8_t)value;
	op_bytes_add(bytes, pieces, nr);
}

void op_bytes_add_s64(struct op_bytes *bytes, int64_t value)
{
	op_bytes_add_u64(bytes, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void op_bytes_free(struct op_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct op_bytes){ 0 };
}

/* -1: it is none. */
static int read_u64(struct op_bytes_input *input, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; input->at < input->end && shift < 7 * VARINT_BYTES_MAX; shift += 7) {
		uint8_t piece = *input->at++;

		if ((shift == 63 && piece > 1) || (shift && !piece))
			return -1; /* more than 64 bits, or longer than needed */
		value |= (uint64_t)(piece & 0x7f) << shift;
		if (!(piece & 0x80)) {
			*ret_value = value;
			return 0;
		}
	}
	return -1;
}

uint64_t op_bytes_long_u64_to(struct op_bytes_input *input, uint64_t most)
{
	uint64_t value = 0;

	if (!input->failed && (read_u64(input, &value) || value > most))
		input->failed = true;
	return input->failed ? 0 : value;
}

uint64_t op_bytes_u64(struct op_bytes_input *input)
{
	return op_bytes_u64_to(input, UINT64_MAX);
}

int64_t op_bytes_s64(struct op_bytes_input *input)
{
	uint64_t value = op_bytes_u64(input);

	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

const uint8_t *op_bytes_take(struct op_bytes_input *input, uint64_t nr_bytes)
{
	const uint8_t *at = input->at;

	if (input->failed || nr_bytes > (uint64_t)(input->end - input->at)) {
		input->failed = true;
		return NULL;
	}
	input->at += nr_bytes;
	return at;
}
