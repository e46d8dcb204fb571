/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the memory ring costs beside memcpy and other queues: usage: bench_memory [MEGABYTES], default 1024 a run.
 *
 * Records of 32, 64 and 256 bytes go from a writer on one CPU to a reader on another through 256 kB, and every word of every
 * record is read (`through`). memcpy takes the same records in and out of a buffer of the same size, on one CPU. `write` is the
 * writer alone, which fills the empty queue, and `read` the reader alone, which empties it, in turn on one CPU. Each figure is the
 * best of three runs, peers in turn. Exit code 1 when an aim is missed, or a record.
 */
#include <pthread.h>
#include <stdio.h>

#include "libop/atomic.h"
#include "libop/parse.h"
#include "tests/bench/bench.h"
#include "tests/bench/peer.h"

#define RING_BYTES	(256 * 1024)
#define NR_RUNS		3
#define SPINS_TO_YIELD	1000
#define IDLE_ROUNDS	100 /* a queue that then still gives nothing has lost records */
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

enum { ROW_MEMCPY, ROW_RING, ROW_PAIR, ROW_CK, ROW_WFCQUEUE, NR_ROWS };

static const struct row rows[NR_ROWS] = {
	[ROW_MEMCPY] = { &peer_memcpy, "memcpy in and out", "", true },
	[ROW_RING] = { &peer_ring, "opd memory ring", "", false },
	[ROW_PAIR] = { &peer_pair, "opd memory pair", "", false },
	[ROW_CK] = { &peer_ck, "ck_ring", "libck-dev", false },
	[ROW_WFCQUEUE] = { &peer_wfcqueue, "liburcu wfcqueue", "liburcu-dev", false },
};

struct figures {
	double write_ns; /* for a record */
	double read_ns;
	double pass_ns;
};

struct reading {
	const struct peer *peer;
	void *queue;
	uint64_t nr;
	struct peer_check check;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_memory: %s\n", what);
	exit(1);
}

/* After a while the other thread is given the CPU, which it may be waiting for. */
static void rest(unsigned int *spins)
{
	if (++*spins % SPINS_TO_YIELD)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		sched_yield();
}

static void *read_all(void *argument)
{
	struct reading *reading = argument;
	unsigned int spins = 0;
	uint64_t nr = 0;

	bench_pin(1);
	while (nr < reading->nr) {
		uint64_t more = reading->peer->read(reading->queue, &reading->check);

		nr += more;
		if (!more)
			rest(&spins);
	}
	return NULL;
}

static uint64_t pass_two_threads(const struct peer *peer, void *queue, uint64_t nr, struct peer_check *check)
{
	struct reading reading = { .peer = peer, .queue = queue, .nr = nr };
	uint64_t begin_ns = bench_now_ns(), written = 0;
	unsigned int spins = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, read_all, &reading))
		die("no thread");
	while (written < nr) {
		uint64_t more = peer->write(queue, written, nr - written);

		written += more;
		if (!more)
			rest(&spins);
	}
	pthread_join(thread, NULL);
	*check = reading.check;
	return bench_now_ns() - begin_ns;
}

/* Fills and empties in turn; the time of both, and of filling alone. */
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

static void keep_better(double *best, uint64_t spent_ns, uint64_t nr)
{
	double ns = (double)spent_ns / (double)nr;

	if (*best <= 0 || ns < *best)
		*best = ns;
}

static void measure(const struct row *row, size_t record_bytes, uint64_t nr, struct figures *figures)
{
	struct peer_check check = { 0 };
	void *queue = row->peer->create(RING_BYTES, record_bytes);
	uint64_t pass_ns, write_ns;

	if (!queue)
		die("no memory");
	pass_ns = pass_one_thread(row->peer, queue, nr, &check, &write_ns);
	expect_all(row, &check, nr);
	keep_better(&figures->write_ns, write_ns, nr);
	keep_better(&figures->read_ns, pass_ns - write_ns, nr);
	if (!row->one_thread) {
		check = (struct peer_check){ 0 };
		pass_ns = pass_two_threads(row->peer, queue, nr, &check);
		expect_all(row, &check, nr);
	}
	keep_better(&figures->pass_ns, pass_ns, nr);
	row->peer->destroy(queue);
}

static void print_rows(size_t record_bytes, const struct figures *figures)
{
	double memcpy_ns = figures[ROW_MEMCPY].pass_ns;

	printf("\nrecords of %zu bytes through %d kB\n%-20s %10s %10s %12s %12s %10s %14s\n", record_bytes, RING_BYTES / 1024, "",
	       "write, ns", "read, ns", "through, ns", "records/us", "MB/s", "of memcpy's");
	for (size_t i = 0; i < NR_ROWS; i++) {
		double ns = figures[i].pass_ns;

		if (!rows[i].peer)
			printf("%-20s not built: install %s and configure again\n", rows[i].name, rows[i].package);
		else
			printf("%-20s %10.2f %10.2f %12.2f %12.1f %10.0f %12.2f x\n", rows[i].name, figures[i].write_ns,
			       figures[i].read_ns, ns, 1e3 / ns, 1e3 * (double)record_bytes / ns, memcpy_ns / ns);
	}
	fflush(stdout);
}

static bool say_aim(const char *aim, bool good)
{
	printf("aim (%s): %s\n", aim, good ? "met" : "NOT met");
	return good;
}

static bool aims_met(const struct figures *figures)
{
	const struct figures *own = &figures[ROW_RING];
	bool ahead = true, good;

	for (size_t i = ROW_CK; i < NR_ROWS; i++)
		ahead = ahead && (!rows[i].peer || own->pass_ns < figures[i].pass_ns);
	good = say_aim("at most 10 ns to write a record", own->write_ns <= AIM_WRITE_NS);
	good = say_aim("half of memcpy's bandwidth", own->pass_ns * AIM_OF_MEMCPY <= figures[ROW_MEMCPY].pass_ns) && good;
	return say_aim("ahead of every peer", ahead) && good;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 32, 64, 256 };
	uint64_t megabytes = 1024;
	bool good = true;

	if (argc > 2 || (argc == 2 && op_parse_u64(argv[1], 1, 1 << 20, &megabytes) < 0)) {
		fprintf(stderr, "usage: bench_memory [MEGABYTES]\n");
		return 1;
	}
	bench_pin(0);
	for (size_t s = 0; s < op_array_size(sizes); s++) {
		struct figures figures[NR_ROWS] = { 0 };

		for (int run = 0; run < NR_RUNS; run++)
			for (size_t i = 0; i < NR_ROWS; i++)
				if (rows[i].peer)
					measure(&rows[i], sizes[s], (megabytes << 20) / sizes[s], &figures[i]);
		print_rows(sizes[s], figures);
		if (sizes[s] == AIM_RECORD)
			good = aims_met(figures);
	}
	return good ? 0 : 1;
}
