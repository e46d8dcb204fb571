/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory ring: the kernel's control page and records (libop/ring/reader.h), written in user space. It lies in a memfd, so that the
 * writer and the reader may be two processes. Neither believes the other: the reader checks lengths and positions as with every
 * ring, and gives records as copies, whoever made the ring; the writer checks data_tail; and the memfd is sealed against a change
 * of its size. See doc/ring.md.
 *
 * Who may do what is in the type of the first parameter:
 *   struct op_mring *         the memory; create, attach and destroy by one thread, everything else by any thread of any process
 *   struct op_mring_writer *  the owning thread, the only one that writes; op_mring_writer_open refuses a second one
 *   struct op_ring *          the reading thread (libop/ring/reader.h)
 *
 * Memory of the memfd: control page, 2^n data pages, 2^m AUX pages (libop/ring/aux_area.h). The data is mapped twice, one behind the
 * other, so a record is written in place, in one piece, also over the end. What the kernel's control page has no room for is
 * behind it in the same page.
 */
#ifndef OP_RING_MEMORY_H
#define OP_RING_MEMORY_H

#include <linux/perf_event.h>

#include "libop/base/atomic.h"
#include "libop/base/compiler.h"
#include "libop/ring/reader.h"

#define OP_MRING_LOST_BYTES 24u	     /* PERF_RECORD_LOST: header, id 0, number */
#define OP_MRING_RECORD_MAX 65528u   /* header.size is 16 bits wide, records are a multiple of 8 */
#define OP_MRING_SHARED_OFFSET 2048u /* of struct op_mring_shared in the control page */

enum op_mring_flags {
	OP_MRING_OVERWRITE = 1, /* backward writing: never full, the oldest records go first */
	OP_MRING_FENCE = 2,	/* pair: the writer fences for itself, and a swap interrupts no CPU (libop/ring/memory_pair.h) */
	/*
	 * The writer is a thread of the process that makes the ring, and is believed as that is: its reader gets records in place. Only
	 * for this mapping: whoever attaches gets copies.
	 */
	OP_MRING_OWN_WRITER = 4,
};

/* Who has the AUX area. */
enum op_aux_state {
	OP_AUX_IDLE,
	OP_AUX_WRITING,
	OP_AUX_COPYING,
};

/*
 * What the parties tell each other beside the kernel's fields. Each word has one writer, except owner, aux_owner and aux_state, which
 * are claimed. A cache line belongs to one party.
 */
struct op_mring_shared {
	uint64_t magic;	       /* written once, with flags */
	uint32_t flags;	       /* enum op_mring_flags, but for OP_MRING_OWN_WRITER */
	uint32_t owner;	       /* a writer has it open */
	uint32_t aux_state;    /* enum op_aux_state */
	uint32_t aux_owner;    /* a writer of the AUX area has that open */
	uint8_t pad0[40];
	uint64_t wake;	       /* by the reader: N << 1, + 1 when N counts records, else bytes; 0: never */
	uint64_t turn;	       /* by the reader: libop/ring/memory_pair.h */
	uint64_t barrier;      /* by the reader: libop/ring/memory_pair.h */
	uint8_t pad1[40];
	uint64_t inside;       /* by the writer: libop/ring/memory_pair.h */
	uint64_t floor;	       /* by the writer, overwrite mode: lowest byte touched */
	uint64_t dropped;      /* by the writer: records that found no room, ever */
	uint64_t told_before;  /* by the writer: of these, told by LOST records, when data_head has not reached told_at */
	uint64_t told_at;
	uint64_t told;	       /* and when it has */
	uint64_t aux_touched;  /* by the writer: the AUX area is written up to here, published or not */
	uint64_t aux_left_out; /* by the writer: bytes were, since the last AUX record */
	uint64_t aux_at;       /* by the writer: aux_head is that of the last AUX record when data_head has reached this */
	uint64_t aux_before;   /* by the writer: and this is it when data_head has not */
	uint8_t pad3[48];
};

static_assert(sizeof(struct op_mring_shared) == 256, "four cache lines");
static_assert(offsetof(struct op_mring_shared, wake) == 64 && offsetof(struct op_mring_shared, inside) == 128, "one party a line");
static_assert(sizeof(struct perf_event_mmap_page) <= OP_MRING_SHARED_OFFSET, "the kernel's control page grew");

struct op_mring {
	int fd;	     /* the memfd */
	int wake_fd; /* an eventfd: readable when the reader is to wake up */
	struct perf_event_mmap_page *control;
	struct op_mring_shared *shared;
	uint8_t *data;
	size_t page_bytes;
	size_t data_bytes;
	size_t aux_bytes; /* 0: none */
	unsigned int flags; /* enum op_mring_flags */
};

