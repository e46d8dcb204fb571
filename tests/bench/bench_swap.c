/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures a swap of a memory pair. Usage: bench_swap [SWAPS [SECONDS]], default 1000 swaps in each
 * of 21 runs of a row, and 100 seconds for all runs. A run ends early when its share of the seconds
 * is over: on a busy machine a swapping thread must wait for its CPU.
 *
 * The rows combine:
 *   writer   rests, or writes all the time on the other CPU
 *   fence    the writer fences (OP_MRING_FENCE), or the swapping side calls membarrier(2)
 *   swap     by the reader, or by a swapping thread that has the baton: on the other CPU when the
 *            writer rests, else on a third CPU or, without one, on the reader's CPU
 *
 * The columns:
 *   reader        time that the reader spends in calls for the swap
 *   until quiet   time from the begin of the swap until the reader has the frozen ring
 *   swaps         of all runs
 *   records       for one swap
 * Reading the records between the swaps is not counted. The rows are measured alternately, so other
 * load on the machine affects all of them. A figure is the 10th percentile of the runs, and ratios
 * are to the first row. A row is invalid, and the exit code is 1, when its writer should write and
 * did not. The cost of one membarrier(2) with the same writer is printed as well. Where the kernel
 * refuses membarrier(2), the rows that need it say so.
 */
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "libop/base/atomic.h"
#include "libop/base/parse.h"
#include "libop/ring/memory_pair.h"
#include "libop/base/sys.h"
#include "tests/bench/bench.h"
#include "tests/die.h"

#define RING_BYTES   (64 * 1024)
#define RECORD_BYTES 64
#define NR_RUNS      21
#define FIGURE       (NR_RUNS / 10)
#define SECONDS      100

struct row {
	const char *name;
	unsigned int flags; /* enum op_mring_flags */
	bool busy;          /* the writer writes */
	bool lends;
	bool barrier_alone; /* no swap: membarrier(2) as a swap calls it */
};

static const struct row rows[] = {
	{ .name = "reader swaps, writer rests, fence", .flags = OP_MRING_FENCE },
	{ .name = "reader swaps, writer rests, membarrier" },
	{ .name = "reader swaps, writer writes, fence", .flags = OP_MRING_FENCE, .busy = true },
	{ .name = "reader swaps, writer writes, membarrier", .busy = true },
	{ .name = "lent and back, writer rests", .lends = true },
	{ .name = "lent and back, writer writes", .busy = true, .lends = true },
	{ .name = "one membarrier, writer rests", .barrier_alone = true },
	{ .name = "one membarrier, writer writes", .busy = true, .barrier_alone = true },
};

/* Nanoseconds for a swap, of each run. */
struct figures {
	double reader[NR_RUNS];
	double quiet[NR_RUNS];
	uint64_t nr_swaps, nr_records;
	bool refused; /* the kernel refuses membarrier(2) */
	bool idle;    /* in some run a writer that should write wrote no record */
};

struct bench {
	const struct row *row;
	uint64_t nr_swaps; /* for a run, unless run_ns are over */
	uint64_t run_ns;
	cpu_set_t allowed;
	struct op_mring_pair pair;
	struct op_mring_pair_reader reader;
	uint64_t reader_ns, quiet_ns, nr_records;
	bool refused;
	uint32_t writer_ready, swapper_ready, over;
};

/* Records without room are dropped, because reading is not measured. */
static void *write_until_over(void *arg)
{
	struct bench *bench = arg;
	struct op_mring_pair_writer writer;
	struct perf_event_header *record;

	bench_pin_within(&bench->allowed, 1);
	if (op_mring_pair_writer_open(&bench->pair, &writer) < 0)
		die("no writer", 0);
	/* pairs with the load in run_row, as the swapper's */
	op_store_release(&bench->writer_ready, 1);
	while (!op_load_relaxed(&bench->over)) {
		if (!bench->row->busy) {
			poll(NULL, 0, 5);
			continue;
		}
		if (op_mring_pair_reserve(&writer, RECORD_BYTES, &record) < 0)
			continue;
		record->type = PERF_RECORD_SAMPLE;
		op_mring_pair_commit(&writer);
	}
	op_mring_pair_writer_close(&writer);
	return NULL;
}

static void *swap_until_over(void *arg)
{
	struct bench *bench = arg;
	struct op_mring_pair_swapper swapper;

	bench_pin_within(&bench->allowed, bench->row->busy ? 2 : 1);
	op_store_release(&bench->swapper_ready, 1);
	while (!op_load_relaxed(&bench->over)) {
		if (op_mring_pair_swapper_open(&bench->reader.baton, &swapper) < 0) {
			sched_yield();
			continue;
		}
		while (op_mring_pair_swapper_swap(&swapper) < 0)
			sched_yield();
		op_mring_pair_swapper_close(&swapper);
	}
	return NULL;
}

static void empty(struct bench *bench, struct op_ring *ring)
{
	op_ring_begin(ring);
	while (op_ring_next(ring))
		bench->nr_records++;
	op_ring_end(ring);
}

