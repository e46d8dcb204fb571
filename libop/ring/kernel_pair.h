/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ring pair of one CPU: the kernel writes the write ring, the sync thread reads the read ring, and when the read ring is
 * empty the two are swapped. Two anchor events (software dummy) own the rings; the sampling events are never mapped, their
 * output is directed to an anchor with PERF_EVENT_IOC_SET_OUTPUT, and a swap directs it to the other one. The kernel waits for an
 * RCU grace period and then exchanges a pointer: there is no moment without a ring. See doc/ring.md.
 *
 * In overwrite mode the kernel never waits for the reader: the anchors are mapped for reading only and written downwards, a
 * snapshot freezes what was the write ring, and the reader goes through it from the newest record to the oldest:
 *
 *   op_ring_pair_snapshot(&pair, &ring);
 *   op_ring_begin(ring);
 *   while ((record = op_ring_next(ring)))
 *           ...newest first, back to where the snapshot before began...
 *   nr_bytes = op_ring_overwritten(ring);   0: it joins the snapshot before; else so many bytes of the oldest records are gone
 *   op_ring_end(ring);
 *
 * The kernel may still write into the old ring when a swap returns, which matters to a reader that begins at the newest record and
 * goes on to the oldest one, the next to be overwritten. So a snapshot waits for one more grace period, with an event of its own
 * that is directed last:
 *
 *   kernel, in a handler                       reader's thread
 *   rcu_read_lock                              exchange the ring of each sampling event
 *   (X) load the event's ring                  (Y) grace period of one more SET_OUTPUT
 *   store record, (B) store data_head          (C) load data_head, load records
 *   rcu_read_unlock
 *
 * X pairs with Y: a handler that loaded the old ring has ended when the grace period has; one that begins later loads the new one.
 *
 * A pair belongs to one thread at a time. It may be handed to another one, for a swap say, where the hand-over itself orders what
 * either of them did (a lock, a join).
 */
#ifndef OP_RING_PAIR_H
#define OP_RING_PAIR_H

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/ring/reader.h"

/*
 * What the swaps of a pair cost and gave. A turn of a pair is a swap and the reading of the ring that it froze. Written by the
 * thread that has the pair.
 */
struct op_swap_counts {
	uint64_t swaps;
	uint64_t wait_ns;		   /* asleep in swaps, summed */
	uint64_t longest_wait_ns;	   /* in one swap */
	uint64_t bytes, records;	   /* read, summed */
	uint64_t last_bytes, last_records; /* in the last turn */
	uint64_t most_bytes, most_records; /* in the turn with the most of them */
	uint64_t late;			   /* late commits that were read, see op_ring_pair_is_late */
};

/* Adds what was read in a turn. */
void op_swap_counts_took(struct op_swap_counts *counts, uint64_t nr_bytes, uint64_t nr_records) OP_NONNULL;

/* Adds the counts of another pair, or of the same one at a later time: sums, the most of both, the last turn of the other. */
void op_swap_counts_add(struct op_swap_counts *counts, const struct op_swap_counts *other) OP_NONNULL;

struct op_ring_pair {
	int anchor_fds[2];
	struct op_ring rings[2];
	unsigned int write;    /* index of the ring that the kernel writes */
	uint64_t since_ns[2];  /* when the swap began that made it the write ring */
	int *event_fds;	    /* the sampling events; the descriptors stay the caller's */
	size_t nr_events, events_capacity;
	struct op_swap_counts counts;
	bool overwrite;
	int settler_fd;	    /* overwrite mode: the event that is directed last */
	uint64_t settles;
	uint64_t settle_wait_ns; /* asleep in settling, summed */
	uint64_t moved;	    /* times that data_head of the frozen ring moved while it settled */
};

/*
 * Opens both anchors on the CPU and maps their rings of data_bytes each. The write ring wakes a poll() of its anchor after
 * every watermark_bytes written. 0 or -errno; on failure nothing is left open.
 */
int op_ring_pair_open(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair) OP_NONNULL OP_MUST_CHECK;

/* The same in overwrite mode. It has one descriptor more. */
int op_ring_pair_open_overwrite(int cpu, size_t data_bytes, size_t watermark_bytes, struct op_ring_pair *ret_pair)
	OP_NONNULL OP_MUST_CHECK;

/*
 * Directs the output of a sampling event (not mapped, same CPU and clock, not yet enabled: without a ring its samples would
 * vanish uncounted) to the write ring, and lets swaps take it along. 0 or -errno; -EINVAL when attr.write_backward of the event
 * is not 1 in overwrite mode or not 0 otherwise: the kernel does not let one ring be written in both directions.
 */
int op_ring_pair_attach(struct op_ring_pair *pair, int event_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * Swaps: every attached event writes to what was the read ring, and the former write ring is returned by op_ring_pair_read_ring. Sleeps for a
 * grace period per event (6 to 14 ms each at HZ=250). 0; -errno when an event could not be directed: the others were, both
 * rings have to be read from now on, and nothing is lost by that.
 */
int op_ring_pair_swap(struct op_ring_pair *pair) OP_NONNULL OP_MUST_CHECK;

/*
 * Overwrite mode, after a swap: returns when no handler is left that may write to the read ring. Sleeps for one grace period, and
 * a grace period is of all CPUs: who has swapped several pairs settles only one of them. 0 or -errno; -EINVAL: not in
 * overwrite mode.
 */
int op_ring_pair_settle(struct op_ring_pair *pair) OP_NONNULL OP_MUST_CHECK;

/*
 * Overwrite mode: swap and settle. The ring that was written stands still until the next swap, and is to be read before that one,
 * from op_ring_begin to op_ring_end. Consecutive snapshots join: no record is missing and none given twice, but for what
 * op_ring_overwritten tells. 0 or -errno: the ring may still be written and must not be read; what is in it comes with later
 * snapshots. -EINVAL: not in overwrite mode.
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
 * Whether a sample that was read from a ring of the pair is a late commit: its writer had picked the ring before an earlier
 * swap and committed after it. Such a sample is older than the swap by which the ring became the write ring again, and no other can
 * be: the kernel exchanges the pointer a grace period after that swap began, when every handler of before has ended.
 */
static inline bool op_ring_pair_is_late(const struct op_ring_pair *pair, const struct op_ring *ring, uint64_t time_ns)
{
	return time_ns < pair->since_ns[ring == &pair->rings[1]];
}

/* Unmaps and closes the anchors; the sampling events are the caller's. Allowed after a failed open. */
void op_ring_pair_close(struct op_ring_pair *pair);

#endif
