/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/append.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/sys.h"
#include "libop/timeline/block.h"
#include "libop/timeline/read.h"

#define FILE_MODE 0644

struct op_timeline_writer {
	int fd;
	uint64_t end; /* of the last block */
	struct op_block_place *places; /* of all blocks, for the index */
	size_t nr_places, capacity;
	bool is_synced_later;
	struct op_timeline_clocks last; /* the end of the last block; all 0: there is none */
};

/* A file without blocks: its header is written, also again. */
static int write_header(struct op_timeline_writer *writer)
{
	struct op_timeline_header header = { .reserved = 0 };
	int err;

	memcpy(header.magic, OP_TIMELINE_MAGIC, sizeof(header.magic));
	err = op_sys_ftruncate(writer->fd, 0);
	if (!err)
		err = op_sys_pwrite_all(writer->fd, &header, sizeof(header), 0);
	if (!err)
		writer->end = sizeof(header);
	return err;
}

static int check_magic(int fd, uint64_t nr_bytes)
{
	char magic[sizeof(OP_TIMELINE_MAGIC) - 1];
	size_t nr_read;
	int err = op_file_read_at(fd, magic, sizeof(magic), 0, &nr_read);

	if (err)
		return err;
	return memcmp(magic, OP_TIMELINE_MAGIC, nr_read) || (nr_bytes >= sizeof(magic) && nr_read < sizeof(magic)) ? -EBADMSG : 0;
}

static int read_blocks(struct op_timeline_writer *writer, uint64_t nr_bytes)
{
	struct op_block last;
	int err = op_timeline_scan(writer->fd, nr_bytes, &writer->places, &writer->nr_places, &writer->end);

	if (err)
		return err;
	writer->capacity = writer->nr_places;
	if (writer->nr_places && !op_block_read_back(writer->fd, sizeof(struct op_timeline_header), writer->end, &last))
		writer->last = last.tail.end;
	return writer->end < nr_bytes ? op_sys_ftruncate(writer->fd, (off_t)writer->end) : 0;
}

