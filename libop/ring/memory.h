/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory ring: the control page and records of the kernel (libop/ring/reader.h), written in
 * user space. It is in a memfd, so writer and reader may be two processes. They do not trust each
 * other. The reader checks lengths and positions as with every ring, and returns copies of the
 * records, whoever made the ring. The writer checks data_tail. The memfd is sealed against a change
 * of its size. See doc/ring.md.
 *
 * The type of the first parameter tells which thread may make a call, and each line may run beside
 * the others:
 *   struct op_mring *         create, attach, destroy: one thread, beside nothing; everything else:
 *                             any thread of any process
 *   struct op_mring_writer *  the one writing thread; op_mring_writer_open refuses a second one
 *   struct op_ring *          the reading thread (libop/ring/reader.h)
 *
 * The memfd has the control page, 2^n data pages and 2^m AUX pages (libop/ring/aux_area.h). The
 * data are mapped twice, one copy behind the other, so every record is written in place and
 * contiguously, also over the end. Fields that the kernel's control page does not have follow it in
 * the same page.
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
	/* pair: the writer fences for itself, and a swap interrupts no CPU (memory_pair.h) */
	OP_MRING_FENCE = 2,
	/*
	 * The writer is a trusted thread of the process that creates the ring: the reader gets
	 * records in place. Only for this mapping: other processes that attach get copies.
	 */
	OP_MRING_OWN_WRITER = 4,
};

/* The current use of the AUX area. */
enum op_aux_state {
	OP_AUX_IDLE,
	OP_AUX_WRITING,
	OP_AUX_COPYING,
};

/*
 * The shared fields besides those of the kernel. Each word has one writer, except owner, aux_owner
 * and aux_state, which are claimed. Each cache line belongs to one party.
 */
struct op_mring_shared {
	uint64_t magic;	       /* written once, with flags */
	uint32_t flags;	       /* enum op_mring_flags, without OP_MRING_OWN_WRITER */
	uint32_t owner;	       /* 1: a writer has opened the ring */
	uint32_t aux_state;    /* enum op_aux_state */
	uint32_t aux_owner;    /* 1: a writer has opened the AUX area */
	uint8_t pad0[40];
	/* Written by the reader. */
	uint64_t wake;	       /* N << 1, + 1 when N counts records, not bytes; 0: never */
	uint64_t epoch;	       /* memory_pair.h */
	uint64_t barrier;      /* memory_pair.h */
	uint8_t pad1[40];
	/* Written by the writer. */
	uint64_t inside;       /* memory_pair.h */
	uint64_t floor;	       /* overwrite mode: the lowest byte touched */
	uint64_t dropped;      /* records that found no room, in total */
	/*
	 * How many of the dropped records are in LOST records: reported_before until data_head
	 * reaches reported_at, `reported` from then on.
	 */
	uint64_t reported_before;
	uint64_t reported_at;
	uint64_t reported;
	uint64_t aux_touched;  /* the AUX area is written up to here, published or not */
	uint64_t aux_left_out; /* 1: bytes were left out since the last AUX record */
	/* when data_head has reached this, aux_head is that of the last AUX record; */
	uint64_t aux_at;
	uint64_t aux_before;   /* when it has not, the valid aux_head is this */
	uint8_t pad3[48];
};

static_assert(sizeof(struct op_mring_shared) == 256, "four cache lines");
static_assert(offsetof(struct op_mring_shared, wake) == 64, "a line of the reader");
static_assert(offsetof(struct op_mring_shared, inside) == 128, "lines of the writer");
static_assert(sizeof(struct perf_event_mmap_page) <= OP_MRING_SHARED_OFFSET, "the kernel's control page grew");

struct op_mring {
	int fd;	     /* the memfd */
	int wake_fd; /* an eventfd that wakes the reader */
	struct perf_event_mmap_page *control;
	struct op_mring_shared *shared;
	uint8_t *data;
	size_t page_bytes;
	size_t data_bytes;
	size_t aux_bytes; /* 0: none */
	unsigned int flags; /* enum op_mring_flags */
};

