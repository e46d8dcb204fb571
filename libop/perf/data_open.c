/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_open.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define MAGIC             0x32454c4946524550u /* PERFILE2 */
#define MAGIC_OLD         0x454c494646524550u /* PERFFILE, version 1 */
#define ATTR_SIZE_MAX     4096u
#define SECTION_MAX_BYTES (64u * 1024 * 1024)
#define IDS_AT_ONCE       512u
#define PIPE_HEADER_BYTES 16u
#define WORD              sizeof(uint64_t)

/* The header of a file, in words. */
enum {
	WORD_MAGIC,
	WORD_SIZE,
	WORD_ATTR_SIZE,
	WORD_ATTRS_OFFSET,
	WORD_ATTRS_SIZE,
	WORD_DATA_OFFSET,
	WORD_DATA_SIZE,
	WORD_TYPES_OFFSET,
	WORD_TYPES_SIZE,
	WORD_FEATURES,
	NR_WORDS = WORD_FEATURES + OP_PERF_FEATURES_MAX / 64
};

struct opening {
	struct op_perf_data *data;
	int dir_fd; /* the descriptor of the caller */
	int fd;	    /* the file with the header */
	uint64_t file_bytes;
	uint64_t words[NR_WORDS];
	uint64_t nr_ids; /* identifiers in the attributes, duplicates included */
	const char *why;
};

static int refuse(struct opening *opening, const char *why)
{
	opening->why = why;
	return -EBADMSG;
}

/* -ENODATA: the file is too short. */
static int read_at(const struct opening *opening, void *bytes, size_t nr_bytes, uint64_t offset)
{
	size_t nr_read = 0;
	int err;

	if (offset > opening->file_bytes || nr_bytes > opening->file_bytes - offset)
		return -ENODATA;
	err = op_file_read_at(opening->fd, bytes, nr_bytes, (off_t)offset, &nr_read);
	return !err && nr_read < nr_bytes ? -ENODATA : err;
}

/* ---- a file through a pipe ---- */

#define NO_COPY "it comes through a pipe, and it cannot be copied to $TMPDIR (" P_tmpdir " if TMPDIR is not set)"

static int copy_rest(struct op_perf_input *from, int to, const char **ret_why)
{
	for (;;) {
		ssize_t left = op_perf_input_left(from, 1);
		int err;

		if (left <= 0)
			return (int)left;
		err = op_sys_write_all(to, from->buffer + from->begin, (size_t)left);
		if (err)
			*ret_why = NO_COPY;
		else
			err = op_perf_input_skip(from, (uint64_t)left);
		if (err)
			return err;
	}
}

