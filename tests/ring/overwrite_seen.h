/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What kernel_overwrite has seen of the page faults of a CPU, in two ways: through the snapshots of
 * the pair, and through a second event whose ring is its own, never overwritten and never swapped.
 * Each fault is one word made of its address, thread and instruction.
 */
#ifndef OVERWRITE_SEEN_H
#define OVERWRITE_SEEN_H

#include "libop/base/compiler.h"

struct words {
	uint64_t *words;
	size_t nr;
	size_t nr_allocated;
};

/* One snapshot: the words [first, first + nr) of `given`, oldest first. */
struct turn {
	size_t first;
	size_t nr;
	uint64_t overwritten_bytes; /* in front of the first */
};

struct seen {
	struct words given;
	struct words second; /* opinion */
	struct turn *turns;
	size_t nr_turns;
	size_t nr_overwritten; /* this and the next are found by seen_agree */
	size_t nr_one_sided;   /* words that only one of the two has */
};

/* 0 or -ENOMEM. */
int words_add(struct words *words, uint64_t word) OP_NONNULL OP_MUST_CHECK;

/* Turns the words from `first` on round. */
void words_reverse(struct words *words, size_t first) OP_NONNULL;

/* 0 or -ENOMEM. */
int seen_add_turn(struct seen *seen, const struct turn *turn) OP_NONNULL OP_MUST_CHECK;

/*
 * True when the turns, one after another, are the whole of the second opinion but for what was
 * overwritten in front of each turn: so many records of `record_bytes` as its bytes say. When
 * another profiler opens an event of the kind, the kernel now and then hands a fault to one of two
 * events only (6.18): a few words that only one has are counted and passed over, but not where two
 * turns join. Else false and *ret_turn: the turn that does not agree, nr_turns when something is
 * missing behind the last.
 */
bool seen_agree(struct seen *seen, size_t record_bytes, size_t *ret_turn) OP_NONNULL;

void seen_free(struct seen *seen) OP_NONNULL;

#endif
