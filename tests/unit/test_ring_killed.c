/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A writer process that dies at every step (stepped.h), from before a reservation to behind the commit. After each death the reader sees whole records only, in order, and the next writer goes
 * on; what was dropped is told once.
 */
#include <errno.h>

#include "libop/ring_memory_pair.h"
#include "tests/unit/stepped.h"

#define BYTES 4096u

struct numbered {
	struct perf_event_header header;
	uint64_t number;
	uint64_t again[6];
};

static int put(struct op_mring_pair_writer *writer, uint64_t number, bool in_page)
{
	struct perf_event_header *place;
	struct numbered *record;
	int err = in_page ? op_mring_pair_reserve_in_page(writer, sizeof(*record), &place) :
			    op_mring_pair_reserve(writer, sizeof(*record), &place);

	if (err < 0)
		return err;
	record = (void *)place;
	record->header.type = PERF_RECORD_SAMPLE;
	record->number = number;
	for (size_t i = 0; i < op_array_size(record->again); i++)
		record->again[i] = number;
	op_mring_pair_commit(writer);
	return 0;
}

/* What the child does between being traced and its end. */
struct work {
	unsigned int flags;
	bool full;    /* the ring is full before, and is read then: the child's record has a LOST record in front */
	bool in_page;
	bool swapped; /* the reader has swapped before */
	bool too_much; /* the child's record finds no room */
	bool lent;     /* the baton is, and a swapping thread swaps when the child has done half of its steps */
	bool recalled; /* the baton is lent, and the reader takes it back after the death */
};

struct result {
	uint64_t records;
	uint64_t lost;
	uint64_t newest;
};

static void read_ring(struct op_mring_pair_reader *reader, bool backward, struct result *result)
{
	struct op_ring *ring = op_mring_pair_read_ring(reader);
	const struct perf_event_header *header;
	uint64_t before = 0;

	assert_non_null(ring);
	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		const struct numbered *record = (const void *)header;
		uint64_t nr;

		if (header->type == PERF_RECORD_LOST) {
			memcpy(&nr, (const uint8_t *)header + 16, 8);
			result->lost += nr;
			continue;
		}
		assert_int_equal(header->type, PERF_RECORD_SAMPLE);
		assert_int_equal(header->size, sizeof(*record));
		for (size_t i = 0; i < op_array_size(record->again); i++)
			assert_int_equal(record->again[i], record->number);
		if (before)
			assert_true(backward ? record->number < before : record->number > before);
		before = record->number;
		result->newest = op_max_u64(result->newest, record->number);
		result->records++;
	}
	op_ring_end(ring);
	assert_int_equal(ring->damaged, 0);
}

static void read_both(struct op_mring_pair_reader *reader, bool backward, struct result *result)
{
	for (int i = 0; i < 2; i++) {
		read_ring(reader, backward, result);
		assert_int_equal(op_mring_pair_swap(reader), 0);
	}
	read_ring(reader, backward, result);
}

struct child {
	struct op_mring_pair *pair;
	const struct work *work;
};

/* Opens, waits for its tracer, writes one record, and says so. */
static void write_one(void *arg)
{
	const struct child *child = arg;
	struct op_mring_pair_writer writer;

	if (op_mring_pair_writer_open(child->pair, &writer) < 0)
		_exit(77);
	stepped_begin();
	if (put(&writer, 1000, child->work->in_page) == -EINVAL)
		_exit(1);
	stepped_end();
}

/* The swapping thread has the baton when the writer dies. */
static long swap_halfway(struct op_mring_pair *pair, struct op_mring_pair_reader *reader, pid_t pid, long nr_steps)
{
	struct op_mring_pair_swapper swapper;
	long made = stepped_run(pid, nr_steps / 2);
	int err;

	assert_int_equal(op_mring_pair_swapper_open(&reader->baton, &swapper), 0);
	err = op_mring_pair_swapper_swap(&swapper);
	assert_true(!err || err == -EAGAIN);
	if (made == nr_steps / 2)
		made += stepped_run(pid, nr_steps - made);
	stepped_kill(pid);
	assert_null(op_mring_pair_read_ring(reader));
	op_mring_pair_writer_died(pair);
	assert_int_equal(op_mring_pair_swapper_swap(&swapper), 0);
	op_mring_pair_swapper_close(&swapper);
	return made;
}

