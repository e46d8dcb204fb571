/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A writer process that dies at every step (stepped.h), from before a reservation to after the
 * commit. After each death the reader sees only whole records, in order, and the next writer goes
 * on; dropped records are reported once. No record is read twice, and no record is missing that was
 * not overwritten: data_head before, and how far the dead writer had gone below it, say how many
 * bytes could not be kept.
 */
#include <errno.h>

#include "libop/ring/memory_pair.h"
#include "tests/unit/stepped.h"

#define BYTES        4096u
#define RECORD_BYTES sizeof(struct numbered)
#define FULL         70u /* records: more than a ring has room for */
#define FEW          3u
#define NUMBER_MAX   400u

struct numbered {
	struct perf_event_header header;
	uint64_t number;
	uint64_t again[6];
};

static int put(struct op_mring_pair_writer *writer, uint64_t number, bool in_page)
{
	struct perf_event_header *place;
	struct numbered *record;
	int err = in_page ? op_mring_pair_reserve_in_page(writer, sizeof(*record), &place)
			  : op_mring_pair_reserve(writer, sizeof(*record), &place);

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

/* What the child does between its first and its last step. */
struct work {
	unsigned int flags;
	/* overwrite mode: taken before, each of FULL records, in one ring and the other */
	unsigned int snapshots;
	unsigned int unread;    /* records that were written since; 0: FEW */
	/*
	 * of those, what was not refused is read before: the child's record has a LOST record in
	 * front
	 */
	bool read;
	bool in_page;
	bool swapped;  /* the reader has swapped before */
	/* the baton is, and a swapping thread swaps when the child has done half of its steps */
	bool lent;
	bool recalled; /* the baton is lent, and the reader takes it back after the death */
};

/* The result of all readings since the pair was made. */
struct result {
	uint64_t records;
	uint64_t lost;
	uint64_t newest;
	uint64_t overwritten; /* bytes */
	bool given[NUMBER_MAX];
};

static void check_record(const struct numbered *record, struct result *result)
{
	assert_int_equal(record->header.type, PERF_RECORD_SAMPLE);
	assert_int_equal(record->header.size, sizeof(*record));
	for (size_t i = 0; i < op_array_size(record->again); i++)
		assert_int_equal(record->again[i], record->number);
	assert_in_range(record->number, 1, NUMBER_MAX - 1);
	assert_false(result->given[record->number]);
	result->given[record->number] = true;
	result->newest = op_max_u64(result->newest, record->number);
	result->records++;
}

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
		check_record(record, result);
		if (before)
			assert_int_equal(record->number, backward ? before - 1 : before + 1);
		before = record->number;
	}
	if (backward)
		result->overwritten += op_ring_overwritten(ring);
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
	uint64_t number;
};

/* Opens, waits for its tracer, writes one record, and says so. */
static void write_one(void *arg)
{
	const struct child *child = arg;
	struct op_mring_pair_writer writer;

	if (op_mring_pair_writer_open(child->pair, &writer) < 0)
		_exit(77);
	stepped_begin();
	if (put(&writer, child->number, child->work->in_page) == -EINVAL)
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

/*
 * Runs the child for that many instructions and kills it. Returns how many it made up to its end,
 * or nr_steps.
 */
static long kill_after(struct op_mring_pair *pair, struct op_mring_pair_reader *reader, struct child *child, long nr_steps)
{
	pid_t pid = stepped_fork(write_one, child);
	long made;

	if (pid < 0)
		return -1;
	if (child->work->lent || child->work->recalled)
		assert_int_equal(op_mring_pair_lend(reader), 0);
	if (child->work->lent)
		return swap_halfway(pair, reader, pid, nr_steps);
	made = stepped_run(pid, nr_steps);
	stepped_kill(pid);
	if (child->work->recalled)
		assert_int_equal(op_mring_pair_recall(reader), 0);
	op_mring_pair_writer_died(pair);
	return made;
}

/* Writes so many records, or until there is no room. Returns how many. */
static uint64_t put_until(struct op_mring_pair_writer *writer, uint64_t written, uint64_t end, bool in_page)
{
	while (written < end && put(writer, written + 1, in_page) != -ENOSPC)
		written++;
	return written;
}

/* The state when the child begins. */
struct before {
	uint64_t written;
	uint64_t heads[2];
	uint64_t unread[2];   /* overwrite mode: bytes that the reader has not been given */
	uint64_t overwritten; /* bytes, by those that were written before */
};

static uint64_t bytes_over(uint64_t bytes)
{
	return bytes > BYTES ? bytes - BYTES : 0;
}

static void write_before(const struct work *work, struct op_mring_pair *pair, struct op_mring_pair_reader *reader,
			 struct before *ret_before, struct result *result)
{
	bool backward = work->flags & OP_MRING_OVERWRITE;
	struct before before = { 0 };
	struct op_mring_pair_writer writer;
	unsigned int write = 0;
	uint64_t begin;

	assert_int_equal(op_mring_pair_writer_open(pair, &writer), 0);
	for (; write < work->snapshots; write++) {
		before.written = put_until(&writer, before.written, before.written + FULL, work->in_page);
		assert_int_equal(op_mring_pair_swap(reader), 0);
		read_ring(reader, backward, result);
		before.overwritten += bytes_over(FULL * RECORD_BYTES);
	}
	begin = before.written;
	before.written = put_until(&writer, begin, begin + (work->unread ? work->unread : FEW), work->in_page);
	if (work->swapped) {
		assert_int_equal(op_mring_pair_swap(reader), 0);
		read_ring(reader, backward, result);
		before.overwritten += backward ? bytes_over((before.written - begin) * RECORD_BYTES) : 0;
	} else {
		before.unread[write % 2] = (before.written - begin) * RECORD_BYTES;
	}
	if (work->read)
		read_both(reader, backward, result);
	for (int i = 0; i < 2; i++)
		before.heads[i] = pair->rings[i].control->data_head;
	op_mring_pair_writer_close(&writer);
	*ret_before = before;
}

/*
 * Committed records of the dead writer and all earlier ones are read; only the oldest ones that it
 * overwrote are missing.
 */
static void check_overwritten(const struct op_mring_pair *pair, const struct before *before, const struct result *result)
{
	uint64_t overwritten = before->overwritten, written = 0, way = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t floor = pair->rings[i].shared->floor, head = pair->rings[i].control->data_head;

		assert_true(floor == before->heads[i] || floor == before->heads[i] - RECORD_BYTES);
		overwritten += bytes_over(before->unread[i] + before->heads[i] - floor);
		written += before->heads[i] - head;
		way -= head;
	}
	assert_int_equal(result->overwritten, overwritten);
	assert_int_equal(result->records * RECORD_BYTES + overwritten, way);
	assert_int_equal(result->records * RECORD_BYTES + overwritten, before->written * RECORD_BYTES + written);
	assert_int_equal(result->given[before->written + 1], written == RECORD_BYTES);
}

