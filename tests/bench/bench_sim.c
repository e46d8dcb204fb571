/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures opd from ring to sample file, with a generated load (tests/bench/load.h) in memory
 * pairs. Usage: bench_sim [SECONDS [SAMPLES]], default 10 and 10^7.
 *
 * The first table: 256 CPUs at 1 kHz in real time, read by the sync thread with its timer of 250
 * ms. It shows the CPU time of the sync thread as a share of one CPU. The second table: one pair at
 * full speed, and the cost of each stage. The same load is read several times: with memcpy, with
 * decoding alone, with resolving, and with all stages. Times are CPU times of the reading thread.
 *
 * Between them: stacks of 256 CPUs (sim_stacks.h).
 *
 * After both tables the ledger must be exact, and the counts in the sample files must equal those
 * of the load, image by image and address by address. Exit code 1: they differ, or an aim is missed
 * or not shown. The first table shows nothing when the writer did not reach its rate.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/parse.h"
#include "libop/session/contents.h"
#include "pipeline/resolve/sideband.h"
#include "pipeline/timeline/collect.h"
#include "tests/bench/bench.h"
#include "tests/bench/sim.h"
#include "tests/bench/sim_stacks.h"

#define SAMPLE_BYTES      40u
#define TURN_MS           250u
#define HOST_CPUS         256u
#define HOST_TICK_NS      1000000u
#define HOST_SLICE_NS     4000000u /* the writer sleeps so long, and then writes what is due */
#define HOST_LATE_NS      (3 * HOST_SLICE_NS)
#define HOST_SKIP_NS      100000000u
#define HOST_RATE_MIN     0.99 /* of what the table says */
#define AIM_SHARE_PERCENT 10.0
#define PAIR_STEP_NS      100000u /* 10 kHz */
#define PRUNE_NS          BENCH_NS_PER_S
#define AIM_NS_PER_SAMPLE 100.0
#define NR_RUNS           3
#define MAX_OPEN_FILES    4096
#define WORK_DIR_BYTES    48 /* the sessions below it have a name as long again */

static const struct sim_config host = {
	.load = {
		.seed = 1,
		.nr_cpus = HOST_CPUS,
		.nr_programs = 40,
		.nr_processes = 4 * HOST_CPUS,
		.nr_mappings = 60,
		.nr_libraries = 400,
		.change_every = 10000,
		.kernel_percent = 20,
	},
	.ring_bytes = 64 * 1024,
	.sideband_bytes = 128 * 1024,
	.max_open_files = MAX_OPEN_FILES,
	.keep_session = true,
};

static const struct sim_config single = {
	.load = {
		.seed = 1,
		.nr_cpus = 1,
		.nr_programs = 40,
		.nr_processes = 500,
		.nr_mappings = 60,
		.nr_libraries = 400,
		.change_every = 10000,
		.kernel_percent = 20,
	},
	.ring_bytes = 256 * 1024,
	.sideband_bytes = 8 * 1024 * 1024,
	.max_open_files = MAX_OPEN_FILES,
	.keep_session = true,
};

