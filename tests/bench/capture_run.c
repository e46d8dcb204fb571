/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/capture_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/perf/record.h"
#include "libop/ring/kernel_pair.h"
#include "pipeline/capture/swappers.h"
#include "tests/bench/bench.h"

/* as in opd: a CPU is visited on this timer, or when its write ring passes the watermark */
#define TURN_MS 250u
#define FAULT_BYTES (1024 * 1024)

struct bench_cpu {
	struct op_ring_pair pair;
	int event_fds[CAPTURE_EVENTS_MAX];
	pid_t load;
};

struct capture {
	const struct capture_wanted *wanted;
	struct capture_result result;
	struct bench_cpu *cpus;
	struct pollfd *polls; /* of the anchors that own the write rings */
	struct opd_swappers *swappers;
	struct opd_swap *swaps; /* room for all CPUs */
	size_t nr_swaps;
	unsigned int nr_cpus, nr_events, turn_ms;
};

/* ---- load ---- */

static void compute(void)
{
	for (uint64_t x = 1;; x = x * 6364136223846793005u + 1)
		__asm__ volatile("" : "+r"(x));
}

static void touch_pages(void)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = mmap(NULL, FAULT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (pages != MAP_FAILED) {
		for (size_t at = 0; at < FAULT_BYTES; at += page_bytes)
			pages[at] = 1;
		madvise(pages, FAULT_BYTES, MADV_DONTNEED);
	}
}

static void (*const loads[CAPTURE_NR_LOADS])(void) = { [CAPTURE_BUSY] = compute, [CAPTURE_FAULTS] = touch_pages };

static int start_loads(struct capture *capture)
{
	for (unsigned int i = 0; i < capture->nr_cpus; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			bench_pin(i);
			loads[capture->wanted->load]();
			_exit(1);
		}
		capture->cpus[i].load = pid;
	}
	return 0;
}

/* ---- events ---- */

static int open_cpu(struct capture *capture, unsigned int index, int cpu_number)
{
	struct bench_cpu *cpu = &capture->cpus[index];
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = capture->wanted->event,
		.size = sizeof(attr),
		.sample_type = OP_SAMPLE_TYPE,
		.sample_period = capture->wanted->period,
		.sample_id_all = 1,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = OP_CLOCK,
		.read_format = PERF_FORMAT_LOST,
		.wakeup_events = capture->wanted->wakeup_records,
		.write_backward = capture->wanted->how == CAPTURE_SNAPSHOT,
	};
	int (*open_pair)(int, size_t, size_t, struct op_ring_pair *) = attr.write_backward ? op_ring_pair_open_overwrite :
											     op_ring_pair_open;
	int err = open_pair(cpu_number, capture->wanted->ring_bytes, capture->wanted->watermark_bytes, &cpu->pair);

	if (err)
		return err;
	for (unsigned int i = 0; i < capture->nr_events && !err; i++) {
		cpu->event_fds[i] = op_sys_perf_event_open(&attr, -1, cpu_number, -1, PERF_FLAG_FD_CLOEXEC);
		err = cpu->event_fds[i] < 0 ? cpu->event_fds[i] : op_ring_pair_attach(&cpu->pair, cpu->event_fds[i]);
	}
	return err;
}

static int open_all(struct capture *capture)
{
	cpu_set_t allowed;
	unsigned int index = 0;
	int err = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	capture->nr_cpus = (unsigned int)CPU_COUNT(&allowed);
	capture->cpus = calloc(capture->nr_cpus, sizeof(*capture->cpus));
	capture->polls = calloc(capture->nr_cpus, sizeof(*capture->polls));
	capture->swaps = calloc(capture->nr_cpus, sizeof(*capture->swaps));
	if (!capture->cpus || !capture->polls || !capture->swaps)
		return -ENOMEM;
	err = opd_swappers_new(capture->wanted->nr_threads ? capture->wanted->nr_threads : 1, &capture->swappers);
	for (unsigned int i = 0; i < capture->nr_cpus; i++) {
		memset(capture->cpus[i].event_fds, -1, sizeof(capture->cpus[i].event_fds));
		capture->cpus[i].pair.anchor_fds[0] = capture->cpus[i].pair.anchor_fds[1] = -1;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE && !err; cpu++)
		if (CPU_ISSET((size_t)cpu, &allowed))
			err = open_cpu(capture, index++, cpu);
	return err;
}

static void close_all(struct capture *capture)
{
	for (unsigned int i = 0; capture->cpus && i < capture->nr_cpus; i++) {
		struct bench_cpu *cpu = &capture->cpus[i];

		if (cpu->load > 0) {
			kill(cpu->load, SIGKILL);
			waitpid(cpu->load, NULL, 0);
		}
		op_ring_pair_close(&cpu->pair);
		for (unsigned int e = 0; e < CAPTURE_EVENTS_MAX; e++)
			if (cpu->event_fds[e] >= 0)
				close(cpu->event_fds[e]);
	}
	free(capture->cpus);
	free(capture->polls);
	free(capture->swaps);
	opd_swappers_free(capture->swappers);
}

static void enable(struct capture *capture, bool on)
{
	for (unsigned int i = 0; i < capture->nr_cpus; i++)
		for (unsigned int e = 0; e < capture->nr_events; e++)
			op_sys_ioctl(capture->cpus[i].event_fds[e], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL);
}

/* ---- reading ---- */

