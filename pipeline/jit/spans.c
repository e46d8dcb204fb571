/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/spans.h"

#include <errno.h>

#include "libop/base/grow.h"

#define ROWS_IN_STEP 16u /* moved at once in about the time of a step */

/* Room for one row of any kind. */
struct any_row {
	uint64_t words[OPD_SPAN_ROW_MAX / sizeof(uint64_t)];
};

/* ---- rows ---- */

static struct opd_span *row_at(const struct opd_spans *spans, const struct opd_span_list *list, size_t index)
{
	return (void *)(list->rows + index * spans->kind->row_bytes);
}

static void count(const struct opd_spans *spans, const void *row, bool is_more)
{
	if (spans->kind->count)
		spans->kind->count(row, is_more, spans->account->arg);
}

/* The part of a row between two addresses. */
static struct opd_span *part_of(const struct opd_spans *spans, const void *whole, uint64_t start, uint64_t end,
				struct any_row *ret_part)
{
	struct opd_span *part = memcpy(ret_part, whole, spans->kind->row_bytes);
	uint64_t nr_cut = op_max_u64(part->start, start) - part->start;

	part->start += nr_cut;
	part->offset += nr_cut;
	part->end = op_min_u64(part->end, end);
	return part;
}

/* Replaces nr_old rows at index by nr_new rows, for which there is room. */
static void splice(const struct opd_spans *spans, struct opd_span_list *list, size_t index, size_t nr_old,
		   const struct any_row *rows, size_t nr_new)
{
	size_t nr_moved = list->nr - index - nr_old, row_bytes = spans->kind->row_bytes;

	/*
	 * No move when a file is mapped again where it was: that is common, and a map may be long.
	 */
	if (nr_new != nr_old) {
		spans->account->nr_steps += nr_moved / ROWS_IN_STEP;
		memmove(row_at(spans, list, index + nr_new), row_at(spans, list, index + nr_old), nr_moved * row_bytes);
	}
	for (size_t i = 0; i < nr_new; i++)
		memcpy(row_at(spans, list, index + i), &rows[i], row_bytes);
	list->nr = list->nr - nr_old + nr_new;
}

/* ---- room ---- */

static int resize(struct opd_spans *spans, struct opd_span_list *list, size_t capacity)
{
	uint64_t nr_rows = spans->account->nr_rows - list->capacity + capacity;
	char *rows = NULL;

	if (capacity > list->capacity && spans->kind->rows_max && nr_rows > spans->kind->rows_max)
		return -ENOSPC;
	if (capacity == list->capacity)
		return 0;
	if (capacity) {
		rows = reallocarray(list->rows, capacity, spans->kind->row_bytes);
		if (!rows)
			return -ENOMEM;
	} else {
		free(list->rows);
	}
	spans->account->nr_rows = nr_rows;
	list->rows = rows;
	list->capacity = capacity;
	return 0;
}

/* Makes room for more rows. Lists double when they are full. */
static int grow(struct opd_spans *spans, struct opd_span_list *list, size_t nr_more)
{
	size_t capacity = op_max_u64(list->capacity, OP_GROW_MIN);

	if (list->nr + nr_more <= list->capacity)
		return 0;
	while (capacity < list->nr + nr_more)
		capacity *= 2;
	return resize(spans, list, capacity);
}

int opd_spans_reserve(struct opd_spans *spans, const void *when)
{
	const struct opd_span *span = when;
	size_t first = opd_spans_first(spans, spans->kind->row_bytes, span->start), last = first, room;
	int err = grow(spans, &spans->now, 2);

	while (last < spans->now.nr && row_at(spans, &spans->now, last)->start < span->end)
		last++;
	room = spans->kind->past_max - spans->past.nr;
	return err ? err : grow(spans, &spans->past, op_min_u64(last - first, room));
}

void opd_spans_fit(struct opd_spans *spans)
{
	/* Without memory a list stays as it is. */
	resize(spans, &spans->now, spans->now.nr);
	resize(spans, &spans->past, spans->past.nr);
}

static void append(const struct opd_spans *spans, const struct opd_span_list *from, size_t index, struct opd_span_list *to)
{
	if (index < from->nr)
		memcpy(row_at(spans, to, to->nr), row_at(spans, from, index), (from->nr - index) * spans->kind->row_bytes);
	to->nr += from->nr - index;
}

int opd_spans_copy(const struct opd_spans *from, struct opd_spans *to)
{
	int err = grow(to, &to->now, from->now.nr);

	if (!err)
		err = grow(to, &to->past, from->past.nr);
	if (err)
		return err;
	append(from, &from->now, 0, &to->now);
	append(from, &from->past, 0, &to->past);
	to->unknown_until_ns = from->unknown_until_ns;
	return 0;
}

int opd_spans_move(struct opd_spans *from, size_t index, struct opd_spans *to)
{
	int err = grow(to, &to->now, from->now.nr - index);

	if (err)
		return err;
	append(from, &from->now, index, &to->now);
	from->now.nr = index;
	return 0;
}

static void free_list(struct opd_spans *spans, struct opd_span_list *list)
{
	spans->account->nr_steps += list->nr;
	for (size_t i = 0; i < list->nr; i++)
		count(spans, row_at(spans, list, i), false);
	list->nr = 0;
	resize(spans, list, 0);
}

void opd_spans_free(struct opd_spans *spans)
{
	free_list(spans, &spans->now);
	free_list(spans, &spans->past);
}

