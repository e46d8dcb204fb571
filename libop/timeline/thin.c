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

/* What becomes of the blocks of a file: some go, the next ones become hours, the others stay. */
struct plan {
	size_t nr_removed, nr_old; /* nr_old counts from the first block, too */
	bool changes;
};

static int merge_block(struct thinning *thinning, const struct op_timeline *timeline, size_t index, struct op_minute *minute)
{
	int err = op_timeline_load(timeline, index, minute);

	return err == -EBADMSG ? 0 : err ? err : add_minute(thinning, minute);
}

/* `is_cut`: blocks before it were removed. */
static int copy_block(struct thinning *thinning, const struct op_timeline *timeline, size_t index, bool is_cut)
{
	struct op_block block;
	struct op_bytes packed;
	int err = end_span(thinning);
	uint32_t gap;

	if (!err)
		err = op_timeline_packed(timeline, index, &block, &packed);
	if (err)
		return err == -EBADMSG ? 0 : err;
	gap = block.tail.gap;
	if (is_cut)
		gap = OP_GAP_REMOVED;
	else if (gap == OP_GAP_NONE && thinning->nr_minutes && block.tail.begin.mono_ns != thinning->last_ns)
		gap = OP_GAP_UNWRITTEN;
	err = op_timeline_append_packed(thinning->writer, &block, gap, &packed);
	op_bytes_free(&packed);
	thinning->last_ns = block.tail.end.mono_ns;
	thinning->nr_minutes++;
	return err;
}

static int write_blocks(struct thinning *thinning, const struct op_timeline *timeline, const struct plan *plan)
{
	struct op_minute minute;
	struct op_block block;
	int err = op_minute_init(&minute, 0);

	for (size_t i = plan->nr_removed; !err && i < op_timeline_nr_selected(timeline); i++) {
		bool is_cut = plan->nr_removed && !thinning->nr_minutes;

		err = op_timeline_block(timeline, i, &block);
		if (err == -EBADMSG)
			err = 0;
		else if (!err && i < plan->nr_old && !is_cut && !(block.tail.flags & OP_TIMELINE_IS_MERGED))
			err = merge_block(thinning, timeline, i, &minute);
		else if (!err)
			err = copy_block(thinning, timeline, i, is_cut);
	}
	op_minute_free(&minute);
	err = err ? err : end_span(thinning);
	return err ? err : op_timeline_append_sync(thinning->writer);
}

static int make_file(const struct op_timeline *timeline, const struct plan *plan, int dir_fd, const char *tmp_path,
		     uint64_t grain_ns, const struct op_encode_limits *limits)
{
	struct thinning thinning = { .limits = limits, .grain_ns = grain_ns };
	int err;

	op_file_unlink_below(dir_fd, tmp_path);
	err = op_minute_init(&thinning.span, SPAN_NODES);
	if (!err)
		err = op_timeline_append_open(dir_fd, tmp_path, &thinning.writer, NULL);
	if (!err) {
		op_timeline_append_together(thinning.writer);
		err = write_blocks(&thinning, timeline, plan);
		op_timeline_append_close(thinning.writer);
	}
	op_minute_free(&thinning.span);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
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
	struct plan plan = { .nr_old = SIZE_MAX };
	struct op_timeline *timeline;
	struct op_block block;
	int err = op_timeline_open(dir_fd, path, &timeline);

	if (err)
		return err;
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	for (size_t i = 0; !err && !plan.changes && i < op_timeline_nr_selected(timeline); i++)
		plan.changes = !op_timeline_block(timeline, i, &block) && !(block.tail.flags & OP_TIMELINE_IS_MERGED);
	err = err ? err : plan.changes ? make_file(timeline, &plan, dir_fd, tmp_path, grain_ns, limits) : -EALREADY;
	if (!err) {
		err = publish(timeline, dir_fd, path, tmp_path);
		if (err)
			op_file_unlink_below(dir_fd, tmp_path);
	}
	op_timeline_close(timeline);
	return err;
}