/* Private to the writing thread, but for what the pointers lead to. */
struct op_mring_writer {
	struct perf_event_mmap_page *control;
	struct op_mring_shared *shared;
	uint8_t *data;
	uint64_t mask;
	uint64_t head;	/* as published */
	uint64_t limit; /* what may be written without a look at data_tail: up to here; nothing when not above the head */
	uint64_t next;	/* head after the commit */
	struct perf_event_header *record;
	uint32_t nr_bytes; /* of the record */
	uint32_t page_bytes;
	uint64_t wake; /* the reader's choice, as last seen */
	int64_t credit; /* bytes or records until the next wake-up */
	uint64_t tail;	/* as last seen and believed */
	uint64_t pending; /* dropped and not yet told by a LOST record */
	uint64_t told_full_at; /* the tail for which the reader was woken because nothing fits, + 1 */
	bool wakes_later;      /* of a pair: op_mring_wake_now is called when the writer is out of the ring */
	bool wake_due;	       /* then */
	uint64_t bad_tails; /* positions of the reader that made no sense and were not used */
	size_t data_bytes;
	unsigned int flags;
	int wake_fd;
};

/*
 * No area is larger, whoever made it: a memfd may be sparse, and a reader that is told that it is full goes over all of it, a page of memory for each
 * hole, before it knows better.
 */
#define OP_MRING_BYTES_MAX ((size_t)1 << 28)

/*
 * Makes a ring of data_bytes and an AUX area of aux_bytes, each a power of two of at least a page and at most OP_MRING_BYTES_MAX (aux_bytes may be 0).
 * `flags`: enum op_mring_flags. 0 or -errno.
 */