static void end_on(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "bench_sim: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* Whether every sample that the load made is in its place, and the ledger says so. */
static bool all_right(const struct sim *sim)
{
	const struct opd_capture *capture = &sim->pipeline.capture;
	struct op_ledger_event event;
	struct sim_check check;
	bool good;

	opd_sum_event(capture, 0, &event);
	end_on(sim_check(sim, &check), "reading the sample files");
	good = event.taken == event.received + event.lost_kernel && op_ledger_adds_up(&event) &&
	       event.received == load_samples(sim->load) && event.received == event.stored &&
	       event.lost_kernel == sim_dropped(sim) && !event.unattributed && !check.wrong_samples && !check.wrong_places &&
	       check.nr_samples == event.stored;
	printf("%s: %llu samples made, %llu received, %llu stored, %llu dropped by the rings; %llu files with %llu addresses, %llu "
	       "samples in "
	       "wrong places\n",
	       good ? "exact" : "NOT exact", (unsigned long long)load_samples(sim->load), (unsigned long long)event.received,
	       (unsigned long long)event.stored, (unsigned long long)event.lost_kernel, (unsigned long long)check.nr_files,
	       (unsigned long long)check.nr_places, (unsigned long long)check.wrong_samples);
	return good;
}

/* ---- many CPUs in real time ---- */

struct host_figures {
	uint64_t first_second_ns, cpu_ns, elapsed_ns; /* of the sync thread: CPU time */
	uint64_t nr_written;                          /* ticks, a sample of each CPU */
	uint64_t nr_late;                             /* of these, later than HOST_LATE_NS */
	uint64_t latest_ns;                           /* the latest of them */
	uint64_t nr_skipped;                          /* that the writer had no CPU for */
};

static void sleep_until(uint64_t time_ns)
{
	struct timespec until = { .tv_sec = (time_t)(time_ns / BENCH_NS_PER_S), .tv_nsec = (long)(time_ns % BENCH_NS_PER_S) };

	while (clock_nanosleep(OP_CLOCK, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/*
 * As in the kernel, a sample gets its time when it is written. The sync thread forgets by this
 * time.
 */
static uint64_t stamp(uint64_t last_ns)
{
	uint64_t now_ns;

	do
		now_ns = op_now_ns();
	while (now_ns < last_ns + LOAD_STEP_NS);
	return now_ns;
}

static uint64_t write_tick(struct sim *sim, uint64_t last_ns)
{
	for (uint32_t cpu = 0; cpu < HOST_CPUS; cpu++) {
		struct op_mring_pair_writer *writer = &sim->cpus[cpu].writer;
		struct op_mring_writer *ring = op_mring_pair_enter(writer);
		int err;

		last_ns = stamp(last_ns);
		err = load_sample(sim->load, cpu, ring, last_ns);
		op_mring_pair_leave(writer);
		if (err != -ENOSPC)
			end_on(err, "writing a sample");
	}
	return last_ns;
}

static uint64_t write_due_tick(struct sim *sim, uint64_t due_ns, uint64_t last_ns, struct host_figures *figures)
{
	uint64_t now_ns = op_now_ns(), late_ns = now_ns > due_ns ? now_ns - due_ns : 0;

	figures->nr_written++;
	figures->nr_late += late_ns > HOST_LATE_NS;
	if (late_ns > figures->latest_ns)
		figures->latest_ns = late_ns;
	return write_tick(sim, last_ns);
}

/*
 * Each slice writes the ticks that are due. Ticks that were missed for lack of a CPU are not
 * written later.
 */
static void write_host(struct sim *sim, clockid_t reader, uint64_t seconds, struct host_figures *figures)
{
	uint64_t begin_ns = op_now_ns(), end_ns = begin_ns + seconds * BENCH_NS_PER_S, begin_cpu_ns = bench_clock_ns(reader);
	uint64_t due_ns = begin_ns, last_ns = begin_ns, now_ns = begin_ns;

	for (; now_ns < end_ns; now_ns = op_now_ns()) {
		if (now_ns > due_ns + HOST_SKIP_NS) {
			figures->nr_skipped += (now_ns - due_ns) / HOST_TICK_NS;
			due_ns = now_ns;
		}
		for (; due_ns <= now_ns; due_ns += HOST_TICK_NS)
			last_ns = write_due_tick(sim, due_ns, last_ns, figures);
		if (!figures->first_second_ns && now_ns - begin_ns >= BENCH_NS_PER_S)
			figures->first_second_ns = bench_clock_ns(reader) - begin_cpu_ns;
		sleep_until(now_ns + HOST_SLICE_NS);
	}
	figures->cpu_ns = bench_clock_ns(reader) - begin_cpu_ns;
	figures->elapsed_ns = now_ns - begin_ns;
}

static void run_host(struct sim *sim, uint64_t seconds, struct host_figures *figures)
{
	static struct op_config config = { .visit_ms = TURN_MS };
	static struct op_status status;
	static struct opd_sync sync;
	clockid_t reader;

	for (uint32_t i = 0; i < HOST_CPUS; i++) {
		op_mring_pair_wake_every(&sim->cpus[i].pair, host.ring_bytes / 4, false);
		op_mring_wake_every(&sim->cpus[i].sideband, host.sideband_bytes / 4, false);
	}
	end_on(opd_sync_start(&sync, &sim->pipeline, &config, &status, false), "starting the sync thread");
	end_on(-pthread_getcpuclockid(sync.thread, &reader), "the clock of the sync thread");
	end_on(load_begin(sim->load, op_now_ns()), "the first processes");
	write_host(sim, reader, seconds, figures);
	end_on(sim_quit(&sync), "writing out");
}

/* Prints how punctual the ticks were. True: the writer reached the rate of the table. */
static bool is_at_its_rate(const struct host_figures *figures)
{
	double hz = bench_per((double)figures->nr_written * BENCH_NS_PER_S, (double)figures->elapsed_ns);
	double wanted_hz = (double)BENCH_NS_PER_S / HOST_TICK_NS;
	bool good = hz >= HOST_RATE_MIN * wanted_hz;

	printf("%-44s %8.1f\n%-44s %8llu of %llu, the latest by %.1f ms\n", "  samples of each CPU in a second", hz,
	       "  ticks late by three slices or more", (unsigned long long)figures->nr_late,
	       (unsigned long long)figures->nr_written, (double)figures->latest_ns / 1e6);
	if (figures->nr_skipped)
		printf("%-44s %8llu\n", "  ticks left out, the machine was busy", (unsigned long long)figures->nr_skipped);
	if (!good)
		printf("INVALID: %.0f Hz of the %.0f Hz that the table says were written\n", hz, wanted_hz);
	return good;
}

static bool table_host(uint64_t seconds)
{
	struct host_figures figures = { 0 };
	struct sim sim;
	double share, later;
	bool good, valid;

	end_on(sim_open(&host, &sim), "opening the simulation");
	run_host(&sim, seconds, &figures);
	share = 100 * bench_per((double)figures.cpu_ns, (double)figures.elapsed_ns);
	later = 100 * bench_per((double)(figures.cpu_ns - figures.first_second_ns), (double)(figures.elapsed_ns - BENCH_NS_PER_S));
	printf("%u CPUs at 1 kHz, %u processes with %u mappings each, turns of %u ms, %llu s\n", HOST_CPUS, host.load.nr_processes,
	       host.load.nr_mappings, TURN_MS, (unsigned long long)seconds);
	printf("%-44s %8.2f %%\n%-44s %8.2f %%\n%-44s %8.0f\n%-44s %8llu\n", "sync thread, share of one CPU", share,
	       "  after the first second", later, "  ns for a sample, all included",
	       bench_per((double)figures.cpu_ns, (double)load_samples(sim.load)), "records in the side bands",
	       (unsigned long long)load_sideband_records(sim.load));
	valid = is_at_its_rate(&figures);
	good = all_right(&sim);
	sim_close(&sim);
	return bench_say_aim("under 10 % of one CPU", share, valid, share < AIM_SHARE_PERCENT) && good;
}

/* ---- one pair, stage by stage ---- */

/* Reads what is frozen as far as its stage goes. */
typedef uint64_t (*reader)(struct sim *sim, struct op_ring *ring);

static uint64_t read_memcpy(struct sim *sim OP_UNUSED, struct op_ring *ring)
{
	static uint8_t buffer[256 * 1024];
	uint64_t nr_bytes = op_ring_begin(ring);

	/* The data of a memory ring is mapped twice, so it is in one piece. */
	memcpy(buffer, ring->k_data + (ring->tail & (ring->data_bytes - 1)), nr_bytes);
	ring->tail = ring->head;
	op_ring_end(ring);
	return buffer[nr_bytes / 2];
}

static uint64_t read_decode(struct sim *sim OP_UNUSED, struct op_ring *ring)
{
	const struct perf_event_header *header;
	struct op_sample sample;
	uint64_t sum = 0;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring)))
		if (header->type == PERF_RECORD_SAMPLE && !op_record_sample(header, &sample))
			sum += sample.ip ^ sample.time_ns ^ sample.pid ^ sample.tid ^ sample.mode;
	op_ring_end(ring);
	return sum;
}

static uint64_t read_resolve(struct sim *sim, struct op_ring *ring)
{
	const struct perf_event_header *header;
	struct opd_resolved resolved;
	struct op_sample sample;
	uint64_t sum = 0;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring)))
		if (header->type == PERF_RECORD_SAMPLE && !op_record_sample(header, &sample) &&
		    !opd_resolve(&sim->pipeline.resolver, &sample, &resolved))
			sum += resolved.location.cookie ^ resolved.location.offset ^ resolved.app_cookie;
	op_ring_end(ring);
	return sum;
}

