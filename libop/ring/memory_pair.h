/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A pair of memory rings. The writer writes one ring and the reader reads the other. The reader, or
 * a swapping thread to which it has lent the baton, swaps them. The reader's ring is frozen: it
 * does not change during reading, and all its records are older than those of the other ring. See
 * doc/ring.md.
 *
 * `epoch` counts the swaps. Its lowest bit is the index of the ring that is written. `inside` has
 * the epoch that the writer saw last, and a bit that says whether the writer is inside its ring.
 *
 *   writer                                  who swaps
 *   (E) store inside = epoch, in             (G) store the next epoch
 *         fence, or program order                 fence; membarrier(2) when H needs it
 *   (F) load epoch; not the same:            (H) load inside. This epoch: quiet. An older one, in:
 *       begin again with that one               load again. An older one, out: quiet, but only
 *                                               after the membarrier
 *   store record, (B) store data_head
 *   (I) store inside = epoch, out            the reader: (C) load data_head, load records,
 *                                               (D) store data_tail
 *
 * A busy writer stores the new epoch soon. That proves that it has seen G, and whoever sees that
 * store sees the last commit to the frozen ring as well. Nothing more is needed. For a resting
 * writer, E against H and G against F guarantee that one side sees the other. Either the writer
 * sees the new epoch and takes the other ring. Or the reader sees the writer inside, and waits
 * until it has left (I pairs with H: the reader sees its commit). There is at most one late commit,
 * and the reader reads it with the rest of that ring.
 *
 * The fence of the writer between E and F costs more than its record. So within one process the
 * kernel fences for both sides: the swapping side calls membarrier(2), which makes all threads of
 * the process pass a full fence. Then the writer needs only program order between E and F. The call
 * takes a microsecond (15 on a virtual machine) while the writer runs on another CPU, and almost
 * nothing otherwise.
 *
 * The parties agree on this when they open. The reader stores in `barrier` which process it fences.
 * That never changes again: later readers of the pair fence that process, too. A writer of that
 * process that opens later relies on it. Every other writer fences for itself: one that opened
 * earlier, one in another process, or one with OP_MRING_FENCE. So open the reader first.
 * doc/ring.md, "The swap", says why the kernel does not fence between processes.
 *
 * The baton of the reader has the state of a swap. One thread at a time holds it. While the reader
 * holds the baton, the reader reads and swaps. While the baton is lent, the reader has no ring of
 * this pair. With many pairs, the reader reads another pair meanwhile, and a few swapping threads
 * wait and call membarrier(2).
 *
 *   reader                                  a swapping thread
 *   return the space of the records (D)
 *   (J) store holder = nobody               (O) claim holder
 *                                           G, H
 *   (W) load holder: the reader             (V) store holder = the reader
 *   C, D
 *
 * The type of the first parameter tells which thread may make a call, and each line may run beside
 * the others:
 *   struct op_mring_pair_writer *   the writing thread
 *   struct op_mring_pair_reader *   the reading thread
 *   struct op_mring_baton *         any thread of the reader's process
 *   struct op_mring_pair_swapper *  the swapping thread that holds the baton
 *
 * The rings of a pair have no AUX area (libop/ring/aux_area.h). Its bytes are one stream with an
 * exclusion of its own, which belongs to one ring and is never swapped. doc/ring.md, "An AUX area
 * has no pair".
 */
#ifndef OP_RING_MEMORY_PAIR_H
#define OP_RING_MEMORY_PAIR_H

#include "libop/ring/memory.h"

struct op_mring_pair {
	struct op_mring rings[2]; /* they share one wake_fd; the first has epoch and inside */
};

struct op_mring_pair_writer {
	struct op_mring_writer writers[2];
	struct op_mring_shared *shared;
	uint64_t epoch;      /* of the last reservation */
	unsigned int index; /* its ring */
	bool fence;         /* no reader of this process has promised membarrier(2) */
};

/* The state of a swap. */
struct op_mring_swap {
	struct op_mring_shared *shared;
	uint64_t epoch;
	bool quiet;   /* the writer was outside of the frozen ring at a check after the swap */
	int barrier;  /* the promised command of membarrier(2), 0: none */
	bool due;     /* the command was not yet called since the swap */
	/*
	 * the writer was inside the frozen ring at a check after the swap, and was counted in
	 * `late`; true before the first swap
	 */
	bool is_late;
	uint64_t swaps;
	uint64_t late;     /* swaps after which the writer was still inside the frozen ring */
	uint64_t barriers; /* times that membarrier(2) was needed */
};

