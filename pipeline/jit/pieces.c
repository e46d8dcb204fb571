/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/pieces.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"

#define CHUNK_ROWS 64u
#define PAST_ROWS  64u              /* of a chunk */
#define SPARSE     (CHUNK_ROWS / 2) /* two neighbours with so few rows become one */
#define HEAP_BYTES 16u              /* that the allocator needs for each block */
/* an addition has room for the new piece, and for the rest of a piece that it cuts in two */
#define MORE_ROWS 2u
/* a program may write the record of a function a little after the function runs */
#define LATE_RECORD_NS ((uint64_t)100 * OP_NS_PER_MS)

struct opd_jit_chunk {
	struct opd_jit_chunk *next; /* in the list of covered chunks */
	struct opd_spans spans;
};

#define CHUNK_BYTES (sizeof(struct opd_jit_chunk) + 3 * HEAP_BYTES)

static void count(const void *row, bool is_more, void *functions)
{
	(is_more ? opd_jit_functions_hold : opd_jit_functions_let_go)(functions, ((const struct opd_jit_piece *)row)->function);
}

static const struct opd_span_kind kind = { .row_bytes = sizeof(struct opd_jit_piece), .past_max = PAST_ROWS, .count = count };

uint64_t opd_jit_pieces_bytes(const struct opd_jit_pieces *pieces)
{
	return pieces->nr_chunks * CHUNK_BYTES + pieces->account.nr_rows * sizeof(struct opd_jit_piece);
}

uint64_t opd_jit_pieces_growth(void)
{
	/* one chunk is split */
	return 2 * (CHUNK_BYTES + (CHUNK_ROWS + PAST_ROWS) * sizeof(struct opd_jit_piece));
}

static const struct opd_jit_piece *piece_at(const struct opd_span_list *list, size_t index)
{
	return (const struct opd_jit_piece *)opd_span_at(list, sizeof(struct opd_jit_piece), index);
}

/* Index of the first piece that ends after `address`. */
static size_t first_ending_after(const struct opd_jit_chunk *chunk, uint64_t address)
{
	return opd_spans_first(&chunk->spans, sizeof(struct opd_jit_piece), address);
}

/* ---- ranges ---- */

/* The index of the range that an address lies in. */
static size_t range_of(const struct opd_jit_pieces *pieces, uint64_t address)
{
	return op_nr_leading(pieces->ranges, pieces->nr_ranges, range, range->start <= address) - 1;
}

static struct opd_jit_chunk *new_chunk(struct opd_jit_pieces *pieces, size_t index, uint64_t start)
{
	struct opd_jit_chunk *chunk;

	if (!op_grow(&pieces->ranges, &pieces->capacity, pieces->nr_ranges + 1))
		return NULL;
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->spans = (struct opd_spans){ .kind = &kind, .account = &pieces->account };
	pieces->nr_chunks++;
	memmove(pieces->ranges + index + 1, pieces->ranges + index, (pieces->nr_ranges - index) * sizeof(*pieces->ranges));
	pieces->ranges[index] = (struct opd_jit_range){ .start = start, .chunk = chunk };
	pieces->nr_ranges++;
	pieces->account.nr_steps += CHUNK_ROWS;
	return chunk;
}

static void remove_ranges(struct opd_jit_pieces *pieces, size_t first, size_t nr)
{
	if (!nr)
		return;
	pieces->nr_ranges -= nr;
	memmove(pieces->ranges + first, pieces->ranges + first + nr, (pieces->nr_ranges - first) * sizeof(*pieces->ranges));
}

static void free_chunk(struct opd_jit_pieces *pieces, struct opd_jit_chunk *chunk)
{
	opd_spans_free(&chunk->spans);
	pieces->nr_chunks--;
	free(chunk);
}

/* The upper half of a full chunk becomes a chunk of its own. 0 or -ENOMEM. */
static int split(struct opd_jit_pieces *pieces, size_t index, uint64_t horizon_ns)
{
	struct opd_jit_chunk *lower = pieces->ranges[index].chunk, *upper;
	size_t nr_lower = lower->spans.now.nr / 2;
	uint64_t start = piece_at(&lower->spans.now, nr_lower)->start;

	upper = new_chunk(pieces, index + 1, start);
	if (!upper)
		return -ENOMEM;
	if (opd_spans_move(&lower->spans, nr_lower, &upper->spans) < 0) {
		remove_ranges(pieces, index + 1, 1);
		free_chunk(pieces, upper);
		return -ENOMEM;
	}
	opd_spans_move_past(&lower->spans, &upper->spans, start, UINT64_MAX, horizon_ns);
	return 0;
}