static void drain(struct capture_result *result, struct op_ring *ring)
{
	const struct perf_event_header *header;
	struct op_sample sample;

	op_ring_begin(ring);
	while ((header = op_ring_next(ring))) {
		if (header->type == PERF_RECORD_THROTTLE)
			result->throttles++;
		if (header->type != PERF_RECORD_SAMPLE)
			continue;
		if (op_record_sample(header, &sample) < 0) {
			result->undecodable++;
			continue;
		}
		result->samples++;
		result->checksum += sample.ip ^ sample.time_ns ^ sample.id ^ sample.tid;
	}
	if (ring->flags & OP_RING_BACKWARD)
		result->overwritten_bytes += op_ring_overwritten(ring);
	op_ring_end(ring);
}

/* Puts a CPU that is not idle on the list; in place, it is read at once. */
static void add(struct capture *capture, struct op_ring_pair *pair)
{
	if (!op_ring_pending(op_ring_pair_write_ring(pair)) && !op_ring_pending(op_ring_pair_read_ring(pair)))
		return;
	if (capture->wanted->how == CAPTURE_IN_PLACE)
		drain(&capture->result, op_ring_pair_write_ring(pair));
	else
		capture->swaps[capture->nr_swaps++] = (struct opd_swap){ .pair = pair };
}

/* As opd: swap all that are on the list, then read them. */
static int visit(struct capture *capture)
{
	uint64_t begin_ns;
	int err = 0;

	opd_swappers_swap(capture->swappers, capture->swaps, capture->nr_swaps);
	/* A grace period is of all CPUs: one for all that were swapped. */
	if (capture->wanted->how == CAPTURE_SNAPSHOT && capture->nr_swaps)
		err = op_ring_pair_settle(capture->swaps[0].pair);
	if (err)
		return err;
	begin_ns = bench_cpu_ns();
	for (size_t i = 0; i < capture->nr_swaps; i++) {
		err = err ? err : capture->swaps[i].err;
		drain(&capture->result, op_ring_pair_read_ring(capture->swaps[i].pair));
	}
	capture->result.drain_cpu_ns += bench_cpu_ns() - begin_ns;
	capture->nr_swaps = 0;
	return err;
}

static int visit_all(struct capture *capture)
{
	uint64_t begin_ns = bench_now_ns();
	int err;

	for (unsigned int i = 0; i < capture->nr_cpus; i++)
		add(capture, &capture->cpus[i].pair);
	if (!capture->nr_swaps)
		return 0;
	err = visit(capture);
	capture->result.turns++;
	capture->result.turn_ns += bench_now_ns() - begin_ns;
	return err;
}

static int wait_and_visit(struct capture *capture, uint64_t *next_turn_ns)
{
	int err, nr;

	for (unsigned int i = 0; i < capture->nr_cpus; i++)
		capture->polls[i] = (struct pollfd){
			.fd = capture->cpus[i].pair.anchor_fds[capture->cpus[i].pair.write],
			.events = POLLIN,
		};
	nr = poll(capture->polls, capture->nr_cpus, (int)capture->turn_ms);
	if (nr < 0)
		return -errno;
	capture->result.wakeups += nr > 0;
	for (unsigned int i = 0; i < capture->nr_cpus; i++)
		if (capture->polls[i].revents)
			add(capture, &capture->cpus[i].pair);
	err = visit(capture);
	if (!err && bench_now_ns() >= *next_turn_ns) {
		*next_turn_ns = bench_now_ns() + capture->turn_ms * 1000000ull;
		err = visit_all(capture);
	}
	return err;
}

static int add_lost_of_event(struct capture *capture, int event_fd)
{
	uint64_t counts[2];

	if (op_sys_read(event_fd, counts, sizeof(counts)) != sizeof(counts))
		return -EIO;
	capture->result.lost += counts[1];
	return 0;
}

/* What the kernel says: each event's own count of what it could not write. */
static int add_lost(struct capture *capture)
{
	int err = 0;

	for (unsigned int i = 0; i < capture->nr_cpus && !err; i++) {
		const struct bench_cpu *cpu = &capture->cpus[i];

		for (unsigned int e = 0; e < capture->nr_events && !err; e++)
			err = add_lost_of_event(capture, cpu->event_fds[e]);
		capture->result.swaps += cpu->pair.counts.swaps;
		capture->result.swap_wait_ns += cpu->pair.counts.wait_ns;
		capture->result.settles += cpu->pair.settles;
		capture->result.settle_wait_ns += cpu->pair.settle_wait_ns;
	}
	return err;
}

static int capture_for(struct capture *capture, unsigned int seconds)
{
	uint64_t begin_ns = bench_now_ns(), begin_cpu_ns = bench_cpu_ns(), next_turn_ns = begin_ns;
	uint64_t end_ns = begin_ns + (uint64_t)seconds * BENCH_NS_PER_S;
	int err = 0;

	enable(capture, true);
	while (!err && bench_now_ns() < end_ns)
		err = wait_and_visit(capture, &next_turn_ns);
	capture->result.elapsed_ns = bench_now_ns() - begin_ns;
	capture->result.reader_cpu_ns = bench_cpu_ns() - begin_cpu_ns;
	enable(capture, false);
	/* Both rings of every pair, so that samples and losses are of the same time. */
	for (int i = 0; i < 2 && !err; i++)
		err = visit_all(capture);
	return err ? err : add_lost(capture);
}

int capture_run(const struct capture_wanted *wanted, unsigned int seconds, struct capture_result *ret_result)
{
	struct capture capture = {
		.wanted = wanted,
		.nr_events = wanted->nr_events ? wanted->nr_events : 1,
		.turn_ms = wanted->turn_ms ? wanted->turn_ms : TURN_MS,
	};
	int err = open_all(&capture);

	if (!err)
		err = start_loads(&capture);
	if (!err)
		err = capture_for(&capture, seconds);
	close_all(&capture);
	if (!err)
		*ret_result = capture.result;
	return err;
}
