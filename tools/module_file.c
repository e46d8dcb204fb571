/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/module_file.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "libop/sys.h"

#define SUFFIX              ".ko"
#define CHUNK_BYTES         65536
#define DICTIONARY_BYTES    (128ull << 20)
#define GZIP_WINDOW_AND_CRC (15 + 16)

struct unpacking {
	int from, to;
	bool ended;
	size_t at, nr_in, nr_out;
	uint64_t nr_bytes; /* that were written */
	uint8_t in[CHUNK_BYTES], out[CHUNK_BYTES];
};

/* Takes from `in`, from `at` on, puts into `out`, sets nr_out and what it has taken, and `ended` at the end of the stream. 0 or -errno. */
typedef int step_fn(struct unpacking *unpacking, void *stream);

static int fill(struct unpacking *unpacking)
{
	ssize_t got;

	if (unpacking->at < unpacking->nr_in)
		return 0;
	got = op_sys_read(unpacking->from, unpacking->in, CHUNK_BYTES);
	if (got < 0)
		return (int)got;
	unpacking->at = 0;
	unpacking->nr_in = (size_t)got;
	return 0;
}

static int put(struct unpacking *unpacking)
{
	unpacking->nr_bytes += unpacking->nr_out;
	if (unpacking->nr_bytes > OPR_MODULE_BYTES_MAX)
		return -EFBIG;
	if (!unpacking->nr_out && !unpacking->nr_in && !unpacking->ended)
		return -EBADMSG;
	return op_sys_write_all(unpacking->to, unpacking->out, unpacking->nr_out);
}

static int run(struct unpacking *unpacking, step_fn *step, void *stream)
{
	int err = 0;

	while (!err && !unpacking->ended) {
		err = fill(unpacking);
		if (!err)
			err = step(unpacking, stream);
		if (!err)
			err = put(unpacking);
	}
	return err;
}

/* ---- the formats ---- */

static int step_gzip(struct unpacking *unpacking, void *stream)
{
	z_stream *z = stream;
	int status;

	z->next_in = unpacking->in + unpacking->at;
	z->avail_in = (uInt)(unpacking->nr_in - unpacking->at);
	z->next_out = unpacking->out;
	z->avail_out = CHUNK_BYTES;
	status = inflate(z, Z_NO_FLUSH);
	unpacking->at = unpacking->nr_in - z->avail_in;
	unpacking->nr_out = CHUNK_BYTES - z->avail_out;
	unpacking->ended = status == Z_STREAM_END;
	return status == Z_OK || status == Z_STREAM_END ? 0 : status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int unpack_gzip(struct unpacking *unpacking)
{
	z_stream stream = { 0 };
	int err = inflateInit2(&stream, GZIP_WINDOW_AND_CRC) == Z_OK ? 0 : -ENOMEM;

	if (!err)
		err = run(unpacking, step_gzip, &stream);
	inflateEnd(&stream);
	return err;
}

static int step_xz(struct unpacking *unpacking, void *stream)
{
	lzma_stream *xz = stream;
	lzma_ret status;

	xz->next_in = unpacking->in + unpacking->at;
	xz->avail_in = unpacking->nr_in - unpacking->at;
	xz->next_out = unpacking->out;
	xz->avail_out = CHUNK_BYTES;
	status = lzma_code(xz, LZMA_RUN);
	unpacking->at = unpacking->nr_in - xz->avail_in;
	unpacking->nr_out = CHUNK_BYTES - xz->avail_out;
	unpacking->ended = status == LZMA_STREAM_END;
	if (status == LZMA_MEM_ERROR || status == LZMA_MEMLIMIT_ERROR)
		return -ENOMEM;
	return status == LZMA_OK || status == LZMA_STREAM_END ? 0 : -EBADMSG;
}

static int unpack_xz(struct unpacking *unpacking)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	int err = lzma_stream_decoder(&stream, DICTIONARY_BYTES, 0) == LZMA_OK ? 0 : -ENOMEM;

	if (!err)
		err = run(unpacking, step_xz, &stream);
	lzma_end(&stream);
	return err;
}

static int step_zstd(struct unpacking *unpacking, void *stream)
{
	ZSTD_inBuffer in = { .src = unpacking->in, .size = unpacking->nr_in, .pos = unpacking->at };
	ZSTD_outBuffer out = { .dst = unpacking->out, .size = CHUNK_BYTES };
	size_t result = ZSTD_decompressStream(stream, &out, &in);

	unpacking->at = in.pos;
	unpacking->nr_out = out.pos;
	unpacking->ended = !result;
	return ZSTD_isError(result) ? -EBADMSG : 0;
}

static int unpack_zstd(struct unpacking *unpacking)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	int err = stream ? run(unpacking, step_zstd, stream) : -ENOMEM;

	ZSTD_freeDStream(stream);
	return err;
}

static const struct format {
	const char *suffix;
	int (*unpack)(struct unpacking *unpacking);
} formats[] = {
	{ SUFFIX ".gz", unpack_gzip },
	{ SUFFIX ".xz", unpack_xz },
	{ SUFFIX ".zst", unpack_zstd },
};

/* ---- by name ---- */

static const struct format *format_of(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < op_array_size(formats); i++) {
		size_t suffix = strlen(formats[i].suffix);

		if (length > suffix && !strcmp(path + length - suffix, formats[i].suffix))
			return &formats[i];
	}
	return NULL;
}

bool opr_is_module_suffix(const char *suffix)
{
	for (size_t i = 0; i < op_array_size(formats); i++)
		if (!strcmp(suffix, formats[i].suffix))
			return true;
	return !strcmp(suffix, SUFFIX);
}

bool opr_module_is_packed(const char *path)
{
	return format_of(path);
}

static int unpack(const struct format *format, int from)
{
	struct unpacking *unpacking = calloc(1, sizeof(*unpacking));
	int fd = unpacking ? op_sys_memfd_create("opd-module", MFD_CLOEXEC) : -ENOMEM, err = fd < 0 ? fd : 0;

	if (!err) {
		unpacking->from = from;
		unpacking->to = fd;
		err = format->unpack(unpacking);
	}
	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	if (err && fd >= 0)
		close(fd);
	free(unpacking);
	return err ? err : fd;
}

int opr_module_unpack(const char *path)
{
	const struct format *format = format_of(path);
	int from = format ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1, result;
	struct stat st;

	if (!format)
		return -EINVAL;
	if (from < 0)
		return -errno;
	result = fstat(from, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? unpack(format, from) : -EINVAL;
	close(from);
	return result;
}
