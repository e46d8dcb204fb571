/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The AUX area: transactions, records, copies across the wrap, and mutual exclusion. */
#include <errno.h>

#include "libop/ring/aux_area.h"
#include "tests/unit/memory_ring.h"

#define PAGE 4096u
#define AUX_BYTES (4 * PAGE)

struct box {
	struct mring_box data;
	struct op_aux aux;
	struct op_aux_writer writer;
};

static void open_box(void **state, unsigned int flags)
{
	struct box *box = calloc(1, sizeof(*box));

	mring_box_open(&box->data, PAGE, AUX_BYTES, flags);
	assert_int_equal(op_aux_map(&box->data.ring, &box->aux), 0);
	assert_int_equal(op_aux_writer_open(&box->aux, &box->writer), 0);
	*state = box;
}

static int aux_setup(void **state)
{
	open_box(state, 0);
	return 0;
}

static int setup_overwrite(void **state)
{
	open_box(state, OP_MRING_OVERWRITE);
	return 0;
}

static int aux_teardown(void **state)
{
	struct box *box = *state;

	op_aux_unmap(&box->aux);
	mring_box_close(&box->data);
	free(box);
	return 0;
}

/* The byte at a position of the stream. */
static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 37 + (position >> 8) * 11 + 1);
}

static int put(struct box *box, size_t nr_bytes, size_t *ret_taken)
{
	static uint8_t bytes[2 * AUX_BYTES];
	struct op_aux_handle handle;
	int err = op_aux_begin(&box->writer, &handle);

	if (err < 0)
		return err;
	for (size_t i = 0; i < nr_bytes; i++)
		bytes[i] = byte_at(handle.from + i);
	*ret_taken = op_aux_write(&handle, bytes, nr_bytes / 3);
	*ret_taken += op_aux_write(&handle, bytes + *ret_taken, nr_bytes - nr_bytes / 3);
	return op_aux_end(&handle, &box->data.writer, *ret_taken);
}

struct seen {
	uint64_t at;
	size_t calls;
	size_t fail_at; /* call that fails, from 1; 0: none */
};

static int look(const void *bytes, size_t nr_bytes, void *arg)
{
	struct seen *seen = arg;

	if (++seen->calls == seen->fail_at)
		return -EPIPE;
	assert_true(nr_bytes > 0 && (seen->at % PAGE) + nr_bytes <= PAGE);
	for (size_t i = 0; i < nr_bytes; i++)
		assert_int_equal(((const uint8_t *)bytes)[i], byte_at(seen->at + i));
	seen->at += nr_bytes;
	return 0;
}

static void check_record(struct box *box, uint64_t offset, uint64_t size, uint64_t flags)
{
	const struct op_aux_record *record;

	op_ring_begin(&box->data.reader);
	record = (const void *)op_ring_next(&box->data.reader);
	assert_non_null(record);
	assert_int_equal(record->header.type, PERF_RECORD_AUX);
	assert_int_equal(record->header.size, sizeof(*record));
	assert_int_equal(record->aux_offset, offset);
	assert_int_equal(record->aux_size, size);
	assert_int_equal(record->flags, flags);
	op_ring_end(&box->data.reader);
}

static void copies_out_over_the_wrap(void **state)
{
	struct box *box = *state;
	uint64_t offset = 0;
	size_t taken = 0;

	for (size_t turn = 0; turn < 200; turn++) {
		size_t nr_bytes = 1 + turn * 977 % AUX_BYTES;
		struct seen seen = { .at = offset };

		assert_int_equal(put(box, nr_bytes, &taken), 0);
		assert_int_equal(taken, nr_bytes);
		check_record(box, offset, nr_bytes, 0);
		assert_int_equal(op_aux_copy_out(&box->aux, offset, offset + nr_bytes, look, &seen), nr_bytes);
		assert_int_equal(seen.at, offset + nr_bytes);
		assert_int_equal(seen.calls, (offset + nr_bytes - 1) / PAGE - offset / PAGE + 1);
		offset += nr_bytes;
		op_aux_give_back(&box->aux, offset);
	}
}

