/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One memory ring: every property in the table of doc/ring.md. tests/unit/test_ring_hostile.c tests
 * a writer or reader that writes wrong values on purpose.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/memory_ring.h"

#define PAGE 4096u

static int mring_setup(void **state)
{
	*state = calloc(1, sizeof(struct mring_box));
	mring_box_open(*state, PAGE, 0, OP_MRING_OWN_WRITER);
	return 0;
}

static int setup_large(void **state)
{
	*state = calloc(1, sizeof(struct mring_box));
	mring_box_open(*state, 4 * PAGE, 0, OP_MRING_OWN_WRITER);
	return 0;
}

static int setup_huge(void **state)
{
	*state = calloc(1, sizeof(struct mring_box));
	mring_box_open(*state, 32 * PAGE, 0, OP_MRING_OWN_WRITER);
	return 0;
}

static int setup_overwrite(void **state)
{
	*state = calloc(1, sizeof(struct mring_box));
	mring_box_open(*state, PAGE, 0, OP_MRING_OVERWRITE);
	return 0;
}

static size_t size_of(uint64_t number)
{
	return 16 + number * 7 % 23 * 8;
}

/*
 * Reads all records, whose numbers continue from *number. Returns the sum of the losses in LOST
 * records.
 */
static uint64_t read_all(struct mring_box *box, uint64_t *number)
{
	const struct perf_event_header *record;
	uint64_t lost = 0;

	op_ring_begin(&box->reader);
	while ((record = op_ring_next(&box->reader))) {
		if (record->type == PERF_RECORD_LOST) {
			assert_int_equal(record->size, 24);
			lost += memory_ring_word(record, 2);
			*number += memory_ring_word(record, 2);
			continue;
		}
		memory_ring_check(record, *number, size_of(*number));
		++*number;
	}
	op_ring_end(&box->reader);
	assert_int_equal(box->reader.damaged, 0);
	return lost;
}

static void reads_what_was_written_over_many_wraps(void **state)
{
	struct mring_box *box = *state;
	uint64_t read = 0;

	for (uint64_t written = 0; written < 20000; written++) {
		while (mring_box_put(box, written, size_of(written)) == -ENOSPC)
			fail();
		if (written % 13 == 12)
			read_all(box, &read);
	}
	read_all(box, &read);
	assert_int_equal(read, 20000);
	assert_int_equal(op_mring_dropped(&box->ring), 0);
}

static void shows_nothing_before_the_commit(void **state)
{
	struct mring_box *box = *state;
	struct perf_event_header *record;
	uint64_t read = 5;

	assert_int_equal(op_mring_reserve(&box->writer, size_of(5), &record), 0);
	memset(record, 0xff, size_of(5));
	assert_false(op_ring_pending(&box->reader));
	assert_int_equal(op_ring_begin(&box->reader), 0);
	op_mring_abandon(&box->writer);
	assert_int_equal(op_ring_begin(&box->reader), 0);
	assert_int_equal(mring_box_put(box, 5, size_of(5)), 0);
	read_all(box, &read);
	assert_int_equal(read, 6);
}

static void counts_what_found_no_room(void **state)
{
	struct mring_box *box = *state;
	uint64_t written = 0, read = 0, dropped = 0;

	while (mring_box_put(box, written, size_of(written)) == 0)
		written++;
	dropped++;
	for (int i = 0; i < 6; i++, dropped++)
		assert_int_equal(mring_box_put(box, 999, 512), -ENOSPC);
	assert_int_equal(op_mring_dropped(&box->ring), dropped);
	assert_int_equal(read_all(box, &read), 0); /* nothing unread was overwritten */
	assert_int_equal(read, written);
	written += dropped;
	assert_int_equal(mring_box_put(box, written, size_of(written)), 0);
	assert_int_equal(mring_box_put(box, written + 1, size_of(written + 1)), 0);
	assert_int_equal(read_all(box, &read), dropped);
	assert_int_equal(read, written + 2);
}

