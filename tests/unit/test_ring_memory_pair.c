/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pair of memory rings: the swap, step by step. tests/ring/torture.c has threads. */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/memory_ring.h"

#define BYTES 4096u

int __real_op_sys_membarrier(int command);
int __wrap_op_sys_membarrier(int command);

static bool refuse_membarrier;
static unsigned int nr_membarriers;

int __wrap_op_sys_membarrier(int command)
{
	nr_membarriers++;
	return refuse_membarrier ? -ENOSYS : __real_op_sys_membarrier(command);
}

struct box {
	struct mring_pair_box ends;
	uint64_t written;
	uint64_t expected;
};

static void open_box(void **state, unsigned int flags)
{
	struct box *box = calloc(1, sizeof(*box));

	nr_membarriers = 0;
	mring_pair_box_open(&box->ends, BYTES, flags);
	*state = box;
}

static int pair_setup(void **state)
{
	open_box(state, 0);
	return 0;
}

static int setup_fence(void **state)
{
	open_box(state, OP_MRING_FENCE);
	return 0;
}

static int setup_refused(void **state)
{
	refuse_membarrier = true;
	open_box(state, 0);
	return 0;
}

static int setup_overwrite(void **state)
{
	open_box(state, OP_MRING_OVERWRITE);
	return 0;
}

static int pair_teardown(void **state)
{
	struct box *box = *state;

	refuse_membarrier = false;
	mring_pair_box_close(&box->ends);
	free(box);
	return 0;
}

static int reserve(struct box *box)
{
	struct perf_event_header *record;
	int err = op_mring_pair_reserve(&box->ends.writer, 64, &record);

	if (err < 0)
		return err;
	record->type = PERF_RECORD_SAMPLE;
	for (size_t i = 1; i < 8; i++)
		memcpy((uint8_t *)record + 8 * i, &box->written, 8);
	return 0;
}

static int put(struct box *box)
{
	int err = reserve(box);

	if (!err)
		op_mring_pair_commit(&box->ends.writer);
	box->written++;
	return err;
}

/* Reads the frozen ring. Returns the sum of its LOST records. */
static uint64_t read_frozen(struct box *box)
{
	struct op_ring *ring = op_mring_pair_read_ring(&box->ends.reader);
	const struct perf_event_header *record;
	uint64_t lost = 0, word;

	assert_non_null(ring);
	op_ring_begin(ring);
	while ((record = op_ring_next(ring))) {
		word = memory_ring_word(record, 2);
		if (record->type == PERF_RECORD_LOST) {
			lost += word;
			box->expected += word;
			continue;
		}
		assert_int_equal(record->size, 64);
		assert_int_equal(word, box->expected++);
	}
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
	return lost;
}

static void gives_each_record_once_and_in_order(void **state)
{
	struct box *box = *state;

	for (int turn = 0; turn < 300; turn++) {
		for (int i = 0; i < turn % 60; i++)
			assert_int_equal(put(box), 0);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		read_frozen(box);
		assert_int_equal(box->expected, box->written);
	}
	assert_int_equal(box->ends.reader.baton.swap.swaps, 300);
	assert_int_equal(box->ends.reader.baton.swap.late, 0);
}