/* ---- adding ---- */

/*
 * Adds a piece that begins in one range and ends in another one. The ranges between are covered:
 * their chunks are freed later, and their past is unknown.
 */
static void add_to_ranges(struct opd_jit_pieces *pieces, const struct opd_jit_piece *piece, size_t first, size_t last,
			  uint64_t horizon_ns)
{
	struct opd_jit_range *ranges = pieces->ranges;
	struct opd_spans *spans = &ranges[first].chunk->spans, *end = &ranges[last].chunk->spans;

	opd_spans_replace(spans, piece, piece, spans, horizon_ns);
	opd_spans_replace(end, piece, NULL, spans, horizon_ns);
	opd_spans_move_past(end, spans, 0, piece->end, horizon_ns);
	if (last + 1 < pieces->nr_ranges && ranges[last + 1].start == piece->end)
		last++; /* nothing is left of the last range */
	else
		ranges[last].start = piece->end;
	for (size_t i = first + 1; i < last; i++) {
		if (ranges[i].chunk->spans.now.nr || ranges[i].chunk->spans.past.nr)
			spans->unknown_until_ns = op_max_u64(spans->unknown_until_ns, piece->from_ns);
		ranges[i].chunk->next = pieces->covered;
		pieces->covered = ranges[i].chunk;
	}
	pieces->account.nr_steps += last - first;
	remove_ranges(pieces, first + 1, last - first - 1);
}

static void join_if_sparse(struct opd_jit_pieces *pieces, size_t index)
{
	struct opd_jit_chunk *lower = pieces->ranges[index].chunk, *upper = pieces->ranges[index + 1].chunk;

	if (lower->spans.past.nr || upper->spans.past.nr || lower->spans.now.nr + upper->spans.now.nr > SPARSE ||
	    opd_spans_move(&upper->spans, 0, &lower->spans) < 0)
		return;
	lower->spans.unknown_until_ns = op_max_u64(lower->spans.unknown_until_ns, upper->spans.unknown_until_ns);
	pieces->account.nr_steps += CHUNK_ROWS;
	free_chunk(pieces, upper);
	remove_ranges(pieces, index + 1, 1);
}

void opd_jit_pieces_sweep(struct opd_jit_pieces *pieces, struct opd_jit_functions *functions, uint64_t horizon_ns)
{
	size_t index = pieces->next_swept < pieces->nr_ranges ? pieces->next_swept : 0;
	struct opd_jit_chunk *covered = pieces->covered;

	pieces->account.arg = functions;
	pieces->account.nr_steps++;
	if (covered) {
		pieces->covered = covered->next;
		free_chunk(pieces, covered);
	}
	if (!pieces->nr_ranges)
		return;
	opd_spans_forget(&pieces->ranges[index].chunk->spans, horizon_ns);
	if (index + 1 < pieces->nr_ranges)
		join_if_sparse(pieces, index);
	pieces->next_swept = index + 1;
}

/* Finds the range for a piece, with room for it. 0 or -ENOMEM. */
static int find_room(struct opd_jit_pieces *pieces, const struct opd_jit_piece *piece, uint64_t horizon_ns, size_t *ret_index)
{
	size_t index;

	if (!pieces->nr_ranges && !new_chunk(pieces, 0, 0))
		return -ENOMEM;
	index = range_of(pieces, piece->start);
	if (pieces->ranges[index].chunk->spans.now.nr + MORE_ROWS > CHUNK_ROWS && split(pieces, index, horizon_ns) < 0)
		return -ENOMEM;
	index = range_of(pieces, piece->start);
	if (opd_spans_reserve(&pieces->ranges[index].chunk->spans, piece) < 0)
		return -ENOMEM;
	*ret_index = index;
	return 0;
}

int opd_jit_pieces_add(struct opd_jit_pieces *pieces, struct opd_jit_functions *functions, const struct opd_jit_piece *piece,
		       uint64_t horizon_ns)
{
	struct opd_spans *spans;
	size_t first, last;
	int err;

	opd_jit_pieces_sweep(pieces, functions, horizon_ns);
	err = find_room(pieces, piece, horizon_ns, &first);
	if (err)
		return err;
	last = range_of(pieces, piece->end - 1);
	spans = &pieces->ranges[first].chunk->spans;
	if (first == last)
		opd_spans_replace(spans, piece, piece, spans, horizon_ns);
	else
		add_to_ranges(pieces, piece, first, last, horizon_ns);
	return 0;
}

