/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring/memory_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <unistd.h>

#include "libop/ring/process_token.h"
#include "libop/base/sys.h"

/* as long as a few records take: by then a busy writer has stored the new epoch */
#define LOOKS_BEFORE_BARRIER 64

/* Both rings use the wake_fd of the first. */
static int share_wake_fd(struct op_mring_pair *pair)
{
	int fd = op_sys_fcntl(pair->rings[0].wake_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	close(pair->rings[1].wake_fd);
	pair->rings[1].wake_fd = fd;
	return 0;
}

int op_mring_pair_create(size_t data_bytes, unsigned int flags, struct op_mring_pair *ret_pair)
{
	struct op_mring_pair pair = { 0 };
	int err;

	err = op_mring_create(data_bytes, 0, flags, &pair.rings[0]);
	if (!err)
		err = op_mring_create(data_bytes, 0, flags, &pair.rings[1]);
	if (!err)
		err = share_wake_fd(&pair);
	if (err < 0) {
		op_mring_pair_destroy(&pair);
		return err;
	}
	*ret_pair = pair;
	return 0;
}

int op_mring_pair_attach(const int fds[2], int wake_fd, struct op_mring_pair *ret_pair)
{
	struct op_mring_pair pair = { 0 };
	int err;

	err = op_mring_attach(fds[0], wake_fd, &pair.rings[0]);
	if (!err)
		err = op_mring_attach(fds[1], wake_fd, &pair.rings[1]);
	if (!err && (pair.rings[0].flags != pair.rings[1].flags || pair.rings[0].data_bytes != pair.rings[1].data_bytes))
		err = -EINVAL;
	if (err < 0) {
		op_mring_pair_destroy(&pair);
		return err;
	}
	*ret_pair = pair;
	return 0;
}

void op_mring_pair_destroy(struct op_mring_pair *pair)
{
	if (!pair)
		return;
	op_mring_destroy(&pair->rings[1]);
	op_mring_destroy(&pair->rings[0]);
}

void op_mring_pair_wake_every(const struct op_mring_pair *pair, uint64_t every, bool records)
{
	for (int i = 0; i < 2; i++)
		op_mring_wake_every(&pair->rings[i], every, records);
}

uint64_t op_mring_pair_dropped(const struct op_mring_pair *pair)
{
	return op_mring_dropped(&pair->rings[0]) + op_mring_dropped(&pair->rings[1]);
}

/* `promised` is one load of the word, because the other party may change it. */
static bool is_promised_here(uint64_t promised)
{
	return promised && promised == op_process_token();
}

int op_mring_pair_writer_open(const struct op_mring_pair *pair, struct op_mring_pair_writer *ret_writer)
{
	struct op_mring_pair_writer writer = { .shared = pair->rings[0].shared };
	int err;

	err = op_mring_writer_open(&pair->rings[0], &writer.writers[0]);
	if (err < 0)
		return err;
	err = op_mring_writer_open(&pair->rings[1], &writer.writers[1]);
	if (err < 0) {
		op_mring_writer_close(&writer.writers[0]);
		return err;
	}
	/*
	 * No order: a guess, as in op_mring_pair_enter_slow. By K it is not older than what the
	 * last writer stored.
	 */
	writer.epoch = op_load_relaxed(&writer.shared->epoch);
	writer.index = writer.epoch & 1;
	writer.writers[0].wakes_later = writer.writers[1].wakes_later = true;
	/* No order: a writer that sees it late fences. */
	writer.fence = !is_promised_here(op_load_relaxed(&writer.shared->barrier));
	/*
	 * Losses of one ring may be reported in the other one: only the sum of both is the number
	 * of records.
	 */
	writer.writers[writer.index].pending += writer.writers[!writer.index].pending;
	writer.writers[!writer.index].pending = 0;
	*ret_writer = writer;
	return 0;
}

void op_mring_pair_writer_close(struct op_mring_pair_writer *writer)
{
	op_mring_writer_close(&writer->writers[1]);
	op_mring_writer_close(&writer->writers[0]);
}

void op_mring_pair_writer_died(const struct op_mring_pair *pair)
{
	/* In place of I: the thread is gone, and so are its uncommitted bytes. */
	op_store_release(&pair->rings[0].shared->inside, 0);
	op_mring_writer_died(&pair->rings[1]);
	op_mring_writer_died(&pair->rings[0]);
}

/*
 * Takes the unreported losses along, because the LOST record precedes the next success in either
 * ring, and the credit until the next wake-up.
 */
static void change_ring(struct op_mring_pair_writer *writer, unsigned int index)
{
	struct op_mring_writer *from = &writer->writers[writer->index];
	struct op_mring_writer *to = &writer->writers[index];

	if (index == writer->index)
		return;
	to->pending += from->pending;
	from->pending = 0;
	if (to->pending)
		to->limit = to->head;
	to->wake = from->wake;
	to->credit = from->credit;
	writer->index = index;
}

struct op_mring_writer *op_mring_pair_enter_slow(struct op_mring_pair_writer *writer)
{
	uint64_t epoch;

	do {
		/* No order: a guess, F decides. The other party may have stored anything. */
		epoch = op_load_relaxed(&writer->shared->epoch);
		change_ring(writer, epoch & 1);
		writer->epoch = epoch;
		/* Each iteration needs a swap, and the next swap waits for us. */
	} while (op_mring_pair_announce(writer) != epoch);
	return &writer->writers[writer->index];
}

/*
 * Later readers keep a promise, because its writer may still exist. Only GLOBAL reaches a writer of
 * another process: GLOBAL_EXPEDITED skips CPUs that it must not skip (doc/ring.md).
 */
static int choose_barrier(const struct op_mring *ring)
{
	uint64_t promised = op_load_relaxed(&ring->shared->barrier);

	if (promised && !is_promised_here(promised))
		return MEMBARRIER_CMD_GLOBAL;
	if (promised)
		return MEMBARRIER_CMD_PRIVATE_EXPEDITED;
	if (!OP_HAVE_LIGHT_STORE || ring->flags & OP_MRING_FENCE || !op_process_token())
		return 0;
	return op_sys_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) < 0 ? 0 : MEMBARRIER_CMD_PRIVATE_EXPEDITED;
}