/* A LOST record reports each loss once, also when the record after it is abandoned. */
static void tells_a_loss_once(void **state)
{
	struct mring_box *box = *state;
	struct perf_event_header *record;
	uint64_t read = 0, written = 0;

	while (mring_box_put(box, written, size_of(written)) == 0)
		written++;
	read_all(box, &read);
	assert_int_equal(op_mring_reserve(&box->writer, 16, &record), 0);
	op_mring_abandon(&box->writer);
	assert_int_equal(read_all(box, &read), 1);
	assert_int_equal(mring_box_put(box, read, size_of(read)), 0);
	assert_int_equal(read_all(box, &read), 0);
}

static void needs_room_for_the_loss_too(void **state)
{
	struct mring_box *box = *state;

	for (int i = 0; i < 8; i++)
		assert_int_equal(mring_box_put(box, 1, PAGE / 8), 0);
	assert_int_equal(mring_box_put(box, 1, PAGE / 8), -ENOSPC);
	op_ring_begin(&box->reader);
	assert_non_null(op_ring_next(&box->reader));
	op_ring_end(&box->reader);
	/* the LOST record takes 24 bytes, so this record does not fit */
	assert_int_equal(mring_box_put(box, 1, PAGE / 8 - 16), -ENOSPC);
	assert_int_equal(mring_box_put(box, 1, PAGE / 8 - 24), 0);
	assert_int_equal(mring_box_put(box, 1, 8), -ENOSPC);
}

static void refuses_what_can_never_fit(void **state)
{
	struct mring_box *box = *state;
	struct perf_event_header *record = NULL;

	assert_int_equal(op_mring_reserve(&box->writer, 0, &record), -EINVAL);
	assert_int_equal(op_mring_reserve(&box->writer, 4, &record), -EINVAL);
	assert_int_equal(op_mring_reserve(&box->writer, 20, &record), -EINVAL);
	assert_int_equal(op_mring_reserve(&box->writer, PAGE, &record), -EMSGSIZE);
	assert_int_equal(op_mring_reserve(&box->writer, 65536, &record), -EMSGSIZE);
	assert_int_equal(op_mring_reserve(&box->writer, SIZE_MAX & ~(size_t)7, &record), -EMSGSIZE);
	assert_int_equal(op_mring_reserve_in_page(&box->writer, PAGE / 2, &record), -EMSGSIZE);
	assert_null(record);
	assert_int_equal(op_mring_reserve(&box->writer, PAGE - 24, &record), 0);
	assert_int_equal(op_mring_dropped(&box->ring), 0);
}

/* In-page records: the limit holds at every position of the head, with a LOST record in front. */
static void refuses_in_a_page_what_only_fits_at_times(void **state)
{
	const size_t most = PAGE - 24; /* of a ring of two pages */
	struct perf_event_header *record;

	(void)state;
	for (uint64_t at = 0; at < 2 * PAGE; at += 8) {
		struct mring_box box;

		mring_box_open(&box, 2 * PAGE, 0, 0);
		op_mring_writer_close(&box.writer);
		box.ring.control->data_tail = box.ring.control->data_head = at;
		box.ring.shared->dropped = 1;
		assert_int_equal(op_mring_writer_open(&box.ring, &box.writer), 0);
		assert_int_equal(box.writer.pending, 1);
		for (size_t nr_bytes = most + 8; nr_bytes <= PAGE; nr_bytes += 8) {
			assert_int_equal(op_mring_reserve_in_page(&box.writer, nr_bytes, &record), -EMSGSIZE);
			assert_false(op_mring_has_room(&box.writer, nr_bytes, true));
		}
		assert_int_equal(op_mring_reserve_in_page(&box.writer, most, &record), 0);
		mring_box_close(&box);
	}
}

