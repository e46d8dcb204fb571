/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/jit/pieces.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"

#define CHUNK_ROWS   64u
#define PAST_ROWS    64u              /* of a chunk */
#define SPARSE       (CHUNK_ROWS / 2) /* two neighbours with so few rows become one */
#define HEAP_BYTES   16u              /* that the allocator needs for each block */
#define ROWS_IN_STEP 16u              /* moved at once in about the time of a step */
/* an addition has room for the new piece, and for the rest of a piece that it cuts in two */
#define MORE_ROWS 2u
/* a program may write the record of a function a little after the function runs */
#define LATE_RECORD_NS ((uint64_t)100 * OP_NS_PER_MS)

struct opd_jit_chunk {
	struct opd_jit_chunk *next; /* in the list of covered chunks */
	struct opd_jit_piece *past; /* in the order in which they ended; NULL: none */
	uint32_t nr_past, nr_rows;
	/* earlier pieces are not known from before this time: there was no room */
	uint64_t unknown_until_ns;
	struct opd_jit_piece rows[CHUNK_ROWS]; /* sorted, without overlap */
};

/* What one addition works with. */
struct addition {
	struct opd_jit_pieces *pieces;
	struct opd_jit_functions *functions;
	const struct opd_jit_piece *piece;
	uint64_t horizon_ns;
};

#define CHUNK_BYTES (sizeof(struct opd_jit_chunk) + HEAP_BYTES)
#define PAST_BYTES  (PAST_ROWS * sizeof(struct opd_jit_piece) + HEAP_BYTES)

uint64_t opd_jit_pieces_growth(void)
{
	return 2 * (CHUNK_BYTES + PAST_BYTES); /* one chunk is split */
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
	pieces->nr_bytes += CHUNK_BYTES;
	memmove(pieces->ranges + index + 1, pieces->ranges + index, (pieces->nr_ranges - index) * sizeof(*pieces->ranges));
	pieces->ranges[index] = (struct opd_jit_range){ .start = start, .chunk = chunk };
	pieces->nr_ranges++;
	pieces->nr_steps += CHUNK_ROWS;
	return chunk;
}

static void remove_ranges(struct opd_jit_pieces *pieces, size_t first, size_t nr)
{
	if (!nr)
		return;
	pieces->nr_ranges -= nr;
	memmove(pieces->ranges + first, pieces->ranges + first + nr, (pieces->nr_ranges - first) * sizeof(*pieces->ranges));
}

static void free_past(struct opd_jit_pieces *pieces, struct opd_jit_chunk *chunk)
{
	pieces->nr_bytes -= chunk->past ? PAST_BYTES : 0;
	free(chunk->past);
	chunk->past = NULL;
	chunk->nr_past = 0;
}

static void free_chunk(struct opd_jit_pieces *pieces, struct opd_jit_chunk *chunk)
{
	free_past(pieces, chunk);
	pieces->nr_bytes -= CHUNK_BYTES;
	free(chunk);
}

/* ---- the past ---- */

/* The part of a piece between two addresses. */
static struct opd_jit_piece part_of(const struct opd_jit_piece *whole, uint64_t start, uint64_t end)
{
	struct opd_jit_piece part = *whole;

	part.start = op_max_u64(whole->start, start);
	part.end = op_min_u64(whole->end, end);
	part.at += (uint32_t)(part.start - whole->start);
	return part;
}

/* Forgets what ended before a time. */
static void forget_past(const struct addition *addition, struct opd_jit_chunk *chunk, uint64_t before_ns)
{
	uint32_t nr_left = 0;

	addition->pieces->nr_steps += chunk->nr_past;
	for (uint32_t i = 0; i < chunk->nr_past; i++) {
		if (chunk->past[i].to_ns < before_ns)
			opd_jit_functions_let_go(addition->functions, chunk->past[i].function);
		else
			chunk->past[nr_left++] = chunk->past[i];
	}
	chunk->nr_past = nr_left;
	if (!nr_left)
		free_past(addition->pieces, chunk);
}

/*
 * Without room, what was there first is unknown from now on: it must not get a wrong name. The rows
 * are about in the order in which they ended.
 */
