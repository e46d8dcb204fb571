/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * torture [--records=N] [--seed=N] [MODE...]: a writer and a reader thread on one memory ring or pair, which the reader swaps. Or
 * swapping threads do it: the reader lends them the baton, takes it back now and then, and swaps one time in eight itself. Or many pairs,
 * each with a writer, one reader and a few swapping threads. Or the writer is a process. Every record has a number and a CRC, a random size and random yields around it. What is read must be what was written,
 * in order and once; what is missing must be what LOST records tell (in overwrite mode: nothing may be missing within a
 * snapshot). Exit code 1 and a line that says what was wrong otherwise.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/parse.h"
#include "tests/ring/torture.h"

#define NR_PAIRS_MAX    8
#define NR_SWAPPERS_MAX 2

static const struct mode modes[] = {
	{ .name = "ring" },
	{ .name = "ring-full", .never_lose = true },
	{ .name = "ring-in-page", .in_page = true },
	{ .name = "ring-copy", .reader_flags = OP_RING_COPY },
	{ .name = "pair", .pair = true },
	{ .name = "pair-fence", .pair = true, .flags = OP_MRING_FENCE },
	{ .name = "pair-full", .pair = true, .never_lose = true },
	{ .name = "pair-full-fence", .pair = true, .never_lose = true, .flags = OP_MRING_FENCE },
	{ .name = "pair-in-page", .pair = true, .in_page = true },
	{ .name = "pair-overwrite", .pair = true, .flags = OP_MRING_OVERWRITE },
	{ .name = "pair-overwrite-fence", .pair = true, .flags = OP_MRING_OVERWRITE | OP_MRING_FENCE },
	{ .name = "pair-overwrite-in-page", .pair = true, .in_page = true, .flags = OP_MRING_OVERWRITE },
	{ .name = "pair-process", .pair = true, .process = true },
	{ .name = "swapper", .pair = true, .nr_swappers = 1 },
	{ .name = "swapper-fence", .pair = true, .nr_swappers = 1, .flags = OP_MRING_FENCE },
	{ .name = "swapper-full", .pair = true, .nr_swappers = 1, .never_lose = true },
	{ .name = "swapper-full-fence", .pair = true, .nr_swappers = 1, .never_lose = true, .flags = OP_MRING_FENCE },
	{ .name = "swapper-in-page", .pair = true, .nr_swappers = 1, .in_page = true },
	{ .name = "swapper-overwrite", .pair = true, .nr_swappers = 1, .flags = OP_MRING_OVERWRITE },
	{ .name = "swapper-overwrite-fence", .pair = true, .nr_swappers = 1, .flags = OP_MRING_OVERWRITE | OP_MRING_FENCE },
	{ .name = "swapper-process", .pair = true, .nr_swappers = 1, .process = true },
	{ .name = "two-swappers", .pair = true, .nr_swappers = 2, .never_lose = true },
	{ .name = "many-pairs", .pair = true, .nr_swappers = 2, .nr_pairs = NR_PAIRS_MAX },
};

struct crew {
	const struct mode *mode;
	struct run *runs;
	size_t nr_runs;
	uint64_t seed;
	bool over;
	struct {
		pthread_t thread;
		pid_t pid;
	} writers[NR_PAIRS_MAX];
	pthread_t swappers[NR_SWAPPERS_MAX];
};

struct writers {
	struct op_mring_writer ring;
	struct op_mring_pair_writer pair;
};

static int reserve(const struct mode *mode, struct writers *writers, size_t nr_bytes, struct perf_event_header **ret_record)
{
	if (mode->pair)
		return mode->in_page ? op_mring_pair_reserve_in_page(&writers->pair, nr_bytes, ret_record)
				     : op_mring_pair_reserve(&writers->pair, nr_bytes, ret_record);
	return mode->in_page ? op_mring_reserve_in_page(&writers->ring, nr_bytes, ret_record)
			     : op_mring_reserve(&writers->ring, nr_bytes, ret_record);
}

static void commit(const struct mode *mode, struct writers *writers)
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

static void write_records(struct run *run, struct writers *writers)
{
	uint64_t seed = run->seed;

	for (uint64_t number = 0; number < run->nr_records; number++) {
		size_t nr_bytes = random_u64(&seed) % (BODY_BYTES_MAX / 8) * 8;
		struct perf_event_header *place;
		int err;

		yield_sometimes(&seed);
		while ((err = reserve(run->mode, writers, sizeof(struct record) + nr_bytes, &place)) == -ENOSPC) {
			run->dropped++;
			sched_yield();
			if (!run->mode->never_lose)
				break;
		}
		if (err == -ENOSPC)
			continue;
		if (err)
			wrong(run, "reserve", (uint64_t)-err);
		fill((void *)place, number, nr_bytes, &seed);
		if (random_u64(&seed) % 1024 == 0) {
			abandon(run->mode, writers);
			number--; /* once more */
			continue;
		}
		commit(run->mode, writers);
	}
}

