/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ring pair of one CPU. The kernel writes the write ring, the sync thread reads the read ring,
 * and when the read ring is empty the two are swapped. Two anchor events (software dummy) own the
 * rings. The sampling events are never mapped: PERF_EVENT_IOC_SET_OUTPUT directs their output to an
 * anchor, and a swap directs it to the other one. The kernel waits for an RCU grace period and then
 * exchanges a pointer, so the events always have a ring. See doc/ring.md.
 *
 * In overwrite mode the kernel never waits for the reader: the anchors are mapped read-only and
 * written downwards. A snapshot freezes the write ring, and the reader goes from its newest record
 * to the oldest:
 *
 *   op_ring_pair_snapshot(&pair, &ring);
 *   op_ring_begin(ring);
 *   while ((record = op_ring_next(ring)))
 *           ...newest first, back to the start of the previous snapshot...
 *   nr_bytes = op_ring_overwritten(ring);   0: it joins the previous snapshot; otherwise so many
 *                                           bytes of the oldest records are lost
 *   op_ring_end(ring);
 *
 * When a swap returns, a handler of the kernel may still write into the old ring, and it would
 * overwrite the oldest record, where this reader is going. So a snapshot waits for one more grace
 * period, with an event of its own that is directed last:
 *
 *   kernel, in a handler                       reader's thread
 *   rcu_read_lock                              exchange the ring of each sampling event
 *   (X) load the event's ring                  (Y) grace period of one more SET_OUTPUT
 *   store record, (B) store data_head          (C) load data_head, load records
 *   rcu_read_unlock
 *
 * X pairs with Y: a handler that loaded the old ring has ended when the grace period has ended, and
 * a handler that begins later loads the new ring.
 *
 * A pair belongs to one thread at a time, for all calls. Handing it to another thread needs an
 * order of its own, such as a lock or a join.
 *
 *   call                                             owning thread   beside the kernel's writer
 *   op_ring_pair_attach, _swap, _settle, _snapshot         x                     x
 *   reading the rings (libop/ring/reader.h)                x                     x
 *   op_ring_pair_open, _open_overwrite, _close             x
 */
#ifndef OP_RING_PAIR_H
#define OP_RING_PAIR_H

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/ring/reader.h"

/*
 * Statistics of the swaps of a pair. Each swap freezes a ring, which is then read.
 * Written by the thread that owns the pair.
 */
struct op_swap_counts {
	uint64_t swaps;
	uint64_t wait_ns;		   /* asleep in swaps, summed */
	uint64_t longest_wait_ns;	   /* in one swap */
	uint64_t bytes, records;	   /* read, summed */
	uint64_t last_bytes, last_records; /* read after the last swap */
	uint64_t most_bytes, most_records; /* read after one swap, at most */
	/* late commits that were read, see op_ring_pair_is_late */
	uint64_t late;
};

/* Adds the bytes and records that were read after a swap. */
void op_swap_counts_add_read(struct op_swap_counts *counts, uint64_t nr_bytes, uint64_t nr_records) OP_NONNULL;

/*
 * Adds the counts of another pair, or later counts of the same pair: sums, maxima, and the last
 * values of `other`.
 */
void op_swap_counts_add(struct op_swap_counts *counts, const struct op_swap_counts *other) OP_NONNULL;

struct op_ring_pair {
	int anchor_fds[2];
	struct op_ring rings[2];
	unsigned int write;    /* index of the ring that the kernel writes */
	uint64_t since_ns[2];  /* start of the swap that made this ring the write ring */
	int *event_fds;	    /* the sampling events; the descriptors stay the caller's */
	size_t nr_events, events_capacity;
	struct op_swap_counts counts;
	bool overwrite;
	/* The rest is for overwrite mode. */
	int settler_fd; /* the event that is directed last */
	uint64_t settles;
	uint64_t settle_wait_ns; /* asleep in op_ring_pair_settle, summed */
	/* times that data_head of the frozen ring moved during op_ring_pair_settle */
	uint64_t moved;
};