static void says_what_was_left_out(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle;
	size_t taken = 0;

	assert_int_equal(put(box, AUX_BYTES + 100, &taken), 0);
	assert_int_equal(taken, AUX_BYTES);
	check_record(box, 0, AUX_BYTES, PERF_AUX_FLAG_TRUNCATED);
	assert_int_equal(op_aux_begin(&box->writer, &handle), -ENOSPC);
	op_aux_give_back(&box->aux, 100);
	assert_int_equal(put(box, 50, &taken), 0);
	check_record(box, AUX_BYTES, 50, PERF_AUX_FLAG_TRUNCATED);
	assert_int_equal(put(box, 50, &taken), 0);
	check_record(box, AUX_BYTES + 50, 50, 0);
}

static void publishes_as_much_as_is_said(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle;
	uint8_t bytes[64] = { 0 };

	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	assert_int_equal(op_aux_write(&handle, bytes, 64), 64);
	assert_int_equal(box->data.ring.control->aux_head, 0);
	assert_int_equal(op_aux_end(&handle, &box->data.writer, 40), 0);
	check_record(box, 0, 40, 0);
	assert_int_equal(box->data.ring.control->aux_head, 40);
	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	assert_int_equal(handle.from, 40);
	assert_int_equal(op_aux_end(&handle, &box->data.writer, 64), 0); /* nothing was written */
	assert_false(op_ring_pending(&box->data.reader));
}

static void takes_back_what_has_no_record(void **state)
{
	struct box *box = *state;
	struct perf_event_header *record;
	size_t taken;

	while (op_mring_reserve(&box->data.writer, 512, &record) == 0)
		op_mring_commit(&box->data.writer);
	assert_int_equal(put(box, 100, &taken), -ENOSPC);
	assert_int_equal(box->data.ring.control->aux_head, 0);
	op_ring_begin(&box->data.reader);
	while (op_ring_next(&box->data.reader))
		;
	op_ring_end(&box->data.reader);
	assert_int_equal(put(box, 30, &taken), 0);
	op_ring_begin(&box->data.reader);
	assert_int_equal(op_ring_next(&box->data.reader)->type, PERF_RECORD_LOST);
	op_ring_end(&box->data.reader);
	check_record(box, 0, 30, PERF_AUX_FLAG_TRUNCATED);
}

static void overwrites_what_was_not_given_back(void **state)
{
	struct box *box = *state;
	uint64_t offset = 0;
	size_t taken;

	for (int i = 0; i < 50; i++) {
		struct seen seen = { .at = offset + 5000 > AUX_BYTES ? offset + 5000 - AUX_BYTES : 0 };

		assert_int_equal(put(box, 5000, &taken), 0);
		assert_int_equal(taken, 5000);
		check_record(box, offset, 5000, PERF_AUX_FLAG_OVERWRITE);
		offset += 5000;
		assert_int_equal(op_aux_copy_out(&box->aux, seen.at, offset, look, &seen), op_min_u64(offset, AUX_BYTES));
	}
}

/* A transaction that ends with fewer bytes than it wrote has overwritten old bytes all the same. */
static void does_not_give_what_was_touched(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle;
	struct seen seen = { .at = 100 };
	uint8_t bytes[100] = { 0 };
	size_t taken;

	assert_int_equal(put(box, AUX_BYTES, &taken), 0);
	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	assert_int_equal(op_aux_write(&handle, bytes, 100), 100);
	op_mring_writer_died(&box->data.ring);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, AUX_BYTES, look, &seen), -ERANGE);
	assert_int_equal(op_aux_copy_out(&box->aux, 100, AUX_BYTES, look, &seen), AUX_BYTES - 100);
}

