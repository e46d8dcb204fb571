/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/timeline_part.h"

#include <errno.h>

#include "libop/base/file.h"
#include "libop/timeline/append.h"
#include "libop/timeline/read.h"

static void see_images(const struct op_minute *minute, const struct op_part_reading *reading)
{
	for (uint32_t i = 1; i < minute->nr_nodes; i++) {
		const struct op_minute_node *node = &minute->nodes[i];
		bool has_image = node->kind == OP_MINUTE_APP || node->kind == OP_MINUTE_IMAGE || op_minute_is_code(node->kind);

		if (has_image && node->image) /* 0: the kernel is the application */
			reading->see_image(node->image, reading->arg);
	}
}

/* 0 when all selected blocks were read, damaged ones left out. */
static int read_blocks(struct op_timeline *timeline, struct op_part_reading *reading)
{
	struct op_minute minute;
	int err = op_minute_init(&minute, 0);

	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		reading->nr_whole++;
		if (reading->see_image)
			see_images(&minute, reading);
	}
	op_minute_free(&minute);
	return err == -ENODATA ? 0 : err;
}

int op_timeline_part_read(int dir_fd, const char *path, struct op_part_reading *reading)
{
	struct op_timeline *timeline;
	int err = op_timeline_open(dir_fd, path, &timeline);

	if (err)
		return err;
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	if (!err)
		err = read_blocks(timeline, reading);
	reading->nr_damaged = op_timeline_nr_damaged(timeline, &reading->damaged_offset);
	op_timeline_close(timeline);
	return err;
}

/* A torn end is no damage that op_timeline_next finds: the writer cuts it off. */
static int cut_end(int dir_fd, const char *path, uint64_t *ret_nr_dropped)
{
	struct op_timeline_writer *writer;
	uint64_t nr_cut;
	int err = op_timeline_append_open(dir_fd, path, &writer, &nr_cut);

	if (err)
		return err;
	op_timeline_append_close(writer);
	*ret_nr_dropped = nr_cut ? 1 : 0;
	return 0;
}

static int copy_blocks(struct op_timeline *timeline, struct op_timeline_writer *writer)
{
	static const struct op_encode_limits no_limits;
	struct op_timeline_clocks last;
	struct op_minute minute;
	int err = op_minute_init(&minute, 0);

	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		if (op_timeline_append_last(writer, &last) && last.mono_ns != minute.begin.mono_ns && minute.gap == OP_GAP_NONE)
			minute.gap = OP_GAP_UNWRITTEN;
		err = op_timeline_append(writer, &minute, &no_limits);
	}
	op_minute_free(&minute);
	return err == -ENODATA ? op_timeline_append_sync(writer) : err;
}

/* A file of the sound blocks takes the place of the file. */
static int make_anew(struct op_timeline *timeline, int dir_fd, const char *path, const char *tmp_path)
{
	struct op_timeline_writer *writer;
	uint64_t dir_bytes;
	int err;

	op_file_unlink_below(dir_fd, tmp_path);
	err = op_timeline_append_open(dir_fd, tmp_path, &writer, NULL);
	if (err)
		return err;
	op_timeline_append_together(writer);
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	if (!err)
		err = copy_blocks(timeline, writer);
	op_timeline_append_close(writer);
	if (!err)
		err = op_file_publish_below(dir_fd, tmp_path, path, &dir_bytes);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	return err;
}

int op_timeline_part_recover(int dir_fd, const char *path, const char *tmp_path, uint64_t *ret_nr_dropped)
{
	struct op_part_reading reading = { 0 };
	struct op_timeline *timeline;
	uint64_t offset;
	int err = op_timeline_open(dir_fd, path, &timeline);

	if (err)
		return err;
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	if (!err)
		err = read_blocks(timeline, &reading);
	*ret_nr_dropped = op_timeline_nr_damaged(timeline, &offset);
	if (!err)
		err = *ret_nr_dropped ? make_anew(timeline, dir_fd, path, tmp_path) : cut_end(dir_fd, path, ret_nr_dropped);
	op_timeline_close(timeline);
	return err;
}
