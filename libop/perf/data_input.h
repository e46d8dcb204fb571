/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buffered reading of a perf.data file or a pipe, and numbers in either byte order. One thread. */
#ifndef OP_PERF_INPUT_H
#define OP_PERF_INPUT_H

#include "libop/base/compiler.h"
#include "libop/process/stop.h"

#define OP_PERF_INPUT_BYTES (256u * 1024) /* the largest piece that can be peeked at */

struct op_perf_input {
	int fd; /* the caller's */
	uint8_t *buffer;
	size_t begin, end; /* the bytes that were read and not consumed */
	uint64_t offset;   /* of the byte at begin, in the file */
	uint64_t until;    /* reading ends here; UINT64_MAX: at the end of the file */
	const struct op_stop *stop; /* makes reading return -EINTR; the caller's. NULL: none */
};

/* Reads from the current position of fd, which is `offset` in the file. 0 or -ENOMEM. */
int op_perf_input_open(struct op_perf_input *input, int fd, uint64_t offset) OP_NONNULL OP_MUST_CHECK;
void op_perf_input_close(struct op_perf_input *input) OP_NONNULL;

/*
 * Fills the buffer up to nr_wanted bytes, if the file has them. The bytes in the buffer, 0 at the
 * end, or -errno.
 */
ssize_t op_perf_input_read(struct op_perf_input *input, size_t nr_wanted) OP_NONNULL OP_MUST_CHECK;

static inline ssize_t op_perf_input_left(struct op_perf_input *input, size_t nr_wanted)
{
	size_t left = input->end - input->begin;

	return op_likely(left >= nr_wanted) ? (ssize_t)left : op_perf_input_read(input, nr_wanted);
}

/*
 * The next nr_bytes, at most OP_PERF_INPUT_BYTES, in one piece, valid until the next call. 0;
 * -ENODATA: fewer are left; another -errno of read(2).
 */
int op_perf_input_peek_slow(struct op_perf_input *input, size_t nr_bytes, const uint8_t **ret_bytes) OP_NONNULL OP_MUST_CHECK;

OP_NONNULL OP_MUST_CHECK
static inline int op_perf_input_peek(struct op_perf_input *input, size_t nr_bytes, const uint8_t **ret_bytes)
{
	if (op_unlikely(input->end - input->begin < nr_bytes))
		return op_perf_input_peek_slow(input, nr_bytes, ret_bytes);
	*ret_bytes = input->buffer + input->begin;
	return 0;
}

/* Consumes bytes, also more than were peeked at. 0; -ENODATA: fewer are left; another -errno. */
int op_perf_input_skip(struct op_perf_input *input, uint64_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/* Moves to an offset of a file. 0 or -errno. */
int op_perf_input_seek(struct op_perf_input *input, uint64_t offset) OP_NONNULL OP_MUST_CHECK;

static inline uint16_t op_perf_u16(const void *bytes, bool swapped)
{
	uint16_t value;

	memcpy(&value, bytes, sizeof(value));
	return swapped ? __builtin_bswap16(value) : value;
}

static inline uint32_t op_perf_u32(const void *bytes, bool swapped)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return swapped ? __builtin_bswap32(value) : value;
}

static inline uint64_t op_perf_u64(const void *bytes, bool swapped)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return swapped ? __builtin_bswap64(value) : value;
}

#endif
