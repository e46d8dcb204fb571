/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/capture_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/record.h"
#include "libop/ring_pair.h"
#include "libop/sys.h"
#include "tests/bench/bench.h"

#define TURN_NS 250000000u /* as opd: a CPU is visited on this timer, or when its write ring passes the watermark */
#define TURN_MS (TURN_NS / 1000000u)
#define FAULT_BYTES (1024 * 1024)

struct bench_cpu {
	struct op_ring_pair pair;
	int event_fd;
	pid_t load;
};

struct capture {
	const struct capture_wanted *wanted;
	struct capture_result result;
	struct bench_cpu *cpus;
	struct pollfd *polls; /* of the anchors that own the write rings */
	unsigned int nr_cpus;
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
	};
	int err = op_ring_pair_open(cpu_number, capture->wanted->ring_bytes, capture->wanted->watermark_bytes, &cpu->pair);

	if (err)
		return err;
	cpu->event_fd = op_sys_perf_event_open(&attr, -1, cpu_number, -1, PERF_FLAG_FD_CLOEXEC);
	return cpu->event_fd < 0 ? cpu->event_fd : op_ring_pair_attach(&cpu->pair, cpu->event_fd);
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
	if (!capture->cpus || !capture->polls)
		return -ENOMEM;
	for (unsigned int i = 0; i < capture->nr_cpus; i++) {
		capture->cpus[i].event_fd = -1;
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
		if (cpu->event_fd >= 0)
			close(cpu->event_fd);
	}
	free(capture->cpus);
	free(capture->polls);
}

static void enable(struct capture *capture, bool on)
{
	for (unsigned int i = 0; i < capture->nr_cpus; i++)
		op_sys_ioctl(capture->cpus[i].event_fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, NULL);
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
	op_ring_end(ring);
}

static int visit(struct capture *capture, struct op_ring_pair *pair)
{
	uint64_t begin_ns;
	int err;

	if (!op_ring_pending(op_ring_pair_write_ring(pair)) && !op_ring_pending(op_ring_pair_read_ring(pair)))
		return 0;
	if (capture->wanted->how == CAPTURE_IN_PLACE) {
		drain(&capture->result, op_ring_pair_write_ring(pair));
		return 0;
	}
	err = op_ring_pair_swap(pair);
	begin_ns = bench_cpu_ns();
	drain(&capture->result, op_ring_pair_read_ring(pair));
	capture->result.drain_cpu_ns += bench_cpu_ns() - begin_ns;
	return err;
}

static int visit_all(struct capture *capture)
{
	int err = 0;

	for (unsigned int i = 0; i < capture->nr_cpus && !err; i++)
		err = visit(capture, &capture->cpus[i].pair);
	return err;
}

static int wait_and_visit(struct capture *capture, uint64_t *turn_ns)
{
	int err = 0, nr;

	for (unsigned int i = 0; i < capture->nr_cpus; i++)
		capture->polls[i] = (struct pollfd){
			.fd = capture->cpus[i].pair.anchor_fds[capture->cpus[i].pair.write],
			.events = POLLIN,
		};
	nr = poll(capture->polls, capture->nr_cpus, (int)TURN_MS);
	if (nr < 0)
		return -errno;
	capture->result.wakeups += nr > 0;
	for (unsigned int i = 0; i < capture->nr_cpus && !err; i++)
		if (capture->polls[i].revents)
			err = visit(capture, &capture->cpus[i].pair);
	if (!err && bench_now_ns() - *turn_ns >= TURN_NS) {
		*turn_ns = bench_now_ns();
		err = visit_all(capture);
	}
	return err;
}

/* What the kernel says: each event's own count of what it could not write. */
static int add_lost(struct capture *capture)
{
	for (unsigned int i = 0; i < capture->nr_cpus; i++) {
		const struct bench_cpu *cpu = &capture->cpus[i];
		uint64_t counts[2];

		if (op_sys_read(cpu->event_fd, counts, sizeof(counts)) != sizeof(counts))
			return -EIO;
		capture->result.lost += counts[1];
		capture->result.swaps += cpu->pair.counts.swaps;
		capture->result.swap_wait_ns += cpu->pair.counts.wait_ns;
	}
	return 0;
}

static int capture_for(struct capture *capture, unsigned int seconds)
{
	uint64_t begin_ns = bench_now_ns(), begin_cpu_ns = bench_cpu_ns(), turn_ns = begin_ns;
	uint64_t end_ns = begin_ns + (uint64_t)seconds * BENCH_NS_PER_S;
	int err = 0;

	enable(capture, true);
	while (!err && bench_now_ns() < end_ns)
		err = wait_and_visit(capture, &turn_ns);
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
	struct capture capture = { .wanted = wanted };
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
