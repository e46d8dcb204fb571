/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A pair of memory rings: the writer writes the one, the reader reads the other, and the reader, or a swapping thread that the
 * reader has lent the baton to, swaps them. What the reader has is frozen: it does not change while it is read, and everything in
 * it is older than everything in the other ring. See doc/ring.md.
 *
 * Swaps are counted: `turn`, whose lowest bit is the ring that is written. What the writer says is the turn it knows of, and whether
 * it is inside its ring.
 *
 *   writer                                  who swaps
 *   (E) store inside = turn, in             (G) store the next turn
 *         fence, or program order                 fence; membarrier(2) when H asks for it
 *   (F) load turn; not the same:            (H) load inside: this turn: quiet; an older one, in: look again;
 *       begin again with that one               an older one, out: quiet, but not before the membarrier
 *   store record, (B) store data_head
 *   (I) store inside = turn, out            the reader: (C) load data_head, load records, (D) store data_tail
 *
 * A writer that says the new turn has seen G, and its last commit to the frozen ring is seen with what it says: nothing more is
 * needed, and so it is with a writer that is busy. With one that rests there is E against H and G against F: one of the two sees
 * the other. Either the writer sees that the ring is not its own any more and takes the other one, or the reader sees the writer
 * inside and waits until it has left (I pairs with H: its commit is seen). There is one late commit at most, and it is read with
 * the rest of its ring.
 *
 * The writer's fence between E and F costs more than its record. So, within one process, who swaps has the kernel fence for both:
 * membarrier(2) makes all threads of the process pass a full fence wherever they are, and the writer keeps E and F in program order only.
 * It takes a microsecond, or fifteen on a virtual machine, when the writer is running elsewhere, and next to nothing when it is not. It is
 * agreed on when they open: the reader says which process it fences (`barrier`, for good: whoever reads this pair later does it too), and a
 * writer of that process that opens after that relies on it. Else, in another process, and with OP_MRING_FENCE, the writer fences. So:
 * open the reader first. Why no kernel's fence between processes: doc/ring.md, "The swap".
 *
 * Who may swap now: what a swap works with lies in the reader's baton, and one thread at a time has that. As long as the reader has
 * it, it reads and swaps. While it is lent the reader has no ring of this pair; with many pairs it reads another one meanwhile, and
 * a few swapping threads do the waiting and the membarriers.
 *
 *   reader                                  a swapping thread
 *   give back what was read (D)
 *   (J) store holder = nobody               (O) claim holder
 *                                           G, H
 *   (W) load holder: it is mine again       (V) store holder = the reader
 *   C, D
 *
 * Which thread may call what is in the type of the first parameter, as in libop/ring/memory.h:
 *   struct op_mring_pair_writer *   the writing thread
 *   struct op_mring_pair_reader *   the reading thread
 *   struct op_mring_baton *         any thread of the reader's process
 *   struct op_mring_pair_swapper *  the swapping thread that has the baton; without it there is none
 *
 * The rings of a pair have no AUX area (libop/ring/aux_area.h): its bytes are one stream with an exclusion of its own, which belongs to
 * one ring and is never swapped. doc/ring.md, "An AUX area has no pair".
 */
#ifndef OP_RING_MEMORY_PAIR_H
#define OP_RING_MEMORY_PAIR_H

#include "libop/ring/memory.h"

struct op_mring_pair {
	struct op_mring rings[2]; /* they share one wake_fd; turn and inside are in the control page of the first */
};

struct op_mring_pair_writer {
	struct op_mring_writer writers[2];
	struct op_mring_shared *shared;
	uint64_t turn;      /* of the last reservation */
	unsigned int index; /* its ring */
	bool fence;         /* no reader of this process has promised to call membarrier(2) */
};

/* What a swap works with. */
struct op_mring_swap {
	struct op_mring_shared *shared;
	uint64_t turn;
	bool quiet;   /* the writer has been seen outside of the frozen ring since the swap */
	int barrier;  /* the command of membarrier(2) that has been promised, 0: none */
	bool due;     /* and was not yet called since the swap */
	bool is_late; /* the writer has been seen inside the frozen ring since the swap, and that is counted; also before the first swap */
	uint64_t swaps;
	uint64_t late;     /* of these, after which the writer was seen inside still */
	uint64_t barriers; /* times that membarrier(2) was needed */
};

