/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A writer process that dies at every step (stepped.h) of a transaction in the AUX area. After each
 * death the area can be copied out, the records name every byte below aux_head once, and the next
 * writer says TRUNCATED when something is missing. And a reader process that dies at every step of
 * a copy-out: the writer goes on, and the next reader gets what that one had not given back.
 */
#include <errno.h>

#include "libop/ring/aux_area.h"
#include "tests/unit/memory_ring.h"
#include "tests/unit/stepped.h"

#define BYTES	    4096u
#define TRANSACTION 700u
#define NR_SEEN_MAX 16

struct work {
	unsigned int flags;
	unsigned int nr_before; /* transactions; with 5 the area has no room for all of the next */
	bool full;              /* the data ring has no room for the child's record */
	/* the next writer has written other records when it opens the area */
	bool late;
};

struct box {
	struct mring_box data;
	struct op_aux aux;
};

struct seen {
	struct op_aux_record records[NR_SEEN_MAX];
	size_t nr;
};

/* The bytes of all positions that there are, made before: each step costs. */
static uint8_t stream[2 * BYTES];

static void put(struct op_aux_writer *aux, struct op_mring_writer *data)
{
	struct op_aux_handle handle;
	int err = op_aux_begin(aux, &handle);

	if (err < 0)
		return;
	op_aux_write(&handle, stream + handle.from, 100);
	op_aux_write(&handle, stream + handle.from + 100, TRANSACTION - 100);
	err = op_aux_end(&handle, data, TRANSACTION);
	(void)err; /* -ENOSPC: the next record tells */
}

static void write_one(void *arg)
{
	struct box *box = arg;
	struct op_mring_writer data;
	struct op_aux_writer aux;

	if (op_mring_writer_open(&box->data.ring, &data) < 0)
		_exit(77);
	stepped_begin();
	if (!op_aux_writer_open(&box->aux, &aux)) {
		put(&aux, &data);
		op_aux_writer_close(&aux);
	}
	stepped_end();
}

static int compare(const void *bytes, size_t nr_bytes, void *arg)
{
	uint64_t *at = arg;

	for (size_t i = 0; i < nr_bytes; i++)
		if (((const uint8_t *)bytes)[i] != stream[*at + i])
			return -EPROTO;
	*at += nr_bytes;
	return 0;
}

/* The records that have come since, in the order in which they were written, and their bytes. */
static struct seen look(struct box *box)
{
	const struct perf_event_header *header;
	struct seen seen = { 0 };

	op_ring_begin(&box->data.reader);
	while ((header = op_ring_next(&box->data.reader))) {
		if (header->type != PERF_RECORD_AUX)
			continue;
		assert_true(seen.nr < NR_SEEN_MAX);
		memcpy(&seen.records[seen.nr++], header, sizeof(struct op_aux_record));
	}
	op_ring_end(&box->data.reader);
	assert_int_equal(box->data.reader.damaged, 0);
	for (size_t i = 0; i < seen.nr / 2 && box->aux.overwrite; i++) {
		struct op_aux_record newer = seen.records[i];

		seen.records[i] = seen.records[seen.nr - 1 - i];
		seen.records[seen.nr - 1 - i] = newer;
	}
	for (size_t i = 0; i < seen.nr; i++) {
		uint64_t at = seen.records[i].aux_offset, size = seen.records[i].aux_size;

		assert_int_equal(op_aux_copy_out(&box->aux, at, at + size, compare, &at), size);
	}
	return seen;
}

static uint64_t end_of(const struct op_aux_record *record)
{
	return record->aux_offset + record->aux_size;
}

static void write_before(struct box *box, const struct work *work)
{
	struct perf_event_header *place;
	struct op_aux_writer aux;

	assert_int_equal(op_aux_writer_open(&box->aux, &aux), 0);
	for (unsigned int i = 0; i < work->nr_before; i++)
		put(&aux, &box->data.writer);
	while (work->full && !op_mring_reserve(&box->data.writer, 8, &place)) {
		place->type = PERF_RECORD_SAMPLE;
		op_mring_commit(&box->data.writer);
	}
	op_aux_writer_close(&aux);
	op_mring_writer_close(&box->data.writer);
}

/* More than the AUX record that the dead one may have reserved. */
static void put_others(struct op_mring_writer *data)
{
	struct perf_event_header *place;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(op_mring_reserve(data, sizeof(struct op_aux_record), &place), 0);
		place->type = PERF_RECORD_SAMPLE;
		op_mring_commit(data);
	}
}

/* What is there when the next one writes; `before` is what the dead one left. */
static void go_on(struct box *box, const struct work *work, const struct seen *before, bool touched)
{
	bool named = before->nr > work->nr_before;
	struct op_aux_writer aux;
	struct seen after;

	op_aux_give_back(&box->aux, end_of(&before->records[before->nr - 1]));
	assert_int_equal(op_mring_writer_open(&box->data.ring, &box->data.writer), 0);
	if (work->late)
		put_others(&box->data.writer);
	assert_int_equal(op_aux_writer_open(&box->aux, &aux), 0);
	put(&aux, &box->data.writer);
	after = look(box);
	assert_int_equal(after.nr, 1);
	assert_int_equal(after.records[0].aux_size, TRANSACTION);
	assert_int_equal(after.records[0].aux_offset, end_of(&before->records[before->nr - 1]));
	if (named)
		assert_false(after.records[0].flags & PERF_AUX_FLAG_TRUNCATED);
	else if (touched)
		assert_true(after.records[0].flags & PERF_AUX_FLAG_TRUNCATED);
}