/*
 * Opens both anchors on a CPU and maps their rings of data_bytes each. poll(2) of the anchor of the
 * write ring wakes up after each watermark_bytes. 0 or -errno, and then nothing is left open.
 */
int op_ring_pair_open(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair) OP_NONNULL OP_MUST_CHECK;

/* The same in overwrite mode, with one descriptor more. */
int op_ring_pair_open_overwrite(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair)
	OP_NONNULL OP_MUST_CHECK;

/*
 * The same with anchors that belong to the calling thread, which needs no privilege. Events of any
 * task on this CPU may be attached: the kernel compares the CPUs. The thread must outlive the pair.
 */
int op_ring_pair_open_own(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair)
	OP_NONNULL OP_MUST_CHECK;

/* One such anchor with its ring, closed by the caller. 0 or -errno. */
int op_ring_open_own(int cpu, size_t data_bytes, size_t watermark_bytes, int *ret_fd, struct op_ring *ret_ring)
	OP_NONNULL OP_MUST_CHECK;

/* Directs the output of an event to the ring of an anchor. 0 or -errno. */
int op_ring_direct(int event_fd, int anchor_fd);

/*
 * Directs the output of a sampling event to the write ring, now and with each swap. The event is
 * not mapped, has the same CPU and clock, and is not yet enabled: without a ring its samples would
 * be lost and not counted. 0 or -errno; -EINVAL: attr.write_backward is not 1 in overwrite mode, or
 * not 0 otherwise, because the kernel writes a ring in one direction only.
 */
int op_ring_pair_attach(struct op_ring_pair *pair, int event_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * Swaps: all attached events now write to the former read ring, and op_ring_pair_read_ring returns
 * the former write ring. Sleeps for a grace period for each event (6 to 14 ms each at HZ=250). 0;
 * -errno: one event could not be directed, but the others were. Nothing is lost, but from then on
 * both rings must be read.
 */
int op_ring_pair_swap(struct op_ring_pair *pair) OP_NONNULL OP_MUST_CHECK;

/*
 * Overwrite mode, after a swap: returns when no handler can write to the read ring any more. Sleeps
 * for one grace period. A grace period covers all CPUs: after swapping several pairs, settle only
 * one of them. 0 or -errno; -EINVAL: not in overwrite mode.
 */
int op_ring_pair_settle(struct op_ring_pair *pair) OP_NONNULL OP_MUST_CHECK;

/*
 * Overwrite mode: swap and settle. The former write ring stands still until the next swap; read it
 * before that, from op_ring_begin to op_ring_end. Consecutive snapshots join: no record is missing
 * and none comes twice, except for the bytes of op_ring_overwritten. 0; -EINVAL: not in overwrite
 * mode; another -errno: the ring may still be written and must not be read, and its records come
 * with later snapshots.
 */
int op_ring_pair_snapshot(struct op_ring_pair *pair, struct op_ring **ret_ring) OP_NONNULL OP_MUST_CHECK;

static inline struct op_ring *op_ring_pair_read_ring(struct op_ring_pair *pair)
{
	return &pair->rings[!pair->write];
}

static inline struct op_ring *op_ring_pair_write_ring(struct op_ring_pair *pair)
{
	return &pair->rings[pair->write];
}

/*
 * True when a sample of this ring is a late commit: its writer had loaded the ring before an
 * earlier swap and committed after it. Such a sample is older than the start of the swap that made
 * the ring the write ring again. No other sample is: the kernel exchanges the pointer a grace
 * period after that start, when every earlier handler has ended.
 */
static inline bool op_ring_pair_is_late(const struct op_ring_pair *pair, const struct op_ring *ring, uint64_t time_ns)
{
	return time_ns < pair->since_ns[ring == &pair->rings[1]];
}

/* Unmaps the rings and closes the anchors, not the sampling events. Allowed after a failed open. */
void op_ring_pair_close(struct op_ring_pair *pair);

#endif