static uint64_t read_all(struct sim *sim, struct op_ring *ring)
{
	opd_drain_ring(&sim->pipeline, &sim->pipeline.capture.cpus[0], ring);
	return 0;
}

/* ---- the timeline ---- */

static struct opd_timeline timeline;
static struct opd_ledger ledger;
static const bool is_sampling = true;

static bool is_never_busy(void *arg OP_UNUSED)
{
	return false;
}

/* Another thread would write it. */
static void drop_minute(void *arg OP_UNUSED, struct op_minute *minute, int dir_fd)
{
	op_minute_free(minute);
	close(dir_fd);
}

static uint64_t no_growth(void *arg OP_UNUSED)
{
	return 0;
}

static void open_timeline(struct sim *sim)
{
	timeline = (struct opd_timeline){
		.count = &sim->pipeline.count,
		.ledger = &ledger,
		.is_sampling = &is_sampling,
		.host = { .is_busy = is_never_busy, .take = drop_minute, .take_growth = no_growth },
		.interval_ns = 60 * BENCH_NS_PER_S,
		.max_nodes = 65536,
	};
	sim->pipeline.count.nr_events = 1;
	end_on(opd_ledger_open(&ledger, sim->dir_fd, &sim->pipeline.capture, false), "the ledger");
	end_on(opd_timeline_open(&timeline), "the timeline");
}