enum op_mring_holder {
	OP_MRING_HELD_BY_NOBODY, /* lent, and not yet taken; what op_claim claims */
	OP_MRING_HELD_BY_SWAPPER,
	OP_MRING_HELD_BY_READER,
};

struct op_mring_baton {
	struct op_mring_swap swap; /* the holder's */
	uint32_t holder;           /* enum op_mring_holder */
};

/* From the first op_mring_pair_lend on it stays where it is in memory: swapping threads know its baton. */
struct op_mring_pair_reader {
	struct op_ring rings[2];
	unsigned int read; /* index of the ring that is not written */
	bool lent;         /* the baton, and it has not been seen back */
	struct op_mring_baton baton;
};

struct op_mring_pair_swapper {
	struct op_mring_baton *baton;
	bool swapped;
};

/* Two rings as op_mring_create makes them. 0 or -errno. */
int op_mring_pair_create(size_t data_bytes, unsigned int flags, struct op_mring_pair *ret_pair) OP_NONNULL OP_MUST_CHECK;

/* The pair of another process, by its three descriptors, which are duplicated. 0, -EINVAL: not of one kind; as op_mring_attach. */
int op_mring_pair_attach(const int fds[2], int wake_fd, struct op_mring_pair *ret_pair) OP_NONNULL OP_MUST_CHECK;

/* After its reader and its writer. Allowed on a zeroed pair. */
void op_mring_pair_destroy(struct op_mring_pair *pair);

/*
 * op_mring_wake_every and op_mring_dropped of both. The reader is woken when the writer is out of the ring; one that finds it inside all the
 * same (with its next record) tries again as long as op_mring_pair_read_ring gives NULL, since the next wake-up may be far away.
 */
void op_mring_pair_wake_every(const struct op_mring_pair *pair, uint64_t every, bool records) OP_NONNULL;
uint64_t op_mring_pair_dropped(const struct op_mring_pair *pair) OP_NONNULL;

/* The calling thread becomes the writer. -EBUSY: there is one. Of a child of fork(2): op_mring_writer_open; it is no process that the reader fences, either. */
int op_mring_pair_writer_open(const struct op_mring_pair *pair, struct op_mring_pair_writer *ret_writer) OP_NONNULL OP_MUST_CHECK;
void op_mring_pair_writer_close(struct op_mring_pair_writer *writer) OP_NONNULL;

/* The writer's thread has died, possibly inside a ring, which becomes quiet by this call. Another one may open. */
void op_mring_pair_writer_died(const struct op_mring_pair *pair) OP_NONNULL;

/*
 * A thread of the process that will read and swap. Waits for nobody; but after a reader of another process, whose writer may still rely
 * on it, each swap with a writer that rests waits for a grace period. 0 or -ENOMEM.
 */
int op_mring_pair_reader_open(const struct op_mring_pair *pair, struct op_mring_pair_reader *ret_reader) OP_NONNULL OP_MUST_CHECK;

/* No swapping thread has its baton, nor looks at it any more. */
void op_mring_pair_reader_close(struct op_mring_pair_reader *reader) OP_NONNULL;

/*
 * Swaps. 0; -EAGAIN: the writer is still inside the read ring, or the baton is lent; -EBUSY: the read ring has records that were
 * not given back with op_ring_end (they would come after newer ones).
 */
int op_mring_pair_swap(struct op_mring_pair_reader *reader) OP_NONNULL OP_MUST_CHECK;

/*
 * Lends the baton to whichever swapping thread opens it first; to be called where op_mring_pair_swap could be, and refused as that
 * is. It is back when op_mring_pair_read_ring gives a ring: the new frozen one, or the old one when nobody has swapped.
 */
int op_mring_pair_lend(struct op_mring_pair_reader *reader) OP_NONNULL OP_MUST_CHECK;

