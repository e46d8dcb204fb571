/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Torture of the AUX area. Each try of the writer is a numbered record and then a transaction,
 * whose bytes follow from the number and from their positions: what was left there by another try
 * or by another lap is not taken for them.
 *
 * In overwrite mode the ring of the records is read while the writer stands still (the reader asks
 * it to), the area is copied out while the writer goes on.
 */
#include <errno.h>
#include <sched.h>

#include "tests/ring/torture.h"

/* of a piece; a transaction has at most three pieces and fits in the area */
#define PIECE_BYTES_MAX      1300u
#define NR_KNOWN_MAX         64    /* transactions of one snapshot that are copied out */
#define COPIES_OF_A_SNAPSHOT 24

struct transaction {
	uint64_t number;
	uint64_t from, to;
};

static uint8_t byte_of(uint64_t word, uint64_t position)
{
	return (uint8_t)(word >> position % 8 * 8 ^ position * 37 ^ position >> 8);
}

static uint64_t word_of(uint64_t number)
{
	return random_u64(&number);
}

/* ---- the writer ---- */

/* It tells how many AUX records there were before it, modulo 2^16. */
static void put_number(struct run *run, struct writers *writers, uint64_t number, uint64_t *seed)
{
	struct perf_event_header *place;

	while (reserve(run, writers, sizeof(struct record), &place))
		sched_yield();
	fill((void *)place, number, 0, seed);
	place->misc = (uint16_t)run->aux_written.records;
	commit(run->mode, writers);
}

/* Returns whether all of it was taken. */
static bool write_piece(struct op_aux_handle *handle, uint64_t number, size_t nr_bytes)
{
	uint8_t bytes[PIECE_BYTES_MAX];
	uint64_t word = word_of(number), from = handle->from + handle->nr_bytes;

	for (size_t i = 0; i < nr_bytes; i++)
		bytes[i] = byte_of(word, from + i);
	return op_aux_write(handle, bytes, nr_bytes) == nr_bytes;
}

static size_t any_size(uint64_t *seed)
{
	size_t most = random_u64(seed) % 16 ? 200 : PIECE_BYTES_MAX;

	return random_u64(seed) % most;
}

/* Most are published as they are, some with less, some not at all. */
static void end_transaction(struct run *run, struct writers *writers, struct op_aux_handle *handle, bool *truncated, uint64_t *seed)
{
	size_t nr_bytes = random_u64(seed) % 8 ? handle->nr_bytes : random_u64(seed) % (handle->nr_bytes + 1);
	int err = op_aux_end(handle, &writers->ring, nr_bytes);

	if (err && err != -ENOSPC)
		wrong(run, "aux_end", (uint64_t)-err);
	if (err) {
		run->dropped++;
		*truncated = true;
		return;
	}
	if (!nr_bytes && !*truncated)
		return;
	run->aux_written.records++;
	run->aux_written.truncated += *truncated;
	run->aux_written.bytes += nr_bytes;
	*truncated = false;
}

/* Waits for the reader's copy, but not for room: what finds none is lost. */
static int begin_transaction(struct run *run, struct writers *writers, struct op_aux_handle *ret_handle)
{
	int err;

	while ((err = op_aux_try_begin(&writers->aux, ret_handle)) == -EBUSY) {
		run->aux_busy++;
		sched_yield();
	}
	if (err == -ENOSPC)
		err = op_aux_begin(&writers->aux, ret_handle);
	if (err && err != -ENOSPC && err != -EBUSY)
		wrong(run, "aux_begin", (uint64_t)-err);
	return err;
}

/* Between two records, and outside of the area. */
static void stand_still_when_asked(struct run *run)
{
	uint64_t pause = op_load_acquire(&run->pause); /* x, pairs with y in stop_writer */

	if (pause == run->paused)
		return;
	/* z, pairs with stop_writer's look at it: the records are stored before */
	op_store_release(&run->paused, pause);
	/* pairs with read_standing: the records were loaded before */
	while (op_load_acquire(&run->resumed) != pause)
		sched_yield();
}

void write_transactions(struct run *run, struct writers *writers)
{
	uint64_t seed = run->seed;
	bool truncated = false;

	if (op_aux_writer_open(&run->aux, &writers->aux))
		wrong(run, "aux_writer_open", 0);
	for (uint64_t number = 0; number < run->nr_records; number++) {
		struct op_aux_handle handle;

		stand_still_when_asked(run);
		put_number(run, writers, number, &seed);
		if (begin_transaction(run, writers, &handle)) {
			truncated = true;
			sched_yield();
			continue;
		}
		for (uint64_t nr = random_u64(&seed) % 4; nr; nr--) {
			truncated |= !write_piece(&handle, number, any_size(&seed));
			yield_sometimes(&seed);
		}
		end_transaction(run, writers, &handle, &truncated, &seed);
	}
}

/* ---- the reader ---- */

struct comparison {
	struct run *run;
	uint64_t word;
	uint64_t at;
	uint64_t seed;
};

