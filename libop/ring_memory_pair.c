/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring_memory_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/sys.h"

/* The second ring wakes by the first one's descriptor. */
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
	/* What a ring lost may have been told in the other one: only the sum of the two is a number of records. */
	writer.writers[0].pending += writer.writers[1].pending;
	writer.writers[1].pending = 0;
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
	/* In the place of I: its thread is gone, and so is what it had not committed. */
	op_store_release(&pair->rings[0].shared->inside, 0);
	op_mring_writer_died(&pair->rings[1]);
	op_mring_writer_died(&pair->rings[0]);
}

/* The losses that were not told go along: the LOST record stands before the next success, wherever that is. */
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
	writer->index = index;
}

struct op_mring_writer *op_mring_pair_enter_slow(struct op_mring_pair_writer *writer)
{
	for (;;) {
		/* No order: a guess, F decides. The other party may have written anything. */
		change_ring(writer, op_load_relaxed(&writer->shared->write_index) & 1);
		/*
		 * E and F, as in op_mring_pair_enter. Each turn of this loop is a swap by the reader, which waits for us in
		 * between.
		 */
		op_store_fence(&writer->shared->inside, writer->index + 1);
		if ((op_load_fence(&writer->shared->write_index) & 1) == writer->index)
			return &writer->writers[writer->index];
	}
}

void op_mring_pair_reader_open(const struct op_mring_pair *pair, struct op_mring_pair_reader *ret_reader)
{
	*ret_reader = (struct op_mring_pair_reader){ .shared = pair->rings[0].shared };
	op_mring_reader(&pair->rings[0], &ret_reader->rings[0]);
	op_mring_reader(&pair->rings[1], &ret_reader->rings[1]);
	ret_reader->read = !(op_load_relaxed(&ret_reader->shared->write_index) & 1);
}

void op_mring_pair_reader_close(struct op_mring_pair_reader *reader)
{
	op_ring_unmap(&reader->rings[1]);
	op_ring_unmap(&reader->rings[0]);
}

struct op_ring *op_mring_pair_read_ring(struct op_mring_pair_reader *reader)
{
	/*
	 * H, pairs with E: a writer that G came too late for is seen inside. Pairs with I: one that has left has committed. Once is
	 * enough: a writer that goes in later sees G and turns round.
	 */
	if (!reader->quiet)
		reader->quiet = op_load_fence(&reader->shared->inside) != reader->read + 1;
	if (!reader->quiet) {
		reader->late++;
		return NULL;
	}
	return &reader->rings[reader->read];
}

int op_mring_pair_swap(struct op_mring_pair_reader *reader)
{
	struct op_ring *ring = op_mring_pair_read_ring(reader);

	if (!ring)
		return -EAGAIN;
	if (op_ring_pending(ring))
		return -EBUSY;
	/*
	 * G, pairs with F in op_mring_pair_enter: "not yours any more" is seen before H looks. What was given back (D) is
	 * stored before.
	 */
	op_store_fence(&reader->shared->write_index, reader->read);
	reader->read = !reader->read;
	reader->quiet = false;
	reader->swaps++;
	return 0;
}