static void forget_first_past(const struct addition *addition, struct opd_jit_chunk *chunk)
{
	uint32_t nr = chunk->nr_past / 2;

	addition->pieces->nr_steps += nr;
	for (uint32_t i = 0; i < nr; i++) {
		chunk->unknown_until_ns = op_max_u64(chunk->unknown_until_ns, chunk->past[i].to_ns);
		opd_jit_functions_let_go(addition->functions, chunk->past[i].function);
	}
	chunk->nr_past -= nr;
	memmove(chunk->past, chunk->past + nr, chunk->nr_past * sizeof(*chunk->past));
}

static bool make_past(struct opd_jit_pieces *pieces, struct opd_jit_chunk *chunk)
{
	if (!chunk->past) {
		chunk->past = malloc(PAST_ROWS * sizeof(*chunk->past));
		pieces->nr_bytes += chunk->past ? PAST_BYTES : 0;
	}
	return chunk->past;
}

/* Keeps a piece that ended at to_ns, when samples may still lie in it. */
static void remember(const struct addition *addition, struct opd_jit_chunk *chunk, const struct opd_jit_piece *gone, uint64_t to_ns)
{
	if (to_ns <= gone->from_ns || to_ns < addition->horizon_ns)
		return;
	if (chunk->nr_past == PAST_ROWS && chunk->past[0].to_ns < addition->horizon_ns)
		forget_past(addition, chunk, addition->horizon_ns);
	if (chunk->nr_past == PAST_ROWS)
		forget_first_past(addition, chunk);
	if (!make_past(addition->pieces, chunk)) {
		chunk->unknown_until_ns = op_max_u64(chunk->unknown_until_ns, to_ns);
		return;
	}
	opd_jit_functions_hold(addition->functions, gone->function);
	chunk->past[chunk->nr_past] = *gone;
	chunk->past[chunk->nr_past++].to_ns = to_ns;
}

/* Moves the past of the addresses [start, end) to another chunk. */
static void move_past(const struct addition *addition, struct opd_jit_chunk *from, struct opd_jit_chunk *to, uint64_t start,
		      uint64_t end)
{
	uint32_t nr_rows = from->nr_past;

	to->unknown_until_ns = op_max_u64(to->unknown_until_ns, from->unknown_until_ns);
	addition->pieces->nr_steps += nr_rows;
	from->nr_past = 0;
	for (uint32_t i = 0; i < nr_rows; i++) {
		const struct opd_jit_piece row = from->past[i], moved = part_of(&row, start, end);
		const struct opd_jit_piece rest = row.start < start ? part_of(&row, 0, start) : part_of(&row, end, UINT64_MAX);

		if (moved.start < moved.end)
			remember(addition, to, &moved, row.to_ns);
		if (rest.start < rest.end)
			from->past[from->nr_past++] = rest;
		else
			opd_jit_functions_let_go(addition->functions, row.function);
	}
	if (!from->nr_past)
		free_past(addition->pieces, from);
}

/* ---- chunks ---- */

/* The upper half of a full chunk becomes a chunk of its own. 0 or -ENOMEM. */
static int split(const struct addition *addition, size_t index)
{
	struct opd_jit_chunk *lower = addition->pieces->ranges[index].chunk, *upper;
	uint32_t nr_lower = lower->nr_rows / 2;
	uint64_t start = lower->rows[nr_lower].start;

	upper = new_chunk(addition->pieces, index + 1, start);
	if (!upper)
		return -ENOMEM;
	upper->nr_rows = lower->nr_rows - nr_lower;
	lower->nr_rows = nr_lower;
	memcpy(upper->rows, lower->rows + nr_lower, upper->nr_rows * sizeof(*upper->rows));
	move_past(addition, lower, upper, start, UINT64_MAX);
	return 0;
}

/* Index of the first row that ends after `address`. */
static uint32_t first_ending_after(const struct opd_jit_chunk *chunk, uint64_t address)
{
	return (uint32_t)op_nr_leading(chunk->rows, chunk->nr_rows, row, row->end <= address);
}

/* Replaces nr_old rows at index by other rows, for which the chunk has room. */
static void splice(struct opd_jit_pieces *pieces, struct opd_jit_chunk *chunk, uint32_t index, uint32_t nr_old,
		   const struct opd_jit_piece *rows, uint32_t nr_new)
{
	uint32_t nr_moved = chunk->nr_rows - index - nr_old;

	pieces->nr_steps += nr_moved / ROWS_IN_STEP;
	memmove(chunk->rows + index + nr_new, chunk->rows + index + nr_old, nr_moved * sizeof(*rows));
	memcpy(chunk->rows + index, rows, nr_new * sizeof(*rows));
	chunk->nr_rows = chunk->nr_rows - nr_old + nr_new;
}

