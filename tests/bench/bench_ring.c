/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Measures the kernel pair. Usage: bench_ring [SECONDS], default 3 seconds for each run.
 *
 * It prints five tables:
 *   reading and decoding a ring in memory, beside memcpy of the same bytes
 *   whole captures at several rates, beside perf record
 *   a wake-up for each record, beside the watermark
 *   the length of a turn with one swapping thread and with several
 *   a snapshot in overwrite mode, beside a swap
 * CPU time is the time of the reading thread by the scheduler (perf: of all its threads). Exit code
 * 1: an aim is missed or not shown; 77: perf events are not permitted.
 */
#include <errno.h>
#include <linux/perf_event.h>

#include "libop/base/parse.h"
#include "libop/perf/record.h"
#include "libop/ring/reader.h"
#include "tests/bench/bench.h"
#include "tests/bench/capture_run.h"
#include "tests/bench/perf_peer.h"

#define RING_BYTES       (256 * 1024) /* as RingSize= */
#define LARGE_RING_BYTES (4 * 1024 * 1024)

/* ---- out of memory ---- */

struct prefilled {
	struct op_ring ring;
	struct perf_event_mmap_page control;
	uint64_t filled_bytes;
	uint64_t nr_records;
};

static bool prefill(struct prefilled *full, size_t data_bytes)
{
	/* header, id, address, thread and process, time */
	uint64_t record[] = { 0, 7, 0x401000, (42ull << 32) | 42, 1000 };
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER, .size = sizeof(record) };

	*full = (struct prefilled){ .ring = { .data_bytes = data_bytes, .k_data = aligned_alloc(4096, data_bytes) } };
	full->ring.k_control = &full->control;
	if (!full->ring.k_data)
		return false;
	memcpy(record, &header, sizeof(header));
	while (full->filled_bytes + sizeof(record) <= data_bytes) {
		memcpy(full->ring.k_data + full->filled_bytes, record, sizeof(record));
		full->filled_bytes += sizeof(record);
		full->nr_records++;
		record[2] += 16;
		record[4]++;
	}
	return true;
}

/* Reads the ring once and puts the reader back to the beginning. */
static uint64_t drain_prefilled(struct prefilled *full)
{
	const struct perf_event_header *header;
	struct op_sample sample;
	uint64_t checksum = 0;

	full->control.data_head = full->filled_bytes;
	op_ring_begin(&full->ring);
	while ((header = op_ring_next(&full->ring)))
		if (!op_record_sample(header, &sample))
			checksum += sample.ip ^ sample.time_ns ^ sample.id ^ sample.tid;
	op_ring_end(&full->ring);
	full->ring.tail = 0;
	return checksum;
}

static void bench_memory(size_t data_bytes)
{
	struct prefilled full;
	uint64_t rounds = (256u << 20) / data_bytes, checksum = 0, begin_ns, drain_ns, copy_ns;
	uint8_t *copy = aligned_alloc(4096, data_bytes);
	double nr_records, nr_bytes;

	if (!copy || !prefill(&full, data_bytes)) {
		fprintf(stderr, "bench_ring: no memory\n");
		exit(1);
	}
	nr_records = (double)(rounds * full.nr_records);
	nr_bytes = (double)(rounds * full.filled_bytes);
	memset(copy, 0, data_bytes);
	drain_prefilled(&full);
	begin_ns = bench_cpu_ns();
	for (uint64_t i = 0; i < rounds; i++)
		checksum += drain_prefilled(&full);
	drain_ns = bench_cpu_ns() - begin_ns;
	begin_ns = bench_cpu_ns();
	for (uint64_t i = 0; i < rounds; i++) {
		memcpy(copy, full.ring.k_data, full.filled_bytes);
		__asm__ volatile("" : : "r"(copy) : "memory");
	}
	copy_ns = bench_cpu_ns() - begin_ns;
	__asm__ volatile("" : : "r"(checksum));
	printf("%8zu %14.2f %10.2f %18.2f %18.1f x\n", data_bytes / 1024, (double)drain_ns / nr_records,
	       nr_bytes / (double)drain_ns, (double)copy_ns / nr_records, bench_per((double)drain_ns, (double)copy_ns));
	free(copy);
	free(full.ring.k_data);
}