/* Private to the writing thread; the pointers lead to shared memory. */
struct op_mring_writer {
	struct perf_event_mmap_page *control;
	struct op_mring_shared *shared;
	uint8_t *data;
	uint64_t mask;
	uint64_t head;	/* as published */
	/* the writer may write up to here without loading data_tail; not above head: nothing */
	uint64_t limit;
	uint64_t next;	/* head after the commit */
	struct perf_event_header *record;
	uint32_t nr_bytes; /* of the record */
	uint32_t page_bytes;
	uint64_t wake; /* shared->wake as last seen */
	int64_t credit; /* bytes or records until the next wake-up */
	uint64_t tail;	/* as last seen, and valid */
	uint64_t pending; /* dropped records that no LOST record has reported */
	/* + 1: the tail at which the reader was woken because a record did not fit */
	uint64_t told_full_at;
	/* in a pair: op_mring_wake_now is called when the writer has left the ring */
	bool wakes_later;
	bool wake_due;	       /* op_mring_wake_now is to be called then */
	uint64_t bad_tails; /* impossible positions of the reader, which were ignored */
	size_t data_bytes;
	unsigned int flags;
	int wake_fd;
};

/*
 * The largest area, whoever made it. A memfd may be sparse: a lying writer could make the reader
 * walk through all of it and allocate a page for each hole.
 */
#define OP_MRING_BYTES_MAX ((size_t)1 << 28)

/*
 * Creates a ring of data_bytes and an AUX area of aux_bytes: powers of two, at least a page, at
 * most OP_MRING_BYTES_MAX. aux_bytes may be 0. `flags`: enum op_mring_flags. 0 or -errno.
 */