static void stops_with_the_error_of_the_callback(void **state)
{
	struct box *box = *state;
	struct seen seen = { .fail_at = 3 };
	size_t taken;

	assert_int_equal(put(box, AUX_BYTES, &taken), 0);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, AUX_BYTES, look, &seen), -EPIPE);
	assert_int_equal(seen.calls, 3);
	seen = (struct seen){ 0 };
	/* the area is free again */
	assert_int_equal(op_aux_copy_out(&box->aux, 0, AUX_BYTES, look, &seen), AUX_BYTES);
	assert_int_equal(op_aux_copy_out(&box->aux, 7, 7, look, &seen), 0);
}

static int begin_within(const void *bytes, size_t nr_bytes, void *arg)
{
	struct op_aux_handle handle;

	assert_non_null(bytes);
	assert_true(nr_bytes > 0);
	return op_aux_begin(arg, &handle);
}

static void excludes_the_writer_and_the_reader(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle, second;
	struct seen seen = { 0 };
	size_t taken;

	assert_int_equal(put(box, 100, &taken), 0);
	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, look, &seen), -EBUSY);
	assert_int_equal(seen.calls, 0);
	assert_int_equal(op_aux_begin(&box->writer, &second), -EBUSY);
	assert_int_equal(op_aux_end(&handle, &box->data.writer, 0), 0);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, begin_within, &box->writer), -EBUSY);
	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	op_mring_writer_died(&box->data.ring);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, look, &seen), 100);
}

/*
 * The area is closed until the first writer closes it or is declared dead. A refused writer has
 * nothing.
 */
static void refuses_a_second_writer(void **state)
{
	struct box *box = *state;
	struct op_aux_writer second = { .aux = NULL };
	struct op_aux other;
	size_t taken;

	assert_int_equal(op_aux_map(&box->data.ring, &other), 0);
	assert_int_equal(op_aux_writer_open(&box->aux, &second), -EBUSY);
	assert_int_equal(op_aux_writer_open(&other, &second), -EBUSY);
	assert_null(second.aux);
	assert_int_equal(put(box, 100, &taken), 0);
	check_record(box, 0, 100, 0);
	op_aux_writer_close(&box->writer);
	assert_int_equal(op_aux_writer_open(&other, &second), 0);
	assert_int_equal(second.head, 100);
	assert_int_equal(op_aux_writer_open(&box->aux, &box->writer), -EBUSY);
	op_mring_writer_died(&box->data.ring);
	assert_int_equal(op_aux_writer_open(&box->aux, &box->writer), 0);
	assert_int_equal(put(box, 100, &taken), 0);
	check_record(box, 100, 100, 0);
	op_aux_unmap(&other);
}

struct attempt {
	struct op_aux_writer *writer;
	int (*begin)(struct op_aux_writer *writer, struct op_aux_handle *ret_handle);
};

static int attempt_within(const void *bytes OP_UNUSED, size_t nr_bytes OP_UNUSED, void *arg)
{
	const struct attempt *attempt = arg;
	struct op_aux_handle handle;

	return attempt->begin(attempt->writer, &handle);
}

/*
 * A writer that is refused while the reader copies has lost its bytes. The next record says so,
 * also when another writer makes it.
 */
static void says_that_a_copy_was_in_the_way(void **state)
{
	struct box *box = *state;
	struct attempt attempt = { .writer = &box->writer, .begin = op_aux_begin };
	size_t taken;

	assert_int_equal(put(box, 100, &taken), 0);
	check_record(box, 0, 100, 0);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, attempt_within, &attempt), -EBUSY);
	assert_int_equal(put(box, 50, &taken), 0);
	check_record(box, 100, 50, PERF_AUX_FLAG_TRUNCATED);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, attempt_within, &attempt), -EBUSY);
	op_aux_writer_close(&box->writer);
	assert_int_equal(op_aux_writer_open(&box->aux, &box->writer), 0);
	assert_int_equal(put(box, 50, &taken), 0);
	check_record(box, 150, 50, PERF_AUX_FLAG_TRUNCATED);
	assert_int_equal(put(box, 50, &taken), 0);
	check_record(box, 200, 50, 0);
}

