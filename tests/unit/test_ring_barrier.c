/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The promise of a membarrier(2) in the control page of a pair (`barrier`), as another process may
 * have left it or may write it beside the reader: doc/ring.md, "Nobody is believed". A false
 * promise may make the reader wait or not read, and nothing else.
 */
#include <errno.h>
#include <linux/membarrier.h>

#include "libop/ring/process_token.h"
#include "tests/unit/memory_ring.h"

#define BYTES	     4096u
#define RECORD_BYTES 64u
#define NR_SWAPS     5u
#define NR_LOOKS     4u

int __wrap_op_sys_membarrier(int command);

/* A simulated kernel: one thread needs no barrier. */
static bool refuses;
static int last_command;
static unsigned int nr_calls;

int __wrap_op_sys_membarrier(int command)
{
	last_command = command;
	nr_calls++;
	return refuses ? -EPERM : 0;
}

/*
 * The mappings of the reader and of the writer are in this process. `other` is the mapping of
 * another process.
 */
struct box {
	struct mring_pair_box ends;
	struct op_mring_pair other;
	uint64_t written, expected;
};

static int expected_command(uint64_t word)
{
	if (!word)
		return OP_HAVE_LIGHT_STORE && !refuses ? MEMBARRIER_CMD_PRIVATE_EXPEDITED : 0;
	return word == op_process_token() ? MEMBARRIER_CMD_PRIVATE_EXPEDITED : MEMBARRIER_CMD_GLOBAL;
}