static void close_timeline(void)
{
	opd_timeline_close(&timeline);
	opd_ledger_close(&ledger);
}

enum { STAGE_MEMCPY, STAGE_DECODE, STAGE_RESOLVE, STAGE_ALL, STAGE_TIMELINE, NR_STAGES };

static const struct {
	const char *name;
	reader read;
} stages[NR_STAGES] = {
	[STAGE_MEMCPY] = { "memcpy of the same bytes", read_memcpy },
	[STAGE_DECODE] = { "decode", read_decode },
	[STAGE_RESOLVE] = { "decode, resolve", read_resolve },
	[STAGE_ALL] = { "decode, resolve, count", read_all },
	[STAGE_TIMELINE] = { "the same, and the timeline", read_all },
};

struct pair_figures {
	uint64_t read_ns, sideband_ns, nr_sideband;
	uint64_t sink; /* so that nothing is left out */
};

static uint64_t gone_ns(uint32_t pid OP_UNUSED)
{
	return 1;
}

static void read_sideband(struct sim *sim, uint64_t now_ns)
{
	struct opd_resolver *resolver = &sim->pipeline.resolver;
	struct opd_sideband_loss loss;

	resolver->now_ns = sim->pipeline.count.now_ns = now_ns;
	end_on(opd_sideband_drain(&sim->pipeline.capture, resolver, now_ns, &loss), "side band");
	if (now_ns / PRUNE_NS != resolver->processes.horizon_ns / PRUNE_NS + 1)
		opd_processes_prune(&resolver->processes, now_ns - PRUNE_NS, gone_ns);
}

/* A visit: the side band up to now, then the samples. */
static void visit(struct sim *sim, reader read, uint64_t now_ns, struct pair_figures *figures)
{
	struct opd_cpu *cpu = &sim->pipeline.capture.cpus[0];
	uint64_t begin_ns = bench_cpu_ns(), middle_ns;

	end_on(cpu->source->swap(cpu), "swapping");
	read_sideband(sim, now_ns);
	middle_ns = bench_cpu_ns();
	figures->sink += read(sim, cpu->source->read_ring(cpu));
	figures->read_ns += bench_cpu_ns() - middle_ns;
	figures->sideband_ns += middle_ns - begin_ns;
}

static void run_pair(struct sim *sim, reader read, uint64_t nr_samples, struct pair_figures *figures)
{
	uint64_t batch = single.ring_bytes / SAMPLE_BYTES - 1, time_ns = 10 * PRUNE_NS, minute_ns = time_ns;

	end_on(load_begin(sim->load, 1), "the first processes");
	while (load_samples(sim->load) < nr_samples) {
		struct op_mring_writer *ring = op_mring_pair_enter(&sim->cpus[0].writer);
		uint64_t nr = op_min_u64(batch, nr_samples - load_samples(sim->load));

		for (uint64_t i = 0; i < nr; i++)
			end_on(load_sample(sim->load, 0, ring, time_ns += PAIR_STEP_NS), "writing a sample");
		op_mring_pair_leave(&sim->cpus[0].writer);
		visit(sim, read, time_ns, figures);
		if (timeline.count == &sim->pipeline.count && time_ns - minute_ns >= timeline.interval_ns) {
			uint64_t begin_ns = bench_cpu_ns();

			opd_timeline_end_session(&timeline);
			figures->read_ns += bench_cpu_ns() - begin_ns;
			minute_ns = time_ns;
		}
	}
}

