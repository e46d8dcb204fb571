/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The three kinds of threads on one ring or pair: its writer, its reader, and who swaps in the
 * reader's place.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>

#include "libop/base/sys.h"
#include "tests/ring/torture.h"

/* a live writer wakes within a millisecond; only a forgotten one sleeps so long */
#define ASLEEP_MS_MAX 120000

/* ---- the writer ---- */

static struct op_mring_writer *enter(const struct mode *mode, struct writers *writers)
{
	return mode->pair ? op_mring_pair_enter(&writers->pair) : &writers->ring;
}

static void wait_for_room(const struct mode *mode, struct writers *writers, size_t nr_bytes)
{
	bool room;

	do {
		room = op_mring_has_room(enter(mode, writers), nr_bytes, mode->in_page);
		if (mode->pair)
			op_mring_pair_leave(&writers->pair);
		if (!room)
			sched_yield();
	} while (!room);
}

int reserve(struct run *run, struct writers *writers, size_t nr_bytes, struct perf_event_header **ret_record)
{
	const struct mode *mode = run->mode;
	int err;

	if (mode->waits)
		wait_for_room(mode, writers, nr_bytes);
	if (mode->pair)
		err = mode->in_page ? op_mring_pair_reserve_in_page(&writers->pair, nr_bytes, ret_record)
				    : op_mring_pair_reserve(&writers->pair, nr_bytes, ret_record);
	else
		err = mode->in_page ? op_mring_reserve_in_page(&writers->ring, nr_bytes, ret_record)
				    : op_mring_reserve(&writers->ring, nr_bytes, ret_record);
	if (err && (err != -ENOSPC || mode->waits))
		wrong(run, "reserve", (uint64_t)-err);
	run->dropped += err == -ENOSPC;
	return err;
}

void commit(const struct mode *mode, struct writers *writers)
{
	if (mode->pair)
		op_mring_pair_commit(&writers->pair);
	else
		op_mring_commit(&writers->ring);
}

static void abandon(const struct mode *mode, struct writers *writers)
{
	if (mode->pair)
		op_mring_pair_abandon(&writers->pair);
	else
		op_mring_abandon(&writers->ring);
}

/* What becomes of a reservation; what is not committed may be of any size. */
enum fate {
	ABANDONED,
	FORGOTTEN, /* with the next reservation */
	COMMITTED,
};

static enum fate any_fate(uint64_t *seed)
{
	return (enum fate)op_min_u64(random_u64(seed) % 1024, COMMITTED);
}

static void end_record(struct run *run, struct writers *writers, enum fate fate, uint64_t *seed)
{
	if (fate == ABANDONED)
		abandon(run->mode, writers);
	if (fate != COMMITTED)
		return;
	commit(run->mode, writers);
	if (run->mode->scribbles)
		scribble(&writers->attached.rings[random_u64(seed) % (run->mode->pair ? 2 : 1)], seed);
}

static void write_records(struct run *run, struct writers *writers)
{
	uint64_t seed = run->seed;

	for (uint64_t number = 0; number < run->nr_records; number++) {
		enum fate fate = any_fate(&seed);
		size_t nr_bytes = fate == COMMITTED ? body_bytes(run, number) : random_u64(&seed) % (BODY_BYTES_MAX / 8) * 8;
		struct perf_event_header *place;
		int err;

		yield_sometimes(&seed);
		while ((err = reserve(run, writers, sizeof(struct record) + nr_bytes, &place))) {
			sched_yield();
			if (!run->mode->never_lose)
				break;
		}
		if (err)
			continue;
		fill((void *)place, number, nr_bytes, &seed);
		end_record(run, writers, fate, &seed);
		if (fate != COMMITTED)
			number--; /* once more */
	}
}

static int attach(const struct run *run, struct op_mring_pair *ret_pair)
{
	const struct op_mring *rings = run->pair.rings;
	const int fds[] = { rings[0].fd, rings[1].fd };

	if (!run->mode->attached)
		return 0;
	return run->mode->pair ? op_mring_pair_attach(fds, rings[0].wake_fd, ret_pair)
			       : op_mring_attach(rings[0].fd, rings[0].wake_fd, &ret_pair->rings[0]);
}

static void open_writer(struct run *run, struct writers *writers)
{
	const struct op_mring_pair *pair = run->mode->attached ? &writers->attached : &run->pair;
	int err = attach(run, &writers->attached);

	if (!err)
		err = run->mode->pair ? op_mring_pair_writer_open(pair, &writers->pair)
				      : op_mring_writer_open(&pair->rings[0], &writers->ring);
	if (err)
		wrong(run, "writer_open", (uint64_t)-err);
}

void *write_all(void *arg)
{
	struct run *run = arg;
	struct writers writers = { 0 };
	uint64_t one = 1;

	open_writer(run, &writers);
	if (run->mode->aux)
		write_transactions(run, &writers);
	else
		write_records(run, &writers);
	/* v, pairs with w in the reader: the commits are stored before */
	op_store_release(&run->done, true);
	if (op_sys_write(run->done_fd, &one, sizeof(one)) < 0)
		wrong(run, "the last wake-up", 0);
	op_mring_pair_destroy(&writers.attached);
	return NULL;
}