/* Cuts the new piece out of the rows of a chunk. The past goes to the chunk of the new piece. */
static void cut(const struct addition *addition, struct opd_jit_chunk *chunk, struct opd_jit_chunk *past)
{
	const struct opd_jit_piece *piece = addition->piece;
	uint32_t first = first_ending_after(chunk, piece->start), last = first, nr_rests = 0;
	struct opd_jit_piece rests[2];

	for (; last < chunk->nr_rows && chunk->rows[last].start < piece->end; last++) {
		const struct opd_jit_piece *row = &chunk->rows[last], gone = part_of(row, piece->start, piece->end);

		if (row->start < piece->start)
			rests[nr_rests++] = part_of(row, 0, piece->start);
		if (row->end > piece->end)
			rests[nr_rests++] = part_of(row, piece->end, UINT64_MAX);
		remember(addition, past, &gone, piece->from_ns);
	}
	for (uint32_t i = 0; i < nr_rests; i++)
		opd_jit_functions_hold(addition->functions, rests[i].function);
	for (uint32_t i = first; i < last; i++)
		opd_jit_functions_let_go(addition->functions, chunk->rows[i].function);
	addition->pieces->nr_steps += last - first;
	splice(addition->pieces, chunk, first, last - first, rests, nr_rests);
}

/*
 * Cuts the new piece, which begins in one range and ends in another one. The ranges between are
 * covered: their chunks are freed later, and their past is unknown.
 */
static void cut_ranges(const struct addition *addition, size_t first, size_t last)
{
	struct opd_jit_pieces *pieces = addition->pieces;
	struct opd_jit_range *ranges = pieces->ranges;
	struct opd_jit_chunk *chunk = ranges[first].chunk;
	uint64_t end = addition->piece->end;

	cut(addition, chunk, chunk);
	cut(addition, ranges[last].chunk, chunk);
	move_past(addition, ranges[last].chunk, chunk, 0, end);
	if (last + 1 < pieces->nr_ranges && ranges[last + 1].start == end)
		last++; /* nothing is left of the last range */
	else
		ranges[last].start = end;
	for (size_t i = first + 1; i < last; i++) {
		if (ranges[i].chunk->nr_rows || ranges[i].chunk->nr_past)
			chunk->unknown_until_ns = op_max_u64(chunk->unknown_until_ns, addition->piece->from_ns);
		ranges[i].chunk->next = pieces->covered;
		pieces->covered = ranges[i].chunk;
	}
	pieces->nr_steps += last - first;
	remove_ranges(pieces, first + 1, last - first - 1);
}

/* ---- making room, bit by bit ---- */

static void free_covered(const struct addition *addition)
{
	struct opd_jit_chunk *chunk = addition->pieces->covered;

	addition->pieces->covered = chunk->next;
	forget_past(addition, chunk, UINT64_MAX);
	addition->pieces->nr_steps += chunk->nr_rows;
	for (uint32_t i = 0; i < chunk->nr_rows; i++)
		opd_jit_functions_let_go(addition->functions, chunk->rows[i].function);
	free_chunk(addition->pieces, chunk);
}

static void join_if_sparse(struct opd_jit_pieces *pieces, size_t index)
{
	struct opd_jit_chunk *lower = pieces->ranges[index].chunk, *upper = pieces->ranges[index + 1].chunk;

	if (lower->past || upper->past || lower->nr_rows + upper->nr_rows > SPARSE)
		return;
	memcpy(lower->rows + lower->nr_rows, upper->rows, upper->nr_rows * sizeof(*upper->rows));
	lower->nr_rows += upper->nr_rows;
	lower->unknown_until_ns = op_max_u64(lower->unknown_until_ns, upper->unknown_until_ns);
	pieces->nr_steps += CHUNK_ROWS;
	free_chunk(pieces, upper);
	remove_ranges(pieces, index + 1, 1);
}