static void print_pair(const struct pair_figures *figures, uint64_t nr_samples)
{
	double memcpy_ns = bench_per((double)figures[STAGE_MEMCPY].read_ns, (double)nr_samples), before_ns = 0;
	double sideband_ns = (double)figures[STAGE_ALL].sideband_ns;

	printf("%-28s %10s %10s %14s\n", "", "ns/sample", "adds, ns", "times memcpy");
	for (size_t i = 0; i < NR_STAGES; i++) {
		double ns = bench_per((double)figures[i].read_ns, (double)nr_samples);

		printf("%-28s %10.1f %10.1f %12.1f x\n", stages[i].name, ns, i > STAGE_MEMCPY ? ns - before_ns : 0,
		       bench_per(ns, memcpy_ns));
		before_ns = i > STAGE_MEMCPY ? ns : 0;
	}
	printf("%-28s %10.1f %10s %14s  %.0f ns for each of %llu records\n", "side band, swap, forgetting",
	       bench_per(sideband_ns, (double)nr_samples), "-", "-", bench_per(sideband_ns, (double)figures[STAGE_ALL].nr_sideband),
	       (unsigned long long)figures[STAGE_ALL].nr_sideband);
}

/* The best of several runs; the stages alternate, because the machine may have other work. */
static void keep_better(struct pair_figures *best, const struct pair_figures *figures)
{
	if (!best->read_ns || figures->read_ns + figures->sideband_ns < best->read_ns + best->sideband_ns)
		*best = *figures;
}

static bool measure_stage(size_t stage, uint64_t nr_samples, struct pair_figures *best)
{
	struct pair_figures figures = { 0 };
	struct sim sim;
	bool good = true;

	end_on(sim_open(&single, &sim), "opening the simulation");
	if (stage == STAGE_TIMELINE)
		open_timeline(&sim);
	run_pair(&sim, stages[stage].read, nr_samples, &figures);
	figures.nr_sideband = load_sideband_records(sim.load);
	if (stage >= STAGE_ALL)
		good = all_right(&sim);
	sim_close(&sim);
	if (stage == STAGE_TIMELINE)
		close_timeline();
	keep_better(best, &figures);
	return good;
}

static bool table_pair(uint64_t nr_samples)
{
	struct pair_figures figures[NR_STAGES] = { 0 };
	bool good = true;
	double ns;

	printf("\none pair, %llu samples, %u processes with %u mappings each, rings of %zu kB; ns are CPU time, the best of %d "
	       "runs\n",
	       (unsigned long long)nr_samples, single.load.nr_processes, single.load.nr_mappings, single.ring_bytes / 1024,
	       NR_RUNS);
	for (int run = 0; run < NR_RUNS; run++)
		for (size_t i = 0; i < NR_STAGES; i++)
			good = measure_stage(i, nr_samples, &figures[i]) && good;
	print_pair(figures, nr_samples);
	ns = bench_per((double)(figures[STAGE_ALL].read_ns + figures[STAGE_ALL].sideband_ns), (double)nr_samples);
	return bench_say_aim("100 ns or less for a sample, the side band included", ns, ns > 0, ns <= AIM_NS_PER_SAMPLE) && good;
}

/*
 * ext4 does not reuse the inode of a file that was removed in the last minutes, and skips all of
 * them for each new file. So each run would pay for the removals of the run before, and everything
 * is removed at the end.
 */
static void begin_work_dir(char dir[WORK_DIR_BYTES])
{
	const char *base = getenv("TMPDIR");

	snprintf(dir, WORK_DIR_BYTES, "%s/opd-bench.XXXXXX", base ? base : P_tmpdir);
	end_on(mkdtemp(dir) ? 0 : -errno, "a directory to work in");
	end_on(setenv("TMPDIR", dir, 1) < 0 ? -errno : 0, "TMPDIR");
}

int main(int argc, char **argv)
{
	uint64_t seconds = 10, nr_samples = 10000000;
	char dir[WORK_DIR_BYTES];
	bool good;

	if (argc > 3 || (argc > 1 && op_parse_u64(argv[1], 1, 3600, &seconds) < 0) ||
	    (argc > 2 && op_parse_u64(argv[2], 1, UINT32_MAX, &nr_samples) < 0)) {
		fprintf(stderr, "usage: bench_sim [SECONDS [SAMPLES]]\n");
		return 1;
	}
	begin_work_dir(dir);
	good = table_host(seconds);
	good = sim_stacks(seconds) && good;
	good = table_pair(nr_samples) && good;
	end_on(op_session_remove(open("/", O_PATH | O_DIRECTORY), dir + 1), "cleaning up");
	return good ? 0 : 1;
}