static void table_memory(void)
{
	printf("reading and decoding alone, samples of 40 bytes in memory\n%8s %14s %10s %18s %20s\n", "ring kB", "ns/record",
	       "GB/s", "memcpy, ns/record", "opd / memcpy");
	bench_memory(64 * 1024);
	bench_memory(RING_BYTES);
	bench_memory(LARGE_RING_BYTES);
}

/* ---- captures ---- */

#define CLOCK_ROW(title, period_ns, wake_records, the_how)                                                                         \
	{                                                                                                                          \
		.name = title, .event = PERF_COUNT_SW_CPU_CLOCK, .period = period_ns, .ring_bytes = RING_BYTES,                    \
		.watermark_bytes = RING_BYTES / 4, .wakeup_records = wake_records, .how = the_how, .load = CAPTURE_BUSY            \
	}
#define FAULT_ROW(title, bytes)                                                                                                    \
	{                                                                                                                          \
		.name = title, .event = PERF_COUNT_SW_PAGE_FAULTS, .period = 1, .ring_bytes = bytes,                               \
		.watermark_bytes = (bytes) / 4, .how = CAPTURE_SWAP, .load = CAPTURE_FAULTS                                        \
	}

#define DEFAULT_PERIOD_NS 100000
#define RATE_MIN          0.95 /* of what the period asks for */

static const struct capture_wanted captures[] = {
	CLOCK_ROW("cpu-clock 1 kHz", 1000000, 0, CAPTURE_SWAP), CLOCK_ROW("cpu-clock 10 kHz", DEFAULT_PERIOD_NS, 0, CAPTURE_SWAP),
	CLOCK_ROW("cpu-clock 50 kHz", 20000, 0, CAPTURE_SWAP),  FAULT_ROW("each page fault", RING_BYTES),
	FAULT_ROW("the same, 4 MB", LARGE_RING_BYTES),
};

static const struct capture_wanted wakeups[] = {
	CLOCK_ROW("watermark, swap (default)", DEFAULT_PERIOD_NS, 0, CAPTURE_SWAP),
	CLOCK_ROW("watermark, in place", DEFAULT_PERIOD_NS, 0, CAPTURE_IN_PLACE),
	CLOCK_ROW("each record, swap", DEFAULT_PERIOD_NS, 1, CAPTURE_SWAP),
	CLOCK_ROW("each record, in place", DEFAULT_PERIOD_NS, 1, CAPTURE_IN_PLACE),
};

static const struct capture_wanted snapshots[] = {
	CLOCK_ROW("swap", DEFAULT_PERIOD_NS, 0, CAPTURE_SWAP),
	CLOCK_ROW("snapshot", DEFAULT_PERIOD_NS, 0, CAPTURE_SNAPSHOT),
};

#define TURN_ROW(events, threads)                                                                                                  \
	{                                                                                                                          \
		.event = PERF_COUNT_SW_CPU_CLOCK, .period = 1000000, .ring_bytes = RING_BYTES, .watermark_bytes = RING_BYTES / 4,  \
		.how = CAPTURE_SWAP, .load = CAPTURE_BUSY, .nr_events = events, .nr_threads = threads, .turn_ms = 20               \
	}

static const struct capture_wanted turns[] = {
	TURN_ROW(1, 1), TURN_ROW(1, 2), TURN_ROW(2, 1), TURN_ROW(2, 2), TURN_ROW(4, 1), TURN_ROW(4, 2),
};

