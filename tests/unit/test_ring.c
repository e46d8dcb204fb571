/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader of one ring: order, wrap, giving room back, and false lengths. */
#include "tests/unit/cmocka_all.h"
#include "tests/unit/memory_ring.h"

static int ring_setup(void **state)
{
	struct op_ring *ring = calloc(1, sizeof(*ring));

	memory_ring_init(ring);
	*state = ring;
	return 0;
}

static int ring_teardown(void **state)
{
	memory_ring_free(*state);
	free(*state);
	return 0;
}

/* 1 to 5 words that say which record it is. */
static size_t fill(uint64_t number, uint64_t words[5])
{
	size_t nr = 1 + number % 5;

	for (size_t i = 0; i < nr; i++)
		words[i] = number * 10 + i;
	return nr;
}

static void reads_all_in_order_over_many_wraps(void **state)
{
	struct op_ring *ring = *state;
	uint64_t written = 0, read = 0, words[5];

	while (read < 10000) {
		const struct perf_event_header *header;

		for (;;) {
			size_t nr = fill(written, words);

			if (!memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, words, nr))
				break;
			written++;
		}
		assert_true(op_ring_begin(ring) > 0);
		while ((header = op_ring_next(ring))) {
			size_t nr = fill(read, words);

			assert_int_equal(header->size, 8 + nr * 8);
			assert_memory_equal(header + 1, words, nr * 8);
			assert_int_equal((uintptr_t)header % 8, 0);
			read++;
		}
		op_ring_end(ring);
		assert_int_equal(ring->k_control->data_tail, ring->k_control->data_head);
	}
	assert_int_equal(read, written);
	assert_int_equal(ring->damaged, 0);
}

/* It may be a copy of a stack, which holds what programs keep there. */
static void what_wrapped_is_gone_after_the_end(void **state)
{
	static const char nothing[OP_RECORD_BYTES_MAX];
	struct op_ring *ring = *state;
	const uint64_t words[] = { ~0ull, ~0ull, ~0ull };
	const struct perf_event_header *header;
	bool has_wrapped = false;

	memset(ring->bounce, 0, OP_RECORD_BYTES_MAX);
	for (size_t i = 0; i < MEMORY_RING_BYTES / 32 + 2; i++) {
		assert_true(memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, words, i ? 3 : 2));
		op_ring_begin(ring);
		header = op_ring_next(ring);
		assert_memory_equal(header + 1, words, header->size - sizeof(*header));
		has_wrapped |= (const void *)header == ring->bounce;
		op_ring_end(ring);
		assert_memory_equal(ring->bounce, nothing, sizeof(nothing));
	}
	assert_true(has_wrapped);
}

static void gives_space_back_only_at_the_end(void **state)
{
	struct op_ring *ring = *state;
	uint64_t word = 1;

	assert_true(memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, &word, 1));
	op_ring_begin(ring);
	assert_non_null(op_ring_next(ring));
	assert_int_equal(ring->k_control->data_tail, 0);
	op_ring_end(ring);
	assert_int_equal(ring->k_control->data_tail, 16);
}

static void sees_only_what_begin_saw(void **state)
{
	struct op_ring *ring = *state;
	uint64_t word = 1;

	assert_false(op_ring_pending(ring));
	memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, &word, 1);
	assert_true(op_ring_pending(ring));
	op_ring_begin(ring);
	memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, &word, 1);
	assert_non_null(op_ring_next(ring));
	assert_null(op_ring_next(ring));
	assert_true(op_ring_pending(ring));
}

static void puts_a_record_back(void **state)
{
	struct op_ring *ring = *state;
	const struct perf_event_header *first;
	uint64_t word = 7;

	memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, &word, 1);
	op_ring_begin(ring);
	first = op_ring_next(ring);
	op_ring_put_back(ring, first);
	op_ring_end(ring);
	assert_int_equal(ring->k_control->data_tail, 0);
	op_ring_begin(ring);
	assert_memory_equal(op_ring_next(ring) + 1, &word, 8);
}

/*
 * Values that must not be believed: each one leaves the ring empty and is counted, and the next
 * good record is read.
 */
static void check_damaged(struct op_ring *ring, const struct perf_event_header *bad)
{
	uint64_t damaged = ring->damaged, word = 3;

	memory_ring_write(ring, bad, sizeof(*bad));
	op_ring_begin(ring);
	assert_null(op_ring_next(ring));
	assert_null(op_ring_next(ring));
	op_ring_end(ring);
	assert_int_equal(ring->damaged, damaged + 1);
	memory_ring_record(ring, PERF_RECORD_SAMPLE, 0, &word, 1);
	op_ring_begin(ring);
	assert_non_null(op_ring_next(ring));
	op_ring_end(ring);
}

static void passes_over_a_length_that_is_no_multiple_of_8(void **state)
{
	struct op_ring *ring = *state;
	struct perf_event_header bad[2] = { { .type = 9, .size = 12 }, { .type = 9, .size = 8 } };

	memory_ring_write(ring, bad, sizeof(bad));
	op_ring_begin(ring);
	assert_null(op_ring_next(ring));
	assert_int_equal(ring->damaged, 1);
}

static void passes_over_lengths_that_lie(void **state)
{
	struct op_ring *ring = *state;

	check_damaged(ring, &(struct perf_event_header){ .type = 9, .size = 0 });
	check_damaged(ring, &(struct perf_event_header){ .type = 9, .size = 4 });
	check_damaged(ring, &(struct perf_event_header){ .type = 9, .size = 12 });
	check_damaged(ring, &(struct perf_event_header){ .type = 9, .size = 16 });
	check_damaged(ring, &(struct perf_event_header){ .type = 9, .size = 65528 });
}

static void survives_a_head_that_runs(void **state)
{
	struct op_ring *ring = *state;

	ring->k_control->data_head = 5 * MEMORY_RING_BYTES;
	op_ring_begin(ring);
	assert_null(op_ring_next(ring));
	assert_int_equal(ring->damaged, 1);
	ring->k_control->data_head = 16; /* backwards */
	op_ring_begin(ring);
	assert_null(op_ring_next(ring));
	assert_int_equal(ring->damaged, 2);
	ring->k_control->data_head = 20; /* not even a header */
	op_ring_begin(ring);
	assert_null(op_ring_next(ring));
	assert_int_equal(ring->damaged, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_all_in_order_over_many_wraps, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(what_wrapped_is_gone_after_the_end, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(gives_space_back_only_at_the_end, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(sees_only_what_begin_saw, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(puts_a_record_back, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(passes_over_a_length_that_is_no_multiple_of_8, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(passes_over_lengths_that_lie, ring_setup, ring_teardown),
		cmocka_unit_test_setup_teardown(survives_a_head_that_runs, ring_setup, ring_teardown),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