int op_mring_pair_reader_open(const struct op_mring_pair *pair, struct op_mring_pair_reader *ret_reader)
{
	struct op_mring_shared *shared = pair->rings[0].shared;
	struct op_mring_swap swap = {
		.shared = shared,
		.epoch = op_load_relaxed(&shared->epoch),
		.is_late = true,
	};
	struct op_mring_pair_reader reader = { .read = !(swap.epoch & 1) };
	int err;

	err = op_mring_reader(&pair->rings[0], &reader.rings[0]);
	if (err < 0)
		return err;
	err = op_mring_reader(&pair->rings[1], &reader.rings[1]);
	if (err < 0) {
		op_ring_unmap(&reader.rings[0]);
		return err;
	}
	swap.barrier = choose_barrier(&pair->rings[0]);
	swap.due = swap.barrier;
	if (swap.barrier == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		op_store_relaxed(&shared->barrier, op_process_token());
	reader.baton = (struct op_mring_baton){ .swap = swap, .holder = OP_MRING_HELD_BY_READER };
	*ret_reader = reader;
	return 0;
}

void op_mring_pair_reader_close(struct op_mring_pair_reader *reader)
{
	op_ring_unmap(&reader->rings[1]);
	op_ring_unmap(&reader->rings[0]);
}

enum writer_state { WRITER_LEFT, WRITER_INSIDE, WRITER_RESTS };

/*
 * The state of the writer in the frozen ring. A resting one has not stored the new epoch, and may
 * be about to store the old one.
 */
static enum writer_state look_for_writer(const struct op_mring_swap *swap, unsigned int nr_looks)
{
	while (nr_looks--) {
		/*
		 * H, pairs with E: a writer that did not see G is seen inside. Pairs also with I,
		 * and with E of the new epoch: a writer that has left has committed.
		 */
		uint64_t inside = op_load_fence(&swap->shared->inside);

		if (inside >> 1 == swap->epoch)
			return WRITER_LEFT;
		if (inside & OP_MRING_PAIR_IN)
			return WRITER_INSIDE;
	}
	return WRITER_RESTS;
}

static bool is_quiet(struct op_mring_swap *swap)
{
	enum writer_state writer = look_for_writer(swap, swap->due ? LOOKS_BEFORE_BARRIER : 1);

	if (writer == WRITER_RESTS && swap->due) {
		/* All threads of the process pass a full fence during this call. */
		if (op_sys_membarrier(swap->barrier) < 0)
			return false;
		swap->due = false;
		swap->barriers++;
		writer = look_for_writer(swap, 1);
	}
	if (writer == WRITER_INSIDE && !swap->is_late) {
		swap->is_late = true;
		swap->late++;
	}
	return writer != WRITER_INSIDE;
}

static bool is_frozen(struct op_mring_swap *swap)
{
	/* Once is enough: a writer that enters later sees G and takes the other ring. */
	if (!swap->quiet)
		swap->quiet = is_quiet(swap);
	return swap->quiet;
}

static void advance_epoch(struct op_mring_swap *swap)
{
	/*
	 * G, pairs with F in op_mring_pair_announce: the new epoch is seen before H loads. The
	 * returned space (D) is stored before.
	 */
	op_store_fence(&swap->shared->epoch, ++swap->epoch);
	swap->quiet = false;
	swap->is_late = false;
	swap->due = swap->barrier;
	swap->swaps++;
}

static void take_back(struct op_mring_pair_reader *reader)
{
	reader->lent = false;
	reader->read = !(reader->baton.swap.epoch & 1);
}

static bool has_baton(struct op_mring_pair_reader *reader)
{
	if (!reader->lent)
		return true;
	/*
	 * W, pairs with V in op_mring_pair_swapper_close: the swap, and what H saw of the writer,
	 * is seen.
	 */
	if (op_load_acquire(&reader->baton.holder) != OP_MRING_HELD_BY_READER)
		return false;
	take_back(reader);
	return true;
}

struct op_ring *op_mring_pair_read_ring(struct op_mring_pair_reader *reader)
{
	return has_baton(reader) && is_frozen(&reader->baton.swap) ? &reader->rings[reader->read] : NULL;
}

uint64_t op_mring_pair_waiting(const struct op_mring_pair_reader *reader)
{
	const struct op_ring *ring = &reader->rings[!reader->read];
	uint64_t head;

	if (reader->lent)
		return 0;
	/* No order: a hint, op_ring_begin looks again. */
	head = op_load_relaxed(&ring->k_control->data_head);
	return ring->flags & OP_RING_BACKWARD ? ring->known - head : head - ring->tail;
}

/* 0, or the error when a swap is not possible now. */
static int look_for_swap(struct op_mring_pair_reader *reader)
{
	const struct op_ring *ring = op_mring_pair_read_ring(reader);

	if (!ring)
		return -EAGAIN;
	return op_ring_pending(ring) ? -EBUSY : 0;
}

int op_mring_pair_swap(struct op_mring_pair_reader *reader)
{
	int err = look_for_swap(reader);

	if (err < 0)
		return err;
	advance_epoch(&reader->baton.swap);
	reader->read = !reader->read;
	return 0;
}

int op_mring_pair_lend(struct op_mring_pair_reader *reader)
{
	int err = look_for_swap(reader);

	if (err < 0)
		return err;
	reader->lent = true;
	/*
	 * J, pairs with O in op_mring_pair_swapper_open: the records are loaded and the state of
	 * the swap is stored before.
	 */
	op_store_release(&reader->baton.holder, OP_MRING_HELD_BY_NOBODY);
	return 0;
}

int op_mring_pair_recall(struct op_mring_pair_reader *reader)
{
	if (has_baton(reader))
		return 0;
	/* O, pairs with J of the same thread: no swapper was in between. */
	if (!op_claim(&reader->baton.holder, OP_MRING_HELD_BY_READER))
		return -EAGAIN;
	take_back(reader);
	return 0;
}

int op_mring_pair_swapper_open(struct op_mring_baton *baton, struct op_mring_pair_swapper *ret_swapper)
{
	/*
	 * No order: a hint. Checking many batons that are not lent leaves their cache lines where
	 * they are.
	 */
	if (op_load_relaxed(&baton->holder) != OP_MRING_HELD_BY_NOBODY)
		return -EAGAIN;
	/*
	 * O, pairs with J in op_mring_pair_lend: the stores of the reader are seen, and the swap
	 * begins after its loads.
	 */
	if (!op_claim(&baton->holder, OP_MRING_HELD_BY_SWAPPER))
		return -EAGAIN;
	*ret_swapper = (struct op_mring_pair_swapper){ .baton = baton };
	return 0;
}

int op_mring_pair_swapper_swap(struct op_mring_pair_swapper *swapper)
{
	if (!swapper->swapped)
		advance_epoch(&swapper->baton->swap);
	swapper->swapped = true;
	return is_frozen(&swapper->baton->swap) ? 0 : -EAGAIN;
}

void op_mring_pair_swapper_close(struct op_mring_pair_swapper *swapper)
{
	/* V, pairs with W in has_baton: the swap, and what H saw, are done before. */
	op_store_release(&swapper->baton->holder, OP_MRING_HELD_BY_READER);
	*swapper = (struct op_mring_pair_swapper){ .baton = NULL };
}
