/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/sys.h"

struct op_timeline {
	int fd;
	uint64_t nr_bytes;
	struct op_block_place *selected; /* the last one first */
	size_t nr_selected, capacity;
	size_t nr_read;
	uint64_t nr_damaged, damaged_offset;
};

/* ---- finding blocks ---- */

static int add_place(struct op_block_place **places, size_t *capacity, size_t *nr, const struct op_block_place *place)
{
	if (*nr >= OP_TIMELINE_BLOCKS_MAX)
		return -EFBIG;
	if (!op_grow(places, capacity, *nr + 1))
		return -ENOMEM;
	(*places)[(*nr)++] = *place;
	return 0;
}

static struct op_block_place place_of(const struct op_block *block)
{
	return (struct op_block_place){
		.offset = block->offset,
		.end = block->end,
		.wall_first_ns = op_block_first_ns(&block->tail),
		.wall_last_ns = op_block_last_ns(&block->tail),
	};
}

static void reverse(struct op_block_place *places, size_t nr)
{
	for (size_t i = 0; i < nr / 2; i++) {
		struct op_block_place place = places[i];

		places[i] = places[nr - 1 - i];
		places[nr - 1 - i] = place;
	}
}

/* Errors of reading but damage end the scan. */
static int scan(int fd, uint64_t file_bytes, struct op_block_place **places, size_t *nr, uint64_t *ret_end)
{
	uint64_t front = sizeof(struct op_timeline_header), back = file_bytes;
	size_t capacity = 0, nr_front;
	struct op_block_place place;
	struct op_block block;
	int err = 0;

	while (!err && front < file_bytes && !(err = op_block_read(fd, front, file_bytes, &block))) {
		place = place_of(&block);
		err = add_place(places, &capacity, nr, &place);
		front = block.end;
	}
	nr_front = *nr;
	*ret_end = front;
	if (err != -EBADMSG)
		return err;
	err = 0;
	while (!err && back > front && !(err = op_block_read_back(fd, front, back, &block))) {
		place = place_of(&block);
		err = add_place(places, &capacity, nr, &place);
		back = block.offset;
	}
	if (err && err != -EBADMSG)
		return err;
	if (*nr == nr_front)
		return 0; /* torn */
	place = (struct op_block_place){ front, back, 0, UINT64_MAX, true };
	err = back > front ? add_place(places, &capacity, nr, &place) : 0;
	reverse(*places + nr_front, *nr - nr_front);
	*ret_end = file_bytes;
	return err;
}

int op_timeline_scan(int fd, uint64_t file_bytes, struct op_block_place **ret_places, size_t *ret_nr_places, uint64_t *ret_end)
{
	struct op_block_place *places = NULL;
	uint64_t end = op_min_u64(file_bytes, sizeof(struct op_timeline_header));
	size_t nr = 0;
	int err = scan(fd, file_bytes, &places, &nr, &end);

	if (err) {
		free(places);
		return err;
	}
	*ret_places = places;
	*ret_nr_places = nr;
	*ret_end = end;
	return 0;
}

/* A span of no length is in the window when its moment is. */
static bool overlaps(uint64_t first_ns, uint64_t last_ns, uint64_t since_ns, uint64_t until_ns)
{
	return first_ns < until_ns && (last_ns > since_ns || (first_ns == last_ns && first_ns == since_ns));
}

/*
 * The block where the search goes on. The index of `block` leads over as many blocks as lie outside
 * of the window. -ENODATA: there is no block before.
 */
static int step_back(const struct op_timeline *timeline, struct op_block *block, uint64_t since_ns, uint64_t until_ns)
{
	uint64_t header_bytes = sizeof(struct op_timeline_header), offset = block->offset;

	for (uint32_t i = block->tail.nr_levels; i-- > 0;) {
		const struct op_timeline_level *level = &block->levels[i];

		if (level->wall_first_ns < until_ns && level->wall_last_ns >= since_ns)
			continue;
		return op_block_read(timeline->fd, level->offset, offset, block);
	}
	return offset <= header_bytes ? -ENODATA : op_block_read_back(timeline->fd, header_bytes, offset, block);
}

static int select_by_index(struct op_timeline *timeline, uint64_t since_ns, uint64_t until_ns)
{
	struct op_block block;
	int err = op_block_read_back(timeline->fd, sizeof(struct op_timeline_header), timeline->nr_bytes, &block);

	while (!err) {
		struct op_block_place place = place_of(&block);

		if (overlaps(place.wall_first_ns, place.wall_last_ns, since_ns, until_ns))
			err = add_place(&timeline->selected, &timeline->capacity, &timeline->nr_selected, &place);
		if (!err)
			err = step_back(timeline, &block, since_ns, until_ns);
	}
	return err == -ENODATA ? 0 : err;
}

static void note_damage(struct op_timeline *timeline, uint64_t offset)
{
	if (!timeline->nr_damaged++)
		timeline->damaged_offset = offset;
}