static void run_or_end(const struct capture_wanted *wanted, unsigned int seconds, struct capture_result *ret_result)
{
	int err = capture_run(wanted, seconds, ret_result);

	if (!err)
		return;
	if (err == -EPERM || err == -EACCES || err == -ENOENT) {
		printf("skip: system-wide perf events are not allowed here (%s)\n", strerror(-err));
		exit(77);
	}
	fprintf(stderr, "bench_ring: %s: %s\n", wanted->name, strerror(-err));
	exit(1);
}

static double lost_per_million(const struct capture_result *result)
{
	return bench_per(1e6 * (double)result->lost, (double)(result->samples + result->lost));
}

static unsigned int nr_cpus(void)
{
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	return (unsigned int)CPU_COUNT(&allowed);
}

/* A run below its rate, or with throttling, loses less: it shows nothing about losses. */
static bool is_at_its_rate(const struct capture_result *result)
{
	double wanted = (double)result->elapsed_ns / DEFAULT_PERIOD_NS * nr_cpus();

	return !result->throttles && (double)result->samples >= RATE_MIN * wanted && wanted > 0;
}

/* The columns of perf record: its ns for a sample and the ratio, or that it is not there. */
static void print_peer(const struct capture_wanted *wanted, unsigned int seconds, double own_ns)
{
	double ns;
	int err;

	if (wanted->event != PERF_COUNT_SW_CPU_CLOCK) {
		printf(" %12s %11s\n", "-", "-");
		return;
	}
	err = perf_peer_ns_per_sample(wanted->period, nr_cpus(), wanted->ring_bytes, seconds, &ns);
	if (err)
		printf(" %12s %11s\n", err == -ENOENT ? "no perf" : "it failed", "-");
	else
		printf(" %12.0f %9.1f x\n", ns, bench_per(ns, own_ns));
}

/* What came at the rate that is aimed at. */
static struct capture_result table_captures(unsigned int seconds)
{
	struct capture_result aimed_at = { .samples = 0 };

	printf("\nkernel pair, rings of %d kB, %u s a row; ns are of the reader, for one sample\n", RING_BYTES / 1024, seconds);
	printf("%-18s %9s %9s %9s %8s %8s %13s %8s %12s %11s\n", "", "samples", "lost", "lost/10^6", "swaps/s", "ms/swap",
	       "drain, decode", "all", "perf record", "perf / opd");
	for (size_t i = 0; i < op_array_size(captures); i++) {
		struct capture_result result;
		double all_ns;

		run_or_end(&captures[i], seconds, &result);
		all_ns = bench_per((double)result.reader_cpu_ns, (double)result.samples);
		printf("%-18s %9llu %9llu %9.1f %8.1f %8.1f %13.1f %8.0f", captures[i].name, (unsigned long long)result.samples,
		       (unsigned long long)result.lost, lost_per_million(&result),
		       (double)result.swaps / ((double)result.elapsed_ns / 1e9),
		       bench_per((double)result.swap_wait_ns / 1e6, (double)result.swaps),
		       bench_per((double)result.drain_cpu_ns, (double)result.samples), all_ns);
		print_peer(&captures[i], seconds, all_ns);
		fflush(stdout);
		if (result.undecodable || result.throttles)
			printf("  %llu not decoded, throttled %llu times\n", (unsigned long long)result.undecodable,
			       (unsigned long long)result.throttles);
		if (captures[i].period == DEFAULT_PERIOD_NS && captures[i].event == PERF_COUNT_SW_CPU_CLOCK)
			aimed_at = result;
	}
	return aimed_at;
}

