/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures the memory ring beside memcpy and other queues. Usage: bench_memory [MEGABYTES
 * [ROUNDS]], default 16 MB for each run and 60 rounds.
 *
 * Records of 32, 64 and 256 bytes pass through a queue of 256 kB.
 *   through   a writer on one CPU, a reader on another. The reader reads every word of every record
 *   write     the writer alone fills the empty queue, on one CPU
 *   read      the reader alone empties it, on the same CPU
 * memcpy copies the same records into and out of a buffer of the same size, on one CPU.
 *
 * All queues publish each record by itself. They differ in how the reader returns space: ck_ring
 * after every record, the memory ring after 16 kB, wfcqueue after all records of one splice. A pair
 * is swapped when half of the ring is full. A writer without room and a reader without records try
 * again after one pause instruction, and yield the CPU after a thousand of them.
 *
 * Each round measures all queues one after another, in short runs. So other load on the machine
 * affects all of them, and some rounds of each stay undisturbed. A run on two CPUs is repeated when
 * the scheduler took one of the CPUs away. `copied out` is the cost with a writer of another
 * process: the reader copies each record (OP_RING_COPY), and the writer of the pair fences. Both
 * are threads of this process here.
 *
 * A figure is the 10th percentile of the rounds, and ratios are ratios of these. `half` is the
 * median, which shows how reliable the figure is. Exit code 1: an aim is missed or not shown (a
 * queue was not built or not measured), or a record was wrong.
 *
 * LTTng-UST differs: its reader is another process, and a full ring discards records. `write` is in
 * bursts that fit into the ring. `through` counts records that arrived in the consumer daemon's
 * file on a tmpfs, and the lost ones are printed. Its records have a header with a time stamp,
 * which the other queues do not write. The best of three runs counts.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "libop/base/atomic.h"
#include "libop/base/parse.h"
#include "tests/bench/bench.h"
#include "tests/bench/peer.h"
#include "tests/bench/peer_lttng.h"
#include "tests/die.h"

#define RING_BYTES	(256 * 1024)
#define NR_ROUNDS_MAX	999
#define FIGURE		0.1 /* of the rounds are below it */
#define SPINS_TO_YIELD	1000
/* time to try for a run on two CPUs during which the scheduler takes neither away */
#define TRIES_NS	(50 * 1000 * 1000)
#define IDLE_ROUNDS	100 /* reads without a record after which records count as lost */
#define LTTNG_RUNS	3
#define AIM_RECORD	64
#define AIM_WRITE_NS	10.0
#define AIM_OF_MEMCPY	0.5

uint64_t peer_source[PEER_RECORD_MAX / 8];

struct row {
	const struct peer *peer;
	const char *name;
	const char *package;
	bool one_thread;
};

enum { ROW_MEMCPY, ROW_RING, ROW_RING_COPY, ROW_PAIR, ROW_PAIR_FENCE, ROW_PAIR_COPY, ROW_CK, ROW_WFCQUEUE, NR_ROWS };

static const struct row rows[NR_ROWS] = {
	[ROW_MEMCPY] = { &peer_memcpy, "memcpy in and out", "", true },
	[ROW_RING] = { &peer_ring, "opd memory ring", "", false },
	[ROW_RING_COPY] = { &peer_ring_copy, "ring, copied out", "", false },
	[ROW_PAIR] = { &peer_pair, "opd memory pair", "", false },
	[ROW_PAIR_FENCE] = { &peer_pair_fence, "pair, writer fences", "", false },
	[ROW_PAIR_COPY] = { &peer_pair_copy, "pair, copied out", "", false },
	[ROW_CK] = { &peer_ck, "ck_ring", "libck-dev", false },
	[ROW_WFCQUEUE] = { &peer_wfcqueue, "liburcu wfcqueue", "liburcu-dev", false },
};

/* Nanoseconds for a record, of each round. */
struct figures {
	double write[NR_ROUNDS_MAX];
	double read[NR_ROUNDS_MAX];
	double through[NR_ROUNDS_MAX];
};