/* Runs the child for that many instructions and kills it. Returns how many it made until it was through, or nr_steps. */
static long kill_after(struct op_mring_pair *pair, struct op_mring_pair_reader *reader, const struct work *work, long nr_steps)
{
	struct child child = { pair, work };
	pid_t pid = stepped_fork(write_one, &child);
	long made;

	if (pid < 0)
		return -1;
	if (work->lent || work->recalled)
		assert_int_equal(op_mring_pair_lend(reader), 0);
	if (work->lent)
		return swap_halfway(pair, reader, pid, nr_steps);
	made = stepped_run(pid, nr_steps);
	stepped_kill(pid);
	if (work->recalled)
		assert_int_equal(op_mring_pair_recall(reader), 0);
	op_mring_pair_writer_died(pair);
	return made;
}

/* One death: state before, child, state after. Returns what kill_after does. */
static long die_once(const void *arg, long nr_steps)
{
	const struct work *work = arg;
	bool backward = work->flags & OP_MRING_OVERWRITE;
	struct op_mring_pair_writer writer;
	struct op_mring_pair_reader reader;
	struct result before = { 0 }, after = { 0 };
	struct op_mring_pair pair;
	uint64_t written = 0;
	long made;

	assert_int_equal(op_mring_pair_create(BYTES, work->flags, &pair), 0);
	assert_int_equal(op_mring_pair_reader_open(&pair, &reader), 0);
	assert_int_equal(op_mring_pair_writer_open(&pair, &writer), 0);
	while (written < (work->full ? 70 : 3) && put(&writer, written + 1, work->in_page) != -ENOSPC)
		written++;
	if (work->swapped) {
		assert_int_equal(op_mring_pair_swap(&reader), 0);
		read_ring(&reader, backward, &before);
	} else if (work->full && !work->too_much && !backward) {
		read_both(&reader, backward, &before);
	}
	op_mring_pair_writer_close(&writer);
	made = kill_after(&pair, &reader, work, nr_steps);
	if (made >= 0) {
		assert_int_equal(op_mring_pair_writer_open(&pair, &writer), 0);
		read_both(&reader, backward, &after);
		assert_int_equal(put(&writer, 2000, work->in_page), 0);
		read_both(&reader, backward, &after);
		assert_int_equal(after.newest, 2000);
		assert_int_equal(before.lost + after.lost, op_mring_pair_dropped(&pair));
		if (!backward)
			assert_in_range(before.records + after.records, written + 1, written + 2);
	}
	op_mring_pair_reader_close(&reader);
	op_mring_pair_destroy(&pair);
	return made;
}

static void die_everywhere(void **state)
{
	stepped_everywhere(die_once, *state);
}

/* A death at every step of this work. */
#define DIES(called, ...) { .name = #called, .test_func = die_everywhere, .initial_state = &(struct work){ __VA_ARGS__ } }

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIES(dies_in_a_ring_with_room, .full = false),
		DIES(dies_after_a_swap, .swapped = true),
		DIES(dies_after_a_swap_with_a_fence, .swapped = true, .flags = OP_MRING_FENCE),
		DIES(dies_while_it_tells_a_loss, .full = true),
		DIES(dies_while_it_tells_a_loss_after_a_swap, .full = true, .swapped = true),
		DIES(dies_in_a_page, .full = true, .in_page = true),
		DIES(dies_while_it_drops, .full = true, .too_much = true),
		DIES(dies_while_it_overwrites, .full = true, .flags = OP_MRING_OVERWRITE),
		DIES(dies_while_it_overwrites_in_a_page, .full = true, .in_page = true, .flags = OP_MRING_OVERWRITE),
		DIES(dies_with_the_baton_lent, .lent = true),
		DIES(dies_with_the_baton_lent_and_a_fence, .lent = true, .flags = OP_MRING_FENCE),
		DIES(dies_while_it_overwrites_with_the_baton_lent, .full = true, .lent = true, .flags = OP_MRING_OVERWRITE),
		DIES(dies_before_the_baton_is_recalled, .recalled = true),
	};

	return cmocka_run_group_tests_name("ring_killed", tests, NULL, NULL);
}
