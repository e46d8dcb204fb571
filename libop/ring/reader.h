/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reader of one ring: a control page (struct perf_event_mmap_page) and 2^n data pages, written
 * by another party, here the interrupt handler of the kernel. Source: perf_event_open(2), "MMAP
 * layout"; doc/ring.md.
 *
 *   kernel (writer)                     sync thread (reader)
 *   load data_tail                      load data_head
 *     (A) control dependency              (C) acquire
 *   store records                       load records
 *     (B) release                         (D) release
 *   store data_head                     store data_tail
 *
 * A pairs with D: the writer overwrites only records that the reader has finished. B pairs with C:
 * a reader that sees the head sees the records before it.
 *
 * A ring has one reader thread. No call blocks. Lengths of the writer are checked before use.
 *
 *   call                                         reading thread   beside the writer
 *   op_ring_begin, _next, _put_back, _end               x                 x
 *   op_ring_pending, op_ring_overwritten                x                 x
 *   op_ring_map, _map_backward, _unmap                  x
 *
 * With OP_RING_BACKWARD the writer must stand still from op_ring_begin to op_ring_end.
 */
#ifndef OP_RING_H
#define OP_RING_H

#include <linux/perf_event.h>

#include "libop/base/atomic.h"
#include "libop/base/compiler.h"

#define OP_RECORD_BYTES_MAX 65536 /* header.size is 16 bits wide */

enum op_ring_flags {
	/* skip zero words in place of a header, up to the end of their page */
	OP_RING_GAPS = 1,
	/* the writer is not trusted: return copies, which it cannot change after the check */
	OP_RING_COPY = 2,
	/* overwrite mode: the writer writes downwards and never waits; read when it stands still */
	OP_RING_BACKWARD = 4,
};

struct op_ring {
	struct perf_event_mmap_page *k_control;
	uint8_t *k_data;
	size_t data_bytes; /* power of two */
	size_t map_bytes;
	uint64_t head;	   /* as op_ring_begin saw it */
	uint64_t tail;	   /* next byte to read; the writer sees it after op_ring_end */
	/* times that a length was impossible and the reader skipped to the head */
	uint64_t damaged;
	/*
	 * OP_RECORD_BYTES_MAX, aligned to 8: for records that wrap, and for copies. op_ring_end
	 * clears it: it may be the copy of a stack.
	 */
	uint8_t *bounce;
	size_t bounced; /* bytes that it has */
	unsigned int flags; /* enum op_ring_flags */
	/* The rest is for OP_RING_BACKWARD. */
	const uint64_t *floor; /* the lowest byte that the writer has touched; NULL: data_head */
	uint64_t start;	   /* the head that op_ring_begin saw */
	/* the head of the previous snapshot; the records behind it were returned then */
	uint64_t known;
	/* times that data_head had moved by op_ring_end: the writer did not stand still */
	uint64_t late;
};

/*
 * Maps the ring of a perf event so that nothing unread is overwritten. data_bytes is a power of two
 * of at least a page. 0 or -errno; -EINVAL: another size; -EPERM: beyond kernel.perf_event_mlock_kb
 * and without CAP_IPC_LOCK.
 */
int op_ring_map(int fd, size_t data_bytes, struct op_ring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * The same in overwrite mode. The mapping is read-only, so the kernel never waits for the reader.
 * It writes downwards when the event, and all events directed to it, have attr.write_backward.
 */
int op_ring_map_backward(int fd, size_t data_bytes, struct op_ring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes the position of the writer. Returns the bytes that op_ring_next will pass. With
 * OP_RING_BACKWARD: the bytes that are still in the ring and were not returned by an earlier pass.
 * op_ring_next then goes from the newest record to the oldest and ends at the first one that is not
 * whole. The writer must stand still until op_ring_end.
 */
uint64_t op_ring_begin(struct op_ring *ring) OP_NONNULL;

/*
 * The rare cases of op_ring_next: wrapped records, gaps, copies, backward rings, impossible
 * lengths.
 */
const struct perf_event_header *op_ring_next_slow(struct op_ring *ring) OP_NONNULL;

/*
 * Prefetches cache lines some distance ahead of the reader: lines that another CPU has just written
 * are slow to fetch, and the hardware starts too late (doc/ring.md, "Large records and a linked
 * queue"). Fetches as many bytes as the record had that was just passed, up to OP_RING_FETCH_MOST,
 * and nothing beyond the head: those lines belong to the writer.
 */
#define OP_RING_FETCH_AHEAD 2048u
#define OP_RING_FETCH_MOST  512u
#define OP_RING_FETCH_LINE  64u

static inline void op_ring_fetch(const struct op_ring *ring, size_t nr_bytes)
{
	if (ring->head - ring->tail < OP_RING_FETCH_AHEAD + OP_RING_FETCH_MOST)
		return;
	for (size_t i = 0; i < nr_bytes && i < OP_RING_FETCH_MOST; i += OP_RING_FETCH_LINE)
		__builtin_prefetch(ring->k_data + ((ring->tail + OP_RING_FETCH_AHEAD + i) & (ring->data_bytes - 1)));
}

/*
 * The next whole record up to the position that op_ring_begin saw, contiguous and aligned to 8;
 * NULL when there is none. Valid until the next op_ring_next or op_ring_end of the same ring.
 * header.size is at least sizeof(header) and within the written bytes. After an impossible length
 * the reader skips to the head and counts it in `damaged`.
 */
static inline const struct perf_event_header *op_ring_next(struct op_ring *ring)
{
	uint64_t available = ring->head - ring->tail;
	size_t offset = ring->tail & (ring->data_bytes - 1);
	const struct perf_event_header *record = (const void *)(ring->k_data + offset);
	size_t nr_bytes;

	if (op_unlikely(available < sizeof(*record) || offset % 8 || ring->flags & (OP_RING_COPY | OP_RING_BACKWARD)))
		return op_ring_next_slow(ring);
	/*
	 * No order: C in op_ring_begin has it. One load, so that the checked length is the used
	 * one.
	 */
	nr_bytes = op_load_relaxed(&record->size);
	if (op_unlikely(nr_bytes < sizeof(*record) || nr_bytes % 8 || nr_bytes > available || nr_bytes > ring->data_bytes - offset))
		return op_ring_next_slow(ring);
	ring->tail += nr_bytes;
	op_ring_fetch(ring, nr_bytes);
	return record;
}

/* Undoes the last op_ring_next: the next call returns the same record again. */
void op_ring_put_back(struct op_ring *ring, const struct perf_event_header *record) OP_NONNULL;

/*
 * Returns the space that op_ring_next has passed to the writer. With OP_RING_BACKWARD it ends the
 * snapshot: the next one goes back to where this one began.
 */
void op_ring_end(struct op_ring *ring) OP_NONNULL;

/* Written bytes that op_ring_next has not passed. A hint. */
uint64_t op_ring_pending(const struct op_ring *ring) OP_NONNULL;

/*
 * With OP_RING_BACKWARD, between the NULL of op_ring_next and op_ring_end: the bytes of the records
 * between the oldest one of this snapshot and the newest one of the previous snapshot of this ring.
 * These records were overwritten. They are the oldest ones, always whole, with the gaps between
 * them. 0: the two snapshots join.
 */
static inline uint64_t op_ring_overwritten(const struct op_ring *ring)
{
	return ring->known - ring->tail;
}

/* Unmaps; allowed on a zeroed ring. */
void op_ring_unmap(struct op_ring *ring);

#endif