struct bench {
	cpu_set_t allowed;
	uint64_t megabytes;
	uint64_t nr_rounds;
	struct figures figures[NR_ROWS];
	struct peer_lttng lttng;
	struct lttng_figures of_lttng; /* through_ns 0: none */
};

static struct bench bench;

struct reading {
	const struct peer *peer;
	void *queue;
	uint64_t nr;
	uint64_t end_ns;
	long taken_away;
	uint32_t ready;
	struct peer_check check;
};

/* Yields the CPU after a while: the other thread may be waiting for it. */
static void rest(unsigned int *spins)
{
	if (++*spins % SPINS_TO_YIELD)
		bench_relax();
	else
		sched_yield();
}

/* How often the scheduler has taken the CPU from the calling thread. */
static long times_taken_away(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static void *read_all(void *argument)
{
	struct reading *reading = argument;
	long before;
	unsigned int spins = 0;
	uint64_t nr = 0;

	bench_pin_within(&bench.allowed, 1);
	before = times_taken_away();
	op_store_release(&reading->ready, 1); /* pairs with the load in pass_two_threads */
	while (nr < reading->nr) {
		uint64_t more = reading->peer->read(reading->queue, &reading->check);

		nr += more;
		if (!more)
			rest(&spins);
	}
	reading->end_ns = bench_now_ns();
	reading->taken_away = times_taken_away() - before;
	return NULL;
}

static uint64_t pass_two_threads(const struct peer *peer, void *queue, uint64_t nr, struct peer_check *check, bool *ret_alone)
{
	struct reading reading = { .peer = peer, .queue = queue, .nr = nr };
	uint64_t begin_ns, written = 0;
	unsigned int spins = 0;
	pthread_t thread;
	long before;

	if (pthread_create(&thread, NULL, read_all, &reading))
		die("no thread", 0);
	while (!op_load_acquire(&reading.ready)) /* pairs with the store in read_all */
		sched_yield();
	before = times_taken_away();
	begin_ns = bench_now_ns();
	while (written < nr) {
		uint64_t more = peer->write(queue, written, nr - written);

		written += more;
		if (!more)
			rest(&spins);
	}
	*ret_alone = times_taken_away() == before;
	pthread_join(thread, NULL);
	*ret_alone = *ret_alone && !reading.taken_away;
	*check = reading.check;
	return reading.end_ns - begin_ns;
}

/* Fills and empties the queue alternately; the time of both, and of filling alone. */
static uint64_t pass_one_thread(const struct peer *peer, void *queue, uint64_t nr, struct peer_check *check, uint64_t *ret_write_ns)
{
	uint64_t begin_ns = bench_now_ns(), write_ns = 0, written = 0, nr_read = 0;
	unsigned int idle = 0;

	while (nr_read < nr && idle < IDLE_ROUNDS) {
		uint64_t at_ns = bench_now_ns(), more = peer->write(queue, written, nr - written);

		write_ns += bench_now_ns() - at_ns;
		written += more;
		more = peer->read(queue, check);
		nr_read += more;
		idle = more ? 0 : idle + 1;
	}
	*ret_write_ns = write_ns;
	return bench_now_ns() - begin_ns;
}

static void expect_all(const struct row *row, const struct peer_check *check, uint64_t nr)
{
	if (check->expect == nr && !check->wrong)
		return;
	fprintf(stderr, "bench_memory: %s: %llu records of %llu, %llu out of order\n", row->name, (unsigned long long)check->expect,
		(unsigned long long)nr, (unsigned long long)check->wrong);
	exit(1);
}

/* The first run without preemption, else the best run. */
static uint64_t pass_undisturbed(const struct row *row, void *queue, uint64_t nr)
{
	uint64_t best_ns = UINT64_MAX, begin_ns = bench_now_ns();
	bool alone = false;

	while (!alone && (best_ns == UINT64_MAX || bench_now_ns() - begin_ns < TRIES_NS)) {
		struct peer_check check = { 0 };

		best_ns = op_min_u64(best_ns, pass_two_threads(row->peer, queue, nr, &check, &alone));
		expect_all(row, &check, nr);
	}
	return best_ns;
}

static void measure(const struct row *row, size_t record_bytes, uint64_t nr, struct figures *figures, uint64_t round)
{
	struct peer_check check = { 0 };
	void *queue = row->peer->create(RING_BYTES, record_bytes);
	uint64_t pass_ns, write_ns;

	if (!queue)
		die("no memory", 0);
	/* Pages are there before the clock runs. */
	pass_one_thread(row->peer, queue, 2 * RING_BYTES / record_bytes, &check, &write_ns);
	check = (struct peer_check){ 0 };
	pass_ns = pass_one_thread(row->peer, queue, nr, &check, &write_ns);
	expect_all(row, &check, nr);
	figures->write[round] = (double)write_ns / (double)nr;
	figures->read[round] = (double)(pass_ns - write_ns) / (double)nr;
	if (!row->one_thread)
		pass_ns = pass_undisturbed(row, queue, nr);
	figures->through[round] = (double)pass_ns / (double)nr;
	row->peer->destroy(queue);
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* The quantile `share` of the values. */
static double quantile(const double *values, double share)
{
	double sorted[NR_ROUNDS_MAX];

	memcpy(sorted, values, bench.nr_rounds * sizeof(*values));
	qsort(sorted, bench.nr_rounds, sizeof(*sorted), by_value);
	return sorted[(size_t)(share * (double)(bench.nr_rounds - 1) + 0.5)];
}

/* How many times the second's time is the first's. */
static double times_as_fast(const struct figures *first, const struct figures *second)
{
	return quantile(second->through, FIGURE) / quantile(first->through, FIGURE);
}

static void print_row(const struct row *row, const struct figures *figures, size_t record_bytes)
{
	double ns = quantile(figures->through, FIGURE);

	printf("%-20s %10.2f %10.2f %12.2f %10.2f %12.1f %10.0f %12.2f x\n", row->name, quantile(figures->write, FIGURE),
	       quantile(figures->read, FIGURE), ns, quantile(figures->through, 0.5), 1e3 / ns, 1e3 * (double)record_bytes / ns,
	       times_as_fast(figures, &bench.figures[ROW_MEMCPY]));
}

static void print_lttng(size_t record_bytes)
{
	const struct lttng_figures *figures = &bench.of_lttng;
	double ns = figures->through_ns;

	if (ns > 0)
		printf("%-20s %10.2f %10s %12.2f %10s %12.1f %10.0f %12.3f x  %.1f %% lost\n", "LTTng-UST", figures->write_ns, "",
		       ns, "", 1e3 / ns, 1e3 * (double)record_bytes / ns, quantile(bench.figures[ROW_MEMCPY].through, FIGURE) / ns,
		       (double)figures->lost_permille / 10);
	else
		printf("%-20s not measured: OPD_BENCH_LTTNG (set by make), root, and liblttng-ust-dev, liblttng-ctl-dev, "
		       "lttng-tools\n",
		       "LTTng-UST");
}

static void print_rows(size_t record_bytes)
{
	printf("\nrecords of %zu bytes through %d kB\n%-20s %10s %10s %12s %10s %12s %10s %14s\n", record_bytes, RING_BYTES / 1024,
	       "", "write, ns", "read, ns", "through, ns", "half, ns", "records/us", "MB/s", "of memcpy's");
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (rows[i].peer)
			print_row(&rows[i], &bench.figures[i], record_bytes);
		else
			printf("%-20s not built: install %s and configure again\n", rows[i].name, rows[i].package);
	}
	print_lttng(record_bytes);
	fflush(stdout);
}

static bool is_ahead_of(const char *peer, double ratio, bool measured)
{
	char aim[64];

	snprintf(aim, sizeof(aim), "ahead of %s: times as fast", peer);
	return bench_say_aim(aim, ratio, measured, ratio > 1);
}

static bool aims_met(size_t record_bytes)
{
	const struct figures *own = &bench.figures[ROW_RING];
	double write_ns = quantile(own->write, FIGURE), of_memcpy = times_as_fast(own, &bench.figures[ROW_MEMCPY]);
	double through_ns = quantile(own->through, FIGURE), lttng_ns = bench.of_lttng.through_ns;
	bool good = true;

	for (size_t i = ROW_CK; i < NR_ROWS; i++)
		good = is_ahead_of(rows[i].name, rows[i].peer ? times_as_fast(own, &bench.figures[i]) : 0, rows[i].peer) && good;
	good = is_ahead_of("LTTng-UST", lttng_ns / through_ns, lttng_ns > 0) && good;
	if (record_bytes == AIM_RECORD) {
		good = bench_say_aim("at most 10 ns to write a record", write_ns, true, write_ns <= AIM_WRITE_NS) && good;
		good = bench_say_aim("at most 10 ns a record on two CPUs", through_ns, true, through_ns <= AIM_WRITE_NS) && good;
		good = bench_say_aim("half of memcpy's bandwidth", of_memcpy, true, of_memcpy >= AIM_OF_MEMCPY) && good;
	}
	return good;
}

static int by_through(const void *left, const void *right)
{
	const struct lttng_figures *a = left, *b = right;

	return by_value(&a->through_ns, &b->through_ns);
}

static void measure_lttng(size_t record_bytes, uint64_t nr)
{
	struct lttng_figures runs[LTTNG_RUNS];

	bench.of_lttng = (struct lttng_figures){ .through_ns = 0 };
	if (!bench.lttng.requests)
		return;
	for (int i = 0; i < LTTNG_RUNS; i++)
		if (peer_lttng_measure(&bench.lttng, record_bytes, nr, &runs[i]) < 0) {
			peer_lttng_stop(&bench.lttng);
			return;
		}
	qsort(runs, LTTNG_RUNS, sizeof(*runs), by_through);
	bench.of_lttng = runs[0]; /* the best, since of the others it is the best tenth */
}

static bool run(size_t record_bytes)
{
	for (uint64_t round = 0; round < bench.nr_rounds; round++)
		for (size_t i = 0; i < NR_ROWS; i++)
			if (rows[i].peer)
				measure(&rows[i], record_bytes, (bench.megabytes << 20) / record_bytes, &bench.figures[i], round);
	measure_lttng(record_bytes, (bench.megabytes << 20) / record_bytes);
	print_rows(record_bytes);
	return aims_met(record_bytes);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 32, 64, 256 };
	bool good = true;

	bench.megabytes = 16;
	bench.nr_rounds = 60;
	if (argc > 3 || (argc > 1 && op_parse_u64(argv[1], 1, 1 << 20, &bench.megabytes) < 0) ||
	    (argc > 2 && op_parse_u64(argv[2], 1, NR_ROUNDS_MAX, &bench.nr_rounds) < 0)) {
		fprintf(stderr, "usage: bench_memory [MEGABYTES [ROUNDS]]\n");
		return 1;
	}
	if (sched_getaffinity(0, sizeof(bench.allowed), &bench.allowed) < 0 || CPU_COUNT(&bench.allowed) < 2)
		die("needs two CPUs", 0);
	if (getenv("OPD_BENCH_LTTNG") && peer_lttng_start(getenv("OPD_BENCH_LTTNG"), &bench.lttng) < 0)
		die("no process for LTTng", 0);
	bench_pin_within(&bench.allowed, 0);
	for (size_t s = 0; s < op_array_size(sizes); s++)
		good = run(sizes[s]) && good;
	peer_lttng_stop(&bench.lttng);
	return good ? 0 : 1;
}