static void says_that_a_transaction_was_in_the_way(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle, second;
	uint8_t bytes[40] = { 0 };

	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	assert_int_equal(op_aux_begin(&box->writer, &second), -EBUSY);
	assert_int_equal(op_aux_write(&handle, bytes, 40), 40);
	assert_int_equal(op_aux_end(&handle, &box->data.writer, 40), 0);
	check_record(box, 0, 40, PERF_AUX_FLAG_TRUNCATED);
}

/* A writer that keeps its bytes and tries again loses nothing. */
static void tries_without_a_loss(void **state)
{
	struct box *box = *state;
	struct attempt attempt = { .writer = &box->writer, .begin = op_aux_try_begin };
	struct op_aux_handle handle;
	size_t taken;

	assert_int_equal(put(box, AUX_BYTES, &taken), 0);
	check_record(box, 0, AUX_BYTES, 0);
	assert_int_equal(op_aux_try_begin(&box->writer, &handle), -ENOSPC);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, attempt_within, &attempt), -EBUSY);
	op_aux_give_back(&box->aux, 100);
	assert_int_equal(put(box, 50, &taken), 0);
	check_record(box, AUX_BYTES, 50, 0);
}

static struct box *shared_box;

static int writer_dies_within(const void *bytes, size_t nr_bytes, void *arg)
{
	op_mring_writer_died(&shared_box->data.ring);
	return begin_within(bytes, nr_bytes, arg);
}

static void a_death_takes_nothing_from_who_lives(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle, second;
	struct seen seen = { 0 };
	size_t taken;

	shared_box = box;
	assert_int_equal(put(box, 100, &taken), 0);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, writer_dies_within, &box->writer), -EBUSY);
	assert_int_equal(op_mring_writer_open(&box->data.ring, &box->data.writer), 0);
	assert_int_equal(op_aux_writer_open(&box->aux, &box->writer), 0);
	assert_int_equal(op_aux_begin(&box->writer, &handle), 0);
	op_mring_reader_died(&box->data.ring);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, look, &seen), -EBUSY);
	assert_int_equal(op_aux_begin(&box->writer, &second), -EBUSY);
	assert_int_equal(op_aux_end(&handle, &box->data.writer, 0), 0);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, look, &seen), 100);
}

static void is_free_after_a_reader_that_died(void **state)
{
	const uint32_t left[] = { OP_AUX_IDLE, OP_AUX_COPYING, 7, UINT32_MAX };
	struct box *box = *state;
	struct seen seen = { 0 };
	size_t taken;

	for (size_t i = 0; i < op_array_size(left); i++) {
		box->data.ring.shared->aux_state = left[i];
		op_mring_reader_died(&box->data.ring);
		assert_int_equal(put(box, 100, &taken), 0);
	}
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 400, look, &seen), 400);
}

static void refuses_bytes_that_are_not_there(void **state)
{
	struct box *box = *state;
	struct seen seen = { 0 };
	size_t taken;

	assert_int_equal(put(box, AUX_BYTES, &taken), 0);
	op_aux_give_back(&box->aux, AUX_BYTES);
	assert_int_equal(put(box, 100, &taken), 0);
	/* overwritten */
	assert_int_equal(op_aux_copy_out(&box->aux, 99, 200, look, &seen), -ERANGE);
	assert_int_equal(op_aux_copy_out(&box->aux, AUX_BYTES, AUX_BYTES + 101, look, &seen), -ERANGE);
	assert_int_equal(op_aux_copy_out(&box->aux, AUX_BYTES + 50, AUX_BYTES, look, &seen), -ERANGE);
	assert_int_equal(op_aux_copy_out(&box->aux, 0, UINT64_MAX, look, &seen), -ERANGE);
	box->data.ring.control->aux_head = UINT64_MAX; /* a writer that lies */
	assert_int_equal(op_aux_copy_out(&box->aux, 0, 100, look, &seen), -ERANGE);
	assert_int_equal(seen.calls, 0);
}

