/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The AUX area of a memory ring: a second, larger byte ring beside the data ring (perf_event_open(2), "aux_offset"). Bytes are
 * written in transactions, and a PERF_RECORD_AUX in the data ring says which bytes belong to whom. Positions run freely; a
 * position's place is its value modulo the size.
 *
 * The area is mapped on its own: it and its data ring are freed in any order.
 *
 *   struct op_aux *         the area: op_aux_copy_out and op_aux_give_back by the reading thread, the rest by any thread
 *   struct op_aux_writer *  the owning thread, the one that has the struct op_mring_writer
 */
#ifndef OP_RING_AUX_H
#define OP_RING_AUX_H

#include "libop/ring/memory.h"

struct op_aux {
	struct perf_event_mmap_page *control;
	struct op_mring_shared *shared;
	uint8_t *bytes;
	size_t aux_bytes;
	size_t page_bytes;
	bool overwrite; /* bytes that were not given back are overwritten; with a data ring of OP_MRING_OVERWRITE */
};

struct op_aux_writer {
	const struct op_aux *aux;
	uint64_t head;	/* as published */
	uint64_t tail;	/* as last seen and believed */
	bool truncated; /* bytes were left out since the last record */
	uint64_t bad_tails;
};

/* One transaction. */
struct op_aux_handle {
	struct op_aux_writer *writer;
	uint64_t from; /* position of the first byte */
	size_t room;   /* bytes that may still be written */
	size_t nr_bytes; /* bytes written */
};

/* PERF_RECORD_AUX without sample_id. */
struct op_aux_record {
	struct perf_event_header header;
	uint64_t aux_offset;
	uint64_t aux_size;
	uint64_t flags; /* PERF_AUX_FLAG_TRUNCATED, PERF_AUX_FLAG_OVERWRITE */
};

static_assert(sizeof(struct op_aux_record) == 32, "PERF_RECORD_AUX");

/* Maps the area of a ring that was made or attached. 0; -ENOENT: the ring has none; -errno. */
int op_aux_map(const struct op_mring *ring, struct op_aux *ret_aux) OP_NONNULL OP_MUST_CHECK;

/* Allowed on a zeroed area. */
void op_aux_unmap(struct op_aux *aux);

/*
 * The writer of the data ring becomes the writer of the area, which has to outlive it, and goes on where the one before stopped: bytes
 * that no record in the data ring names were taken back when that was opened, and the next record says TRUNCATED for what was left out or had
 * been begun.
 * 0; -EBUSY: there is one, or one has died and nobody said so (op_mring_writer_died, which is for both). For a child of fork(2) what
 * op_mring_writer_open says holds.
 */
int op_aux_writer_open(const struct op_aux *aux, struct op_aux_writer *ret_writer) OP_NONNULL OP_MUST_CHECK;

/* Not in a transaction, and before the writer of the data ring is closed. */
void op_aux_writer_close(struct op_aux_writer *writer) OP_NONNULL;

/*
 * Begins a transaction. 0; -ENOSPC: no room for a byte; -EBUSY: one is open, or the reader copies out. What the caller had to
 * write is lost by either, and the next record (that of the open transaction, if there is one) says TRUNCATED.
 */
int op_aux_begin(struct op_aux_writer *writer, struct op_aux_handle *ret_handle) OP_NONNULL OP_MUST_CHECK;

/* The same for a caller that keeps its bytes and tries again: as yet nothing is lost, and no record says so. */
int op_aux_try_begin(struct op_aux_writer *writer, struct op_aux_handle *ret_handle) OP_NONNULL OP_MUST_CHECK;

/* Appends bytes; what exceeds the room is left out, and the record will say TRUNCATED. Returns how many were taken. */
size_t op_aux_write(struct op_aux_handle *handle, const void *bytes, size_t nr_bytes) OP_NONNULL;

/*
 * Ends the transaction: its first `nr_bytes` (at most what was written) are published, and a PERF_RECORD_AUX is written to the
 * data ring. Nothing was written or left out: no record. 0, or the error of op_mring_reserve: the bytes then belong to nobody
 * and are taken back.
 */
int op_aux_end(struct op_aux_handle *handle, struct op_mring_writer *data, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Called with pieces in order, none of which crosses a page, where they lie: a writer that lies may change them meanwhile. Not 0 ends
 * the copying.
 */
typedef int op_aux_piece_fn(const void *bytes, size_t nr_bytes, void *arg);

/*
 * Gives the bytes [from, to) to `piece`. Returns how many there were; the first error of `piece`; -EBUSY: a transaction is
 * open, or a reader died in here and nobody said so (op_mring_reader_died); -ERANGE: the area does not have these bytes (any more).
 */
int64_t op_aux_copy_out(const struct op_aux *aux, uint64_t from, uint64_t to, op_aux_piece_fn *piece, void *arg)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* The bytes before `to` may be overwritten. */
void op_aux_give_back(const struct op_aux *aux, uint64_t to) OP_NONNULL;

#endif
