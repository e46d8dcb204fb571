/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_input.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define SEEK_MIN_BYTES (1u << 20)

int op_perf_input_open(struct op_perf_input *input, int fd, uint64_t offset)
{
	uint8_t *buffer = malloc(2 * (size_t)OP_PERF_INPUT_BYTES);

	if (!buffer)
		return -ENOMEM;
	*input = (struct op_perf_input){ .fd = fd, .buffer = buffer, .offset = offset, .until = UINT64_MAX };
	return 0;
}

void op_perf_input_close(struct op_perf_input *input)
{
	free(input->buffer);
	input->buffer = NULL;
}

/* Bytes to read behind those in the buffer. */
static uint64_t unread(const struct op_perf_input *input)
{
	uint64_t at = input->offset + (input->end - input->begin);

	return input->until > at ? input->until - at : 0;
}

ssize_t op_perf_input_read(struct op_perf_input *input, size_t nr_wanted)
{
	while (input->end - input->begin < nr_wanted && unread(input)) {
		ssize_t nr = op_stop_wait(input->stop, input->fd);

		if (nr < 0)
			return nr;
		if (input->begin) {
			memmove(input->buffer, input->buffer + input->begin, input->end - input->begin);
			input->end -= input->begin;
			input->begin = 0;
		}
		nr = op_sys_read(input->fd, input->buffer + input->end,
				 op_min_u64(2 * (size_t)OP_PERF_INPUT_BYTES - input->end, unread(input)));
		if (nr == -EINTR)
			continue;
		if (nr < 0)
			return nr;
		if (!nr)
			break;
		input->end += (size_t)nr;
	}
	return (ssize_t)(input->end - input->begin);
}

int op_perf_input_peek_slow(struct op_perf_input *input, size_t nr_bytes, const uint8_t **ret_bytes)
{
	ssize_t left = op_perf_input_left(input, nr_bytes);

	if (left < 0)
		return (int)left;
	if ((size_t)left < nr_bytes)
		return -ENODATA;
	*ret_bytes = input->buffer + input->begin;
	return 0;
}

/*
 * A large piece of a file is not read: it may be a hole of any size. 0; -ENODATA: the file ends
 * before; -ENOTSUP: it is no file, or the piece is small.
 */
static int skip_in_file(struct op_perf_input *input, uint64_t nr_bytes)
{
	struct stat st;
	uint64_t end;

	if (nr_bytes < SEEK_MIN_BYTES || op_sys_fstat(input->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOTSUP;
	end = op_min_u64(input->until, (uint64_t)st.st_size);
	if (end < input->offset || end - input->offset < nr_bytes)
		return -ENODATA;
	return op_perf_input_seek(input, input->offset + nr_bytes);
}

int op_perf_input_skip(struct op_perf_input *input, uint64_t nr_bytes)
{
	int err = skip_in_file(input, nr_bytes);

	if (err != -ENOTSUP)
		return err;
	for (;;) {
		size_t here = op_min_u64(nr_bytes, input->end - input->begin);
		ssize_t left;

		input->begin += here;
		input->offset += here;
		nr_bytes -= here;
		if (!nr_bytes)
			return 0;
		left = op_perf_input_left(input, 1);
		if (left <= 0)
			return left < 0 ? (int)left : -ENODATA;
	}
}

int op_perf_input_seek(struct op_perf_input *input, uint64_t offset)
{
	if (offset > INT64_MAX)
		return -EINVAL;
	if (lseek(input->fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	input->begin = input->end = 0;
	input->offset = offset;
	return 0;
}