enum op_mring_holder {
	OP_MRING_HELD_BY_NOBODY, /* lent, and free for op_claim */
	OP_MRING_HELD_BY_SWAPPER,
	OP_MRING_HELD_BY_READER,
};

struct op_mring_baton {
	struct op_mring_swap swap; /* only for the holder */
	uint32_t holder;           /* enum op_mring_holder */
};

/*
 * Do not move it after the first op_mring_pair_lend: swapping threads have the address of its
 * baton.
 */
struct op_mring_pair_reader {
	struct op_ring rings[2];
	unsigned int read; /* index of the ring that is not written */
	bool lent;         /* the baton is lent, and the reader has not seen it returned yet */
	struct op_mring_baton baton;
};

struct op_mring_pair_swapper {
	struct op_mring_baton *baton;
	bool swapped;
};

/* Creates two rings, as op_mring_create. 0 or -errno. */
int op_mring_pair_create(size_t data_bytes, unsigned int flags, struct op_mring_pair *ret_pair) OP_NONNULL OP_MUST_CHECK;

/*
 * Maps the pair of another process, as op_mring_attach; duplicates the three descriptors. -EINVAL
 * also for rings that differ.
 */
int op_mring_pair_attach(const int fds[2], int wake_fd, struct op_mring_pair *ret_pair) OP_NONNULL OP_MUST_CHECK;

/* To be called after reader and writer are closed. Allowed on a zeroed pair. */
void op_mring_pair_destroy(struct op_mring_pair *pair);

/*
 * op_mring_wake_every and op_mring_dropped for both rings. The writer wakes the reader after it has
 * left the ring. It may be inside again with its next record: then the reader tries again until
 * op_mring_pair_read_ring is not NULL, because the next wake-up may be far away.
 */
void op_mring_pair_wake_every(const struct op_mring_pair *pair, uint64_t every, bool records) OP_NONNULL;
uint64_t op_mring_pair_dropped(const struct op_mring_pair *pair) OP_NONNULL;

/*
 * Makes the calling thread the writer. 0; -EBUSY: there is a writer. After fork(2): see
 * op_mring_writer_open; the reader does not fence a child process either.
 */
int op_mring_pair_writer_open(const struct op_mring_pair *pair, struct op_mring_pair_writer *ret_writer) OP_NONNULL OP_MUST_CHECK;
void op_mring_pair_writer_close(struct op_mring_pair_writer *writer) OP_NONNULL;

/*
 * Declares that the writer's thread has died, possibly inside a ring, which becomes quiet; another
 * one may open.
 */
void op_mring_pair_writer_died(const struct op_mring_pair *pair) OP_NONNULL;

/*
 * Opens the reader in the process that will read and swap. Does not wait. After a reader of another
 * process, whose writer may still rely on its promise, each swap with a resting writer waits for a
 * grace period. 0 or -ENOMEM.
 */
int op_mring_pair_reader_open(const struct op_mring_pair *pair, struct op_mring_pair_reader *ret_reader) OP_NONNULL OP_MUST_CHECK;

/* To be called when no swapping thread uses its baton any more. */
void op_mring_pair_reader_close(struct op_mring_pair_reader *reader) OP_NONNULL;

/*
 * Swaps. 0; -EAGAIN: the writer is still inside the read ring, or the baton is lent; -EBUSY: the
 * read ring has records that op_ring_end has not returned (they would come after newer ones).
 */
int op_mring_pair_swap(struct op_mring_pair_reader *reader) OP_NONNULL OP_MUST_CHECK;

/*
 * Lends the baton to the first swapping thread that opens it. Call it in place of
 * op_mring_pair_swap; it has the same errors. The baton is back when op_mring_pair_read_ring
 * returns a ring: the new frozen one, or the old one when there was no swap.
 */
int op_mring_pair_lend(struct op_mring_pair_reader *reader) OP_NONNULL OP_MUST_CHECK;

/* Takes the baton back. 0; -EAGAIN: a swapping thread holds it and will return it. Never waits. */
int op_mring_pair_recall(struct op_mring_pair_reader *reader) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes the calling thread the swapper. 0; -EAGAIN: the baton is not lent, or another thread was
 * first.
 */
int op_mring_pair_swapper_open(struct op_mring_baton *baton, struct op_mring_pair_swapper *ret_swapper) OP_NONNULL OP_MUST_CHECK;

/*
 * The first call swaps. Every call checks whether the writer has left the frozen ring. 0: it has,
 * and the reader can read at once; -EAGAIN: it has not. Never waits: call it again, or leave that
 * to the reader.
 */