static void does_not_believe_the_reader(void **state)
{
	struct box *box = *state;
	struct op_aux_handle handle;
	uint64_t lies[] = { AUX_BYTES + 1, UINT64_MAX, UINT64_C(1) << 63 };
	size_t taken;

	assert_int_equal(put(box, AUX_BYTES, &taken), 0);
	for (size_t i = 0; i < op_array_size(lies); i++) {
		op_aux_give_back(&box->aux, lies[i]);
		assert_int_equal(op_aux_begin(&box->writer, &handle), -ENOSPC);
		assert_int_equal(box->writer.bad_tails, i + 1);
	}
}

static void does_not_believe_the_reader_when_it_opens(void **state)
{
	struct box *box = *state;
	const uint64_t ahead[] = { 1, 100, AUX_BYTES, UINT64_C(1) << 63 };
	struct op_aux_handle handle;
	size_t taken;

	assert_int_equal(put(box, AUX_BYTES, &taken), 0);
	for (size_t i = 0; i < op_array_size(ahead); i++) {
		op_aux_writer_close(&box->writer);
		op_aux_give_back(&box->aux, AUX_BYTES + ahead[i]);
		assert_int_equal(op_aux_writer_open(&box->aux, &box->writer), 0);
		assert_int_equal(op_aux_begin(&box->writer, &handle), -ENOSPC);
		assert_int_equal(box->writer.bad_tails, 1);
	}
	op_aux_give_back(&box->aux, 100);
	assert_int_equal(put(box, 200, &taken), 0);
	assert_int_equal(taken, 100);
}

static void is_freed_in_any_order(void **state)
{
	struct box *box = *state;
	struct op_aux second;
	struct seen seen = { 0 };
	size_t taken;

	assert_int_equal(put(box, 100, &taken), 0);
	assert_int_equal(op_aux_map(&box->data.ring, &second), 0);
	op_ring_unmap(&box->data.reader);
	op_mring_destroy(&box->data.ring);
	assert_int_equal(op_aux_copy_out(&second, 0, 100, look, &seen), 100);
	op_aux_unmap(&second);
	op_aux_unmap(&second);
	op_mring_destroy(&box->data.ring);
}

static void is_not_there_when_not_asked_for(void **state)
{
	struct op_mring ring;
	struct op_aux aux = { 0 };

	(void)state;
	assert_int_equal(op_mring_create(PAGE, 0, 0, &ring), 0);
	assert_int_equal(op_aux_map(&ring, &aux), -ENOENT);
	op_aux_unmap(&aux);
	op_mring_destroy(&ring);
}

#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, aux_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(copies_out_over_the_wrap, aux_setup),
		TEST(says_what_was_left_out, aux_setup),
		TEST(publishes_as_much_as_is_said, aux_setup),
		TEST(takes_back_what_has_no_record, aux_setup),
		TEST(overwrites_what_was_not_given_back, setup_overwrite),
		TEST(does_not_give_what_was_touched, setup_overwrite),
		TEST(stops_with_the_error_of_the_callback, aux_setup),
		TEST(excludes_the_writer_and_the_reader, aux_setup),
		TEST(refuses_a_second_writer, aux_setup),
		TEST(says_that_a_copy_was_in_the_way, aux_setup),
		TEST(says_that_a_transaction_was_in_the_way, aux_setup),
		TEST(tries_without_a_loss, aux_setup),
		TEST(refuses_bytes_that_are_not_there, aux_setup),
		TEST(does_not_believe_the_reader, aux_setup),
		TEST(does_not_believe_the_reader_when_it_opens, aux_setup),
		TEST(a_death_takes_nothing_from_who_lives, aux_setup),
		TEST(is_free_after_a_reader_that_died, aux_setup),
		TEST(is_freed_in_any_order, aux_setup),
		cmocka_unit_test(is_not_there_when_not_asked_for),
	};

	return cmocka_run_group_tests_name("ring_aux", tests, NULL, NULL);
}