/* ---- the reader ---- */

/*
 * What is committed before the writer wakes is read by who was woken: the descriptor is cleared
 * before the look.
 */
static void sleep_until_woken(struct run *run)
{
	struct pollfd fds[] = { { .fd = run->pair.rings[0].wake_fd, .events = POLLIN }, { .fd = run->done_fd, .events = POLLIN } };
	int nr;

	do {
		nr = poll(fds, op_array_size(fds), ASLEEP_MS_MAX);
	} while (nr < 0 && errno == EINTR);
	if (nr <= 0)
		wrong(run, "the reader was not woken", run->read);
	if (fds[0].revents)
		run->nr_woken++;
	op_mring_wake_clear(&run->pair.rings[0]);
}

static bool ask_for_swap(struct run *run, uint64_t *seed)
{
	bool lend = run->mode->nr_swappers && random_u64(seed) % 8;
	int err;

	run->last = op_load_acquire(&run->done); /* w, pairs with v */
	run->before = run->reader.read;
	err = lend ? op_mring_pair_lend(&run->reader) : op_mring_pair_swap(&run->reader);
	if (err && err != -EAGAIN)
		wrong(run, "swap", (uint64_t)-err);
	run->nr_lent += lend && !err;
	return !err;
}

static void recall(struct run *run)
{
	int err = op_mring_pair_recall(&run->reader);

	if (err && err != -EAGAIN)
		wrong(run, "recall", (uint64_t)-err);
}

static void read_pair(struct run *run, uint64_t *seed)
{
	struct op_ring *ring;

	run->asked = run->asked || ask_for_swap(run, seed);
	yield_sometimes(seed);
	if (run->asked && run->reader.lent && random_u64(seed) % 32 == 0)
		recall(run);
	ring = run->asked ? op_mring_pair_read_ring(&run->reader) : NULL;
	if (!ring)
		return;
	if (run->in_hand)
		wrong(run, "the baton is in two hands", 0);
	if (run->mode->scribbles)
		read_scribbled(run, ring, seed);
	else if (run->mode->flags & OP_MRING_OVERWRITE)
		read_snapshot(run, ring);
	else
		read_forward(run, ring, seed);
	run->asked = false;
	if (run->reader.read == run->before)
		return; /* the baton came back as it was */
	run->awake = false;
	run->finished = run->last;
}

static void read_ring(struct run *run, uint64_t *seed)
{
	bool last = op_load_acquire(&run->done); /* w, pairs with v */

	if (run->mode->scribbles)
		read_scribbled(run, &run->ring, seed);
	else
		read_forward(run, &run->ring, seed);
	run->awake = false;
	run->finished = last;
}

void read_some(struct run *run, uint64_t *seed)
{
	if (run->mode->wake_every && !run->awake)
		sleep_until_woken(run);
	run->awake = true;
	if (run->mode->aux)
		read_transactions(run, seed);
	else if (run->mode->pair)
		read_pair(run, seed);
	else
		read_ring(run, seed);
}

/* ---- a swapping thread ---- */

bool swap_one(struct run *run, uint64_t *seed)
{
	struct op_mring_pair_swapper swapper;

	if (op_mring_pair_swapper_open(&run->reader.baton, &swapper))
		return false;
	if (run->in_hand)
		wrong(run, "the baton is in two hands", 1);
	run->in_hand = true;
	run->nr_taken++;
	if (random_u64(seed) % 16) {
		while (op_mring_pair_swapper_swap(&swapper) && random_u64(seed) % 16)
			sched_yield();
		run->nr_by_swapper++;
	}
	yield_sometimes(seed);
	run->in_hand = false;
	op_mring_pair_swapper_close(&swapper);
	return true;
}

/* ---- the sums ---- */

/*
 * One for each so many that were committed, or fewer when the reader came late; where none was
 * refused room there is no other.
 */
static void check_wakes(struct run *run)
{
	uint64_t nr = run->mode->wake_records ? run->read : run->nr_bytes;

	if (run->mode->wake_every && run->mode->waits && (run->nr_woken > nr / run->mode->wake_every + 1))
		wrong(run, "wake-ups", run->nr_woken);
	if (run->mode->wake_every && run->nr_records >= 100000 && run->nr_woken < 100)
		wrong(run, "few wake-ups", run->nr_woken);
}

/* After the last record: what was not told is still pending. */
void check_sums(struct run *run)
{
	uint64_t dropped = op_mring_dropped(&run->pair.rings[0]) + (run->mode->pair ? op_mring_dropped(&run->pair.rings[1]) : 0);

	if (dropped != run->dropped)
		wrong(run, "dropped", dropped);
	check_wakes(run);
	if (run->mode->flags & OP_MRING_OVERWRITE) {
		if (dropped || run->expected != run->nr_records)
			wrong(run, "the last record", run->expected);
		if (run->nr_records >= 100000 && !run->overwritten)
			wrong(run, "never overwritten", run->read);
		return;
	}
	if (run->told > dropped || (run->mode->never_lose && run->told != dropped))
		wrong(run, "told", run->told);
	if (run->expected + (run->mode->never_lose ? 0 : dropped - run->told) != run->nr_records)
		wrong(run, "sum", run->expected);
}