/* The frozen ring is quiet and empty, so neither call is refused. */
static void swap_once(struct bench *bench)
{
	uint64_t begin_ns = bench_now_ns(), called_ns, look_ns, end_ns;
	struct op_ring *ring;

	if ((bench->row->lends ? op_mring_pair_lend(&bench->reader) : op_mring_pair_swap(&bench->reader)) < 0)
		die("swap", 0);
	called_ns = look_ns = bench_now_ns();
	while (!(ring = op_mring_pair_read_ring(&bench->reader))) {
		/* to a swapping thread on this CPU, or a writer that was taken away inside */
		sched_yield();
		look_ns = bench_now_ns();
	}
	end_ns = bench_now_ns();
	bench->quiet_ns += end_ns - begin_ns;
	bench->reader_ns += bench->row->lends ? called_ns - begin_ns + end_ns - look_ns : end_ns - begin_ns;
	empty(bench, ring);
}

static void barrier_once(struct bench *bench)
{
	uint64_t begin_ns = bench_now_ns(), ns;

	if (op_sys_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) < 0)
		bench->refused = true;
	ns = bench_now_ns() - begin_ns;
	bench->reader_ns += ns;
	bench->quiet_ns += ns;
}

/* How many swaps were made; at least one. */
static uint64_t measure(struct bench *bench)
{
	struct op_ring *ring;
	uint64_t end_ns = bench_now_ns() + bench->run_ns, nr = 0;

	while (!(ring = op_mring_pair_read_ring(&bench->reader)))
		sched_yield();
	empty(bench, ring);
	do {
		(bench->row->barrier_alone ? barrier_once : swap_once)(bench);
	} while (++nr < bench->nr_swaps && bench_now_ns() < end_ns);
	return nr;
}

static void open_row(struct bench *bench, const struct row *row)
{
	bench->row = row;
	bench->over = bench->writer_ready = bench->swapper_ready = 0;
	bench->reader_ns = bench->quiet_ns = bench->nr_records = 0;
	if (op_mring_pair_create(RING_BYTES, row->flags | OP_MRING_OWN_WRITER, &bench->pair) < 0)
		die("no memory", 0);
	if (op_mring_pair_reader_open(&bench->pair, &bench->reader) < 0)
		die("no memory", 0);
	bench->refused = !(row->flags & OP_MRING_FENCE) && !bench->reader.baton.swap.barrier;
}

static void run_row(struct bench *bench, const struct row *row, struct figures *figures, size_t run)
{
	pthread_t writer, swapper;
	uint64_t nr;

	open_row(bench, row);
	if (pthread_create(&writer, NULL, write_until_over, bench) ||
	    (row->lends && pthread_create(&swapper, NULL, swap_until_over, bench)))
		die("no thread", 0);
	while (!op_load_acquire(&bench->writer_ready) || (row->lends && !op_load_acquire(&bench->swapper_ready)))
		sched_yield();
	nr = measure(bench);
	op_store_relaxed(&bench->over, 1);
	pthread_join(writer, NULL);
	if (row->lends)
		pthread_join(swapper, NULL);
	figures->refused |= bench->refused;
	figures->idle |= row->busy && !row->barrier_alone && !bench->nr_records;
	figures->nr_swaps += nr;
	figures->nr_records += bench->nr_records;
	figures->reader[run] = (double)bench->reader_ns / (double)nr;
	figures->quiet[run] = (double)bench->quiet_ns / (double)nr;
	op_mring_pair_reader_close(&bench->reader);
	op_mring_pair_destroy(&bench->pair);
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double figure(double *values)
{
	qsort(values, NR_RUNS, sizeof(*values), by_value);
	return values[FIGURE];
}

/* Returns whether it is what it says. */
static bool print_row(const struct row *row, struct figures *figures, double first)
{
	double quiet = figure(figures->quiet);

	if (figures->refused) {
		printf("%-42s the kernel refuses it\n", row->name);
		return true;
	}
	if (figures->idle) {
		printf("%-42s INVALID: there were runs in which the writer wrote nothing\n", row->name);
		return false;
	}
	printf("%-42s %12.0f %16.0f %14.2f x %10llu %10.1f\n", row->name, figure(figures->reader), quiet, bench_per(quiet, first),
	       (unsigned long long)figures->nr_swaps, bench_per((double)figures->nr_records, (double)figures->nr_swaps));
	return true;
}

int main(int argc, char **argv)
{
	static struct figures figures[op_array_size(rows)];
	struct bench bench = { .nr_swaps = 1000 };
	uint64_t seconds = SECONDS;
	bool good = true;

	if (argc > 3 || (argc > 1 && op_parse_u64(argv[1], 1, UINT32_MAX, &bench.nr_swaps) < 0) ||
	    (argc > 2 && op_parse_u64(argv[2], 1, UINT32_MAX, &seconds) < 0)) {
		fprintf(stderr, "usage: bench_swap [SWAPS [SECONDS]]\n");
		return 1;
	}
	if (sched_getaffinity(0, sizeof(bench.allowed), &bench.allowed) < 0 || CPU_COUNT(&bench.allowed) < 2)
		die("needs two CPUs", 0);
	bench.run_ns = seconds * BENCH_NS_PER_S / (NR_RUNS * op_array_size(rows));
	bench_pin_within(&bench.allowed, 0);
	for (size_t run = 0; run < NR_RUNS; run++)
		for (size_t i = 0; i < op_array_size(rows); i++)
			run_row(&bench, &rows[i], &figures[i], run);
	printf("swap of a memory pair, %d CPUs\n%-42s %12s %16s %16s %10s %10s\n", CPU_COUNT(&bench.allowed), "", "reader, ns",
	       "until quiet, ns", "times the first", "swaps", "records");
	for (size_t i = 0; i < op_array_size(rows); i++)
		good = print_row(&rows[i], &figures[i], figure(figures[0].quiet)) && good;
	return good ? 0 : 1;
}
