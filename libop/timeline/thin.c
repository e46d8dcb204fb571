/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/timeline/thin.h"

#include <errno.h>

#include "libop/base/file.h"
#include "libop/timeline/append.h"
#include "libop/timeline/read.h"

#define SPAN_NODES 65536u /* in memory: about 5 MiB */

struct thinning {
	struct op_timeline_writer *writer;
	const struct op_encode_limits *limits;
	uint64_t grain_ns;
	struct op_minute span; /* that is being merged */
	bool is_open;
	uint64_t nr_minutes, last_ns; /* read so far; where the last one ended, CLOCK_MONOTONIC */
};

static int end_span(struct thinning *thinning)
{
	int err;

	if (!thinning->is_open)
		return 0;
	thinning->is_open = false;
	thinning->span.flags |= OP_TIMELINE_IS_MERGED;
	err = op_timeline_append(thinning->writer, &thinning->span, thinning->limits);
	op_minute_clear(&thinning->span);
	return err;
}

/* A span that goes over a boundary belongs to where it begins. */
static bool is_in_span(const struct thinning *thinning, const struct op_minute *minute)
{
	const struct op_minute *span = &thinning->span;

	return thinning->is_open && minute->gap == OP_GAP_NONE && minute->begin.mono_ns == span->end.mono_ns &&
	       minute->begin.wall_ns / thinning->grain_ns == span->begin.wall_ns / thinning->grain_ns;
}

static int add_minute(struct thinning *thinning, const struct op_minute *minute)
{
	/* else between them lies a block that cannot be read */
	bool follows = !thinning->nr_minutes || minute->begin.mono_ns == thinning->last_ns;
	int err = is_in_span(thinning, minute) ? 0 : end_span(thinning);

	if (err)
		return err;
	if (!thinning->is_open)
		thinning->span.begin = thinning->span.end = (struct op_timeline_clocks){ 0 };
	err = op_minute_merge(&thinning->span, minute);
	if (err)
		return err;
	if (!thinning->is_open)
		thinning->span.gap = minute->gap == OP_GAP_NONE && !follows ? OP_GAP_UNWRITTEN : minute->gap;
	thinning->is_open = true;
	thinning->last_ns = minute->end.mono_ns;
	thinning->nr_minutes++;
	return 0;
}

static int merge_blocks(struct thinning *thinning, struct op_timeline *timeline)
{
	struct op_minute minute;
	int err = op_minute_init(&minute, 0);

	while (!err && !(err = op_timeline_next(timeline, &minute))) {
		if (!thinning->nr_minutes && minute.flags & OP_TIMELINE_IS_MERGED)
			err = -EALREADY;
		else
			err = add_minute(thinning, &minute);
	}
	if (err == -ENODATA)
		err = thinning->nr_minutes ? end_span(thinning) : -EALREADY;
	op_minute_free(&minute);
	return err ? err : op_timeline_append_sync(thinning->writer);
}

static int make_file(struct op_timeline *timeline, int dir_fd, const char *tmp_path, uint64_t grain_ns,
		     const struct op_encode_limits *limits)
{
	struct thinning thinning = { .limits = limits, .grain_ns = grain_ns };
	int err = op_minute_init(&thinning.span, SPAN_NODES);

	if (!err)
		err = op_timeline_append_open(dir_fd, tmp_path, &thinning.writer, NULL);
	if (!err) {
		op_timeline_append_together(thinning.writer);
		err = merge_blocks(&thinning, timeline);
		op_timeline_append_close(thinning.writer);
	}
	op_minute_free(&thinning.span);
	return err;
}

/* A file that got another block meanwhile keeps its minutes: the hours have not all of them. */
static int publish(const struct op_timeline *timeline, int dir_fd, const char *path, const char *tmp_path)
{
	struct op_timeline *now;
	uint64_t dir_bytes;
	bool has_grown;
	int err = op_timeline_open(dir_fd, path, &now);

	if (err)
		return err;
	has_grown = op_timeline_bytes(now) != op_timeline_bytes(timeline);
	op_timeline_close(now);
	return has_grown ? -EAGAIN : op_file_publish_below(dir_fd, tmp_path, path, &dir_bytes);
}

int op_timeline_thin(int dir_fd, const char *path, const char *tmp_path, uint64_t grain_ns, const struct op_encode_limits *limits)
{
	struct op_timeline *timeline;
	int err = op_timeline_open(dir_fd, path, &timeline);

	if (err)
		return err;
	op_file_unlink_below(dir_fd, tmp_path);
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	if (!err)
		err = make_file(timeline, dir_fd, tmp_path, grain_ns, limits);
	if (!err)
		err = publish(timeline, dir_fd, path, tmp_path);
	op_timeline_close(timeline);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	return err;
}