int op_mring_pair_swapper_swap(struct op_mring_pair_swapper *swapper) OP_NONNULL OP_MUST_CHECK;

/* Returns the baton to the reader, at any time; ends the swapper. */
void op_mring_pair_swapper_close(struct op_mring_pair_swapper *swapper) OP_NONNULL;

/*
 * The frozen ring. NULL while the writer is inside it (the writer leaves with its commit), or while
 * the baton is lent. Never waits for the writer. When the reader of another process promised the
 * membarrier, each swap waits for a grace period of the kernel (MEMBARRIER_CMD_GLOBAL). NULL also
 * while the kernel refuses the promised membarrier(2). There are two causes: a filter that was
 * installed after op_mring_pair_reader_open; or a promise of another process on a kernel with
 * nohz_full CPUs, which has no MEMBARRIER_CMD_GLOBAL.
 */
struct op_ring *op_mring_pair_read_ring(struct op_mring_pair_reader *reader) OP_NONNULL;

/*
 * Bytes that the writer has committed to its ring and that a swap would freeze. A hint for when to
 * swap: each swap moves cache lines between CPUs or interrupts the writer. In overwrite mode this
 * may be more than the size of the ring. 0 while the baton is lent, until op_mring_pair_read_ring
 * has seen it returned: till then the reader does not know the writer's ring.
 */
uint64_t op_mring_pair_waiting(const struct op_mring_pair_reader *reader) OP_NONNULL;

/* The rare case of op_mring_pair_enter: there was a swap. */
struct op_mring_writer *op_mring_pair_enter_slow(struct op_mring_pair_writer *writer) OP_NONNULL;

#define OP_MRING_PAIR_IN 1u /* the lowest bit of `inside`; the others are the epoch */

/* Stores that the writer is inside, and loads the epoch. */
static inline uint64_t op_mring_pair_announce(struct op_mring_pair_writer *writer)
{
	/*
	 * E, pairs with H in look_for_writer: seen before F loads, by a fence here or by membarrier
	 * there.
	 */
	if (op_unlikely(writer->fence))
		op_store_fence(&writer->shared->inside, writer->epoch << 1 | OP_MRING_PAIR_IN);
	else
		op_store_light(&writer->shared->inside, writer->epoch << 1 | OP_MRING_PAIR_IN);
	/* F, pairs with G in advance_epoch. */
	return op_load_fence(&writer->shared->epoch);
}

/*
 * The ring of the writer until op_mring_pair_leave, for any number of op_mring_reserve and
 * op_mring_commit. A fence costs several times as much as a record, so a writer that needs it
 * (`fence`) and has many records at once enters once for all of them; the reader waits that long.
 */
static inline struct op_mring_writer *op_mring_pair_enter(struct op_mring_pair_writer *writer)
{
	if (op_likely(op_mring_pair_announce(writer) == writer->epoch))
		return &writer->writers[writer->index];
	return op_mring_pair_enter_slow(writer);
}

static inline void op_mring_pair_leave(struct op_mring_pair_writer *writer)
{
	/* I, pairs with H in look_for_writer: the commit is stored before. */
	op_store_release(&writer->shared->inside, writer->epoch << 1);
	/* The reader that wakes up finds the writer outside. */
	if (op_unlikely(writer->writers[writer->index].wake_due))
		op_mring_wake_now(&writer->writers[writer->index]);
}

/* As op_mring_reserve. The writer is inside until it commits or abandons, which should be soon. */
static inline int op_mring_pair_reserve(struct op_mring_pair_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record)
{
	int err = op_mring_reserve(op_mring_pair_enter(writer), nr_bytes, ret_record);

	if (op_unlikely(err < 0))
		op_mring_pair_leave(writer);
	return err;
}

/* As op_mring_reserve_in_page. */
static inline int op_mring_pair_reserve_in_page(struct op_mring_pair_writer *writer, size_t nr_bytes,
						struct perf_event_header **ret_record)
{
	int err = op_mring_reserve_in_page(op_mring_pair_enter(writer), nr_bytes, ret_record);

	if (op_unlikely(err < 0))
		op_mring_pair_leave(writer);
	return err;
}

static inline void op_mring_pair_commit(struct op_mring_pair_writer *writer)
{
	op_mring_commit(&writer->writers[writer->index]);
	op_mring_pair_leave(writer);
}

static inline void op_mring_pair_abandon(struct op_mring_pair_writer *writer)
{
	op_mring_abandon(&writer->writers[writer->index]);
	op_mring_pair_leave(writer);
}

#endif