static void keeps_records_in_their_page(void **state)
{
	struct mring_box *box = *state;
	uint64_t read = 0;

	assert_int_equal(mring_box_put_with(op_mring_reserve_in_page, box, 0, PAGE + 8), -EMSGSIZE);
	for (uint64_t written = 0; written < 5000; written++) {
		const uint8_t *record;

		/* the writer must zero the bytes that the reader skips */
		memset(box->ring.data + (box->writer.head & (4 * PAGE - 1)), 0xff, 8);
		assert_int_equal(mring_box_put_with(op_mring_reserve_in_page, box, written, size_of(written)), 0);
		record = (const uint8_t *)box->writer.record;
		assert_int_equal((size_t)(record - box->ring.data) / PAGE,
				 (size_t)(record + size_of(written) - 1 - box->ring.data) / PAGE);
		if (written % 50 == 49)
			read_all(box, &read);
	}
	read_all(box, &read);
	assert_int_equal(read, 5000);
}

static void fits_a_whole_page(void **state)
{
	struct mring_box *box = *state;
	const struct perf_event_header *record;

	assert_int_equal(mring_box_put(box, 1, 16), 0);
	assert_int_equal(mring_box_put_with(op_mring_reserve_in_page, box, 2, PAGE), 0);
	op_ring_begin(&box->reader);
	memory_ring_check(op_ring_next(&box->reader), 1, 16);
	record = op_ring_next(&box->reader);
	memory_ring_check(record, 2, PAGE);
	assert_ptr_equal(record, box->ring.data + PAGE);
	assert_null(op_ring_next(&box->reader));
	op_ring_end(&box->reader);
	assert_int_equal(box->reader.damaged, 0);
}