static void check_all_given(const struct op_mring_pair *pair, const struct before *before, const struct result *result)
{
	uint64_t written = 0;

	for (int i = 0; i < 2; i++)
		written += pair->rings[i].control->data_head - before->heads[i];
	assert_int_equal(result->given[before->written + 1], written >= RECORD_BYTES);
	assert_int_equal(result->records, before->written + result->given[before->written + 1]);
}

/* One death: the state before, the child, the state after. Returns the result of kill_after. */
static long die_once(const void *arg, long nr_steps)
{
	const struct work *work = arg;
	bool backward = work->flags & OP_MRING_OVERWRITE;
	struct child child = { .work = work };
	struct op_mring_pair_writer writer;
	struct op_mring_pair_reader reader;
	struct result result = { 0 };
	struct op_mring_pair pair;
	struct before before;
	long made;

	assert_int_equal(op_mring_pair_create(BYTES, work->flags, &pair), 0);
	assert_int_equal(op_mring_pair_reader_open(&pair, &reader), 0);
	write_before(work, &pair, &reader, &before, &result);
	child.pair = &pair;
	child.number = before.written + 1;
	made = kill_after(&pair, &reader, &child, nr_steps);
	if (made >= 0) {
		assert_int_equal(op_mring_pair_writer_open(&pair, &writer), 0);
		read_both(&reader, backward, &result);
		(backward ? check_overwritten : check_all_given)(&pair, &before, &result);
		assert_int_equal(put(&writer, before.written + 2, work->in_page), 0);
		read_both(&reader, backward, &result);
		assert_int_equal(result.newest, before.written + 2);
		assert_int_equal(result.records * RECORD_BYTES + result.overwritten,
				 (before.written + 1 + result.given[before.written + 1]) * RECORD_BYTES);
		assert_int_equal(result.lost, op_mring_pair_dropped(&pair));
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
#define DIES(called, ...)                                                                                                          \
	{                                                                                                                          \
		.name = #called, .test_func = die_everywhere, .initial_state = &(struct work)                                      \
		{                                                                                                                  \
			__VA_ARGS__                                                                                                \
		}                                                                                                                  \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIES(dies_in_a_ring_with_room),
		DIES(dies_after_a_swap, .swapped = true),
		DIES(dies_after_a_swap_with_a_fence, .swapped = true, .flags = OP_MRING_FENCE),
		DIES(dies_while_it_tells_a_loss, .unread = FULL, .read = true),
		DIES(dies_while_it_tells_a_loss_after_a_swap, .unread = FULL, .swapped = true),
		DIES(dies_in_a_page, .unread = FULL, .read = true, .in_page = true),
		DIES(dies_while_it_drops, .unread = FULL),
		DIES(dies_while_it_overwrites, .unread = FULL, .flags = OP_MRING_OVERWRITE),
		DIES(dies_while_it_overwrites_in_a_page, .unread = FULL, .in_page = true, .flags = OP_MRING_OVERWRITE),
		DIES(dies_while_it_overwrites_what_was_given, .snapshots = 2, .unread = 40, .flags = OP_MRING_OVERWRITE),
		DIES(dies_while_it_overwrites_the_first_that_was_not, .snapshots = 3, .unread = 64, .flags = OP_MRING_OVERWRITE),
		DIES(dies_beside_a_snapshot, .snapshots = 1, .unread = FULL, .swapped = true, .flags = OP_MRING_OVERWRITE),
		DIES(dies_with_the_baton_lent, .lent = true),
		DIES(dies_with_the_baton_lent_and_a_fence, .lent = true, .flags = OP_MRING_FENCE),
		DIES(dies_while_it_overwrites_with_the_baton_lent, .unread = FULL, .lent = true, .flags = OP_MRING_OVERWRITE),
		DIES(dies_before_the_baton_is_recalled, .recalled = true),
	};

	return cmocka_run_group_tests_name("ring_killed", tests, NULL, NULL);
}