static int select_by_scan(struct op_timeline *timeline, uint64_t since_ns, uint64_t until_ns)
{
	struct op_block_place *places;
	size_t nr_places;
	uint64_t end;
	int err = op_timeline_scan(timeline->fd, timeline->nr_bytes, &places, &nr_places, &end);

	if (err)
		return err;
	timeline->nr_selected = 0;
	timeline->nr_damaged = 0;
	for (size_t i = 0; i < nr_places; i++)
		if (places[i].is_damaged)
			note_damage(timeline, places[i].offset);
	for (size_t i = nr_places; !err && i-- > 0;)
		if (!places[i].is_damaged && overlaps(places[i].wall_first_ns, places[i].wall_last_ns, since_ns, until_ns))
			err = add_place(&timeline->selected, &timeline->capacity, &timeline->nr_selected, &places[i]);
	free(places);
	return err;
}

int op_timeline_select(struct op_timeline *timeline, uint64_t since_ns, uint64_t until_ns)
{
	int err;

	timeline->nr_selected = timeline->nr_read = 0;
	if (timeline->nr_bytes <= sizeof(struct op_timeline_header))
		return 0;
	err = select_by_index(timeline, since_ns, until_ns);
	return err == -EBADMSG ? select_by_scan(timeline, since_ns, until_ns) : err;
}

/* ---- reading ---- */

/* A file that is shorter than its header is being made. */
int op_timeline_open(int dir_fd, const char *path, struct op_timeline **ret_timeline)
{
	struct op_timeline *timeline = calloc(1, sizeof(*timeline));
	struct op_timeline_header header;
	struct stat st;
	size_t nr_read;
	int err;

	if (!timeline)
		return -ENOMEM;
	timeline->fd = op_file_open_below(dir_fd, path, O_RDONLY | O_NONBLOCK, 0);
	err = timeline->fd < 0 ? timeline->fd : op_sys_fstat(timeline->fd, &st);
	if (err)
		goto failed;
	err = S_ISREG(st.st_mode) ? op_file_read_at(timeline->fd, &header, sizeof(header), 0, &nr_read) : -EBADMSG;
	if (err)
		goto failed;
	if (memcmp(header.magic, OP_TIMELINE_MAGIC, op_min_u64(nr_read, sizeof(header.magic)))) {
		err = -EBADMSG;
		goto failed;
	}
	timeline->nr_bytes = (uint64_t)st.st_size;
	*ret_timeline = timeline;
	return 0;
failed:
	op_timeline_close(timeline);
	return err;
}

size_t op_timeline_nr_selected(const struct op_timeline *timeline)
{
	return timeline->nr_selected;
}

int op_timeline_block(const struct op_timeline *timeline, size_t index, struct op_block *ret_block)
{
	const struct op_block_place *place;

	if (index >= timeline->nr_selected)
		return -ENODATA;
	place = &timeline->selected[timeline->nr_selected - 1 - index];
	return op_block_read_back(timeline->fd, place->offset, place->end, ret_block);
}

int op_timeline_load(const struct op_timeline *timeline, size_t index, struct op_minute *minute)
{
	struct op_block block;
	int err = op_timeline_block(timeline, index, &block);

	return err ? err : op_block_load(timeline->fd, &block, minute);
}

int op_timeline_packed(const struct op_timeline *timeline, size_t index, struct op_block *ret_block, struct op_bytes *ret_packed)
{
	int err = op_timeline_block(timeline, index, ret_block);

	return err ? err : op_block_read_packed(timeline->fd, ret_block, ret_packed);
}

int op_timeline_next(struct op_timeline *timeline, struct op_minute *minute)
{
	int err;

	do {
		err = op_timeline_load(timeline, timeline->nr_read, minute);
		if (err == -ENODATA)
			return err;
		if (err == -EBADMSG)
			note_damage(timeline, timeline->selected[timeline->nr_selected - 1 - timeline->nr_read].offset);
		timeline->nr_read++;
	} while (err == -EBADMSG);
	return err;
}

uint64_t op_timeline_nr_damaged(const struct op_timeline *timeline, uint64_t *ret_offset)
{
	*ret_offset = timeline->damaged_offset;
	return timeline->nr_damaged;
}

uint64_t op_timeline_bytes(const struct op_timeline *timeline)
{
	return timeline->nr_bytes;
}

int op_timeline_ends(const struct op_timeline *timeline, struct op_block *ret_first, struct op_block *ret_last)
{
	uint64_t begin = sizeof(struct op_timeline_header);
	struct op_block first;
	int err;

	if (timeline->nr_bytes <= begin)
		return -ENODATA;
	err = op_block_read(timeline->fd, begin, timeline->nr_bytes, &first);
	if (!err)
		err = op_block_read_back(timeline->fd, begin, timeline->nr_bytes, ret_last);
	if (!err)
		*ret_first = first;
	return err;
}

void op_timeline_close(struct op_timeline *timeline)
{
	if (!timeline)
		return;
	if (timeline->fd >= 0)
		close(timeline->fd);
	free(timeline->selected);
	free(timeline);
}