/* ---- the past ---- */

void opd_spans_forget(struct opd_spans *spans, uint64_t horizon_ns)
{
	struct opd_span_list *past = &spans->past;
	size_t nr_left = 0;

	/* Rows are about in the order in which they ended. */
	if (!past->nr || row_at(spans, past, 0)->to_ns >= horizon_ns)
		return;
	spans->account->nr_steps += past->nr;
	for (size_t i = 0; i < past->nr; i++) {
		const struct opd_span *row = row_at(spans, past, i);

		if (row->to_ns < horizon_ns)
			count(spans, row, false);
		else
			memmove(row_at(spans, past, nr_left++), row, spans->kind->row_bytes);
	}
	past->nr = nr_left;
	if (!nr_left)
		resize(spans, past, 0);
}

void opd_spans_drop_past(struct opd_spans *spans, size_t nr)
{
	struct opd_span_list *past = &spans->past;

	spans->account->nr_steps += nr;
	spans->account->nr_dropped += nr;
	for (size_t i = 0; i < nr; i++) {
		spans->unknown_until_ns = op_max_u64(spans->unknown_until_ns, row_at(spans, past, i)->to_ns);
		count(spans, row_at(spans, past, i), false);
	}
	splice(spans, past, 0, nr, NULL, 0);
}

/* Keeps a row that ended at to_ns, when samples may still lie in it. */
static void remember(struct opd_spans *spans, const struct opd_span *gone, uint64_t to_ns, uint64_t horizon_ns)
{
	struct opd_span_list *past = &spans->past;

	if (to_ns <= gone->from_ns || to_ns < horizon_ns)
		return;
	if (past->nr == spans->kind->past_max)
		opd_spans_forget(spans, horizon_ns);
	if (past->nr == spans->kind->past_max)
		opd_spans_drop_past(spans, past->nr / 4);
	if (grow(spans, past, 1)) {
		spans->unknown_until_ns = op_max_u64(spans->unknown_until_ns, to_ns);
		return;
	}
	count(spans, gone, true);
	memcpy(row_at(spans, past, past->nr), gone, spans->kind->row_bytes);
	row_at(spans, past, past->nr++)->to_ns = to_ns;
}

void opd_spans_move_past(struct opd_spans *from, struct opd_spans *to, uint64_t start, uint64_t end, uint64_t horizon_ns)
{
	struct opd_span_list *past = &from->past;
	size_t nr_left = 0;

	to->unknown_until_ns = op_max_u64(to->unknown_until_ns, from->unknown_until_ns);
	from->account->nr_steps += past->nr;
	for (size_t i = 0; i < past->nr; i++) {
		const struct opd_span *row = row_at(from, past, i), *rest;
		struct any_row moved_row, rest_row;
		const struct opd_span *moved = part_of(from, row, start, end, &moved_row);

		if (moved->start < moved->end)
			remember(to, moved, moved->to_ns, horizon_ns);
		rest = part_of(from, row, row->start < start ? 0 : end, row->start < start ? start : UINT64_MAX, &rest_row);
		if (rest->start < rest->end)
			memcpy(row_at(from, past, nr_left++), rest, from->kind->row_bytes);
		else
			count(from, row, false);
	}
	past->nr = nr_left;
	if (!nr_left)
		resize(from, past, 0);
}

/* ---- rows that hold ---- */

void opd_spans_replace(struct opd_spans *spans, const void *when, const void *row, struct opd_spans *past, uint64_t horizon_ns)
{
	const struct opd_span *span = when;
	struct opd_span_list *now = &spans->now;
	size_t first = opd_spans_first(spans, spans->kind->row_bytes, span->start), last = first, nr_rows = 0;
	struct any_row rows[3], gone;

	if (row)
		count(spans, row, true); /* first: it may be of what is cut */
	for (; last < now->nr && row_at(spans, now, last)->start < span->end; last++) {
		part_of(spans, row_at(spans, now, last), span->start, span->end, &gone);
		remember(past, (const void *)&gone, span->from_ns, horizon_ns);
	}
	if (first < last && row_at(spans, now, first)->start < span->start)
		count(spans, part_of(spans, row_at(spans, now, first), 0, span->start, &rows[nr_rows++]), true);
	if (row)
		((struct opd_span *)memcpy(&rows[nr_rows++], row, spans->kind->row_bytes))->to_ns = UINT64_MAX;
	if (first < last && row_at(spans, now, last - 1)->end > span->end)
		count(spans, part_of(spans, row_at(spans, now, last - 1), span->end, UINT64_MAX, &rows[nr_rows++]), true);
	for (size_t i = first; i < last; i++)
		count(spans, row_at(spans, now, i), false);
	spans->account->nr_steps += last - first;
	splice(spans, now, first, last - first, rows, nr_rows);
}

void opd_spans_end(struct opd_spans *spans, bool (*ends)(const void *row, void *arg), void *arg, uint64_t to_ns)
{
	struct opd_span_list *now = &spans->now;
	size_t nr_left = 0;

	for (size_t i = 0; i < now->nr; i++) {
		const struct opd_span *row = row_at(spans, now, i);

		if (!ends(row, arg)) {
			memmove(row_at(spans, now, nr_left++), row, spans->kind->row_bytes);
			continue;
		}
		remember(spans, row, to_ns, 0);
		count(spans, row, false);
	}
	now->nr = nr_left;
}