/*
 * Runs `child` for that many instructions and kills it, in a box that is open until close_box. What
 * stepped_run gives; -1: may not trace.
 */
static long open_and_kill(struct box *box, const struct work *work, void (*child)(void *), long nr_steps)
{
	long made = -1;
	pid_t pid;

	mring_box_open(&box->data, BYTES, BYTES, work->flags);
	assert_int_equal(op_aux_map(&box->data.ring, &box->aux), 0);
	write_before(box, work);
	pid = stepped_fork(child, box);
	if (pid >= 0) {
		made = stepped_run(pid, nr_steps);
		stepped_kill(pid);
	}
	return made;
}

static void close_box(struct box *box)
{
	op_aux_unmap(&box->aux);
	mring_box_close(&box->data);
}

static unsigned int nr_died_as_writers;

/* Of a dead writer: nobody else gets it. */
static void check_claim(const struct box *box)
{
	bool claimed = box->data.ring.shared->aux_owner;
	struct op_aux_writer second = { .aux = NULL };

	nr_died_as_writers += claimed;
	assert_int_equal(op_aux_writer_open(&box->aux, &second), claimed ? -EBUSY : 0);
	if (claimed)
		assert_null(second.aux);
	else
		op_aux_writer_close(&second);
}

static long die_once(const void *arg, long nr_steps)
{
	const struct work *work = arg;
	uint64_t written = (uint64_t)work->nr_before * TRANSACTION;
	struct seen seen;
	struct box box;
	long made = open_and_kill(&box, work, write_one, nr_steps);

	if (made >= 0) {
		check_claim(&box);
		op_mring_writer_died(&box.data.ring);
		seen = look(&box);
		assert_in_range(seen.nr, work->nr_before, work->nr_before + 1);
		for (size_t i = 0; i < seen.nr; i++)
			assert_int_equal(seen.records[i].aux_offset, i * TRANSACTION);
		if (seen.nr > work->nr_before)
			assert_int_equal(seen.records[work->nr_before].flags & PERF_AUX_FLAG_TRUNCATED,
					 written + TRANSACTION > BYTES);
		go_on(&box, work, &seen, box.data.ring.shared->aux_touched > written);
	}
	close_box(&box);
	return made;
}

static int pass(const void *bytes OP_UNUSED, size_t nr_bytes OP_UNUSED, void *arg OP_UNUSED)
{
	return 0;
}

/* The first of the transactions. */
static void read_one(void *arg)
{
	struct box *box = arg;
	int64_t copied;

	stepped_begin();
	op_ring_begin(&box->data.reader);
	if (op_ring_next(&box->data.reader)) {
		copied = op_aux_copy_out(&box->aux, 0, TRANSACTION, pass, NULL);
		op_ring_end(&box->data.reader);
		op_aux_give_back(&box->aux, (uint64_t)copied);
	}
	stepped_end();
}

static unsigned int nr_died_in_a_copy;

static long die_reading_once(const void *arg, long nr_steps)
{
	const struct work *work = arg;
	struct op_aux_handle handle;
	struct op_aux_writer aux;
	struct seen seen;
	struct box box;
	bool copying;
	long made = open_and_kill(&box, work, read_one, nr_steps);

	if (made >= 0) {
		assert_int_equal(op_aux_writer_open(&box.aux, &aux), 0);
		copying = box.data.ring.shared->aux_state == OP_AUX_COPYING;
		nr_died_in_a_copy += copying;
		if (copying)
			assert_int_equal(op_aux_begin(&aux, &handle), -EBUSY);
		op_aux_writer_close(&aux);
		op_mring_reader_died(&box.data.ring);
		op_ring_unmap(&box.data.reader);
		assert_int_equal(op_mring_reader(&box.data.ring, &box.data.reader), 0);
		seen = look(&box);
		assert_in_range(seen.nr, work->nr_before - 1, work->nr_before);
		go_on(&box, work, &seen, copying);
	}
	close_box(&box);
	return made;
}

static void a_reader_dies_in_a_copy(void **state)
{
	(void)state;
	/* In place: nothing is allocated among the steps. */
	stepped_everywhere(die_reading_once, &(struct work){ .nr_before = 3, .flags = OP_MRING_OWN_WRITER });
	assert_true(nr_died_in_a_copy > 0);
}

static void dies_in_a_transaction(void **state)
{
	(void)state;
	stepped_everywhere(die_once, &(struct work){ .nr_before = 3 });
	assert_true(nr_died_as_writers > 0);
}

static void dies_in_one_that_leaves_bytes_out(void **state)
{
	(void)state;
	stepped_everywhere(die_once, &(struct work){ .nr_before = 5, .late = true });
}

static void dies_in_one_that_finds_no_room_for_its_record(void **state)
{
	(void)state;
	stepped_everywhere(die_once, &(struct work){ .nr_before = 3, .full = true });
}

static void dies_in_one_that_overwrites(void **state)
{
	(void)state;
	stepped_everywhere(die_once, &(struct work){ .nr_before = 3, .flags = OP_MRING_OVERWRITE, .late = true });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_dies_in_a_copy),
		cmocka_unit_test(dies_in_a_transaction),
		cmocka_unit_test(dies_in_one_that_leaves_bytes_out),
		cmocka_unit_test(dies_in_one_that_finds_no_room_for_its_record),
		cmocka_unit_test(dies_in_one_that_overwrites),
	};

	for (size_t i = 0; i < sizeof(stream); i++)
		stream[i] = (uint8_t)(i * 41 + (i >> 8) * 13 + 7);
	return cmocka_run_group_tests_name("ring_killed_aux", tests, NULL, NULL);
}