static int open_file(struct op_timeline_writer *writer, int dir_fd, const char *path, uint64_t *ret_nr_cut)
{
	struct stat st;
	int err;

	writer->fd = op_file_open_below(dir_fd, path, O_RDWR | O_CREAT | O_NONBLOCK, FILE_MODE);
	err = writer->fd < 0 ? writer->fd : op_sys_fstat(writer->fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EBADMSG;
	if (!err)
		err = check_magic(writer->fd, (uint64_t)st.st_size);
	if (err)
		return err;
	*ret_nr_cut = 0;
	if ((uint64_t)st.st_size < sizeof(struct op_timeline_header)) {
		err = write_header(writer);
		return err ? err : op_sys_fsync(dir_fd);
	}
	err = read_blocks(writer, (uint64_t)st.st_size);
	*ret_nr_cut = (uint64_t)st.st_size - writer->end;
	return err;
}

int op_timeline_append_open(int dir_fd, const char *path, struct op_timeline_writer **ret_writer, uint64_t *ret_nr_cut)
{
	struct op_timeline_writer *writer = calloc(1, sizeof(*writer));
	uint64_t nr_cut = 0;
	int err = writer ? open_file(writer, dir_fd, path, &nr_cut) : -ENOMEM;

	if (err) {
		op_timeline_append_close(writer);
		return err;
	}
	if (ret_nr_cut)
		*ret_nr_cut = nr_cut;
	*ret_writer = writer;
	return 0;
}

/* Level k: the 8^k blocks before. */
static uint32_t make_levels(const struct op_timeline_writer *writer, struct op_timeline_level levels[OP_TIMELINE_LEVELS_MAX])
{
	struct op_timeline_level level = { .wall_first_ns = UINT64_MAX };
	size_t at = writer->nr_places;
	uint32_t nr_levels = 0;

	for (size_t nr = 1; nr <= writer->nr_places && nr_levels < OP_TIMELINE_LEVELS_MAX; nr <<= OP_TIMELINE_LEVEL_SHIFT) {
		for (; at > writer->nr_places - nr; at--) {
			const struct op_block_place *place = &writer->places[at - 1];

			level.wall_first_ns = op_min_u64(level.wall_first_ns, place->wall_first_ns);
			level.wall_last_ns = op_max_u64(level.wall_last_ns, place->wall_last_ns);
			level.offset = place->offset;
		}
		levels[nr_levels++] = level;
	}
	return nr_levels;
}

static int write_block(struct op_timeline_writer *writer, const struct op_timeline_tail *tail, const struct op_bytes *block)
{
	struct op_block_place place = {
		.offset = writer->end,
		.end = writer->end + block->length,
		.wall_first_ns = op_block_first_ns(tail),
		.wall_last_ns = op_block_last_ns(tail),
	};
	int err;

	if (!op_grow(&writer->places, &writer->capacity, writer->nr_places + 1))
		return -ENOMEM;
	err = op_sys_pwrite_all(writer->fd, block->data, block->length, (off_t)writer->end);
	if (!err && !writer->is_synced_later)
		err = op_sys_fsync(writer->fd);
	if (err) {
		(void)!op_sys_ftruncate(writer->fd, (off_t)writer->end); /* else a torn end stays */
		return err;
	}
	writer->places[writer->nr_places++] = place;
	writer->end = place.end;
	writer->last = tail->end;
	return 0;
}

int op_timeline_append(struct op_timeline_writer *writer, const struct op_minute *minute, const struct op_encode_limits *limits)
{
	struct op_timeline_level levels[OP_TIMELINE_LEVELS_MAX];
	struct op_bytes payload = { 0 }, block = { 0 };
	struct op_timeline_tail tail = {
		.begin = minute->begin,
		.end = minute->end,
		.number = (uint32_t)writer->nr_places,
		.nr_levels = make_levels(writer, levels),
		.gap = (uint16_t)minute->gap,
		.flags = (uint16_t)minute->flags,
	};
	int err = writer->nr_places >= OP_TIMELINE_BLOCKS_MAX ? -EFBIG : op_minute_encode(minute, limits, &payload);

	if (!err)
		err = op_block_make(&payload, &tail, levels, &block);
	if (!err)
		err = write_block(writer, &tail, &block);
	op_bytes_free(&payload);
	op_bytes_free(&block);
	return err;
}

int op_timeline_append_packed(struct op_timeline_writer *writer, const struct op_block *block, uint32_t gap,
			      const struct op_bytes *packed)
{
	struct op_timeline_level levels[OP_TIMELINE_LEVELS_MAX];
	struct op_timeline_tail tail = block->tail;
	struct op_bytes bytes = { 0 };
	int err;

	if (writer->nr_places >= OP_TIMELINE_BLOCKS_MAX)
		return -EFBIG;
	tail.number = (uint32_t)writer->nr_places;
	tail.nr_levels = make_levels(writer, levels);
	tail.gap = (uint16_t)gap;
	err = op_block_frame(packed, &tail, levels, &bytes);
	if (!err)
		err = write_block(writer, &tail, &bytes);
	op_bytes_free(&bytes);
	return err;
}

void op_timeline_append_together(struct op_timeline_writer *writer)
{
	writer->is_synced_later = true;
}

int op_timeline_append_sync(const struct op_timeline_writer *writer)
{
	return op_sys_fsync(writer->fd);
}

bool op_timeline_append_is_linked(const struct op_timeline_writer *writer)
{
	struct stat st;

	return !op_sys_fstat(writer->fd, &st) && st.st_nlink;
}

uint64_t op_timeline_append_bytes(const struct op_timeline_writer *writer)
{
	return writer->end;
}

uint32_t op_timeline_append_nr_blocks(const struct op_timeline_writer *writer)
{
	return (uint32_t)writer->nr_places;
}

bool op_timeline_append_last(const struct op_timeline_writer *writer, struct op_timeline_clocks *ret_end)
{
	if (!writer->nr_places)
		return false;
	*ret_end = writer->last;
	return true;
}

void op_timeline_append_close(struct op_timeline_writer *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->places);
	free(writer);
}