int op_mring_create(size_t data_bytes, size_t aux_bytes, unsigned int flags, struct op_mring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * The ring stays with this process, and its reader waits for nothing: nobody can attach, nobody is woken (op_mring_wake_every), and the descriptors, which are for that and
 * for an AUX area, are closed. Before its reader and its writer open.
 */
void op_mring_close_fds(struct op_mring *ring) OP_NONNULL;

/*
 * Maps the ring that another process made; the descriptors are duplicated. -EINVAL: not such a memfd, too large a one, or one whose size is not
 * sealed, or wake_fd is not an eventfd that does not wait (EFD_NONBLOCK; /proc is asked); -errno.
 */
int op_mring_attach(int fd, int wake_fd, struct op_mring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * The reader. It uses the ring's mapping, so it ends before op_mring_destroy; op_ring_unmap frees its own memory. Without
 * OP_MRING_OWN_WRITER its records are copies (OP_RING_COPY). 0 or -ENOMEM: reading itself needs no memory.
 */
int op_mring_reader(const struct op_mring *ring, struct op_ring *ret_reader) OP_NONNULL OP_MUST_CHECK;

/*
 * The reader is woken by `wake_fd` when `every` more bytes (or records) were committed than at the last time, and when a record
 * finds no room; 0: never. Bytes that are left over when the writer rests wake nobody: look on a timer too. The writer sees the
 * choice at one of its next commits.
 */
void op_mring_wake_every(const struct op_mring *ring, uint64_t every, bool records) OP_NONNULL;

/*
 * The descriptor is not readable any more; call it before op_ring_begin. A maker in another process can give an eventfd that stays readable
 * (EFD_SEMAPHORE): who does not trust it polls by edges (EPOLLET), or not without a timer.
 */
void op_mring_wake_clear(const struct op_mring *ring) OP_NONNULL;

/* Records that found no room since the ring was made. */
uint64_t op_mring_dropped(const struct op_mring *ring) OP_NONNULL;

/*
 * The writer's thread has died, possibly in a transaction of the AUX area: another one may open. What it had committed is there, what it had
 * only reserved, or written to the area, is not.
 */
void op_mring_writer_died(const struct op_mring *ring) OP_NONNULL;

/*
 * The reader's thread has died, possibly while it copied from the AUX area: the area is free, and the next reader, which opens after this
 * call, begins where that one had given back; in overwrite mode, where nothing is given back, with all that the ring holds.
 */
void op_mring_reader_died(const struct op_mring *ring) OP_NONNULL;

/* Unmaps and closes; allowed on a zeroed ring. */
void op_mring_destroy(struct op_mring *ring);

/*
 * The calling thread becomes the writer, and goes on where the one before stopped. -EBUSY: there is one.
 *
 * A child of fork(2) has a copy of the struct and shares the ring: two writers that know nothing of each other. From then on one of the two
 * alone may use what was open, and close it; so it is with readers. Nothing here looks whether they keep to that, since looking costs more than
 * the record. The child may open what the parent has not open; execve(2) takes everything away.
 */
int op_mring_writer_open(const struct op_mring *ring, struct op_mring_writer *ret_writer) OP_NONNULL OP_MUST_CHECK;

void op_mring_writer_close(struct op_mring_writer *writer) OP_NONNULL;

/* What the inline functions below leave to them. */
int op_mring_reserve_slow(struct op_mring_writer *writer, size_t nr_bytes, bool in_page, struct perf_event_header **ret_record)
	OP_NONNULL OP_MUST_CHECK;
bool op_mring_has_room_slow(struct op_mring_writer *writer, size_t nr_bytes, bool in_page) OP_NONNULL;
void op_mring_wake(struct op_mring_writer *writer) OP_NONNULL;
void op_mring_wake_now(struct op_mring_writer *writer) OP_NONNULL;
int op_mring_drop(struct op_mring_writer *writer) OP_NONNULL;

/* Whether it is a size, and fits without a look at the reader. */
static inline bool op_mring_fits(const struct op_mring_writer *writer, size_t nr_bytes)
{
	/* Signed: of a writer in overwrite mode that has not committed the limit is below the head. */
	return (int64_t)(writer->limit - writer->head) >= (int64_t)nr_bytes && nr_bytes - 8 <= OP_MRING_RECORD_MAX - 8 && nr_bytes % 8 == 0;
}

/* Claims without a look at the reader. */
static inline bool op_mring_claim(struct op_mring_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record)
{
	if (op_unlikely(!op_mring_fits(writer, nr_bytes)))
		return false;
	writer->record = (void *)(writer->data + (writer->head & writer->mask));
	writer->nr_bytes = (uint32_t)nr_bytes;
	writer->next = writer->head + nr_bytes;
	*ret_record = writer->record;
	return true;
}

/*
 * Claims nr_bytes (a multiple of 8, with the header) for one record, to be written in place: type, misc and body; the size is
 * written by the commit. A reservation that is not committed is forgotten with the next one. 0; -ENOSPC: no room, the record is
 * dropped and counted, and a PERF_RECORD_LOST with the exact number will stand before the next record that fits; -EMSGSIZE: can
 * never fit; -EINVAL: not a size.
 */
static inline int op_mring_reserve(struct op_mring_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record)
{
	if (op_likely(op_mring_claim(writer, nr_bytes, ret_record)))
		return 0;
	return op_mring_reserve_slow(writer, nr_bytes, false, ret_record);
}

/*
 * The same, for a record that does not cross a page: the rest of the page is filled with zeros, and skipped. -EMSGSIZE also
 * when larger than a page.
 */
static inline int op_mring_reserve_in_page(struct op_mring_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record)
{
	size_t room = writer->page_bytes - (writer->head & (writer->page_bytes - 1));

	if (op_likely(nr_bytes <= room && op_mring_claim(writer, nr_bytes, ret_record)))
		return 0;
	return op_mring_reserve_slow(writer, nr_bytes, true, ret_record);
}

/*
 * Whether op_mring_reserve (in_page: op_mring_reserve_in_page) would find room now. For who would rather wait than lose a record:
 * when it is false nothing is counted and no LOST record will be written, and nobody is woken: the reader has to look on a timer too. False also
 * for what can never fit.
 */
static inline bool op_mring_has_room(struct op_mring_writer *writer, size_t nr_bytes, bool in_page)
{
	size_t in_this_page = writer->page_bytes - (writer->head & (writer->page_bytes - 1));

	if (op_likely(op_mring_fits(writer, nr_bytes) && (!in_page || nr_bytes <= in_this_page)))
		return true;
	return op_mring_has_room_slow(writer, nr_bytes, in_page);
}

/* Publishes the record: readers see it whole. */
static inline void op_mring_commit(struct op_mring_writer *writer)
{
	writer->record->size = (uint16_t)writer->nr_bytes;
	writer->head = writer->next;
	/* B, pairs with C in op_ring_begin: the record is stored before the head. */
	op_store_release(&writer->control->data_head, writer->head);
	/* No order: a choice of the reader may be seen late. */
	writer->credit -= writer->wake & 1 ? 1 : writer->nr_bytes;
	if (op_unlikely(writer->credit <= 0 || op_load_relaxed(&writer->shared->wake) != writer->wake))
		op_mring_wake(writer);
}

/* Gives the reservation up; nothing of it is seen. */
static inline void op_mring_abandon(struct op_mring_writer *writer)
{
	writer->limit = writer->head;
}

#endif