static int compare(const void *bytes, size_t nr_bytes, void *arg)
{
	struct comparison *comparison = arg;

	for (size_t i = 0; i < nr_bytes; i++)
		if (((const uint8_t *)bytes)[i] != byte_of(comparison->word, comparison->at + i))
			wrong(comparison->run, "byte at", comparison->at + i);
	comparison->at += nr_bytes;
	yield_sometimes(&comparison->seed);
	comparison->run->aux_copied += nr_bytes;
	return 0;
}

/* Of the transaction's bytes. 0, -EBUSY, -ERANGE. */
static int copy_out(struct run *run, const struct transaction *transaction, uint64_t from, uint64_t to)
{
	struct comparison comparison = { .run = run, .word = word_of(transaction->number), .at = from, .seed = from };
	int64_t nr = op_aux_copy_out(&run->aux, from, to, compare, &comparison);

	if (nr == -EBUSY || nr == -ERANGE)
		return (int)nr;
	if (nr < 0 || (uint64_t)nr != to - from || comparison.at != to)
		wrong(run, "copy_out", (uint64_t)nr);
	return 0;
}

/* Nothing of it may be gone. */
static void copy_whole(struct run *run, const struct transaction *transaction, uint64_t from, uint64_t to)
{
	int err;

	while ((err = copy_out(run, transaction, from, to)) == -EBUSY)
		sched_yield();
	if (err)
		wrong(run, "bytes that are gone", from);
}

static struct transaction take_record(struct run *run, const struct perf_event_header *header)
{
	const struct op_aux_record *record = (const void *)header;
	uint64_t kind = run->mode->flags & OP_MRING_OVERWRITE ? PERF_AUX_FLAG_OVERWRITE : 0;

	if (header->type != PERF_RECORD_AUX || header->size != sizeof(*record))
		wrong(run, "AUX record", header->size);
	if ((record->flags & ~(uint64_t)PERF_AUX_FLAG_TRUNCATED) != kind || (!record->flags && !record->aux_size))
		wrong(run, "flags", record->flags);
	run->aux_read.records++;
	run->aux_read.truncated += record->flags & PERF_AUX_FLAG_TRUNCATED;
	run->aux_read.bytes += record->aux_size;
	return (struct transaction){ .from = record->aux_offset, .to = record->aux_offset + record->aux_size };
}

static void take_transaction(struct run *run, struct transaction transaction, uint64_t *seed)
{
	uint64_t middle = transaction.from + random_u64(seed) % (transaction.to - transaction.from + 1);

	if (transaction.to != run->aux_read.bytes)
		wrong(run, "offset", transaction.from);
	transaction.number = run->expected - 1;
	copy_whole(run, &transaction, transaction.from, middle);
	if (random_u64(seed) % 4 == 0)
		op_aux_give_back(&run->aux, middle);
	copy_whole(run, &transaction, middle, transaction.to);
	if (random_u64(seed) % 8)
		op_aux_give_back(&run->aux, transaction.to);
}

static void take_number(struct run *run, const struct perf_event_header *header)
{
	if (check(run, header)->number != run->expected)
		wrong(run, "number", check(run, header)->number);
	run->expected++;
	run->read++;
}

static void read_beside(struct run *run, uint64_t *seed)
{
	const struct perf_event_header *header;

	run->finished = op_load_acquire(&run->done); /* w, pairs with v */
	op_ring_begin(&run->ring);
	while ((header = op_ring_next(&run->ring))) {
		if (header->type == PERF_RECORD_LOST)
			take_lost(run, header);
		else if (header->type == PERF_RECORD_AUX)
			take_transaction(run, take_record(run, header), seed);
		else
			take_number(run, header);
		yield_sometimes(seed);
		if (random_u64(seed) % 64 == 0)
			op_ring_end(&run->ring);
	}
	op_ring_end(&run->ring);
}

/* Returns when the writer stands still, or has come to its end. */
static bool stop_writer(struct run *run)
{
	uint64_t pause = run->pause + 1;
	bool done;

	op_store_release(&run->pause, pause); /* y, pairs with x */
	while (!(done = op_load_acquire(&run->done)) && op_load_acquire(&run->paused) != pause)
		sched_yield();
	return done;
}

struct snapshot {
	struct transaction known[NR_KNOWN_MAX]; /* the newest first */
	size_t nr_known;
	struct transaction open; /* its number comes next */
	bool is_open;
	uint64_t until; /* where the next older transaction ends */
	uint64_t newest, oldest;
	uint64_t nr_numbers;
	uint64_t aux_at_newest, aux_at_oldest; /* AUX records before that number */
	bool aux_behind_newest;
};