static void table_wakeups(unsigned int seconds)
{
	double first_ns = 0;

	printf("\nwhen the reader is woken, cpu-clock 10 kHz, %u s a row\n%-27s %10s %12s %14s %20s\n", seconds, "", "samples",
	       "wake-ups/s", "reader, ns", "times the default");
	for (size_t i = 0; i < op_array_size(wakeups); i++) {
		struct capture_result result;
		double ns;

		run_or_end(&wakeups[i], seconds, &result);
		ns = bench_per((double)result.reader_cpu_ns, (double)result.samples);
		if (!i)
			first_ns = ns;
		printf("%-27s %10llu %12.1f %14.0f %18.1f x\n", wakeups[i].name, (unsigned long long)result.samples,
		       (double)result.wakeups / ((double)result.elapsed_ns / 1e9), ns, bench_per(ns, first_ns));
		fflush(stdout);
	}
}

static void table_snapshots(unsigned int seconds)
{
	double first_ms = 0;

	printf("\noverwrite mode, cpu-clock 10 kHz, %u s a row; a snapshot is a swap and settling\n%-10s %10s %8s %8s %10s %8s "
	       "%12s %12s\n",
	       seconds, "", "samples", "swaps/s", "ms/swap", "ms settle", "ms all", "times a swap", "overwritten");
	for (size_t i = 0; i < op_array_size(snapshots); i++) {
		struct capture_result result;
		double swap_ms, settle_ms;

		run_or_end(&snapshots[i], seconds, &result);
		swap_ms = bench_per((double)result.swap_wait_ns / 1e6, (double)result.swaps);
		settle_ms = bench_per((double)result.settle_wait_ns / 1e6, (double)result.settles);
		if (!i)
			first_ms = swap_ms;
		printf("%-10s %10llu %8.1f %8.1f %10.1f %8.1f %10.1f x %12llu\n", snapshots[i].name,
		       (unsigned long long)result.samples, (double)result.swaps / ((double)result.elapsed_ns / 1e9), swap_ms,
		       settle_ms, swap_ms + settle_ms, bench_per(swap_ms + settle_ms, first_ms),
		       (unsigned long long)result.overwritten_bytes);
		fflush(stdout);
	}
}

/* A swap sleeps most of its time: measures how much shorter a turn is with several threads. */
static void table_turns(unsigned int seconds)
{
	double alone_ms = 0;

	printf("\nlength of a turn, all CPUs busy, cpu-clock 1 kHz, %u s a row\n%8s %9s %8s %10s %16s %14s %14s\n", seconds,
	       "events", "threads", "turns", "ms/turn", "ms/swap of a CPU", "ms for event", "one / several");
	for (size_t i = 0; i < op_array_size(turns); i++) {
		struct capture_result result;
		double ms, swap_ms;

		run_or_end(&turns[i], seconds, &result);
		ms = bench_per((double)result.turn_ns / 1e6, (double)result.turns);
		swap_ms = bench_per((double)result.swap_wait_ns / 1e6, (double)result.swaps);
		printf("%8u %9u %8llu %10.1f %16.1f %14.1f", turns[i].nr_events, turns[i].nr_threads,
		       (unsigned long long)result.turns, ms, swap_ms, swap_ms / turns[i].nr_events);
		if (turns[i].nr_threads == 1) {
			alone_ms = ms;
			printf(" %14s\n", "-");
		} else {
			printf(" %12.2f x\n", bench_per(alone_ms, ms));
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	uint64_t seconds = 3;
	struct capture_result aimed_at;
	bool good;

	if (argc > 2 || (argc == 2 && (op_parse_u64(argv[1], 1, 3600, &seconds) < 0))) {
		fprintf(stderr, "usage: bench_ring [SECONDS]\n");
		return 1;
	}
	table_memory();
	aimed_at = table_captures((unsigned int)seconds);
	table_wakeups((unsigned int)seconds);
	table_turns((unsigned int)seconds);
	table_snapshots((unsigned int)seconds);
	printf("\n");
	good = bench_say_aim("nothing lost at 10 kHz: samples of 10^6", lost_per_million(&aimed_at),
			     is_at_its_rate(&aimed_at), !aimed_at.lost);
	return good ? 0 : 1;
}
