/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compressed modules: their contents, and the errors for damaged ones. */
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "tools/elf/module_file.h"
#include "tests/unit/test_box.h"

#define MODULE_BYTES 300000u
#define ZEROS_MAX    ((size_t)OPR_MODULE_BYTES_MAX + 1)
#define CUTS         40

static char directory[BOX_PATH_BYTES];

static size_t pack_gzip(const uint8_t *in, size_t nr_in, uint8_t *out, size_t nr_out)
{
	z_stream stream = { 0 };

	assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (Bytef *)(uintptr_t)in;
	stream.avail_in = (uInt)nr_in;
	stream.next_out = out;
	stream.avail_out = (uInt)nr_out;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	nr_out -= stream.avail_out;
	deflateEnd(&stream);
	return nr_out;
}

static size_t pack_xz(const uint8_t *in, size_t nr_in, uint8_t *out, size_t nr_out)
{
	size_t at = 0;

	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, in, nr_in, out, &at, nr_out), LZMA_OK);
	return at;
}

static size_t pack_zstd(const uint8_t *in, size_t nr_in, uint8_t *out, size_t nr_out)
{
	size_t nr_bytes = ZSTD_compress(out, nr_out, in, nr_in, 1);

	assert_false(ZSTD_isError(nr_bytes));
	return nr_bytes;
}

static const struct {
	const char *name;
	size_t (*pack)(const uint8_t *in, size_t nr_in, uint8_t *out, size_t nr_out);
} formats[] = { { "m.ko.gz", pack_gzip }, { "m.ko.xz", pack_xz }, { "m.ko.zst", pack_zstd } };

static int unpack(const char *name, const uint8_t *bytes, size_t nr_bytes)
{
	char *path = NULL;
	int fd;

	assert_true(asprintf(&path, "%s/%s", directory, name) > 0);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, nr_bytes), nr_bytes);
	close(fd);
	fd = opr_module_unpack(path, NULL);
	unlink(path);
	free(path);
	return fd;
}

/* One half of it can be compressed. */
static uint8_t *make_module(void)
{
	uint8_t *bytes = malloc(MODULE_BYTES);
	uint32_t state = 1;

	assert_non_null(bytes);
	for (size_t i = 0; i < MODULE_BYTES; i++) {
		state = state * 1664525u + 1013904223u;
		bytes[i] = i & 4096 ? (uint8_t)(state >> 24) : (uint8_t)(i >> 8);
	}
	return bytes;
}

static void assert_content(int fd, const uint8_t *bytes, size_t nr_bytes)
{
	uint8_t *got = malloc(nr_bytes + 1);

	assert_non_null(got);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, got, nr_bytes + 1, 0), nr_bytes);
	assert_memory_equal(got, bytes, nr_bytes);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(fd);
	free(got);
}

static void test_content(void **state OP_UNUSED)
{
	uint8_t *module = make_module(), *packed = malloc(2 * MODULE_BYTES);

	for (size_t i = 0; i < op_array_size(formats); i++) {
		size_t nr_bytes = formats[i].pack(module, MODULE_BYTES, packed, 2 * MODULE_BYTES);

		assert_in_range(nr_bytes, 1, MODULE_BYTES - 1);
		assert_content(unpack(formats[i].name, packed, nr_bytes), module, MODULE_BYTES);
		/* bytes behind the stream are ignored */
		memset(packed + nr_bytes, 'x', 100);
		assert_content(unpack(formats[i].name, packed, nr_bytes + 100), module, MODULE_BYTES);
		nr_bytes = formats[i].pack(module, 0, packed, 2 * MODULE_BYTES);
		assert_content(unpack(formats[i].name, packed, nr_bytes), module, 0);
	}
	free(packed);
	free(module);
}

static void assert_length(int fd, size_t nr_bytes)
{
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), nr_bytes);
	close(fd);
}

#define NR_PIECES 7

/*
 * As pigz, xz -T and zstd -T may write them, or cat of several files: each piece is a stream of its
 * own. `gap`: the bytes between them.
 */
static size_t pack_pieces(size_t format, const uint8_t *module, const uint8_t *gap, size_t nr_gap, uint8_t *packed,
			  size_t *ret_last)
{
	size_t nr_bytes = 0, piece = MODULE_BYTES / NR_PIECES + 1;

	for (size_t at = 0; at < MODULE_BYTES; at += piece) {
		if (at && nr_gap)
			memcpy(packed + nr_bytes, gap, nr_gap);
		nr_bytes += at ? nr_gap : 0;
		*ret_last = nr_bytes;
		nr_bytes +=
			formats[format].pack(module + at, op_min_u64(piece, MODULE_BYTES - at), packed + nr_bytes, MODULE_BYTES);
	}
	return nr_bytes;
}

