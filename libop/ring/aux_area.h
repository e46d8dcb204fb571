/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The AUX area of a memory ring: a second, larger byte ring beside the data ring
 * (perf_event_open(2), "aux_offset"). Bytes are written in transactions, and a PERF_RECORD_AUX in
 * the data ring names the bytes of each. Positions never wrap; the byte of a position is at its
 * value modulo the size.
 *
 * The area has a mapping of its own: free it and its data ring in any order.
 *
 * The type of the first parameter tells which thread may make a call, and each line may run beside
 * the other. A transaction and op_aux_copy_out exclude each other (-EBUSY):
 *   struct op_aux *         op_aux_copy_out, op_aux_give_back: the reading thread; else any thread
 *   struct op_aux_writer *  the owning thread, which also has the struct op_mring_writer
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
	bool overwrite; /* OP_MRING_OVERWRITE of the data ring: unread bytes are overwritten */
};

struct op_aux_writer {
	const struct op_aux *aux;
	uint64_t head;	/* as published */
	uint64_t tail;	/* as last seen, and valid */
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

/*
 * Maps the area of a ring that was created or attached. 0; -ENOENT: the ring has none; another
 * -errno.
 */
int op_aux_map(const struct op_mring *ring, struct op_aux *ret_aux) OP_NONNULL OP_MUST_CHECK;

/* Allowed on a zeroed area. */
void op_aux_unmap(struct op_aux *aux);

/*
 * Makes the writer of the data ring the writer of the area, which has to outlive it. It continues
 * where the previous writer stopped. Opening the data ring has taken back bytes that no record
 * names; the next record has TRUNCATED for them and for bytes that were left out. 0; -EBUSY: there
 * is a writer, or one died without op_mring_writer_died, which is for both. After fork(2): see
 * op_mring_writer_open.
 */
int op_aux_writer_open(const struct op_aux *aux, struct op_aux_writer *ret_writer) OP_NONNULL OP_MUST_CHECK;

/* To be called outside of a transaction, and before the writer of the data ring is closed. */
void op_aux_writer_close(struct op_aux_writer *writer) OP_NONNULL;

/*
 * Begins a transaction. 0; -ENOSPC: no room for a byte; -EBUSY: a transaction is open, or the
 * reader copies. After an error the bytes of the caller are lost, and the next record, that of the
 * open transaction if there is one, has TRUNCATED.
 */
int op_aux_begin(struct op_aux_writer *writer, struct op_aux_handle *ret_handle) OP_NONNULL OP_MUST_CHECK;

/* The same for a caller that keeps its bytes and tries again: an error loses nothing. */
int op_aux_try_begin(struct op_aux_writer *writer, struct op_aux_handle *ret_handle) OP_NONNULL OP_MUST_CHECK;

/*
 * Appends bytes. Returns how many; the others do not fit and are left out, and the record has
 * TRUNCATED.
 */
size_t op_aux_write(struct op_aux_handle *handle, const void *bytes, size_t nr_bytes) OP_NONNULL;

/*
 * Ends the transaction: publishes its first nr_bytes, at most the written ones, and writes a
 * PERF_RECORD_AUX to the data ring, unless nothing was written or left out. 0, or the error of
 * op_mring_reserve, and then the bytes are taken back.
 */
int op_aux_end(struct op_aux_handle *handle, struct op_mring_writer *data, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Gets the bytes in order, in pieces that do not cross a page, in place: a writer that is not
 * trusted may change them meanwhile. A result other than 0 ends the copying.
 */
typedef int op_aux_piece_fn(const void *bytes, size_t nr_bytes, void *arg);

/*
 * Passes the bytes [from, to) to `piece`. Returns their number; the first error of `piece`; -EBUSY:
 * a transaction is open, or a reader died in this call without op_mring_reader_died; -ERANGE: the
 * area does not have these bytes, or not any more.
 */
int64_t op_aux_copy_out(const struct op_aux *aux, uint64_t from, uint64_t to, op_aux_piece_fn *piece, void *arg)
	OP_NONNULL_ARGS(1, 4) OP_MUST_CHECK;

/* Returns the space of the bytes before `to`: they may be overwritten. */
void op_aux_give_back(const struct op_aux *aux, uint64_t to) OP_NONNULL;

#endif