static void does_not_show_the_ring_that_is_written(void **state)
{
	struct box *box = *state;

	assert_int_equal(put(box), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_int_equal(put(box), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
}

static void waits_for_a_writer_in_mid_reserve(void **state)
{
	struct box *box = *state;

	assert_int_equal(put(box), 0);
	assert_int_equal(reserve(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), -EAGAIN);
	op_mring_pair_commit(&box->ends.writer);
	box->written++;
	assert_int_equal(put(box), 0); /* goes to the other ring */
	read_frozen(box);
	assert_int_equal(box->expected, 2);
	/* of one swap, however often the reader looked */
	assert_int_equal(box->ends.reader.baton.swap.late, 1);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 3);
	assert_int_equal(box->ends.reader.baton.swap.late, 1);
}

static void is_quiet_after_an_abandoned_reservation(void **state)
{
	struct box *box = *state;

	assert_int_equal(reserve(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	op_mring_pair_abandon(&box->ends.writer);
	read_frozen(box);
	assert_int_equal(box->expected, 0);
}

static void does_not_swap_before_all_is_read(void **state)
{
	struct box *box = *state;
	struct op_ring *ring;

	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), -EBUSY);
	ring = op_mring_pair_read_ring(&box->ends.reader);
	op_ring_begin(ring);
	assert_non_null(op_ring_next(ring));
	op_ring_end(ring);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
}

static void tells_losses_in_the_ring_of_the_next_success(void **state)
{
	struct box *box = *state;

	while (put(box) == 0)
		;
	assert_int_equal(put(box), -ENOSPC);
	assert_int_equal(put(box), -ENOSPC);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_int_equal(put(box), 0);
	assert_int_equal(read_frozen(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_int_equal(read_frozen(box), 3);
	assert_int_equal(box->expected, box->written);
	assert_int_equal(op_mring_pair_dropped(&box->ends.pair), 3);
}

static void hands_losses_to_the_next_writer(void **state)
{
	struct box *box = *state;

	for (int turn = 0; turn < 5; turn++) {
		while (put(box) == 0)
			;
		op_mring_pair_writer_died(&box->ends.pair);
		assert_int_equal(op_mring_pair_writer_open(&box->ends.pair, &box->ends.writer), 0);
		assert_int_equal(put(box), -ENOSPC);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		assert_int_equal(put(box), 0);
		read_frozen(box);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		assert_int_equal(read_frozen(box), 2);
		assert_int_equal(box->expected, box->written);
	}
}

static void goes_on_after_a_writer_that_died_inside(void **state)
{
	struct box *box = *state;

	assert_int_equal(put(box), 0);
	assert_int_equal(reserve(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	assert_int_equal(op_mring_pair_writer_open(&box->ends.pair, &box->ends.writer), -EBUSY);
	op_mring_pair_writer_died(&box->ends.pair);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
	assert_int_equal(op_mring_pair_writer_open(&box->ends.pair, &box->ends.writer), 0);
	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 2);
}

/* Snapshots join without a gap: no record is in two of them. */
static void joins_snapshots(void **state)
{
	struct box *box = *state;
	const struct perf_event_header *record;

	for (uint64_t turn = 0; turn < 200; turn++) {
		uint64_t nr_new = turn % 100, nr = 0;
		struct op_ring *ring;

		for (uint64_t i = 0; i < nr_new; i++)
			assert_int_equal(put(box), 0);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		ring = op_mring_pair_read_ring(&box->ends.reader);
		op_ring_begin(ring);
		while ((record = op_ring_next(ring))) {
			assert_int_equal(memory_ring_word(record, 2), box->written - ++nr);
		}
		op_ring_end(ring);
		assert_int_equal(nr, nr_new < BYTES / 64 ? nr_new : BYTES / 64);
	}
}

static void read_newest(struct box *box)
{
	struct op_ring *ring = op_mring_pair_read_ring(&box->ends.reader);
	const struct perf_event_header *record;

	assert_non_null(ring);
	op_ring_begin(ring);
	for (uint64_t number = box->written; number > box->expected; number--) {
		record = op_ring_next(ring);
		assert_non_null(record);
		assert_int_equal(memory_ring_word(record, 2), number - 1);
	}
	assert_null(op_ring_next(ring));
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
	box->expected = box->written;
}

/* A reservation followed by another one, with and without a swap between them. */
static void forgets_what_was_not_committed(void **state)
{
	struct box *box = *state;
	bool overwrites = box->ends.pair.rings[0].flags & OP_MRING_OVERWRITE;

	for (int turn = 0; turn < 40; turn++) {
		assert_int_equal(put(box), 0);
		assert_int_equal(reserve(box), 0);
		if (turn % 4 < 2)
			assert_int_equal(reserve(box), 0);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		assert_null(op_mring_pair_read_ring(&box->ends.reader));
		if (turn % 2)
			assert_int_equal(reserve(box), 0); /* in the other ring */
		else
			op_mring_pair_abandon(&box->ends.writer);
		if (overwrites)
			read_newest(box);
		else
			read_frozen(box);
		assert_int_equal(box->expected, box->written);
	}
}

ssize_t __real_op_sys_write(int fd, const void *buffer, size_t nr_bytes);
ssize_t __wrap_op_sys_write(int fd, const void *buffer, size_t nr_bytes);

static struct box *watched; /* is read at the moment of a wake-up */
static unsigned int nr_bells;

ssize_t __wrap_op_sys_write(int fd, const void *buffer, size_t nr_bytes)
{
	if (watched && (fd == watched->ends.pair.rings[0].wake_fd || fd == watched->ends.pair.rings[1].wake_fd)) {
		nr_bells++;
		assert_int_equal(op_mring_pair_swap(&watched->ends.reader), 0);
		read_frozen(watched);
	}
	return __real_op_sys_write(fd, buffer, nr_bytes);
}

static void wakes_through_one_descriptor(void **state)
{
	struct box *box = *state;
	struct pollfd pollfd = { .fd = box->ends.pair.rings[0].wake_fd, .events = POLLIN };

	op_mring_pair_wake_every(&box->ends.pair, 1, true);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(poll(&pollfd, 1, 0), 0);
		assert_int_equal(put(box), 0);
		assert_int_equal(poll(&pollfd, 1, 0), 1);
		op_mring_wake_clear(&box->ends.pair.rings[0]);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		read_frozen(box);
	}
	assert_int_equal(box->expected, 4);
}

/*
 * The third record wakes the reader, in whichever rings the first two are: a swap resets nothing.
 */
static void counts_until_a_wake_up_over_swaps(void **state)
{
	struct box *box = *state;
	struct pollfd pollfd = { .fd = box->ends.pair.rings[0].wake_fd, .events = POLLIN };

	op_mring_pair_wake_every(&box->ends.pair, 3, true);
	for (int i = 1; i <= 30; i++) {
		assert_int_equal(put(box), 0);
		assert_int_equal(poll(&pollfd, 1, 0), i % 3 == 0);
		op_mring_wake_clear(&box->ends.pair.rings[0]);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		read_frozen(box);
	}
}

/* The woken reader finds the writer outside, though the writer just asked for its ring. */
static void wakes_when_it_is_outside(void **state)
{
	struct box *box = *state;

	op_mring_pair_wake_every(&box->ends.pair, 1, true);
	watched = box;
	for (int i = 0; i < 4; i++) {
		nr_bells = 0;
		assert_int_equal(put(box), 0);
		assert_int_equal(nr_bells, 1);
	}
	watched = NULL;
	assert_int_equal(box->expected, 4);
}

/* The other process may change the description in any way. */
static void clearing_never_waits(void **state)
{
	struct box *box = *state;
	int fd = box->ends.pair.rings[0].wake_fd;

	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	alarm(10);
	op_mring_wake_clear(&box->ends.pair.rings[0]);
	alarm(0);
}

static void is_read_by_its_descriptors(void **state)
{
	struct box *box = *state;
	struct op_mring_pair other;
	int fds[2] = { box->ends.pair.rings[0].fd, box->ends.pair.rings[1].fd };

	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_attach(fds, box->ends.pair.rings[0].wake_fd, &other), 0);
	op_mring_pair_reader_close(&box->ends.reader);
	assert_int_equal(op_mring_pair_reader_open(&other, &box->ends.reader), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
	op_mring_pair_reader_close(&box->ends.reader);
	op_mring_pair_destroy(&other);
	assert_int_equal(op_mring_pair_reader_open(&box->ends.pair, &box->ends.reader), 0);
	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 2);
}

/* A reader that writes nonsense to `epoch`: the writer stays within its two rings. */
static void does_not_believe_the_turn(void **state)
{
	struct box *box = *state;
	uint64_t lies[] = { 2, UINT64_MAX, 7, 0x8000000000000000 };

	for (size_t i = 0; i < op_array_size(lies); i++) {
		box->ends.pair.rings[0].shared->epoch = lies[i];
		assert_int_equal(put(box), 0);
		assert_true(box->ends.writer.index < 2);
	}
}

static void does_without_a_fence_behind_its_reader(void **state)
{
	struct box *box = *state;

	if (!box->ends.reader.baton.swap.barrier)
		/* the kernel has no membarrier, or ThreadSanitizer would not understand it */
		skip();
	assert_false(box->ends.writer.fence);
	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_int_equal(put(box), 0); /* writes the new epoch: that is an answer */
	read_frozen(box);
	assert_int_equal(box->expected, 1);
	assert_int_equal(box->ends.reader.baton.swap.barriers, 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box); /* the writer rests */
	read_frozen(box);
	assert_int_equal(box->expected, 2);
	assert_int_equal(box->ends.reader.baton.swap.barriers, 1);
}

/* A writer that is about to write the old epoch again has not written the new one. */
static void knows_an_old_turn_from_a_new_one(void **state)
{
	struct box *box = *state;

	assert_int_equal(put(box), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		read_frozen(box);
	}
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	box->ends.pair.rings[0].shared->inside = 1 << 1 | OP_MRING_PAIR_IN;
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	box->ends.pair.rings[0].shared->inside = 3 << 1 | OP_MRING_PAIR_IN;
	assert_non_null(op_mring_pair_read_ring(&box->ends.reader));
}

static void fences_when_it_opens_before_the_reader(void **state)
{
	struct op_mring_pair pair;
	struct op_mring_pair_writer writer;

	(void)state;
	assert_int_equal(op_mring_pair_create(BYTES, 0, &pair), 0);
	assert_int_equal(op_mring_pair_writer_open(&pair, &writer), 0);
	assert_true(writer.fence);
	op_mring_pair_destroy(&pair);
}

static int in_a_child(const struct op_mring_pair *pair, int (*ask)(const struct op_mring_pair *pair))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(ask(pair));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int does_its_writer_fence(const struct op_mring_pair *pair)
{
	struct op_mring_pair_writer writer;

	return op_mring_pair_writer_open(pair, &writer) < 0 ? 2 : writer.fence;
}

static int command_of_its_reader(const struct op_mring_pair *pair)
{
	struct op_mring_pair_reader reader;

	if (op_mring_pair_reader_open(pair, &reader) < 0)
		return -1;
	return reader.baton.swap.barrier;
}

/* membarrier(2) of one process does not reach another one, whatever its number. */
static void fences_in_another_process(void **state)
{
	struct box *box = *state;

	op_mring_pair_writer_close(&box->ends.writer);
	assert_int_equal(in_a_child(&box->ends.pair, does_its_writer_fence), 1);
	op_mring_pair_writer_died(&box->ends.pair);
	assert_int_equal(op_mring_pair_writer_open(&box->ends.pair, &box->ends.writer), 0);
}

static void fences_for_a_writer_of_the_reader_before(void **state)
{
	struct box *box = *state;

	if (!box->ends.reader.baton.swap.barrier)
		/* the kernel has no membarrier, or ThreadSanitizer would not understand it */
		skip();
	assert_int_equal(box->ends.reader.baton.swap.barrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	assert_int_equal(in_a_child(&box->ends.pair, command_of_its_reader), MEMBARRIER_CMD_GLOBAL);
	/* The writer has promised nothing for its own process, and has taken nothing back. */
	op_mring_pair_writer_close(&box->ends.writer);
	assert_int_equal(op_mring_pair_writer_open(&box->ends.pair, &box->ends.writer), 0);
	assert_false(box->ends.writer.fence);
}

static void fences_when_it_is_asked_to(void **state)
{
	struct box *box = *state;

	assert_true(box->ends.writer.fence);
	assert_false(box->ends.reader.baton.swap.barrier);
	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(nr_membarriers, 0);
}

static void fences_when_the_kernel_cannot(void **state)
{
	struct box *box = *state;

	assert_true(box->ends.writer.fence);
	assert_false(box->ends.reader.baton.swap.barrier);
	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
}

static void keeps_the_promise_of_the_reader_before(void **state)
{
	struct box *box = *state;

	if (!box->ends.reader.baton.swap.barrier)
		skip();
	assert_int_equal(put(box), 0);
	op_mring_pair_reader_close(&box->ends.reader);
	refuse_membarrier = true;
	assert_int_equal(op_mring_pair_reader_open(&box->ends.pair, &box->ends.reader), 0);
	assert_true(box->ends.reader.baton.swap.barrier);
	/* the writer has written this epoch */
	assert_non_null(op_mring_pair_read_ring(&box->ends.reader));
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	/* the writer is idle, and nobody knows where */
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	assert_int_equal(put(box), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	refuse_membarrier = false;
	read_frozen(box);
	assert_int_equal(box->expected, 2);
}

static void says_what_is_waiting(void **state)
{
	struct box *box = *state;

	assert_int_equal(op_mring_pair_waiting(&box->ends.reader), 0);
	for (int turn = 1; turn <= 5; turn++) {
		for (int i = 0; i < turn; i++)
			assert_int_equal(put(box), 0);
		assert_int_equal(op_mring_pair_waiting(&box->ends.reader), turn * 64);
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		assert_int_equal(op_mring_pair_waiting(&box->ends.reader), 0);
		read_frozen(box);
	}
}

/* ---- the baton ---- */

static struct op_mring_pair_swapper lend_and_open(struct box *box)
{
	struct op_mring_pair_swapper swapper;

	assert_int_equal(op_mring_pair_lend(&box->ends.reader), 0);
	assert_int_equal(op_mring_pair_swapper_open(&box->ends.reader.baton, &swapper), 0);
	return swapper;
}

static void gives_each_record_once_whoever_swaps(void **state)
{
	struct box *box = *state;

	for (int turn = 0; turn < 300; turn++) {
		for (int i = 0; i < turn % 60; i++)
			assert_int_equal(put(box), 0);
		if (turn % 3) {
			struct op_mring_pair_swapper swapper = lend_and_open(box);

			assert_int_equal(op_mring_pair_swapper_swap(&swapper), 0);
			assert_int_equal(op_mring_pair_swapper_swap(&swapper), 0); /* swaps once */
			op_mring_pair_swapper_close(&swapper);
		} else {
			assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
		}
		read_frozen(box);
		assert_int_equal(box->expected, box->written);
	}
	assert_int_equal(box->ends.reader.baton.swap.swaps, 300);
}

static void has_no_ring_while_the_baton_is_lent(void **state)
{
	struct box *box = *state;
	struct op_mring_pair_swapper swapper, second;

	/* not lent */
	assert_int_equal(op_mring_pair_swapper_open(&box->ends.reader.baton, &second), -EAGAIN);
	swapper = lend_and_open(box);
	/* taken */
	assert_int_equal(op_mring_pair_swapper_open(&box->ends.reader.baton, &second), -EAGAIN);
	for (int i = 0; i < 2; i++) {
		assert_null(op_mring_pair_read_ring(&box->ends.reader));
		assert_int_equal(op_mring_pair_swap(&box->ends.reader), -EAGAIN);
		assert_int_equal(op_mring_pair_lend(&box->ends.reader), -EAGAIN);
		assert_int_equal(op_mring_pair_recall(&box->ends.reader), -EAGAIN);
		assert_int_equal(op_mring_pair_swapper_swap(&swapper), 0);
	}
	op_mring_pair_swapper_close(&swapper);
	assert_null(swapper.baton);
	/* back */
	assert_int_equal(op_mring_pair_swapper_open(&box->ends.reader.baton, &second), -EAGAIN);
	assert_non_null(op_mring_pair_read_ring(&box->ends.reader));
}

static void takes_the_baton_back_when_nobody_has_it(void **state)
{
	struct box *box = *state;
	struct op_mring_pair_swapper swapper;

	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_recall(&box->ends.reader), 0); /* it was not lent */
	assert_int_equal(op_mring_pair_waiting(&box->ends.reader), 64);
	assert_int_equal(op_mring_pair_lend(&box->ends.reader), 0);
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	assert_int_equal(op_mring_pair_waiting(&box->ends.reader), 0);
	assert_int_equal(op_mring_pair_recall(&box->ends.reader), 0);
	assert_int_equal(op_mring_pair_swapper_open(&box->ends.reader.baton, &swapper), -EAGAIN);
	read_frozen(box);
	assert_int_equal(box->expected, 0); /* nobody has swapped */
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
}

/* The writer is inside when the baton is given back: the reader keeps looking. */
static void leaves_the_waiting_to_the_reader(void **state)
{
	struct box *box = *state;
	struct op_mring_pair_swapper swapper;

	assert_int_equal(reserve(box), 0);
	swapper = lend_and_open(box);
	assert_int_equal(op_mring_pair_swapper_swap(&swapper), -EAGAIN);
	assert_int_equal(op_mring_pair_swapper_swap(&swapper), -EAGAIN);
	op_mring_pair_swapper_close(&swapper);
	assert_null(op_mring_pair_read_ring(&box->ends.reader));
	op_mring_pair_commit(&box->ends.writer);
	box->written++;
	read_frozen(box);
	assert_int_equal(box->expected, 1);
	assert_int_equal(box->ends.reader.baton.swap.swaps, 1);
}

static void gives_the_baton_back_as_it_was(void **state)
{
	struct box *box = *state;
	struct op_mring_pair_swapper swapper;

	assert_int_equal(put(box), 0);
	swapper = lend_and_open(box);
	op_mring_pair_swapper_close(&swapper);
	assert_int_equal(put(box), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	read_frozen(box);
	assert_int_equal(box->expected, 2);
}

static void does_not_lend_before_all_is_read(void **state)
{
	struct box *box = *state;

	assert_int_equal(put(box), 0);
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), 0);
	assert_int_equal(op_mring_pair_lend(&box->ends.reader), -EBUSY);
	read_frozen(box);
	assert_int_equal(op_mring_pair_lend(&box->ends.reader), 0);
	assert_int_equal(op_mring_pair_recall(&box->ends.reader), 0);
}

/* The swapping thread calls the barrier, and that is enough for the reader. */
static void calls_the_barrier_where_it_swaps(void **state)
{
	struct box *box = *state;
	struct op_mring_pair_swapper swapper;

	if (!box->ends.reader.baton.swap.barrier)
		/* the kernel has no membarrier, or ThreadSanitizer would not understand it */
		skip();
	assert_int_equal(put(box), 0);
	swapper = lend_and_open(box);
	nr_membarriers = 0;
	assert_int_equal(op_mring_pair_swapper_swap(&swapper), 0); /* the writer rests */
	assert_int_equal(nr_membarriers, 1);
	op_mring_pair_swapper_close(&swapper);
	read_frozen(box);
	assert_int_equal(box->expected, 1);
	assert_int_equal(nr_membarriers, 1);
}

#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gives_each_record_once_and_in_order, pair_setup),
		TEST(gives_each_record_once_and_in_order, setup_fence),
		TEST(gives_each_record_once_and_in_order, setup_refused),
		TEST(waits_for_a_writer_in_mid_reserve, setup_fence),
		TEST(goes_on_after_a_writer_that_died_inside, setup_fence),
		TEST(does_without_a_fence_behind_its_reader, pair_setup),
		TEST(knows_an_old_turn_from_a_new_one, pair_setup),
		TEST(knows_an_old_turn_from_a_new_one, setup_fence),
		TEST(fences_when_it_opens_before_the_reader, pair_setup),
		TEST(fences_in_another_process, pair_setup),
		TEST(fences_for_a_writer_of_the_reader_before, pair_setup),
		TEST(fences_when_it_is_asked_to, setup_fence),
		TEST(fences_when_the_kernel_cannot, setup_refused),
		TEST(keeps_the_promise_of_the_reader_before, pair_setup),
		TEST(says_what_is_waiting, pair_setup),
		TEST(does_not_show_the_ring_that_is_written, pair_setup),
		TEST(waits_for_a_writer_in_mid_reserve, pair_setup),
		TEST(is_quiet_after_an_abandoned_reservation, pair_setup),
		TEST(does_not_swap_before_all_is_read, pair_setup),
		TEST(tells_losses_in_the_ring_of_the_next_success, pair_setup),
		TEST(hands_losses_to_the_next_writer, pair_setup),
		TEST(goes_on_after_a_writer_that_died_inside, pair_setup),
		TEST(forgets_what_was_not_committed, pair_setup),
		TEST(forgets_what_was_not_committed, setup_overwrite),
		TEST(joins_snapshots, setup_overwrite),
		TEST(wakes_through_one_descriptor, pair_setup),
		TEST(counts_until_a_wake_up_over_swaps, pair_setup),
		TEST(wakes_when_it_is_outside, pair_setup),
		TEST(clearing_never_waits, pair_setup),
		TEST(is_read_by_its_descriptors, pair_setup),
		TEST(does_not_believe_the_turn, pair_setup),
		TEST(gives_each_record_once_whoever_swaps, pair_setup),
		TEST(gives_each_record_once_whoever_swaps, setup_fence),
		TEST(has_no_ring_while_the_baton_is_lent, pair_setup),
		TEST(takes_the_baton_back_when_nobody_has_it, pair_setup),
		TEST(leaves_the_waiting_to_the_reader, pair_setup),
		TEST(leaves_the_waiting_to_the_reader, setup_fence),
		TEST(gives_the_baton_back_as_it_was, pair_setup),
		TEST(does_not_lend_before_all_is_read, pair_setup),
		TEST(calls_the_barrier_where_it_swaps, pair_setup),
	};

	return cmocka_run_group_tests_name("ring_memory_pair", tests, NULL, NULL);
}
