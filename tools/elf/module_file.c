/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/module_file.h"

#include <errno.h>
#include <lzma.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "libop/base/sys.h"
#include "tools/elf/open_file.h"

#define SUFFIX              ".ko"
#define CHUNK_BYTES         65536
#define DICTIONARY_BYTES    (128ull << 20)
#define GZIP_WINDOW_AND_CRC (15 + 16)
#define MAGIC_BYTES         6 /* every stream of every format is longer */

struct unpacking {
	int from, to;
	bool ended;       /* the stream ended; another one may follow */
	size_t at, nr_in; /* next byte and number of bytes in `in` */
	size_t nr_out;    /* bytes in `out` */
	uint64_t nr_written;
	union {
		z_stream gzip;
		lzma_stream xz;
		ZSTD_DStream *zstd;
	} stream; /* all 0 at first, as each of them must be */
	uint8_t in[CHUNK_BYTES], out[CHUNK_BYTES];
};

struct format {
	const char *suffix;
	bool (*is_magic)(const uint8_t bytes[MAGIC_BYTES]); /* a stream begins with these bytes */
	size_t padding_bytes; /* zeros between streams come in groups, up to MAGIC_BYTES; 0: none */
	/* Begins the first stream, or another one. 0 or -errno. */
	int (*begin)(struct unpacking *unpacking, bool again);
	/*
	 * Decodes from in[at]; sets `at`, `nr_out` and, at the end of the stream, `ended`. 0 or
	 * -errno.
	 */
	int (*step)(struct unpacking *unpacking);
	/* Frees the stream, also after `begin` failed. */
	void (*end)(struct unpacking *unpacking);
};

/* Reads until `in` has nr_wanted bytes or the file ends. */
static int fill(struct unpacking *unpacking, size_t nr_wanted)
{
	size_t nr_left = unpacking->nr_in - unpacking->at;

	if (nr_left >= nr_wanted)
		return 0;
	memmove(unpacking->in, unpacking->in + unpacking->at, nr_left);
	unpacking->at = 0;
	unpacking->nr_in = nr_left;
	while (unpacking->nr_in < nr_wanted) {
		ssize_t got = op_sys_read(unpacking->from, unpacking->in + unpacking->nr_in, CHUNK_BYTES - unpacking->nr_in);

		if (got < 0)
			return (int)got;
		if (!got)
			break;
		unpacking->nr_in += (size_t)got;
	}
	return 0;
}

static int write_out(struct unpacking *unpacking)
{
	unpacking->nr_written += unpacking->nr_out;
	if (unpacking->nr_written > OPR_MODULE_BYTES_MAX)
		return -EFBIG;
	if (!unpacking->nr_out && !unpacking->nr_in && !unpacking->ended)
		return -EBADMSG;
	return op_sys_write_all(unpacking->to, unpacking->out, unpacking->nr_out);
}

static int skip_padding(struct unpacking *unpacking, size_t nr_bytes)
{
	static const uint8_t zeros[MAGIC_BYTES];
	int err = fill(unpacking, nr_bytes);

	while (!err && unpacking->nr_in - unpacking->at >= nr_bytes &&
	       !memcmp(unpacking->in + unpacking->at, zeros, nr_bytes)) {
		unpacking->at += nr_bytes;
		err = fill(unpacking, nr_bytes);
	}
	return err;
}

/* Other bytes may follow the streams, such as a signature. */
static int find_next(const struct format *format, struct unpacking *unpacking, bool *ret_is_there)
{
	int err = format->padding_bytes ? skip_padding(unpacking, format->padding_bytes) : 0;

	if (!err)
		err = fill(unpacking, MAGIC_BYTES);
	if (!err)
		*ret_is_there = unpacking->nr_in - unpacking->at >= MAGIC_BYTES && format->is_magic(unpacking->in + unpacking->at);
	return err;
}

static int unpack_stream(const struct format *format, struct unpacking *unpacking)
{
	int err = 0;

	unpacking->ended = false;
	while (!err && !unpacking->ended) {
		err = fill(unpacking, 1);
		if (!err)
			err = format->step(unpacking);
		if (!err)
			err = write_out(unpacking);
	}
	return err;
}