int op_mring_create(size_t data_bytes, size_t aux_bytes, unsigned int flags, struct op_mring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * Closes the descriptors of a ring that stays in this process, and whose reader never waits:
 * afterwards no process can attach, map the AUX area, or be woken (op_mring_wake_every). To be
 * called before reader and writer open.
 */
void op_mring_close_fds(struct op_mring *ring) OP_NONNULL;

/*
 * Maps the ring of another process; duplicates the descriptors. 0; -EINVAL: not such a memfd, too
 * large, its size not sealed, or wake_fd not an eventfd with EFD_NONBLOCK (checked in /proc);
 * another -errno.
 */
int op_mring_attach(int fd, int wake_fd, struct op_mring *ret_ring) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the reader. It uses the mapping of the ring, so op_ring_unmap it before op_mring_destroy.
 * Without OP_MRING_OWN_WRITER it returns copies (OP_RING_COPY). 0 or -ENOMEM; reading allocates
 * nothing.
 */
int op_mring_reader(const struct op_mring *ring, struct op_ring *ret_reader) OP_NONNULL OP_MUST_CHECK;

/*
 * Wakes the reader through wake_fd after each `every` committed bytes (or records), and when a
 * record finds no room; 0: never. Fewer bytes before a pause of the writer wake no reader, so use a
 * timer too. The writer sees a change at one of its next commits.
 */
void op_mring_wake_every(const struct op_mring *ring, uint64_t every, bool records) OP_NONNULL;

/*
 * Makes wake_fd unreadable again; call it before op_ring_begin. Another process may have created an
 * eventfd that stays readable (EFD_SEMAPHORE): if you do not trust it, poll by edges (EPOLLET) or
 * with a timer.
 */
void op_mring_wake_clear(const struct op_mring *ring) OP_NONNULL;

/* Records that found no room since the ring was created. */
uint64_t op_mring_dropped(const struct op_mring *ring) OP_NONNULL;

/*
 * Declares that the writer's thread has died, possibly in a transaction of the AUX area; another
 * one may open. Committed records stay. Reserved ones, and bytes of the area that no record names,
 * do not.
 */
void op_mring_writer_died(const struct op_mring *ring) OP_NONNULL;

/*
 * Declares that the reader's thread has died, possibly while copying from the AUX area; the area
 * becomes free. The next reader opens after this call and continues at the space that the dead one
 * had returned or, in overwrite mode, with all records in the ring.
 */
void op_mring_reader_died(const struct op_mring *ring) OP_NONNULL;

/* Unmaps and closes; allowed on a zeroed ring. */
void op_mring_destroy(struct op_mring *ring);

/*
 * Makes the calling thread the writer; it continues where the previous writer stopped. 0; -EBUSY:
 * there is a writer.
 *
 * After fork(2) parent and child have a copy of the struct and share the ring. Only one of the two
 * may go on using and close an open writer; the same holds for readers. Nothing checks that,
 * because a check costs more than a record. The child may open what the parent has not open.
 * execve(2) unmaps everything.
 */
int op_mring_writer_open(const struct op_mring *ring, struct op_mring_writer *ret_writer) OP_NONNULL OP_MUST_CHECK;

void op_mring_writer_close(struct op_mring_writer *writer) OP_NONNULL;

/* The rare cases of the inline functions below. */
int op_mring_reserve_slow(struct op_mring_writer *writer, size_t nr_bytes, bool in_page, struct perf_event_header **ret_record)
	OP_NONNULL OP_MUST_CHECK;
bool op_mring_has_room_slow(struct op_mring_writer *writer, size_t nr_bytes, bool in_page) OP_NONNULL;
void op_mring_wake(struct op_mring_writer *writer) OP_NONNULL;
void op_mring_wake_now(struct op_mring_writer *writer) OP_NONNULL;
int op_mring_drop(struct op_mring_writer *writer) OP_NONNULL;

/* True when this is a valid size and fits without loading data_tail. */
static inline bool op_mring_fits(const struct op_mring_writer *writer, size_t nr_bytes)
{
	/* Signed: in overwrite mode the limit of an uncommitted reservation is below the head. */
	return (int64_t)(writer->limit - writer->head) >= (int64_t)nr_bytes && nr_bytes - 8 <= OP_MRING_RECORD_MAX - 8 &&
	       nr_bytes % 8 == 0;
}

/* Reserves without loading data_tail. */
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
 * Reserves nr_bytes, header included and a multiple of 8, for one record. Write type, misc and body
 * in place; the commit writes the size. The next reservation replaces one that was not committed.
 * 0; -ENOSPC: no room. The record is dropped and counted, and a PERF_RECORD_LOST with the exact
 * number precedes the next record that fits. -EMSGSIZE: it never fits; -EINVAL: an invalid size.
 */
static inline int op_mring_reserve(struct op_mring_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record)
{
	if (op_likely(op_mring_claim(writer, nr_bytes, ret_record)))
		return 0;
	return op_mring_reserve_slow(writer, nr_bytes, false, ret_record);
}

/*
 * The same for a record that must not cross a page: the rest of the page is filled with zeros,
 * which readers skip. -EMSGSIZE also for a record larger than a page.
 */
static inline int op_mring_reserve_in_page(struct op_mring_writer *writer, size_t nr_bytes, struct perf_event_header **ret_record)
{
	size_t room = writer->page_bytes - (writer->head & (writer->page_bytes - 1));

	if (op_likely(nr_bytes <= room && op_mring_claim(writer, nr_bytes, ret_record)))
		return 0;
	return op_mring_reserve_slow(writer, nr_bytes, true, ret_record);
}

/*
 * True when op_mring_reserve (in_page: op_mring_reserve_in_page) would find room now. For a writer
 * that waits instead of losing records: false counts nothing, causes no LOST record and wakes
 * nobody, so the reader needs a timer. False also for a record that never fits.
 */
static inline bool op_mring_has_room(struct op_mring_writer *writer, size_t nr_bytes, bool in_page)
{
	size_t in_this_page = writer->page_bytes - (writer->head & (writer->page_bytes - 1));

	if (op_likely(op_mring_fits(writer, nr_bytes) && (!in_page || nr_bytes <= in_this_page)))
		return true;
	return op_mring_has_room_slow(writer, nr_bytes, in_page);
}

/* Publishes the record; readers see it whole. */
static inline void op_mring_commit(struct op_mring_writer *writer)
{
	writer->record->size = (uint16_t)writer->nr_bytes;
	writer->head = writer->next;
	/* B, pairs with C in op_ring_begin: the record is stored before the head. */
	op_store_release(&writer->control->data_head, writer->head);
	/* No order: the writer may see a change of `wake` late. */
	writer->credit -= writer->wake & 1 ? 1 : writer->nr_bytes;
	if (op_unlikely(writer->credit <= 0 || op_load_relaxed(&writer->shared->wake) != writer->wake))
		op_mring_wake(writer);
}

/* Cancels the reservation; no reader sees anything of it. */
static inline void op_mring_abandon(struct op_mring_writer *writer)
{
	writer->limit = writer->head;
}

#endif