static bool readable(const struct op_mring *ring)
{
	struct pollfd pollfd = { .fd = ring->wake_fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

static void drain(struct mring_box *box)
{
	op_mring_wake_clear(&box->ring);
	op_ring_begin(&box->reader);
	while (op_ring_next(&box->reader))
		;
	op_ring_end(&box->reader);
}

static void wakes_every_so_many_records(void **state)
{
	struct mring_box *box = *state;

	op_mring_wake_every(&box->ring, 3, true);
	for (int i = 1; i <= 30; i++) {
		assert_int_equal(mring_box_put(box, 1, 64), 0);
		assert_int_equal(readable(&box->ring), i % 3 == 0);
		if (i % 3 == 0)
			drain(box);
		assert_false(readable(&box->ring));
	}
}

static void wakes_every_so_many_bytes(void **state)
{
	struct mring_box *box = *state;

	assert_int_equal(mring_box_put(box, 1, 64), 0);
	assert_false(readable(&box->ring)); /* op_mring_wake_every was not called */
	op_mring_wake_every(&box->ring, 1024, false);
	for (int i = 1; i <= 64; i++) {
		assert_int_equal(mring_box_put(box, 1, 64), 0);
		assert_int_equal(readable(&box->ring), i % 16 == 0);
		if (i % 16 == 0)
			drain(box);
	}
	op_mring_wake_every(&box->ring, 0, false);
	for (int i = 1; i <= 60; i++)
		assert_int_equal(mring_box_put(box, 1, 64), 0);
	assert_false(readable(&box->ring));
}

static void wakes_once_when_it_is_full(void **state)
{
	struct mring_box *box = *state;

	op_mring_wake_every(&box->ring, UINT64_MAX, false);
	while (mring_box_put(box, 1, 512) == 0)
		assert_false(readable(&box->ring));
	assert_true(readable(&box->ring));
	op_mring_wake_clear(&box->ring);
	assert_int_equal(mring_box_put(box, 1, 512), -ENOSPC);
	assert_false(readable(&box->ring));
	drain(box);
	while (mring_box_put(box, 1, 512) == 0)
		assert_false(readable(&box->ring));
	assert_true(readable(&box->ring));
}

/* Reads a snapshot: the records newest, newest - 1, ... without a gap. Returns their number. */
static uint64_t read_snapshot(struct mring_box *box, uint64_t newest)
{
	const struct perf_event_header *record;
	uint64_t nr = 0;

	op_ring_begin(&box->reader);
	while ((record = op_ring_next(&box->reader))) {
		memory_ring_check(record, newest - nr, size_of(newest - nr));
		nr++;
	}
	op_ring_end(&box->reader);
	assert_int_equal(box->reader.damaged, 0);
	return nr;
}

static void check_overwrite(struct mring_box *box, mring_reserve_fn *reserve)
{
	uint64_t written = 0;

	for (int turn = 0; turn < 200; turn++) {
		size_t bytes = 0;
		uint64_t nr = 0;

		for (int i = 0; i < turn; i++) {
			written++;
			assert_int_equal(mring_box_put_with(reserve, box, written, size_of(written)), 0);
		}
		nr = read_snapshot(box, written);
		for (uint64_t i = 0; i < nr; i++)
			bytes += size_of(written - i);
		/*
		 * Either all new records, or as many as the ring has room for. A gap and one partly
		 * overwritten record may take room.
		 */
		if (nr != (uint64_t)turn)
			assert_true(nr < (uint64_t)turn && bytes + 400 > PAGE);
		assert_false(op_ring_pending(&box->reader));
	}
	assert_int_equal(op_mring_dropped(&box->ring), 0);
}

static void overwrites_the_oldest(void **state)
{
	check_overwrite(*state, op_mring_reserve);
}

static void overwrites_within_pages(void **state)
{
	check_overwrite(*state, op_mring_reserve_in_page);
}

/*
 * In overwrite mode a reader returns no space. So a reader that opens later reads the same records
 * again; the older records count as overwritten.
 */
static void the_next_reader_gets_all_that_is_there(void **state)
{
	struct mring_box *box = *state;
	uint64_t written, in_all = 0, in_ring = 0, nr;

	for (written = 1; written <= 100; written++) {
		assert_int_equal(mring_box_put(box, written, size_of(written)), 0);
		in_all += size_of(written);
	}
	written--;
	nr = read_snapshot(box, written);
	assert_in_range(nr, 2, 99);
	assert_int_equal(read_snapshot(box, written), 0);
	op_ring_unmap(&box->reader);
	assert_int_equal(op_mring_reader(&box->ring, &box->reader), 0);
	op_ring_begin(&box->reader);
	for (const struct perf_event_header *record = op_ring_next(&box->reader); record; record = op_ring_next(&box->reader))
		in_ring += record->size;
	assert_int_equal(op_ring_overwritten(&box->reader), in_all - in_ring);
	op_ring_end(&box->reader);
	op_ring_unmap(&box->reader);
	assert_int_equal(op_mring_reader(&box->ring, &box->reader), 0);
	assert_int_equal(read_snapshot(box, written), nr);
}

/* A reservation of a writer that died damaged the oldest records: the reader stops before them. */
static void stops_at_what_a_reservation_tore(void **state)
{
	struct mring_box *box = *state;

	mring_box_fill_page(box);
	mring_box_tear(box, 96);
	mring_box_check_torn(box, 96, 0);
	op_ring_end(&box->reader);
}

/*
 * An abandoned reservation damages as many old records as a committed one. A smaller reservation
 * after it does not repair them.
 */
static void remembers_what_a_reservation_given_up_tore(void **state)
{
	struct mring_box *box = *state;
	struct perf_event_header *record;

	mring_box_fill_page(box);
	mring_box_tear(box, 200);
	op_mring_abandon(&box->writer);
	assert_int_equal(op_mring_reserve(&box->writer, 16, &record), 0);
	mring_box_check_torn(box, 200, 0);
	assert_int_equal(op_ring_overwritten(&box->reader), 4 * 64);
	op_mring_abandon(&box->writer);
	assert_int_equal(mring_box_put(box, 8, 16), 0);
	mring_box_check_torn(box, 200, 16);
	op_ring_end(&box->reader);
	assert_int_equal(box->reader.damaged, 0);
}

static void forgets_what_was_not_committed_when_it_overwrites(void **state)
{
	struct mring_box *box = *state;
	struct perf_event_header *record;
	uint64_t written = 0;

	for (size_t nr_forgotten = 0; nr_forgotten < 4; nr_forgotten++) {
		uint64_t head = box->writer.head;

		for (size_t i = 0; i < nr_forgotten; i++)
			assert_int_equal(op_mring_reserve(&box->writer, 64 << i, &record), 0);
		written++;
		assert_int_equal(mring_box_put(box, written, size_of(written)), 0);
		assert_int_equal(box->writer.head, head - size_of(written));
		assert_true(op_mring_has_room(&box->writer, 16, false));
	}
	assert_int_equal(read_snapshot(box, written), written);
}

static void forgets_what_was_not_committed(void **state)
{
	struct mring_box *box = *state;
	struct perf_event_header *record;
	uint64_t read = 0;

	for (uint64_t written = 0; written < 300; written++) {
		assert_int_equal(op_mring_reserve(&box->writer, 16 + written % 100 * 8, &record), 0);
		memset(record, 0xff, 16 + written % 100 * 8);
		if (written % 3 == 0)
			assert_int_equal(op_mring_reserve_in_page(&box->writer, 800, &record), 0);
		assert_int_equal(mring_box_put(box, written, size_of(written)), 0);
		read_all(box, &read);
		assert_int_equal(read, written + 1);
	}
}

static void has_one_writer(void **state)
{
	struct mring_box *box = *state;
	struct op_mring_writer second;
	uint64_t read = 0;

	assert_int_equal(op_mring_writer_open(&box->ring, &second), -EBUSY);
	assert_int_equal(mring_box_put(box, 0, size_of(0)), 0);
	op_mring_writer_close(&box->writer);
	assert_int_equal(op_mring_writer_open(&box->ring, &box->writer), 0);
	assert_int_equal(mring_box_put(box, 1, size_of(1)), 0);
	op_mring_writer_died(&box->ring);
	assert_int_equal(op_mring_writer_open(&box->ring, &box->writer), 0);
	read_all(box, &read);
	assert_int_equal(read, 2);
}

static void hands_losses_to_the_next_writer(void **state)
{
	struct mring_box *box = *state;
	uint64_t written = 0, read = 0;

	while (mring_box_put(box, written, size_of(written)) == 0)
		written++;
	op_mring_writer_died(&box->ring);
	assert_int_equal(op_mring_writer_open(&box->ring, &box->writer), 0);
	read_all(box, &read);
	assert_int_equal(mring_box_put(box, written + 1, size_of(written + 1)), 0);
	op_mring_writer_died(&box->ring);
	assert_int_equal(op_mring_writer_open(&box->ring, &box->writer), 0);
	assert_int_equal(mring_box_put(box, written + 2, size_of(written + 2)), 0);
	assert_int_equal(read_all(box, &read), 1);
	assert_int_equal(read, written + 3);
}

static void skips_zeros_to_the_head_only(void **state)
{
	struct mring_box *box = *state;

	memset(box->ring.data, 0, PAGE);
	box->ring.control->data_head = PAGE;
	assert_int_equal(op_ring_begin(&box->reader), PAGE);
	assert_null(op_ring_next(&box->reader));
	op_ring_end(&box->reader);
	assert_int_equal(box->ring.control->data_tail, PAGE);
	/* a ring of the kernel may have no gaps at all */
	box->reader.flags &= ~(unsigned int)OP_RING_GAPS;
	box->ring.control->data_head = PAGE + 64;
	op_ring_begin(&box->reader);
	assert_null(op_ring_next(&box->reader));
	assert_int_equal(box->reader.damaged, 1);
}

/* The reader is another process. It has only the two descriptors. */
static void is_read_by_another_process(void **state)
{
	struct mring_box *box = *state;
	uint64_t read = 0;
	int status;
	pid_t pid;

	for (uint64_t i = 0; i < 30; i++)
		assert_int_equal(mring_box_put(box, i, size_of(i)), 0);
	pid = fork();
	if (!pid) {
		struct mring_box other = { .writer = { .limit = 0 } };

		if (op_mring_attach(box->ring.fd, box->ring.wake_fd, &other.ring) < 0 ||
		    op_mring_reader(&other.ring, &other.reader) < 0)
			_exit(1);
		read_all(&other, &read);
		_exit(read == 30 && other.reader.flags & OP_RING_COPY ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(box->ring.control->data_tail, box->ring.control->data_head);
}

static void is_mapped_by_the_reader_of_kernel_rings(void **state)
{
	struct mring_box *box = *state;
	struct op_ring plain;

	assert_int_equal(mring_box_put(box, 4, 64), 0);
	assert_int_equal(op_ring_map(box->ring.fd, PAGE, &plain), 0);
	op_ring_begin(&plain);
	memory_ring_check(op_ring_next(&plain), 4, 64);
	assert_null(op_ring_next(&plain));
	op_ring_end(&plain);
	op_ring_unmap(&plain);
	assert_int_equal(box->ring.control->data_tail, 64);
}

/* Reads one record and returns its space. */
static void read_one(struct mring_box *box)
{
	op_ring_begin(&box->reader);
	assert_non_null(op_ring_next(&box->reader));
	op_ring_end(&box->reader);
}

static void has_room_for_what_reserve_takes(void **state)
{
	struct mring_box *box = *state;
	uint64_t nr = 0;

	for (; op_mring_has_room(&box->writer, 64, false); nr++)
		assert_int_equal(mring_box_put(box, nr, 64), 0);
	assert_int_equal(nr, PAGE / 64);
	assert_false(op_mring_has_room(&box->writer, 16, false));
	read_one(box);
	assert_true(op_mring_has_room(&box->writer, 64, false));
	assert_false(op_mring_has_room(&box->writer, 72, false));
	assert_int_equal(mring_box_put(box, nr, 64), 0);
	assert_int_equal(op_mring_dropped(&box->ring), 0);
	op_ring_begin(&box->reader);
	for (uint64_t i = 1; i <= nr; i++)
		memory_ring_check(op_ring_next(&box->reader), i, 64);
	assert_null(op_ring_next(&box->reader));
	op_ring_end(&box->reader);
	assert_false(op_mring_has_room(&box->writer, 2 * PAGE, false));
}

/* op_mring_has_room includes the LOST record that precedes the next record. */
static void has_room_for_the_lost_record_too(void **state)
{
	struct mring_box *box = *state;
	const struct perf_event_header *record = NULL;

	for (uint64_t i = 0; i < PAGE / 64; i++)
		assert_int_equal(mring_box_put(box, i, 64), 0);
	assert_int_equal(mring_box_put(box, 0, 64), -ENOSPC);
	read_one(box);
	assert_false(op_mring_has_room(&box->writer, 64, false));
	assert_true(op_mring_has_room(&box->writer, 64 - OP_MRING_LOST_BYTES, false));
	assert_int_equal(mring_box_put(box, 0, 64 - OP_MRING_LOST_BYTES), 0);
	op_ring_begin(&box->reader);
	for (uint64_t i = 0; i < PAGE / 64; i++)
		record = op_ring_next(&box->reader);
	assert_non_null(record);
	assert_int_equal(record->type, PERF_RECORD_LOST);
	assert_int_equal(memory_ring_word(record, 2), 1);
}

/* An invalid size is refused also when there is so much room that data_tail need not be loaded. */
static void has_room_for_nothing_that_is_refused(void **state)
{
	const size_t refused[] = { 0, 4, 7, 20, OP_MRING_RECORD_MAX + 8, 80000, SIZE_MAX, SIZE_MAX & ~(size_t)7 };
	struct mring_box *box = *state;
	struct perf_event_header *record;

	assert_int_equal(mring_box_put(box, 1, 64), 0);
	for (size_t i = 0; i < op_array_size(refused); i++) {
		assert_false(op_mring_has_room(&box->writer, refused[i], false));
		assert_false(op_mring_has_room(&box->writer, refused[i], true));
		assert_true(op_mring_reserve(&box->writer, refused[i], &record) < 0);
	}
	assert_false(op_mring_has_room(&box->writer, PAGE + 8, true));
	assert_true(op_mring_has_room(&box->writer, OP_MRING_RECORD_MAX, false));
	assert_true(op_mring_has_room(&box->writer, 8, true));
	assert_int_equal(op_mring_dropped(&box->ring), 0);
}

static void has_room_in_a_page_with_the_gap(void **state)
{
	struct mring_box *box = *state;

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(mring_box_put(box, i, 3 * PAGE / 4), 0);
	assert_true(op_mring_has_room(&box->writer, PAGE, false));
	assert_true(op_mring_has_room(&box->writer, PAGE / 4, true));
	assert_int_equal(mring_box_put(box, 4, 64), 0);
	read_one(box);
	assert_true(op_mring_has_room(&box->writer, PAGE - 64, true));
	assert_true(op_mring_has_room(&box->writer, PAGE - 56, false));
	assert_false(op_mring_has_room(&box->writer, PAGE - 56, true));
}

static void always_has_room_when_it_overwrites(void **state)
{
	struct mring_box *box = *state;

	for (uint64_t i = 0; i < 100; i++) {
		assert_true(op_mring_has_room(&box->writer, 256, false));
		assert_int_equal(mring_box_put(box, i, 256), 0);
	}
	assert_false(op_mring_has_room(&box->writer, 2 * PAGE, false));
}

#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, mring_box_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(has_room_for_what_reserve_takes, mring_setup),
		TEST(has_room_for_the_lost_record_too, mring_setup),
		TEST(has_room_for_nothing_that_is_refused, setup_huge),
		TEST(has_room_in_a_page_with_the_gap, setup_large),
		TEST(always_has_room_when_it_overwrites, setup_overwrite),
		TEST(reads_what_was_written_over_many_wraps, mring_setup),
		TEST(shows_nothing_before_the_commit, mring_setup),
		TEST(counts_what_found_no_room, mring_setup),
		TEST(tells_a_loss_once, mring_setup),
		TEST(needs_room_for_the_loss_too, mring_setup),
		TEST(refuses_what_can_never_fit, mring_setup),
		cmocka_unit_test(refuses_in_a_page_what_only_fits_at_times),
		TEST(keeps_records_in_their_page, setup_large),
		TEST(fits_a_whole_page, setup_large),
		TEST(wakes_every_so_many_records, mring_setup),
		TEST(wakes_every_so_many_bytes, mring_setup),
		TEST(wakes_once_when_it_is_full, mring_setup),
		TEST(overwrites_the_oldest, setup_overwrite),
		TEST(the_next_reader_gets_all_that_is_there, setup_overwrite),
		TEST(overwrites_within_pages, setup_overwrite),
		TEST(stops_at_what_a_reservation_tore, setup_overwrite),
		TEST(remembers_what_a_reservation_given_up_tore, setup_overwrite),
		TEST(forgets_what_was_not_committed, mring_setup),
		TEST(forgets_what_was_not_committed_when_it_overwrites, setup_overwrite),
		TEST(has_one_writer, mring_setup),
		TEST(hands_losses_to_the_next_writer, mring_setup),
		TEST(skips_zeros_to_the_head_only, mring_setup),
		TEST(is_read_by_another_process, mring_setup),
		TEST(is_mapped_by_the_reader_of_kernel_rings, mring_setup),
	};

	return cmocka_run_group_tests_name("ring_memory", tests, NULL, NULL);
}
