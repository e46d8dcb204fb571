/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the threads of torture share: one run for each ring or pair, and its records, which have a number and a CRC each.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include "libop/ring_memory_pair.h"

#define BODY_BYTES_MAX 240u

struct mode {
	const char *name;
	unsigned int flags; /* enum op_mring_flags */
	bool pair;
	bool in_page;
	bool never_lose;           /* the writer tries again until there is room */
	unsigned int reader_flags; /* enum op_ring_flags, added */
	bool process;              /* the writer is one */
	unsigned int nr_swappers;  /* threads beside the reader's; without them the reader does all swaps */
	unsigned int nr_pairs;     /* each with a writer; 0: one */
};

struct record {
	struct perf_event_header header;
	uint64_t number;
	uint32_t crc; /* of what follows, and of the number */
	uint32_t nr_bytes; /* of the body, a multiple of 8 */
	uint64_t body[];
};

/* In memory that a writer in another process shares. */
struct run {
	const struct mode *mode;
	struct op_mring_pair pair; /* or the first of its rings alone */
	uint64_t nr_records;
	uint64_t seed;
	/* the writer's */
	uint64_t dropped; /* as it saw it */
	bool done;        /* it has committed its last record */
	/* the reader's */
	struct op_ring ring;
	struct op_mring_pair_reader reader;
	uint64_t expected; /* number of the next record */
	uint64_t read;
	uint64_t told;       /* by LOST records */
	bool asked;          /* for a swap, whose ring was not read yet */
	unsigned int before; /* the index of the read ring then */
	bool last;           /* the writer was done before that */
	bool finished;
	uint64_t nr_recalled;
	/* of who has the baton */
	bool in_hand; /* a swapping thread's */
	uint64_t nr_by_swapper;
};

/* Once, before any record. */
void make_crc_table(void);

/* The next number, which is any. */
uint64_t random_u64(uint64_t *seed) OP_NONNULL;
void yield_sometimes(uint64_t *seed) OP_NONNULL;

/* Says what is wrong and ends the program. */
_Noreturn void wrong(const struct run *run, const char *what, uint64_t value) OP_NONNULL;

/* The writer: makes the record in its place. */
void fill(struct record *record, uint64_t number, size_t nr_bytes, uint64_t *seed) OP_NONNULL;

/* The reader: reads what is there now, and compares. */
void read_forward(struct run *run, struct op_ring *ring, uint64_t *seed) OP_NONNULL;

/* The reader in overwrite mode: from the newest down, without a gap, to what the snapshot before had, or to what was overwritten. */
void read_snapshot(struct run *run, struct op_ring *ring) OP_NONNULL;

#endif