static void *writer_main(void *arg)
{
	struct run *run = arg;
	struct writers writers;
	int err = run->mode->pair ? op_mring_pair_writer_open(&run->pair, &writers.pair)
				  : op_mring_writer_open(&run->pair.rings[0], &writers.ring);

	if (err)
		wrong(run, "writer_open", (uint64_t)-err);
	write_records(run, &writers);
	op_store_release(&run->done, true); /* v, pairs with w in ask_for_swap: the commits are stored before */
	return NULL;
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
	return !err;
}

static void read_pair(struct run *run, uint64_t *seed)
{
	struct op_ring *ring;

	run->asked = run->asked || ask_for_swap(run, seed);
	yield_sometimes(seed);
	if (run->asked && run->reader.lent && random_u64(seed) % 32 == 0 && !op_mring_pair_recall(&run->reader))
		run->nr_recalled++;
	ring = run->asked ? op_mring_pair_read_ring(&run->reader) : NULL;
	if (!ring)
		return;
	if (run->in_hand)
		wrong(run, "the baton is in two hands", 0);
	if (run->mode->flags & OP_MRING_OVERWRITE)
		read_snapshot(run, ring);
	else
		read_forward(run, ring, seed);
	run->asked = false;
	run->finished = run->last && run->reader.read != run->before;
}

static void read_ring(struct run *run, uint64_t *seed)
{
	bool last = op_load_acquire(&run->done); /* w, pairs with v */

	read_forward(run, &run->ring, seed);
	run->finished = last;
}

static void read_all(struct crew *crew)
{
	uint64_t seed = ~crew->seed;
	size_t nr_finished;

	do {
		nr_finished = 0;
		for (size_t i = 0; i < crew->nr_runs; i++) {
			struct run *run = &crew->runs[i];

			if (!run->finished)
				(crew->mode->pair ? read_pair : read_ring)(run, &seed);
			nr_finished += run->finished;
		}
		if (random_u64(&seed) % 4 == 0)
			sched_yield();
	} while (nr_finished < crew->nr_runs);
}

