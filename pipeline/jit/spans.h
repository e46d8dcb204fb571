/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What was at an address at a time. A row holds at a range of addresses from one time to another.
 * A row that is added later cuts those that it overlaps. The cut parts are kept as the past until
 * no sample can lie in them. When there is no room for the past, it becomes unknown: a sample from
 * then finds nothing, rather than what came later.
 *
 * One map has few thousand rows, since an addition moves all rows above it. pieces.h joins maps.
 *
 * Sync thread only.
 */
#ifndef OPD_SPANS_H
#define OPD_SPANS_H

#include "libop/base/compiler.h"

/*
 * What each row begins with; the rest is the client's. It holds at [start, end) from from_ns to
 * to_ns, which is UINT64_MAX while it does. The client names the offset of `start` in what is
 * there: a later row may have cut its beginning.
 */
#define OPD_SPAN_FIELDS(offset) uint64_t start, end, from_ns, to_ns, offset

struct opd_span {
	OPD_SPAN_FIELDS(offset);
} __attribute__((may_alias));

#define OPD_SPAN_ROW_MAX 72 /* bytes of a row */

/* What the rows of a client are. */
struct opd_span_kind {
	size_t row_bytes;
	size_t past_max; /* rows of the past of a map */
	size_t rows_max; /* with room in all maps of an account; 0: no limit */
	/* there is a row more, or less; may be NULL */
	void (*count)(const void *row, bool is_more, void *arg);
};

/* What several maps share. All zero at first. */
struct opd_span_account {
	uint64_t nr_rows;    /* with room in all maps */
	uint64_t nr_dropped; /* rows that were dropped for want of room */
	uint64_t nr_steps;   /* work that was done: rows moved, cut and dropped */
	void *arg;           /* of `count` */
};

struct opd_span_list {
	char *rows;
	size_t nr, capacity;
};

/* Empty with a kind and an account, and zero otherwise. */
struct opd_spans {
	const struct opd_span_kind *kind;
	struct opd_span_account *account;
	struct opd_span_list now;  /* sorted by start, without overlap */
	struct opd_span_list past; /* about in the order in which they ended */
	uint64_t unknown_until_ns; /* the past is not known before this time */
};

/* Makes room for a row at `when`. 0, -ENOMEM, or -ENOSPC: too many rows of the account. */
int opd_spans_reserve(struct opd_spans *spans, const void *when) OP_NONNULL OP_MUST_CHECK;

/* Gives back the room that no row has. */
void opd_spans_fit(struct opd_spans *spans) OP_NONNULL;

/* Copies all rows to an empty map. They are not counted. 0, -ENOMEM or -ENOSPC. */
int opd_spans_copy(const struct opd_spans *from, struct opd_spans *to) OP_NONNULL OP_MUST_CHECK;

/* Moves the rows that hold, from an index on, behind those of another map. Errors as above. */
int opd_spans_move(struct opd_spans *from, size_t index, struct opd_spans *to) OP_NONNULL OP_MUST_CHECK;

/*
 * Puts a row in the place of what holds at `when`, and sets its to_ns; NULL: nothing. There must be
 * room for it. The cut parts become the past of `past`, unless they ended before horizon_ns.
 */
void opd_spans_replace(struct opd_spans *spans, const void *when, const void *row, struct opd_spans *past,
		       uint64_t horizon_ns) OP_NONNULL_ARGS(1, 2, 4);

/* Ends the rows for which `ends` is true at to_ns; 0: they are dropped. Asks once for each row. */
void opd_spans_end(struct opd_spans *spans, bool (*ends)(const void *row, void *arg), void *arg, uint64_t to_ns)
	OP_NONNULL_ARGS(1, 2);

/* Moves the past of the addresses [start, end) to another map. */
void opd_spans_move_past(struct opd_spans *from, struct opd_spans *to, uint64_t start, uint64_t end,
			 uint64_t horizon_ns) OP_NONNULL;

/* Forgets what ended before horizon_ns. */
void opd_spans_forget(struct opd_spans *spans, uint64_t horizon_ns) OP_NONNULL;

/* Drops the first nr rows of the past, and counts them. */
void opd_spans_drop_past(struct opd_spans *spans, size_t nr) OP_NONNULL;

/* Lets all rows go. The map is empty, and has its kind and its account. */
void opd_spans_free(struct opd_spans *spans) OP_NONNULL;

/* ---- finding: inline, since row_bytes is a constant there ---- */

static inline const struct opd_span *opd_span_at(const struct opd_span_list *list, size_t row_bytes, size_t index)
{
	return (const void *)(list->rows + index * row_bytes);
}

/* Index of the first row that holds and ends after an address. */
static inline size_t opd_spans_first(const struct opd_spans *spans, size_t row_bytes, uint64_t address)
{
	size_t low = 0, high = spans->now.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (opd_span_at(&spans->now, row_bytes, middle)->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The row that held at an address at a time. When the first one there is younger, that one: another
 * thread may run in it just before its record gets its time. NULL: none. Valid until the map
 * changes.
 */
static inline const void *opd_spans_find(const struct opd_spans *spans, size_t row_bytes, uint64_t address, uint64_t time_ns)
{
	size_t index = opd_spans_first(spans, row_bytes, address);
	const struct opd_span *found = NULL;

	if (index < spans->now.nr && opd_span_at(&spans->now, row_bytes, index)->start <= address)
		found = opd_span_at(&spans->now, row_bytes, index);
	if (found && found->from_ns <= time_ns)
		return found;
	for (size_t i = spans->past.nr; i > 0; i--) {
		const struct opd_span *row = opd_span_at(&spans->past, row_bytes, i - 1);

		if (row->start <= address && address < row->end && row->from_ns <= time_ns && time_ns < row->to_ns)
			return row;
	}
	return time_ns < spans->unknown_until_ns ? NULL : found;
}

#endif