static int copy_pipe(struct opening *opening)
{
	struct op_perf_data *data = opening->data;
	const char *dir = getenv("TMPDIR");
	int fd = op_sys_openat(AT_FDCWD, dir && *dir ? dir : P_tmpdir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int err;

	if (fd < 0) {
		opening->why = NO_COPY;
		return fd;
	}
	data->part->own_fd = fd;
	err = copy_rest(&data->part->input, fd, &opening->why);
	opening->fd = data->part->input.fd = fd;
	return err;
}

/* ---- attributes ---- */

static int read_ids(struct opening *opening, uint32_t event, uint64_t offset, uint64_t nr_bytes)
{
	struct op_perf_data *data = opening->data;
	uint8_t ids[IDS_AT_ONCE * WORD];

	/* A file may have a hole of any size. */
	if (nr_bytes / WORD > OP_PERF_IDS_MAX - opening->nr_ids)
		return -E2BIG;
	opening->nr_ids += nr_bytes / WORD;
	for (uint64_t at = 0; nr_bytes - at >= WORD;) {
		size_t nr = op_min_u64(sizeof(ids), (nr_bytes - at) / WORD * WORD);
		int err = read_at(opening, ids, nr, offset + at);

		for (size_t i = 0; !err && i < nr; i += WORD)
			err = op_perf_events_add_id(&data->events, op_perf_u64(ids + i, data->swapped), event);
		if (err)
			return err;
		at += nr;
	}
	return 0;
}

/* An attribute, followed by the position of its identifiers. */
static int read_attr(struct opening *opening, uint64_t offset, size_t attr_size)
{
	struct op_perf_data *data = opening->data;
	uint8_t bytes[ATTR_SIZE_MAX];
	const uint8_t *ids = bytes + attr_size - 2 * WORD;
	struct perf_event_attr attr;
	uint32_t event;
	int err = read_at(opening, bytes, attr_size, offset);

	if (err)
		return err;
	err = op_perf_attr_read(bytes, attr_size - 2 * WORD, data->swapped, &attr, NULL);
	if (err)
		return err;
	err = op_perf_events_add(&data->events, &attr, &event);
	if (err)
		return err;
	return read_ids(opening, event, op_perf_u64(ids, data->swapped), op_perf_u64(ids + WORD, data->swapped));
}

static int read_attrs(struct opening *opening)
{
	uint64_t size = opening->words[WORD_ATTR_SIZE], offset = opening->words[WORD_ATTRS_OFFSET];
	uint64_t nr_bytes = opening->words[WORD_ATTRS_SIZE];
	int err = 0;

	if (size < PERF_ATTR_SIZE_VER0 + 2 * WORD || size > ATTR_SIZE_MAX || nr_bytes < size)
		return refuse(opening, "it has no events");
	for (uint64_t at = 0; !err && nr_bytes - at >= size; at += size)
		err = read_attr(opening, offset + at, size);
	if (err == -ENOMEM || !err)
		return err;
	return refuse(opening, "its list of events is damaged");
}

/* ---- features ---- */

static int read_section(const struct opening *opening, unsigned int feature, uint64_t offset, uint64_t nr_bytes)
{
	struct op_perf_data *data = opening->data;
	uint8_t *bytes;
	int err;

	if (offset > opening->file_bytes || nr_bytes > opening->file_bytes - offset)
		return -EBADMSG; /* the file was cut */
	if (!op_perf_feature_is_used(feature))
		return 0;
	if (nr_bytes > SECTION_MAX_BYTES)
		return -EBADMSG;
	bytes = malloc(nr_bytes ? nr_bytes : 1);
	if (!bytes)
		return -ENOMEM;
	err = read_at(opening, bytes, nr_bytes, offset);
	if (!err)
		err = op_perf_feature_read(&data->features, &data->events, feature, bytes, nr_bytes, data->swapped);
	free(bytes);
	return err;
}

static bool has_feature(const uint64_t *words, unsigned int feature)
{
	return words[WORD_FEATURES + feature / 64] >> feature % 64 & 1;
}

/*
 * The feature bits are an array of longs of the writer, and the file does not say how long these
 * are. That matters in the other byte order. perf always writes the name of the host: as perf does,
 * take longs of 32 bits when only these give that feature.
 */
static void choose_feature_bits(struct opening *opening)
{
	uint64_t other[NR_WORDS];

	memcpy(other, opening->words, sizeof(other));
	for (size_t i = WORD_FEATURES; i < NR_WORDS; i++)
		other[i] = other[i] << 32 | other[i] >> 32;
	if (opening->data->swapped && !has_feature(opening->words, OP_PERF_FEATURE_HOSTNAME) &&
	    has_feature(other, OP_PERF_FEATURE_HOSTNAME))
		memcpy(opening->words, other, sizeof(other));
}

/*
 * The table of sections, one for each bit, stands behind the records. A file that was cut before it
 * is reported when the records end.
 */
static int read_features(const struct opening *opening)
{
	struct op_perf_data *data = opening->data;
	uint64_t at = data->part->data_end;
	uint8_t section[2 * WORD];

	if (at > opening->file_bytes)
		return 0;
	for (unsigned int feature = 0; feature < OP_PERF_FEATURES_MAX; feature++) {
		int err;

		if (!has_feature(opening->words, feature))
			continue;
		err = read_at(opening, section, sizeof(section), at);
		if (err == -ENODATA) {
			op_perf_trouble_note(&data->trouble, data->part->name, at, "the list of features ends too soon", 0);
			return 0;
		}
		if (!err)
			err = read_section(opening, feature, op_perf_u64(section, data->swapped),
					   op_perf_u64(section + WORD, data->swapped));
		if (err == -ENOMEM)
			return err;
		if (err)
			op_perf_trouble_note(&data->trouble, data->part->name, at, "a feature section is damaged", 0);
		at += sizeof(section);
	}
	return 0;
}

/* ---- the header ---- */

static int begin_records(struct opening *opening)
{
	struct op_perf_data *data = opening->data;
	struct op_perf_part *part = data->part;
	uint64_t offset = opening->words[WORD_DATA_OFFSET], nr_bytes = opening->words[WORD_DATA_SIZE];
	int err;

	if (offset > opening->file_bytes || nr_bytes > INT64_MAX)
		return refuse(opening, "its header places the records beyond the end of the file");
	data->unfinished = !nr_bytes;
	part->data_end = nr_bytes ? offset + nr_bytes : op_max_u64(opening->file_bytes, offset);
	err = data->unfinished ? 0 : read_features(opening);
	if (!err)
		err = op_perf_input_seek(&part->input, offset);
	part->input.until = part->data_end;
	return err;
}

static int read_file_header(struct opening *opening)
{
	struct op_perf_data *data = opening->data;
	off_t end = lseek(opening->fd, 0, SEEK_END);
	uint8_t bytes[NR_WORDS * WORD];
	int err;

	if (end < 0)
		return -errno;
	opening->file_bytes = (uint64_t)end;
	err = read_at(opening, bytes, sizeof(bytes), 0);
	if (err == -ENODATA)
		return refuse(opening, "its header is incomplete");
	for (size_t i = 0; !err && i < NR_WORDS; i++)
		opening->words[i] = op_perf_u64(bytes + i * WORD, data->swapped);
	choose_feature_bits(opening);
	if (!err)
		err = read_attrs(opening);
	return err ? err : begin_records(opening);
}

/* NULL: it is not a file that a compressor wrote, as far as is known here. */
static const char *compression_of(const uint8_t *bytes)
{
	static const struct {
		const char *magic;
		size_t nr_bytes;
		const char *why;
	} known[] = {
#define COMPRESSED(magic, name) { magic, sizeof(magic) - 1, "it is compressed with " name ": " name " -dc FILE | opimport -" }
		COMPRESSED("\x1f\x8b", "gzip"),
		COMPRESSED("\x28\xb5\x2f\xfd", "zstd"),
		COMPRESSED("\xfd\x37\x7a\x58\x5a\x00", "xz"),
		COMPRESSED("BZh", "bzip2"),
		COMPRESSED("\x04\x22\x4d\x18", "lz4"),
#undef COMPRESSED
	};

	for (size_t i = 0; i < op_array_size(known); i++)
		if (!memcmp(bytes, known[i].magic, known[i].nr_bytes))
			return known[i].why;
	return NULL;
}

static int read_header(struct opening *opening)
{
	struct op_perf_data *data = opening->data;
	bool is_seekable = lseek(opening->fd, 0, SEEK_SET) >= 0;
	const uint8_t *bytes;
	uint64_t magic, size;
	int err = op_perf_input_peek(&data->part->input, PIPE_HEADER_BYTES, &bytes);

	if (err)
		return err == -ENODATA ? refuse(opening, "it is shorter than the header of a perf.data file") : err;
	magic = op_perf_u64(bytes, false);
	data->swapped = data->translator.swapped = magic == __builtin_bswap64(MAGIC);
	if (magic == MAGIC_OLD || magic == __builtin_bswap64(MAGIC_OLD))
		return refuse(opening, "it is a perf.data file of version 1, which perf has not written since 2011");
	if (magic != MAGIC && !data->swapped)
		return refuse(opening, compression_of(bytes) ?: "it is not a perf.data file");
	size = op_perf_u64(bytes + WORD, data->swapped);
	data->is_pipe = size == PIPE_HEADER_BYTES;
	if (data->is_pipe)
		return op_perf_input_skip(&data->part->input, size);
	if (size < NR_WORDS * WORD)
		return refuse(opening, "the header of the perf.data file is damaged");
	err = is_seekable ? 0 : copy_pipe(opening);
	return err ? err : read_file_header(opening);
}

/* ---- a directory ---- */

#define MAIN_NAME "data"

static int open_main_of_dir(struct opening *opening, int *ret_fd)
{
	int fd = op_sys_openat(opening->dir_fd, MAIN_NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0), err;
	struct stat st;

	if (fd == -ENOENT)
		return refuse(opening, "it is not a directory of perf record: it has no file " MAIN_NAME);
	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = refuse(opening, "it is not a directory of perf record: " MAIN_NAME " is not a regular file");
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

/* The file with the header: the caller's, or the first one of a directory. */
static int open_main(struct opening *opening, bool is_dir)
{
	struct op_perf_data *data = opening->data;
	int own_fd = -1, err = is_dir ? open_main_of_dir(opening, &own_fd) : 0;

	if (err)
		return err;
	opening->fd = is_dir ? own_fd : opening->dir_fd;
	err = op_perf_parts_add(&data->parts, opening->fd, own_fd, is_dir ? MAIN_NAME : "");
	if (!err)
		data->part = data->parts.parts[0];
	return err;
}

static int open_others(struct opening *opening, bool is_dir)
{
	struct op_perf_data *data = opening->data;
	int err;

	if (!is_dir)
		return data->features.dir_version ? refuse(opening, "it is a part of a directory: name the directory") : 0;
	err = op_perf_parts_add_dir(&data->parts, opening->dir_fd, &data->trouble);
	if (err == -E2BIG)
		return refuse(opening, "the directory has too many files");
	if (!err && data->is_pipe && data->parts.nr_parts > 1)
		return refuse(opening, "the first file of the directory was not written by perf record");
	return err;
}

static int open_all(struct opening *opening)
{
	struct op_perf_data *data = opening->data;
	struct stat st;
	bool is_dir;
	int err = op_sys_fstat(opening->dir_fd, &st);

	if (err)
		return err;
	is_dir = S_ISDIR(st.st_mode);
	err = open_main(opening, is_dir);
	if (!err)
		err = read_header(opening);
	if (!err && !op_perf_events_are_told_apart(&data->events))
		err = refuse(opening, "it has several events, but its samples do not say to which event they belong");
	return err ? err : open_others(opening, is_dir);
}

int op_perf_data_open(int fd, const struct op_stop *stop, struct op_perf_data **ret_data, const char **ret_why)
{
	struct op_perf_data *data = calloc(1, sizeof(*data));
	struct opening opening = { .data = data, .dir_fd = fd };
	int err;

	if (!data)
		return -ENOMEM;
	data->parts.stop = stop;
	data->translator.events = &data->events;
	data->translator.features = &data->features;
	err = open_all(&opening);
	if (!err) {
		*ret_data = data;
		return 0;
	}
	if (opening.why)
		*ret_why = opening.why;
	op_perf_data_close(data);
	return err;
}