/* Some batons are given back as they were, and some before the writer has left. */
static bool swap_one(struct run *run, uint64_t *seed)
{
	struct op_mring_pair_swapper swapper;

	if (op_mring_pair_swapper_open(&run->reader.baton, &swapper))
		return false;
	if (run->in_hand)
		wrong(run, "the baton is in two hands", 1);
	run->in_hand = true;
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

static void *swapper_main(void *arg)
{
	struct crew *crew = arg;
	uint64_t seed = crew->seed ^ (uintptr_t)&seed;
	bool any;

	while (!op_load_relaxed(&crew->over)) {
		any = false;
		for (size_t i = 0; i < crew->nr_runs; i++)
			any |= swap_one(&crew->runs[i], &seed);
		if (!any)
			sched_yield();
	}
	return NULL;
}

/* After the last record: what was not told is still pending. */
static void check_sums(struct run *run)
{
	uint64_t dropped = op_mring_dropped(&run->pair.rings[0]) + (run->mode->pair ? op_mring_dropped(&run->pair.rings[1]) : 0);

	if (dropped != run->dropped)
		wrong(run, "dropped", dropped);
	if (run->mode->flags & OP_MRING_OVERWRITE) {
		if (dropped || run->expected != run->nr_records)
			wrong(run, "the last record", run->expected);
		return;
	}
	if (run->told > dropped || (run->mode->never_lose && run->told != dropped))
		wrong(run, "told", run->told);
	if (run->expected + (run->mode->never_lose ? 0 : dropped - run->told) != run->nr_records)
		wrong(run, "sum", run->expected);
}

static void open_run(struct run *run)
{
	const struct mode *mode = run->mode;

	if (mode->pair ? op_mring_pair_create(8192, mode->flags, &run->pair)
		       : op_mring_create(8192, 0, mode->flags, &run->pair.rings[0]))
		wrong(run, "create", 0);
	if (mode->pair)
		op_mring_pair_reader_open(&run->pair, &run->reader);
	else
		op_mring_reader(&run->pair.rings[0], &run->ring);
	run->ring.flags |= mode->reader_flags;
}

static void close_run(struct run *run)
{
	op_ring_unmap(&run->ring);
	op_mring_pair_reader_close(&run->reader);
	op_mring_pair_destroy(&run->pair);
}

static void start(struct crew *crew)
{
	fflush(stdout); /* a process would say it again */
	for (size_t i = 0; i < crew->nr_runs && crew->mode->process; i++) {
		crew->writers[i].pid = fork();
		if (crew->writers[i].pid < 0)
			wrong(crew->runs, "fork", (uint64_t)errno);
		if (!crew->writers[i].pid) {
			writer_main(&crew->runs[i]);
			_exit(0);
		}
	}
	for (size_t i = 0; i < crew->nr_runs && !crew->mode->process; i++)
		if (pthread_create(&crew->writers[i].thread, NULL, writer_main, &crew->runs[i]))
			wrong(crew->runs, "pthread_create", i);
	for (size_t i = 0; i < crew->mode->nr_swappers; i++)
		if (pthread_create(&crew->swappers[i], NULL, swapper_main, crew))
			wrong(crew->runs, "pthread_create", i);
}

static void stop(struct crew *crew)
{
	for (size_t i = 0; i < crew->nr_runs; i++) {
		int status = 0;

		if (!crew->mode->process)
			pthread_join(crew->writers[i].thread, NULL);
		else if (waitpid(crew->writers[i].pid, &status, 0) < 0 || status)
			wrong(&crew->runs[i], "the writer's status", (uint64_t)status);
	}
	op_store_relaxed(&crew->over, true);
	for (size_t i = 0; i < crew->mode->nr_swappers; i++)
		pthread_join(crew->swappers[i], NULL);
}

struct totals {
	unsigned long long read, dropped, swaps, by_swapper, recalled, late, barriers;
};

static void finish(struct run *run, struct totals *totals)
{
	const struct op_mring_swap *swap = &run->reader.baton.swap;

	check_sums(run);
	if (run->ring.damaged + run->reader.rings[0].damaged + run->reader.rings[1].damaged)
		wrong(run, "damaged", 0);
	if (run->mode->nr_swappers && run->nr_records >= 100000 && !run->nr_by_swapper)
		wrong(run, "swaps by swapping threads", 0);
	totals->read += run->read;
	totals->dropped += run->dropped;
	totals->swaps += swap->swaps;
	totals->by_swapper += run->nr_by_swapper;
	totals->recalled += run->nr_recalled;
	totals->late += swap->late;
	totals->barriers += swap->barriers;
	close_run(run);
}

static void run_mode(const struct mode *mode, uint64_t nr_records, uint64_t seed)
{
	struct crew crew = { .mode = mode, .nr_runs = mode->nr_pairs ? mode->nr_pairs : 1, .seed = seed };
	size_t nr_bytes = crew.nr_runs * sizeof(*crew.runs);
	struct totals totals = { 0 };

	crew.runs = mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crew.runs == MAP_FAILED) {
		perror("torture: mmap");
		exit(1);
	}
	for (size_t i = 0; i < crew.nr_runs; i++) {
		crew.runs[i] = (struct run){ .mode = mode, .nr_records = nr_records / crew.nr_runs, .seed = seed + i };
		open_run(&crew.runs[i]);
	}
	start(&crew);
	read_all(&crew);
	stop(&crew);
	for (size_t i = 0; i < crew.nr_runs; i++)
		finish(&crew.runs[i], &totals);
	printf("%-24s %10llu read %10llu no room %9llu swaps %9llu by swappers %9llu recalled %9llu late %9llu barriers\n",
	       mode->name, totals.read, totals.dropped, totals.swaps, totals.by_swapper, totals.recalled, totals.late,
	       totals.barriers);
	munmap(crew.runs, nr_bytes);
}

static bool chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	const struct option options[] = { { "records", required_argument, NULL, 'r' },
					  { "seed", required_argument, NULL, 's' },
					  { 0 } };
	uint64_t nr_records = 1000000, seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "r:s:", options, NULL)) != -1)
		if (option == '?' || op_parse_u64(optarg, 0, UINT64_MAX, option == 'r' ? &nr_records : &seed) < 0)
			return 2;
	make_crc_table();
	for (size_t i = 0; i < op_array_size(modes); i++)
		if (chosen(modes[i].name, argv + optind))
			run_mode(&modes[i], nr_records, seed);
	return 0;
}