static void sweep(const struct addition *addition)
{
	struct opd_jit_pieces *pieces = addition->pieces;
	size_t index = pieces->next_swept < pieces->nr_ranges ? pieces->next_swept : 0;

	pieces->nr_steps++;
	if (pieces->covered)
		free_covered(addition);
	if (!pieces->nr_ranges)
		return;
	forget_past(addition, pieces->ranges[index].chunk, addition->horizon_ns);
	if (index + 1 < pieces->nr_ranges)
		join_if_sparse(pieces, index);
	pieces->next_swept = index + 1;
}

void opd_jit_pieces_sweep(struct opd_jit_pieces *pieces, struct opd_jit_functions *functions, uint64_t horizon_ns)
{
	sweep(&(struct addition){ .pieces = pieces, .functions = functions, .horizon_ns = horizon_ns });
}

/* ---- adding and finding ---- */

/* Finds the range for a piece, with room for it. 0 or -ENOMEM. */
static int find_room(const struct addition *addition, size_t *ret_index)
{
	struct opd_jit_pieces *pieces = addition->pieces;
	size_t index;

	if (!pieces->nr_ranges && !new_chunk(pieces, 0, 0))
		return -ENOMEM;
	index = range_of(pieces, addition->piece->start);
	if (pieces->ranges[index].chunk->nr_rows + MORE_ROWS > CHUNK_ROWS && split(addition, index) < 0)
		return -ENOMEM;
	*ret_index = range_of(pieces, addition->piece->start);
	return 0;
}

int opd_jit_pieces_add(struct opd_jit_pieces *pieces, struct opd_jit_functions *functions, const struct opd_jit_piece *piece,
		       uint64_t horizon_ns)
{
	const struct addition addition = { pieces, functions, piece, horizon_ns };
	struct opd_jit_piece row = *piece;
	struct opd_jit_chunk *chunk;
	size_t first, last;
	int err;

	sweep(&addition);
	err = find_room(&addition, &first);
	if (err)
		return err;
	opd_jit_functions_hold(functions, piece->function); /* it may be one that is cut */
	last = range_of(pieces, piece->end - 1);
	chunk = pieces->ranges[first].chunk;
	if (first == last)
		cut(&addition, chunk, chunk);
	else
		cut_ranges(&addition, first, last);
	row.to_ns = UINT64_MAX;
	splice(pieces, chunk, first_ending_after(chunk, piece->start), 0, &row, 1);
	return 0;
}

const struct opd_jit_piece *opd_jit_pieces_find(const struct opd_jit_pieces *pieces, uint64_t address, uint64_t time_ns)
{
	const struct opd_jit_piece *found = NULL;
	const struct opd_jit_chunk *chunk;
	uint32_t index;

	if (!pieces->nr_ranges)
		return NULL;
	chunk = pieces->ranges[range_of(pieces, address)].chunk;
	index = first_ending_after(chunk, address);
	if (index < chunk->nr_rows && chunk->rows[index].start <= address)
		found = &chunk->rows[index];
	if (found && found->from_ns <= time_ns)
		return found;
	for (uint32_t i = chunk->nr_past; i > 0; i--) {
		const struct opd_jit_piece *row = &chunk->past[i - 1];

		if (row->start <= address && address < row->end && row->from_ns <= time_ns && time_ns < row->to_ns)
			return row;
	}
	return time_ns < chunk->unknown_until_ns ? NULL : found;
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
	stays->is_unknown |= chunk->unknown_until_ns > stays->when->from_ns;
	for (uint32_t i = first_ending_after(chunk, stays->when->start); i < chunk->nr_rows; i++) {
		if (chunk->rows[i].start >= stays->when->end)
			break;
		note_stay(stays, &chunk->rows[i]);
	}
	for (uint32_t i = 0; i < chunk->nr_past; i++)
		note_stay(stays, &chunk->past[i]);
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
		uint32_t row = first_ending_after(chunk, start);

		if (row < chunk->nr_rows && chunk->rows[row].start < end)
			return true;
	}
	return false;
}

void opd_jit_pieces_visit(const struct opd_jit_pieces *pieces, void (*visit)(const struct opd_jit_piece *piece, void *arg),
			  void *arg)
{
	for (size_t i = 0; i < pieces->nr_ranges; i++)
		for (uint32_t row = 0; row < pieces->ranges[i].chunk->nr_rows; row++)
			visit(&pieces->ranges[i].chunk->rows[row], arg);
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
