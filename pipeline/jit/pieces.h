/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which function of JIT code was at an address at which time. A piece is a function, or a part of
 * one, at a range of addresses.
 *
 * The pieces are in chunks of limited size, each with a map of spans (spans.h). One addition moves
 * the rows of two chunks at most, however large the pieces are and however they overlap: whoever
 * writes a hostile file decides about both. Pieces that are covered in great number are freed bit
 * by bit, with later additions.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_PIECES_H
#define OPD_JIT_PIECES_H

#include "libop/base/compiler.h"
#include "pipeline/jit/functions.h"
#include "pipeline/jit/spans.h"

struct opd_jit_piece {
	OPD_SPAN_FIELDS(at); /* at: offset of `start` in the function */
	uint32_t function;   /* its number */
};

struct opd_jit_chunk;

/* A chunk has the pieces from `start` up to the start of the next range. */
struct opd_jit_range {
	uint64_t start;
	struct opd_jit_chunk *chunk;
};

/* All zero: empty. */
struct opd_jit_pieces {
	struct opd_jit_range *ranges; /* sorted; the first one starts at 0 */
	size_t nr_ranges, capacity;
	struct opd_jit_chunk *covered; /* chunks that are freed with the next additions */
	size_t next_swept;             /* range that is looked at with the next addition */
	size_t nr_chunks;              /* covered ones included */
	struct opd_span_account account;
};

/* The memory of the pieces. */
uint64_t opd_jit_pieces_bytes(const struct opd_jit_pieces *pieces) OP_NONNULL;

/* The memory that an addition may take at most. */
uint64_t opd_jit_pieces_growth(void);

/*
 * Adds a piece, and sets its to_ns. Forgets pieces that ended before horizon_ns. The functions are
 * those of all its pieces. 0 or -ENOMEM, and then it is not added.
 */
int opd_jit_pieces_add(struct opd_jit_pieces *pieces, struct opd_jit_functions *functions, const struct opd_jit_piece *piece,
		       uint64_t horizon_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a little room, as each addition does: looks at one range, and forgets what no sample can
 * lie in.
 */
void opd_jit_pieces_sweep(struct opd_jit_pieces *pieces, struct opd_jit_functions *functions, uint64_t horizon_ns) OP_NONNULL;

/*
 * The piece at an address at that time. When the first one there is younger, that one: another
 * thread may run code just before the file gets its time. NULL: none. Valid until the next
 * addition.
 */
const struct opd_jit_piece *opd_jit_pieces_find(const struct opd_jit_pieces *pieces, uint64_t address, uint64_t time_ns) OP_NONNULL;

/*
 * True when code that ran at the addresses [start, end), first at from_ns and last at to_ns, was
 * when->function, or one of that name: no other one was there meanwhile. A function whose time is
 * not exact, because a perf map has none, was there before if no other one was.
 */
bool opd_jit_pieces_held(const struct opd_jit_pieces *pieces, const struct opd_jit_functions *functions,
			 const struct opd_jit_piece *when) OP_NONNULL;

/* True when a piece holds somewhere in [start, end). */
bool opd_jit_pieces_overlap(const struct opd_jit_pieces *pieces, uint64_t start, uint64_t end) OP_NONNULL;

/* Calls `visit` for each piece that holds, by address. */
void opd_jit_pieces_visit(const struct opd_jit_pieces *pieces, void (*visit)(const struct opd_jit_piece *piece, void *arg),
			  void *arg) OP_NONNULL_ARGS(1, 2);

/* Frees the pieces, and lets their functions go. */
void opd_jit_pieces_free(struct opd_jit_pieces *pieces) OP_NONNULL;

#endif