static void take_older(struct run *run, struct snapshot *snapshot, const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_AUX) {
		snapshot->open = take_record(run, header);
		if (snapshot->is_open || (snapshot->until && snapshot->open.to != snapshot->until))
			wrong(run, "offset", snapshot->open.from);
		snapshot->until = snapshot->open.from;
		snapshot->is_open = true;
		return;
	}
	snapshot->oldest = check(run, header)->number;
	snapshot->aux_at_oldest = header->misc;
	if (!snapshot->nr_numbers++) {
		snapshot->newest = snapshot->oldest;
		snapshot->aux_at_newest = header->misc;
		snapshot->aux_behind_newest = snapshot->is_open;
	}
	if (snapshot->oldest != snapshot->newest - snapshot->nr_numbers + 1)
		wrong(run, "number in a snapshot", snapshot->oldest);
	snapshot->open.number = snapshot->oldest;
	if (snapshot->is_open && snapshot->nr_known < NR_KNOWN_MAX)
		snapshot->known[snapshot->nr_known++] = snapshot->open;
	snapshot->is_open = false;
}

/*
 * What is overwritten is, to the byte, the numbers that are missing and their AUX records; of these
 * the last one may have been given.
 */
static void check_gone(struct run *run, const struct snapshot *snapshot)
{
	uint64_t overwritten = op_ring_overwritten(&run->ring), nr_numbers = snapshot->oldest - run->expected;
	uint64_t of_aux = overwritten - nr_numbers * sizeof(struct record);
	uint64_t nr_aux = snapshot->aux_at_oldest - run->aux_known - snapshot->is_open;

	if (of_aux % sizeof(struct op_aux_record) || (uint16_t)(of_aux / sizeof(struct op_aux_record)) != (uint16_t)nr_aux)
		wrong(run, "overwritten", overwritten);
	run->overwritten += overwritten;
	run->aux_known = snapshot->aux_at_newest + snapshot->aux_behind_newest;
}

/* From the newest down: each transaction comes before the record with its number. */
static void read_standing(struct run *run, struct snapshot *snapshot)
{
	const struct perf_event_header *header;

	op_ring_begin(&run->ring);
	while ((header = op_ring_next(&run->ring)))
		take_older(run, snapshot, header);
	if (!snapshot->nr_numbers && (snapshot->is_open || op_ring_overwritten(&run->ring)))
		wrong(run, "a snapshot without a number", op_ring_overwritten(&run->ring));
	if (snapshot->nr_numbers && snapshot->oldest < run->expected)
		wrong(run, "twice in snapshots", snapshot->oldest);
	if (snapshot->nr_numbers)
		check_gone(run, snapshot);
	op_ring_end(&run->ring);
	if (!snapshot->nr_numbers)
		return;
	run->expected = snapshot->newest + 1;
	run->read += snapshot->nr_numbers;
}

/* Any piece of any of them: it is right, or gone, or the writer is there. */
static void copy_some(struct run *run, const struct snapshot *snapshot, uint64_t *seed)
{
	for (int i = 0; i < COPIES_OF_A_SNAPSHOT; i++) {
		const struct transaction *transaction = &snapshot->known[random_u64(seed) % snapshot->nr_known];
		uint64_t from = transaction->from + random_u64(seed) % (transaction->to - transaction->from + 1);
		uint64_t to = from + random_u64(seed) % (transaction->to - from + 1);

		run->aux_gone += copy_out(run, transaction, from, to) == -ERANGE;
		yield_sometimes(seed);
	}
}

static void read_paused(struct run *run, uint64_t *seed)
{
	struct snapshot snapshot = { 0 };
	bool done = stop_writer(run);

	read_standing(run, &snapshot);
	/* The last one cannot be gone: it is smaller than the area. */
	if (snapshot.nr_known)
		copy_whole(run, &snapshot.known[0], snapshot.known[0].from, snapshot.known[0].to);
	op_store_release(&run->resumed, run->pause); /* pairs with stand_still_when_asked */
	if (snapshot.nr_known)
		copy_some(run, &snapshot, seed);
	run->finished = done;
}

void read_transactions(struct run *run, uint64_t *seed)
{
	if (run->mode->flags & OP_MRING_OVERWRITE)
		read_paused(run, seed);
	else
		read_beside(run, seed);
	run->awake = false;
}

void check_transactions(struct run *run)
{
	const struct aux_counts *wrote = &run->aux_written, *read = &run->aux_read;
	uint64_t dropped = op_mring_dropped(&run->pair.rings[0]);

	if (dropped != run->dropped || run->told > dropped)
		wrong(run, "dropped", dropped);
	if (run->expected != run->nr_records)
		wrong(run, "the last number", run->expected);
	if (run->nr_records >= 100000 && (!run->aux_busy || !run->aux_copied))
		wrong(run, "never beside each other", run->aux_busy);
	if (run->mode->flags & OP_MRING_OVERWRITE) {
		if (run->nr_records >= 100000 && !run->overwritten)
			wrong(run, "never overwritten", run->read);
		return;
	}
	if (read->records != wrote->records || read->truncated != wrote->truncated || read->bytes != wrote->bytes)
		wrong(run, "AUX bytes", read->bytes);
	if (run->aux_copied != read->bytes)
		wrong(run, "AUX bytes copied", run->aux_copied);
}