const struct opd_jit_piece *opd_jit_pieces_find(const struct opd_jit_pieces *pieces, uint64_t address, uint64_t time_ns)
{
	const struct opd_jit_chunk *chunk = pieces->nr_ranges ? pieces->ranges[range_of(pieces, address)].chunk : NULL;

	return chunk ? opd_spans_find(&chunk->spans, sizeof(struct opd_jit_piece), address, time_ns) : NULL;
}

/* ---- what was there in a span of time ---- */

/* Times of the function and of others in a part of the addresses. */
struct stays {
	const struct opd_jit_functions *functions;
	const struct opd_jit_piece *when;
	uint64_t from_ns, to_ns; /* of the function; from_ns UINT64_MAX: it was never there */
	uint64_t others_from_ns; /* when the first other one came */
	bool has_other, is_unknown;
};

static bool is_same(const struct opd_jit_functions *functions, uint32_t a, uint32_t b)
{
	return a == b || !strcmp(functions->rows[a].name, functions->rows[b].name);
}

static void note_stay(struct stays *stays, const struct opd_jit_piece *row)
{
	const struct opd_jit_piece *when = stays->when;

	if (row->end <= when->start || row->start >= when->end)
		return;
	if (is_same(stays->functions, row->function, when->function)) {
		stays->from_ns = op_min_u64(stays->from_ns, row->from_ns);
		stays->to_ns = op_max_u64(stays->to_ns, row->to_ns);
		return;
	}
	stays->others_from_ns = op_min_u64(stays->others_from_ns, row->from_ns);
	stays->has_other |= row->from_ns <= when->to_ns && row->to_ns > when->from_ns;
}

static void note_stays(struct stays *stays, const struct opd_jit_chunk *chunk)
{
	const struct opd_span_list *now = &chunk->spans.now, *past = &chunk->spans.past;

	stays->is_unknown |= chunk->spans.unknown_until_ns > stays->when->from_ns;
	for (size_t i = first_ending_after(chunk, stays->when->start); i < now->nr; i++) {
		if (piece_at(now, i)->start >= stays->when->end)
			break;
		note_stay(stays, piece_at(now, i));
	}
	for (size_t i = 0; i < past->nr; i++)
		note_stay(stays, piece_at(past, i));
}

bool opd_jit_pieces_held(const struct opd_jit_pieces *pieces, const struct opd_jit_functions *functions,
			 const struct opd_jit_piece *when)
{
	struct stays stays = { .functions = functions, .when = when, .from_ns = UINT64_MAX, .others_from_ns = UINT64_MAX };

	if (!pieces->nr_ranges)
		return false;
	for (size_t i = range_of(pieces, when->start); i < pieces->nr_ranges && pieces->ranges[i].start < when->end; i++)
		note_stays(&stays, pieces->ranges[i].chunk);
	if (stays.from_ns == UINT64_MAX || stays.has_other || stays.is_unknown || when->to_ns >= stays.to_ns)
		return false;
	if (functions->rows[when->function].is_exact)
		return when->from_ns + LATE_RECORD_NS >= stays.from_ns;
	return when->from_ns >= stays.from_ns || stays.from_ns < stays.others_from_ns;
}

bool opd_jit_pieces_overlap(const struct opd_jit_pieces *pieces, uint64_t start, uint64_t end)
{
	if (!pieces->nr_ranges)
		return false;
	for (size_t i = range_of(pieces, start); i < pieces->nr_ranges && pieces->ranges[i].start < end; i++) {
		const struct opd_jit_chunk *chunk = pieces->ranges[i].chunk;
		size_t row = first_ending_after(chunk, start);

		if (row < chunk->spans.now.nr && piece_at(&chunk->spans.now, row)->start < end)
			return true;
	}
	return false;
}

void opd_jit_pieces_visit(const struct opd_jit_pieces *pieces, void (*visit)(const struct opd_jit_piece *piece, void *arg),
			  void *arg)
{
	for (size_t i = 0; i < pieces->nr_ranges; i++) {
		const struct opd_span_list *now = &pieces->ranges[i].chunk->spans.now;

		for (size_t row = 0; row < now->nr; row++)
			visit(piece_at(now, row), arg);
	}
}

void opd_jit_pieces_free(struct opd_jit_pieces *pieces)
{
	while (pieces->covered) {
		struct opd_jit_chunk *chunk = pieces->covered;

		pieces->covered = chunk->next;
		free_chunk(pieces, chunk);
	}
	for (size_t i = 0; i < pieces->nr_ranges; i++)
		free_chunk(pieces, pieces->ranges[i].chunk);
	free(pieces->ranges);
	*pieces = (struct opd_jit_pieces){ 0 };
}