static void test_streams(void **state OP_UNUSED)
{
	static const uint8_t zeros[8], skipped[] = { 0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
	static const struct {
		size_t format;
		const uint8_t *gap;
		size_t nr_gap;
	} cases[] = {
		{ 0, NULL, 0 }, { 1, NULL, 0 }, { 1, zeros, sizeof(zeros) }, { 2, NULL, 0 }, { 2, skipped, sizeof(skipped) }
	};
	uint8_t *module = make_module(), *packed = malloc(2 * MODULE_BYTES);

	for (size_t i = 0; i < op_array_size(cases); i++) {
		const char *name = formats[cases[i].format].name;
		size_t last, nr_bytes = pack_pieces(cases[i].format, module, cases[i].gap, cases[i].nr_gap, packed, &last);

		assert_content(unpack(name, packed, nr_bytes), module, MODULE_BYTES);
		assert_int_equal(unpack(name, packed, nr_bytes - 1), -EBADMSG);
		assert_int_equal(unpack(name, packed, last + 16), -EBADMSG);
		memset(packed + nr_bytes, 'x', 100);
		assert_content(unpack(name, packed, nr_bytes + 100), module, MODULE_BYTES);
		/* a gap that no format has, and no stream after it */
		memset(packed + last, 'x', 1);
		assert_length(unpack(name, packed, nr_bytes), (MODULE_BYTES / NR_PIECES + 1) * (NR_PIECES - 1));
	}
	free(packed);
	free(module);
}

/* Many small streams that fill the memory only together. */
static void test_limit_of_all(void **state OP_UNUSED)
{
	size_t part = OPR_MODULE_BYTES_MAX / 4 + 1;
	uint8_t *zeros = calloc(1, part), *packed = malloc(part);

	assert_non_null(zeros);
	for (size_t i = 0; i < op_array_size(formats); i++) {
		size_t nr_bytes = 0;

		for (int n = 0; n < 4; n++)
			nr_bytes += formats[i].pack(zeros, part, packed + nr_bytes, part - nr_bytes);
		assert_int_equal(unpack(formats[i].name, packed, nr_bytes), -EFBIG);
	}
	free(packed);
	free(zeros);
}

static void test_damage(void **state OP_UNUSED)
{
	uint8_t *module = make_module(), *packed = malloc(2 * MODULE_BYTES);

	for (size_t i = 0; i < op_array_size(formats); i++) {
		size_t nr_bytes = formats[i].pack(module, MODULE_BYTES, packed, 2 * MODULE_BYTES);

		for (size_t cut = 0; cut < CUTS; cut++)
			assert_int_equal(unpack(formats[i].name, packed, cut < CUTS / 2 ? cut : nr_bytes * cut / CUTS), -EBADMSG);
		assert_int_equal(unpack(formats[i].name, packed, nr_bytes - 1), -EBADMSG);
		packed[0]++;
		assert_int_equal(unpack(formats[i].name, packed, nr_bytes), -EBADMSG);
		packed[0]--;
		for (size_t at = 4; at < nr_bytes; at += nr_bytes / CUTS) {
			int fd;

			packed[at] ^= 0x55;
			fd = unpack(formats[i].name, packed, nr_bytes);
			packed[at] ^= 0x55;
			if (fd >= 0)
				close(fd);
		}
	}
	free(packed);
	free(module);
}

/* A few KiB that would fill the memory. */
static void test_limit(void **state OP_UNUSED)
{
	uint8_t *zeros = calloc(1, ZEROS_MAX), *packed = malloc(ZEROS_MAX / 64);
	int fd;

	assert_non_null(zeros);
	for (size_t i = 0; i < op_array_size(formats); i++) {
		size_t nr_bytes = formats[i].pack(zeros, ZEROS_MAX, packed, ZEROS_MAX / 64);

		assert_int_equal(unpack(formats[i].name, packed, nr_bytes), -EFBIG);
	}
	fd = unpack("m.ko.zst", packed, pack_zstd(zeros, ZEROS_MAX - 1, packed, ZEROS_MAX / 64));
	assert_length(fd, ZEROS_MAX - 1);
	free(packed);
	free(zeros);
}

static void test_names(void **state OP_UNUSED)
{
	static const struct {
		const char *name;
		bool is_suffix, is_packed;
	} names[] = {
		{ ".ko", true, false },        { ".ko.xz", true, false }, { ".ko.gz", true, false }, { ".ko.zst", true, false },
		{ ".ko.bz2", false, false },   { ".koxz", false, false }, { "", false, false },      { "a.ko.xz", false, true },
		{ "/a/b.ko.gz", false, true }, { "a.xz", false, false },  { "a.ko", false, false },  { "a.ko.xz/b", false, false },
	};

	for (size_t i = 0; i < op_array_size(names); i++) {
		assert_int_equal(opr_is_module_suffix(names[i].name), names[i].is_suffix);
		assert_int_equal(opr_module_is_packed(names[i].name), names[i].is_packed);
	}
	assert_int_equal(opr_module_unpack("/nothing.ko.xz", NULL), -ENOENT);
	assert_int_equal(opr_module_unpack("/proc/version", NULL), -EINVAL);
}

static void test_no_file(void **state OP_UNUSED)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/fifo.ko.gz", directory) > 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(opr_module_unpack(path, NULL), -EINVAL);
	unlink(path);
	free(path);
}

static int directory_setup(void **state OP_UNUSED)
{
	return box_make(directory);
}

static int directory_teardown(void **state OP_UNUSED)
{
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_content),      cmocka_unit_test(test_damage),  cmocka_unit_test(test_limit),
		cmocka_unit_test(test_names),        cmocka_unit_test(test_no_file), cmocka_unit_test(test_streams),
		cmocka_unit_test(test_limit_of_all),
	};

	return cmocka_run_group_tests(tests, directory_setup, directory_teardown);
}