/* Takes the baton back. 0: the reader has it; -EAGAIN: a swapping thread has taken it, and will give it back. Never waits. */
int op_mring_pair_recall(struct op_mring_pair_reader *reader) OP_NONNULL OP_MUST_CHECK;

/* The calling thread becomes the swapper. -EAGAIN: it is not lent, or another thread was first. */
int op_mring_pair_swapper_open(struct op_mring_baton *baton, struct op_mring_pair_swapper *ret_swapper) OP_NONNULL OP_MUST_CHECK;

/*
 * Swaps, with the first call, and looks whether the writer is out of the ring that is frozen now. 0: it is, and the reader can
 * read at once; -EAGAIN: it is not. Never waits: call it again, or leave that to the reader.
 */
int op_mring_pair_swapper_swap(struct op_mring_pair_swapper *swapper) OP_NONNULL OP_MUST_CHECK;

/* Gives the baton back to the reader, at any time. What the swapper was is no swapper any more. */
void op_mring_pair_swapper_close(struct op_mring_pair_swapper *swapper) OP_NONNULL;

/*
 * The frozen ring, NULL as long as the writer is inside it (it leaves with its commit) or the baton is lent. Never waits for the writer; after a promise that was not made in this
 * process each swap waits for a grace period of the kernel (MEMBARRIER_CMD_GLOBAL). NULL also as long as the kernel refuses the membarrier(2) that was promised: a filter was put on the
 * process after op_mring_pair_reader_open, or the promise is another's and the kernel has CPUs without a tick (nohz_full), where it has no GLOBAL.
 */
struct op_ring *op_mring_pair_read_ring(struct op_mring_pair_reader *reader) OP_NONNULL;

/*
 * Bytes that the writer has committed to its ring by now, and that a swap would give. A hint for when to swap: each swap moves cache
 * lines to and fro, or interrupts the writer, so it should be worth it. In overwrite mode more than the ring has. 0 as long as the baton
 * is lent, until op_mring_pair_read_ring has found it back: which ring is the writer's is not known, and there is no swap to be worth it.
 */
uint64_t op_mring_pair_waiting(const struct op_mring_pair_reader *reader) OP_NONNULL;

/* What op_mring_pair_enter leaves to it: there was a swap. */
struct op_mring_writer *op_mring_pair_enter_slow(struct op_mring_pair_writer *writer) OP_NONNULL;

#define OP_MRING_PAIR_IN 1u /* the lowest bit of `inside`; the others are the turn */

/* Says "I am inside" and looks whose turn it is. */
static inline uint64_t op_mring_pair_announce(struct op_mring_pair_writer *writer)
{
	/* E, pairs with H in look_for_writer: it is seen before F looks, by a fence here or by membarrier there. */
	if (op_unlikely(writer->fence))
		op_store_fence(&writer->shared->inside, writer->turn << 1 | OP_MRING_PAIR_IN);
	else
		op_store_light(&writer->shared->inside, writer->turn << 1 | OP_MRING_PAIR_IN);
	/* F, pairs with G in move_turn. */
	return op_load_fence(&writer->shared->turn);
}

/*
 * The ring that is the writer's until op_mring_pair_leave: op_mring_reserve and op_mring_commit, as often as wanted. A fence costs
 * several times what a record does, so a writer that needs it (`fence`) and has many records at once enters once for all; the
 * reader waits as long.
 */
static inline struct op_mring_writer *op_mring_pair_enter(struct op_mring_pair_writer *writer)
{
	if (op_likely(op_mring_pair_announce(writer) == writer->turn))
		return &writer->writers[writer->index];
	return op_mring_pair_enter_slow(writer);
}

static inline void op_mring_pair_leave(struct op_mring_pair_writer *writer)
{
	/* I, pairs with H in look_for_writer: the commit is stored before. */
	op_store_release(&writer->shared->inside, writer->turn << 1);
	/* Who is woken finds the writer outside. */
	if (op_unlikely(writer->writers[writer->index].wake_due))
		op_mring_wake_now(&writer->writers[writer->index]);
}

/* As op_mring_reserve. The writer is inside until the commit or until it abandons: that should be soon. */
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