/* ---- a file that goes on ---- */

/* Time that the host ran, by a clock that does not step. 0 from one boot to the next. */
static uint64_t ran_ns(const struct op_timeline_clocks *from, const struct op_timeline_clocks *to)
{
	return to->boot_ns > from->boot_ns ? to->boot_ns - from->boot_ns : 0;
}

/*
 * From the last block to the first: their ages, and the bytes behind them. Blocks become hours when
 * some have been too old for a while, so that the file is not written anew for each minute.
 */
static int make_plan(const struct op_timeline *timeline, const struct op_timeline_keep *keep, struct plan *plan)
{
	size_t nr = op_timeline_nr_selected(timeline), nr_gone = 0, nr_beyond = 0, nr_minutes_old = 0, nr_minutes_beyond = 0;
	uint64_t age_ns = 0, late_ns = op_max_u64(keep->grain_ns, keep->minutes_ns / 8), minute_bytes = 0;
	bool is_due = false, is_gone_due = false, is_full = keep->max_bytes && op_timeline_bytes(timeline) > keep->max_bytes;
	struct op_timeline_clocks later = { 0 };
	struct op_block block;

	for (size_t i = nr; i-- > 0;) {
		uint64_t bytes_on = op_timeline_bytes(timeline);
		bool is_minute;
		int err = op_timeline_block(timeline, i, &block);

		if (err == -EBADMSG)
			continue;
		if (err)
			return err;
		bytes_on -= block.offset;
		is_minute = !(block.tail.flags & OP_TIMELINE_IS_MERGED);
		age_ns += ran_ns(&block.tail.end, &later); /* until its end */
		minute_bytes += is_minute ? block.end - block.offset : 0;
		if (!nr_minutes_old && is_minute && keep->minutes_ns && age_ns > keep->minutes_ns)
			nr_minutes_old = i + 1;
		is_due |= is_minute && keep->minutes_ns && age_ns > keep->minutes_ns + late_ns;
		if (!nr_minutes_beyond && is_minute && is_full && minute_bytes > keep->max_bytes / 2)
			nr_minutes_beyond = i + 1;
		if (!nr_gone && keep->minutes_ns && age_ns > op_max_u64(keep->minutes_ns, keep->hours_ns))
			nr_gone = i + 1;
		is_gone_due |= keep->minutes_ns && age_ns > op_max_u64(keep->minutes_ns, keep->hours_ns) + late_ns;
		if (!nr_beyond && is_full && i + 1 < nr && bytes_on > keep->max_bytes)
			nr_beyond = i + 1;
		age_ns += ran_ns(&block.tail.begin, &block.tail.end);
		later = block.tail.begin;
	}
	*plan = (struct plan){
		.nr_old = op_max_u64(is_due ? nr_minutes_old : 0, nr_minutes_beyond),
		.nr_removed = op_max_u64(is_gone_due ? nr_gone : 0, nr_minutes_beyond ? 0 : nr_beyond),
		.changes = is_due || is_gone_due || nr_minutes_beyond || nr_beyond,
	};
	return 0;
}

int op_timeline_shorten(int dir_fd, const char *path, const struct op_timeline_keep *keep, const struct op_encode_limits *limits,
			int tmp_dir_fd, const char *tmp_path)
{
	struct op_timeline *timeline;
	struct plan plan = { 0 };
	int err = op_timeline_open(dir_fd, path, &timeline);

	if (err)
		return err;
	err = op_timeline_select(timeline, 0, UINT64_MAX);
	if (!err)
		err = make_plan(timeline, keep, &plan);
	if (!err)
		err = plan.changes ? make_file(timeline, &plan, tmp_dir_fd, tmp_path, keep->grain_ns, limits) : -EALREADY;
	op_timeline_close(timeline);
	return err;
}
