/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The reader of one ring: a control page (struct perf_event_mmap_page) and 2^n data pages that another party writes,
 * here the kernel's interrupt handler. Source: perf_event_open(2), "MMAP layout"; doc/ring.md.
 *
 *   kernel (writer)                     sync thread (reader)
 *   load data_tail                      load data_head
 *     (A) control dependency              (C) acquire
 *   store records                       load records
 *     (B) release                         (D) release
 *   store data_head                     store data_tail
 *
 * A pairs with D: the writer overwrites only what the reader has finished with. B pairs with C: the reader that sees the head
 * sees the records before it.
 *
 * A ring has one reader thread. No call here blocks. Lengths that the writer gives are checked before they are used.
 */
#ifndef OP_RING_H
#define OP_RING_H

#include <linux/perf_event.h>

#include "libop/base/atomic.h"
#include "libop/base/compiler.h"

#define OP_RECORD_BYTES_MAX 65536 /* header.size is 16 bits wide */

enum op_ring_flags {
	OP_RING_GAPS = 1,     /* zero words where a header belongs are skipped, up to the end of their page */
	OP_RING_COPY = 2,     /* the writer is not trusted: records are given as copies that it cannot change behind the check */
	OP_RING_BACKWARD = 4, /* overwrite mode: the writer goes down and never waits, the reader reads when it has stopped */
};

struct op_ring {
	struct perf_event_mmap_page *k_control;
	uint8_t *k_data;
	size_t data_bytes; /* power of two */
	size_t map_bytes;
	uint64_t head;	   /* what op_ring_begin saw */
	uint64_t tail;	   /* next byte to read; the writer knows it after op_ring_end */
	uint64_t damaged;  /* times that a length made no sense and the rest of what was there was passed over */
	uint8_t *bounce;   /* OP_RECORD_BYTES_MAX, aligned to 8: a record that wraps is put together here, and a copy lies here */
	unsigned int flags; /* enum op_ring_flags; of a ring of the kernel: 0 from op_ring_map, BACKWARD from op_ring_map_backward */
	const uint64_t *floor; /* OP_RING_BACKWARD: the lowest byte that the writer has touched; NULL: data_head */
	uint64_t start;	   /* OP_RING_BACKWARD: the head that op_ring_begin saw */
	uint64_t known;	   /* OP_RING_BACKWARD: the head of the snapshot before; what lies behind it has been given */
	uint64_t late;	   /* OP_RING_BACKWARD: times that data_head had moved by op_ring_end: the writer did not stand still */
};

/*
 * Maps the ring of a perf event for reading with feedback: nothing unread is overwritten. `data_bytes` is a power of two of
 * at least a page. 0 or -errno (-EINVAL: not such a size; -EPERM: beyond kernel.perf_event_mlock_kb and no CAP_IPC_LOCK).
 */
int op_ring_map(int fd, size_t data_bytes, struct op_ring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * The same in overwrite mode: mapped for reading only, so the kernel waits for nobody, and written downwards when the event and all
 * that are directed to it have attr.write_backward.
 */
int op_ring_map_backward(int fd, size_t data_bytes, struct op_ring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * Takes notice of what has been written by now. Bytes that op_ring_next will give.
 * With OP_RING_BACKWARD: of what is still there and was not given between an earlier op_ring_begin and op_ring_end.
 * op_ring_next then goes from the newest record to the oldest and ends at the first one that is not whole. The writer has to
 * stand still until op_ring_end.
 */
uint64_t op_ring_begin(struct op_ring *ring) OP_NONNULL;

/* What the inline function below leaves to it: records that wrap, gaps, copies, backward rings, and lengths that make no sense. */
const struct perf_event_header *op_ring_next_slow(struct op_ring *ring) OP_NONNULL;

/*
 * Fetches the lines that the reader comes to next but some: those that another CPU has just written are far away, and the hardware begins
 * to fetch them too late (doc/ring.md, "Large records and a linked queue"). Never beyond the head: those lines are the writer's.
 * As many as the record had that was just passed, up to OP_RING_FETCH_MOST.
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
 * The next whole record up to the position that op_ring_begin saw, contiguous and aligned to 8; NULL when there is none. Valid
 * until the next op_ring_next or op_ring_end of the same ring. header.size is at least sizeof(header) and lies within what was
 * written. A ring whose lengths make no sense is passed over to its head, and `damaged` counts it.
 */
static inline const struct perf_event_header *op_ring_next(struct op_ring *ring)
{
	uint64_t available = ring->head - ring->tail;
	size_t offset = ring->tail & (ring->data_bytes - 1);
	const struct perf_event_header *record = (const void *)(ring->k_data + offset);
	size_t nr_bytes;

	if (op_unlikely(available < sizeof(*record) || offset % 8 || ring->flags & (OP_RING_COPY | OP_RING_BACKWARD)))
		return op_ring_next_slow(ring);
	/* No order: C in op_ring_begin has it. One load, so that the length that is checked is the one that is used. */
	nr_bytes = op_load_relaxed(&record->size);
	if (op_unlikely(nr_bytes < sizeof(*record) || nr_bytes % 8 || nr_bytes > available || nr_bytes > ring->data_bytes - offset))
		return op_ring_next_slow(ring);
	ring->tail += nr_bytes;
	op_ring_fetch(ring, nr_bytes);
	return record;
}

/* Takes back the last op_ring_next: it will give the same record again. */
void op_ring_put_back(struct op_ring *ring, const struct perf_event_header *record) OP_NONNULL;

/*
 * Gives back to the writer what op_ring_next has passed. With OP_RING_BACKWARD: the next op_ring_begin begins where this one
 * did.
 */
void op_ring_end(struct op_ring *ring) OP_NONNULL;

/* True when something has been written that op_ring_next has not given yet. */
bool op_ring_pending(const struct op_ring *ring) OP_NONNULL;

/*
 * With OP_RING_BACKWARD, after op_ring_next has given NULL and before op_ring_end: the bytes of the records between the oldest that
 * was given now and the newest that the snapshot before had in this ring. They are overwritten: always the oldest, always whole
 * records (with the gaps between them), and 0 when the two snapshots join.
 */
static inline uint64_t op_ring_overwritten(const struct op_ring *ring)
{
	return ring->known - ring->tail;
}

/* Unmaps; allowed on a zeroed ring. */
void op_ring_unmap(struct op_ring *ring);

#endif