static int unpack_streams(const struct format *format, struct unpacking *unpacking)
{
	bool again = false;
	int err;

	do {
		err = format->begin(unpacking, again);
		if (!err)
			err = unpack_stream(format, unpacking);
		if (!err)
			err = find_next(format, unpacking, &again);
	} while (!err && again);
	format->end(unpacking);
	return err;
}

/* ---- the formats ---- */

/* RFC 1952, section 2.3.1. */
static bool is_gzip(const uint8_t bytes[MAGIC_BYTES])
{
	return !memcmp(bytes, "\x1f\x8b\x08", 3);
}

static int begin_gzip(struct unpacking *unpacking, bool again)
{
	z_stream *z = &unpacking->stream.gzip;

	return (again ? inflateReset(z) : inflateInit2(z, GZIP_WINDOW_AND_CRC)) == Z_OK ? 0 : -ENOMEM;
}

static int step_gzip(struct unpacking *unpacking)
{
	z_stream *z = &unpacking->stream.gzip;
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

static void end_gzip(struct unpacking *unpacking)
{
	inflateEnd(&unpacking->stream.gzip);
}

/* The .xz file format, section 2.1.1.1. */
static bool is_xz(const uint8_t bytes[MAGIC_BYTES])
{
	static const uint8_t magic[MAGIC_BYTES] = { 0xfd, '7', 'z', 'X', 'Z', 0 };

	return !memcmp(bytes, magic, sizeof(magic));
}

static int begin_xz(struct unpacking *unpacking, bool again OP_UNUSED)
{
	return lzma_stream_decoder(&unpacking->stream.xz, DICTIONARY_BYTES, 0) == LZMA_OK ? 0 : -ENOMEM;
}

static int step_xz(struct unpacking *unpacking)
{
	lzma_stream *xz = &unpacking->stream.xz;
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

static void end_xz(struct unpacking *unpacking)
{
	lzma_end(&unpacking->stream.xz);
}

/* RFC 8878, sections 3.1.1 and 3.1.2: a frame, or one to be skipped. */
static bool is_zstd(const uint8_t bytes[MAGIC_BYTES])
{
	return !memcmp(bytes, "\x28\xb5\x2f\xfd", 4) || ((bytes[0] & 0xf0) == 0x50 && !memcmp(bytes + 1, "\x2a\x4d\x18", 3));
}

static int begin_zstd(struct unpacking *unpacking, bool again)
{
	if (!again)
		unpacking->stream.zstd = ZSTD_createDStream();
	return unpacking->stream.zstd ? 0 : -ENOMEM;
}

static int step_zstd(struct unpacking *unpacking)
{
	ZSTD_inBuffer in = { .src = unpacking->in, .size = unpacking->nr_in, .pos = unpacking->at };
	ZSTD_outBuffer out = { .dst = unpacking->out, .size = CHUNK_BYTES };
	size_t result = ZSTD_decompressStream(unpacking->stream.zstd, &out, &in);

	unpacking->at = in.pos;
	unpacking->nr_out = out.pos;
	unpacking->ended = !result;
	return ZSTD_isError(result) ? -EBADMSG : 0;
}

static void end_zstd(struct unpacking *unpacking)
{
	ZSTD_freeDStream(unpacking->stream.zstd);
}

enum { GZIP, XZ, ZSTD };

static const struct format formats[] = {
	[GZIP] = { SUFFIX ".gz", is_gzip, 0, begin_gzip, step_gzip, end_gzip },
	[XZ] = { SUFFIX ".xz", is_xz, 4, begin_xz, step_xz, end_xz },
	[ZSTD] = { SUFFIX ".zst", is_zstd, 0, begin_zstd, step_zstd, end_zstd },
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
		err = unpack_streams(format, unpacking);
	}
	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	if (err && fd >= 0)
		close(fd);
	free(unpacking);
	return err ? err : fd;
}

int opr_xz_unpack(int from)
{
	return unpack(&formats[XZ], from);
}

int opr_module_unpack(const char *path, struct stat *ret_st)
{
	const struct format *format = format_of(path);
	int from = format ? opr_open_regular(path, ret_st) : -EINVAL, result;

	if (from < 0)
		return from;
	result = unpack(format, from);
	close(from);
	return result;
}