static void open_box(struct box *box, uint64_t word)
{
	int fds[2], command = expected_command(word);

	*box = (struct box){ .written = 0 };
	assert_int_equal(op_mring_pair_create(BYTES, 0, &box->ends.pair), 0);
	for (size_t i = 0; i < 2; i++)
		fds[i] = box->ends.pair.rings[i].fd;
	assert_int_equal(op_mring_pair_attach(fds, box->ends.pair.rings[0].wake_fd, &box->other), 0);
	box->other.rings[0].shared->barrier = word;
	assert_int_equal(op_mring_pair_reader_open(&box->ends.pair, &box->ends.reader), 0);
	assert_int_equal(box->ends.reader.baton.swap.barrier, command);
	assert_int_equal(box->other.rings[0].shared->barrier,
			 command == MEMBARRIER_CMD_PRIVATE_EXPEDITED ? op_process_token() : word);
	assert_int_equal(op_mring_pair_writer_open(&box->ends.pair, &box->ends.writer), 0);
	assert_int_equal(box->ends.writer.fence, command != MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	nr_calls = 0;
}

static void close_box(struct box *box)
{
	assert_int_equal(box->expected, box->written);
	assert_int_equal(op_mring_pair_dropped(&box->ends.pair), 0);
	op_mring_pair_destroy(&box->other);
	mring_pair_box_close(&box->ends);
}

static void put(struct box *box)
{
	struct perf_event_header *record;

	assert_int_equal(op_mring_pair_reserve(&box->ends.writer, RECORD_BYTES, &record), 0);
	record->type = PERF_RECORD_SAMPLE;
	record->misc = 0;
	for (size_t i = 1; i < RECORD_BYTES / 8; i++)
		memcpy((uint8_t *)record + 8 * i, &box->written, 8);
	op_mring_pair_commit(&box->ends.writer);
	box->written++;
}

static void read_frozen(struct box *box, uint64_t nr_records)
{
	struct op_ring *ring = op_mring_pair_read_ring(&box->ends.reader);

	assert_non_null(ring);
	assert_int_equal(op_ring_begin(ring), nr_records * RECORD_BYTES);
	for (uint64_t i = 0; i < nr_records; i++)
		memory_ring_check(op_ring_next(ring), box->expected++, RECORD_BYTES);
	assert_null(op_ring_next(ring));
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
}

typedef void word_fn(uint64_t word);

/*
 * No promise, this process's own promise, each promise that differs from it in one bit, and all
 * other ones.
 */
static void with_every_word(word_fn *test)
{
	uint64_t token = op_process_token();

	test(0);
	test(token);
	test(UINT64_MAX);
	test(~token);
	for (unsigned int bit = 0; bit < 64; bit++) {
		test(token ^ UINT64_C(1) << bit);
		test(UINT64_C(1) << bit);
	}
}

/*
 * One barrier, of the promised kind, for each swap with an idle writer; every record comes in
 * order.
 */
static void swap_with(uint64_t word)
{
	struct box box;
	int command = expected_command(word);

	open_box(&box, word);
	for (unsigned int i = 0; i < NR_SWAPS; i++) {
		put(&box);
		nr_calls = 0;
		assert_int_equal(op_mring_pair_swap(&box.ends.reader), 0);
		assert_int_equal(nr_calls, 0);
		read_frozen(&box, 1);
		assert_non_null(op_mring_pair_read_ring(&box.ends.reader));
		assert_int_equal(nr_calls, command != 0);
		if (command)
			assert_int_equal(last_command, command);
	}
	close_box(&box);
}

static void keeps_any_promise(void **state OP_UNUSED)
{
	with_every_word(swap_with);
}

/*
 * No ring, one call for each look, no swap and no wait, until the writer writes the new epoch or
 * the kernel supports it.
 */
static void look_refused(struct box *box, int command)
{
	for (unsigned int look = 1; look <= NR_LOOKS; look++) {
		assert_null(op_mring_pair_read_ring(&box->ends.reader));
		assert_int_equal(nr_calls, look);
		assert_int_equal(last_command, command);
	}
	assert_int_equal(op_mring_pair_swap(&box->ends.reader), -EAGAIN);
	assert_int_equal(op_mring_pair_lend(&box->ends.reader), -EAGAIN);
	assert_int_equal(op_mring_pair_waiting(&box->ends.reader), 0);
}

static void swap_refused_with(uint64_t word)
{
	struct box box;
	int command;

	refuses = true;
	command = expected_command(word);
	open_box(&box, word);
	for (unsigned int i = 0; i < NR_SWAPS; i++) {
		bool goes_on = i & 1;

		put(&box);
		refuses = true;
		nr_calls = 0;
		assert_int_equal(op_mring_pair_swap(&box.ends.reader), 0);
		if (command)
			look_refused(&box, command);
		if (goes_on)
			put(&box);
		refuses = goes_on;
		/*
		 * The first time the one record is read, later also the records that the writer
		 * wrote after it.
		 */
		read_frozen(&box, i && !goes_on ? 2 : 1);
		assert_int_equal(box.ends.reader.baton.swap.barriers, command ? i / 2 + 1 : 0);
	}
	refuses = false;
	close_box(&box);
}

static void has_no_ring_while_the_kernel_refuses(void **state OP_UNUSED)
{
	with_every_word(swap_refused_with);
}

/* The agreement from the time when the reader opened stays. */
static void change_to(uint64_t word)
{
	const uint64_t before[] = { 0, 1 };

	for (size_t i = 0; i < op_array_size(before); i++) {
		int command = expected_command(before[i]);
		struct box box;

		open_box(&box, before[i]);
		box.other.rings[0].shared->barrier = word;
		put(&box);
		assert_int_equal(op_mring_pair_swap(&box.ends.reader), 0);
		read_frozen(&box, 1);
		assert_int_equal(nr_calls, command != 0);
		assert_int_equal(box.ends.reader.baton.swap.barrier, command);
		/* it is written once, when the reader opens */
		assert_int_equal(box.other.rings[0].shared->barrier, word);
		close_box(&box);
	}
}

static void does_not_look_at_it_again(void **state OP_UNUSED)
{
	with_every_word(change_to);
}

/* A second word is in the control page of the second ring; nobody uses it. */
static void leaves_the_second_ring_alone(void **state OP_UNUSED)
{
	struct box box;

	open_box(&box, 0);
	box.other.rings[1].shared->barrier = 1;
	op_mring_pair_reader_close(&box.ends.reader);
	assert_int_equal(op_mring_pair_reader_open(&box.ends.pair, &box.ends.reader), 0);
	assert_int_equal(box.ends.reader.baton.swap.barrier, expected_command(0));
	assert_int_equal(box.other.rings[1].shared->barrier, 1);
	close_box(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_any_promise),
		cmocka_unit_test(has_no_ring_while_the_kernel_refuses),
		cmocka_unit_test(does_not_look_at_it_again),
		cmocka_unit_test(leaves_the_second_ring_alone),
	};

	if (!op_process_token())
		return 77;
	return cmocka_run_group_tests_name("ring_barrier", tests, NULL, NULL);
}
