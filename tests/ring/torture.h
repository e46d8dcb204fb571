/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shared by the threads of torture: one run for each ring or pair, and its records, each with a
 * number and a CRC.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include "libop/ring/aux_area.h"
#include "libop/ring/memory_pair.h"

#define BODY_BYTES_MAX 240u
#define RING_BYTES     8192u

struct mode {
	const char *name;
	unsigned int flags; /* enum op_mring_flags */
	bool pair;
	bool in_page;
	bool never_lose;           /* the writer tries again until there is room */
	/* the reader does not believe the writer, although it is a thread of its own process */
	bool copies;
	bool attached;             /* the writer has nothing but the descriptors */
	bool scribbles;            /* and writes lengths over records that it has committed */
	bool process;              /* the writer is one, and is not believed */
	/* threads besides the reader; without them the reader does all swaps */
	unsigned int nr_swappers;
	unsigned int nr_pairs;     /* each with a writer; 0: one */
	/*
	 * the writer asks for room, so that no record is refused; only the reader's wake-ups let it
	 * go on
	 */
	bool waits;
	uint64_t wake_every;       /* the reader sleeps until it is woken; 0: it never sleeps */
	bool wake_records;         /* that many of them, else bytes */
	/* transactions in an area beside the ring, each with a record */
	bool aux;
};

/* Counters of both sides of an AUX area; at the end they are compared. */
struct aux_counts {
	uint64_t records;
	uint64_t truncated; /* of these */
	uint64_t bytes;
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
	struct aux_counts aux_written;
	uint64_t aux_busy; /* times that the reader had the area */
	uint64_t paused;   /* the last of the reader's pauses that it stood still for */
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
	bool awake; /* it was woken, and has not read since */
	uint64_t nr_woken;
	uint64_t nr_bytes; /* of records, read */
	uint64_t nr_lent;
	uint64_t overwritten; /* bytes, as the reader was told */
	struct aux_counts aux_read;
	/* in overwrite mode: AUX records that the snapshots have named, read or not */
	uint64_t aux_known;
	uint64_t aux_copied; /* bytes that were right */
	uint64_t aux_gone;   /* times that they were overwritten */
	/* counts its pauses in overwrite mode, which the writer stands still for */
	uint64_t pause;
	uint64_t resumed;
	/* both */
	struct op_aux aux;
	int done_fd; /* an eventfd: the writer is done */
	/* of who has the baton */
	bool in_hand; /* a swapping thread's */
	uint64_t nr_taken;
	uint64_t nr_by_swapper;
};

struct writers {
	/* or the first of its rings alone; as zeros, where the writer has the reader's mapping */
	struct op_mring_pair attached;
	struct op_mring_writer ring;
	struct op_mring_pair_writer pair;
	struct op_aux_writer aux;
};

/* Once, before any record. */
void make_crc_table(void);

/* The next number, which is any. */
uint64_t random_u64(uint64_t *seed) OP_NONNULL;
void yield_sometimes(uint64_t *seed) OP_NONNULL;

/* Says what is wrong and ends the program. */
_Noreturn void wrong(const struct run *run, const char *what, uint64_t value) OP_NONNULL;

/*
 * A function of the body of a committed record, computed from its number, also for a reader that
 * did not get the record.
 */
size_t body_bytes(const struct run *run, uint64_t number) OP_NONNULL;

/* The writer: makes the record in its place. */
void fill(struct record *record, uint64_t number, size_t nr_bytes, uint64_t *seed) OP_NONNULL;

/*
 * The writer writes all its records. Only in a mode that may lose records, a number may have no
 * record. `arg`: struct run.
 */
void *write_all(void *arg);

/* A record of that size; when there is no room it is counted. As op_mring_reserve. */
int reserve(struct run *run, struct writers *writers, size_t nr_bytes, struct perf_event_header **ret_record) OP_NONNULL;
void commit(const struct mode *mode, struct writers *writers) OP_NONNULL;

/* The writer of an AUX area: writes its numbered transactions. */
void write_transactions(struct run *run, struct writers *writers) OP_NONNULL;

/* The reader: takes the records of one look. Before that it may sleep, swap, or lend the baton. */
void read_some(struct run *run, uint64_t *seed) OP_NONNULL;

/* The same of an AUX area, and of its ring. */
void read_transactions(struct run *run, uint64_t *seed) OP_NONNULL;

/*
 * A swapping thread: true when the baton was there. It gives some batons back unused, and some
 * before the writer has left.
 */
bool swap_one(struct run *run, uint64_t *seed) OP_NONNULL;

/* After the last record: checks that written, read, lost and reported records agree. */
void check_sums(struct run *run) OP_NONNULL;
void check_transactions(struct run *run) OP_NONNULL;

/* The record, when it is one and whole. */
const struct record *check(const struct run *run, const struct perf_event_header *header) OP_NONNULL;

/* A LOST record counts so many numbers, unless the writer tries again. */
void take_lost(struct run *run, const struct perf_event_header *header) OP_NONNULL;

/* The writer: a length where it may be that of a record. */
void scribble(const struct op_mring *ring, uint64_t *seed) OP_NONNULL;

/*
 * The reader of a hostile writer: each record is outside of the ring, has a possible length, and
 * does not change.
 */
void read_scribbled(struct run *run, struct op_ring *ring, uint64_t *seed) OP_NONNULL;

/* The reader: reads what is there now, and compares. */
void read_forward(struct run *run, struct op_ring *ring, uint64_t *seed) OP_NONNULL;

/*
 * The reader in overwrite mode: from the newest down, without a gap, to what the snapshot before
 * had, or to what was overwritten, which is then to the byte the records whose numbers are missing.
 */
void read_snapshot(struct run *run, struct op_ring *ring) OP_NONNULL;

#endif
