/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * kernel_overwrite [--snapshots=N] [--bare] [--larger=N] [--list] [MODE...]: consecutive snapshots
 * of the kernel pair in overwrite mode, under load, on every CPU at once.
 *
 * Each page fault is also seen by a second event, in the same group and so counted over the same
 * time, whose ring is never overwritten: the snapshots, put together, must be what that ring has,
 * record for record, but for what they say is overwritten. The timer's records must have its
 * identifier and period and come in the order of time, each once. A frozen ring must not change at
 * all: every byte of it is looked at before and after it is read. --bare leaves the settling out
 * and says how often a ring did. --larger: rings that are large are twice as large N times. --list:
 * the modes.
 *
 * Exit code 1 and a line that says what was wrong; 75 when more came from one snapshot to the next
 * than a ring that is large has room for, since the reader was held up or others had that many page
 * faults; 77 when system-wide events are not allowed.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/parse.h"
#include "libop/ring/kernel_pair.h"
#include "libop/base/sys.h"
#include "tests/ring/overwrite_load.h"
#include "tests/ring/overwrite_seen.h"

#define SNAPSHOTS         120u
#define WRAP_MS_MAX       50u /* between two snapshots of a ring that is too small */
#define DISTURBED         75
#define SECOND_BYTES      (16u << 20) /* the ring of the second opinion */
/* in a row: the kernel counts a few page faults in a million without a sample */
#define PAGES_NOT_SAMPLED 16u
#define SAMPLE_TYPE                                                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD)

struct mode {
	const char *name;
	uint64_t clock_period_ns; /* 0: no timer */
	bool faults;
	bool wraps;           /* the rings are too small on purpose */
	/* one CPU after another: if all readers woke at the same time, no CPU would run its load */
	bool alone;
	/* of the stack in each record: handlers take long, and sizes differ; no second opinion */
	uint32_t stack_bytes;
	size_t ring_bytes;
};

static const struct mode modes[] = {
	{ .name = "clock-10k", .clock_period_ns = 100000, .ring_bytes = 4 << 20 },
	{ .name = "clock-50k", .clock_period_ns = 20000, .ring_bytes = 4 << 20 },
	{ .name = "faults", .faults = true, .ring_bytes = 8 << 20 },
	{ .name = "faults-and-clock", .faults = true, .clock_period_ns = 20000, .ring_bytes = 8 << 20 },
	{ .name = "clock-50k-4k", .clock_period_ns = 20000, .ring_bytes = 4 << 10, .wraps = true },
	{ .name = "faults-4k", .faults = true, .ring_bytes = 4 << 10, .wraps = true },
	{ .name = "faults-8k", .faults = true, .ring_bytes = 8 << 10, .wraps = true },
	{ .name = "faults-16k", .faults = true, .ring_bytes = 16 << 10, .wraps = true },
	{ .name = "clock-50k-stacks", .clock_period_ns = 20000, .ring_bytes = 2 << 20, .wraps = true, .stack_bytes = 32760 },
	{ .name = "faults-stacks", .faults = true, .ring_bytes = 2 << 20, .wraps = true, .alone = true, .stack_bytes = 32760 },
};

struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t address;
	uint64_t period;
};

/* Where time and page faults were. */
struct mark {
	uint64_t time_ns, faults;
};

struct follower {
	const struct mode *mode;
	int cpu, reader_cpu;
	uint64_t snapshots; /* wanted */
	bool bare;
	uint64_t larger; /* a power of two, for rings that are not to be overwritten */
	struct load load;
	struct op_ring_pair pair;
	int clock_fd, fault_fd, second_fd;
	uint64_t clock_id;
	struct op_ring second;
	struct seen seen;
	uint64_t nr_clock;
	struct mark since;                   /* not after the ring in hand began to be written */
	uint64_t clock_from_ns, clock_to_ns; /* of the snapshot in hand */
	uint64_t clock_before_ns;            /* the newest of the one before */
	uint64_t told_bytes[2];              /* of each ring: given or said to be overwritten */
	uint64_t overwritten_bytes;
	uint64_t moved;           /* times that a frozen ring changed */
	uint64_t older_page;      /* of the load in the snapshot in hand, LOAD_PAGES: none */
	/* the next page of the load by the second event; pages that the second event lacks */
	uint64_t page, nr_jumped;
	pthread_t thread;
};

static void wrong(const struct follower *follower, const char *what, uint64_t value)
{
	fprintf(stderr, "kernel_overwrite: %s, CPU %d: %s: %llu, at snapshot %llu\n", follower->mode->name, follower->cpu, what,
		(unsigned long long)value, (unsigned long long)follower->pair.counts.swaps);
	exit(1);
}

static void disturbed(const struct follower *follower, const char *what, uint64_t value)
{
	printf("disturbed: %s, CPU %d: %s: %llu\n", follower->mode->name, follower->cpu, what, (unsigned long long)value);
	exit(DISTURBED);
}

static void must(const struct follower *follower, int result, const char *what)
{
	if (result >= 0)
		return;
	if (result == -EPERM || result == -EACCES || result == -ENOENT) {
		printf("skip: system-wide perf events are not allowed here (%s)\n", strerror(-result));
		exit(77);
	}
	fprintf(stderr, "kernel_overwrite: %s, CPU %d: %s: %s\n", follower->mode->name, follower->cpu, what, strerror(-result));
	exit(1);
}

/* ---- records ---- */

static uint64_t fault_word(const struct sample *sample)
{
	return (sample->address * UINT64_C(0x9e3779b97f4a7c15) ^ sample->ip) * UINT64_C(0x94d049bb133111eb) ^ sample->tid;
}

static bool is_of_load(const struct follower *follower, const struct sample *sample)
{
	return sample->tid == (uint32_t)follower->load.pid && load_page(&follower->load, sample->address) < LOAD_PAGES;
}

/*
 * The stack of the load in a record: a part of its last frame, then one word repeated. A page that
 * the kernel is moving ends the copy. Returns how far the copy went.
 */
static void check_stack(const struct follower *follower, const struct perf_event_header *header)
{
	const uint64_t *words = (const void *)((const uint8_t *)header + sizeof(struct sample));
	size_t nr = follower->mode->stack_bytes / 8, begin = 1;

	if (header->size != sizeof(struct sample) + 8 + nr * 8 + 8)
		wrong(follower, "size of a record with a stack", header->size);
	if (words[0] != nr * 8 || words[nr + 1] > nr * 8)
		wrong(follower, "bytes of a stack", words[0] != nr * 8 ? words[0] : words[nr + 1]);
	nr = words[nr + 1] / 8;
	while (begin < 64 && words[begin] != LOAD_STACK_WORD)
		begin++;
	for (size_t i = begin; i <= nr; i++)
		if (words[i] != LOAD_STACK_WORD)
			wrong(follower, "a word of the stack", words[i]);
}

/*
 * Without a second event: the pages of the load in their order, newest first, except for pages that
 * the kernel did not sample.
 */
static void check_page(struct follower *follower, const struct sample *sample)
{
	uint64_t page = load_page(&follower->load, sample->address);

	if (follower->older_page != LOAD_PAGES && (follower->older_page - page) % LOAD_PAGES > PAGES_NOT_SAMPLED)
		wrong(follower, "page of the load", page);
	follower->older_page = page;
}

static void take_fault(struct follower *follower, const struct perf_event_header *header, const struct sample *sample)
{
	if (!follower->mode->stack_bytes && header->size != sizeof(*sample))
		wrong(follower, "size of a fault's record", header->size);
	if (follower->mode->stack_bytes && is_of_load(follower, sample)) {
		check_stack(follower, header);
		check_page(follower, sample);
	}
	must(follower, words_add(&follower->seen.given, fault_word(sample)), "memory");
}

/* Newest first. */
static void take_clock(struct follower *follower, const struct perf_event_header *header, const struct sample *sample)
{
	if (!follower->mode->stack_bytes && header->size != sizeof(*sample))
		wrong(follower, "size of a record of the timer", header->size);
	if (follower->mode->stack_bytes && sample->tid == (uint32_t)follower->load.pid)
		check_stack(follower, header);
	if (sample->id != follower->clock_id)
		wrong(follower, "identifier in a record of the timer", sample->id);
	if (sample->period != follower->mode->clock_period_ns)
		wrong(follower, "period of the timer", sample->period);
	if (follower->clock_from_ns && sample->time_ns >= follower->clock_from_ns)
		wrong(follower, "not older than the record before, ns", sample->time_ns - follower->clock_from_ns);
	if (!follower->clock_from_ns)
		follower->clock_to_ns = sample->time_ns;
	follower->clock_from_ns = sample->time_ns;
	follower->nr_clock++;
}

static void take(struct follower *follower, const struct perf_event_header *header)
{
	struct sample sample;

	if (follower->mode->clock_period_ns && (header->type == PERF_RECORD_THROTTLE || header->type == PERF_RECORD_UNTHROTTLE))
		return;
	if (header->type != PERF_RECORD_SAMPLE || header->size < sizeof(sample))
		wrong(follower, "type of a record", header->type);
	memcpy(&sample, header, sizeof(sample));
	if (follower->mode->faults && sample.period == 1)
		take_fault(follower, header, &sample);
	else
		take_clock(follower, header, &sample);
}

/* ---- snapshots ---- */

static uint64_t digest(const struct op_ring *ring)
{
	const uint64_t *k_words = (const void *)ring->k_data;
	uint64_t sum = op_load_relaxed(&ring->k_control->data_head);

	for (size_t i = 0; i < ring->data_bytes / sizeof(*k_words); i++)
		sum = (sum << 7 | sum >> 57) + op_load_relaxed(&k_words[i]);
	return sum;
}

static struct mark mark_now(const struct follower *follower)
{
	struct mark mark = { .time_ns = op_now_ns() };
	uint64_t counts[2];

	if (follower->fault_fd < 0)
		return mark;
	if (op_sys_read(follower->fault_fd, counts, sizeof(counts)) != sizeof(counts))
		wrong(follower, "count", 0);
	mark.faults = counts[0];
	return mark;
}

/*
 * Only records without room are overwritten: by the elapsed time and the count of the event, more
 * bytes were written than the ring holds, up to the last record.
 */
static void check_overwritten(const struct follower *follower, uint64_t nr_bytes)
{
	struct mark now = mark_now(follower);
	uint64_t period_ns = follower->mode->clock_period_ns, nr = now.faults - follower->since.faults;

	if (period_ns)
		nr += (now.time_ns - follower->since.time_ns) / period_ns + 1;
	if ((nr + 1) * sizeof(struct sample) < follower->pair.rings[0].data_bytes)
		wrong(follower, "bytes overwritten in a large ring", nr_bytes);
	disturbed(follower, "more records than a large ring has room for", nr);
}

static void walk(struct follower *follower, struct op_ring *ring)
{
	const struct perf_event_header *header;
	struct turn turn = { .first = follower->seen.given.nr };

	follower->clock_from_ns = 0;
	follower->older_page = LOAD_PAGES;
	op_ring_begin(ring);
	while ((header = op_ring_next(ring)))
		take(follower, header);
	turn.overwritten_bytes = op_ring_overwritten(ring);
	turn.nr = follower->seen.given.nr - turn.first;
	words_reverse(&follower->seen.given, turn.first);
	must(follower, seen_add_turn(&follower->seen, &turn), "memory");
	if (turn.overwritten_bytes && !follower->mode->wraps)
		check_overwritten(follower, turn.overwritten_bytes);
	follower->overwritten_bytes += turn.overwritten_bytes;
	follower->told_bytes[ring - follower->pair.rings] += ring->tail - ring->start + turn.overwritten_bytes;
	if (!follower->clock_from_ns)
		return;
	if (follower->clock_from_ns <= follower->clock_before_ns)
		wrong(follower, "not newer than the snapshot before, ns", follower->clock_before_ns - follower->clock_from_ns);
	follower->clock_before_ns = follower->clock_to_ns;
}

/* Lets the kernel write more than a small ring holds, as long as a slow machine needs for that. */
static void await_wrap(struct follower *follower)
{
	size_t write_index = op_ring_pair_read_ring(&follower->pair) == &follower->pair.rings[0];
	const struct op_ring *ring = &follower->pair.rings[write_index];
	uint64_t begin = op_load_relaxed(&ring->k_control->data_head), nr_bytes = 0;

	for (unsigned int ms = 0; ms < WRAP_MS_MAX && nr_bytes < follower->mode->ring_bytes; ms++) {
		usleep(1000);
		/* it is written backwards */
		nr_bytes = begin - op_load_relaxed(&ring->k_control->data_head);
	}
}

static void snapshot(struct follower *follower)
{
	struct op_ring *ring;
	uint64_t before;

	if (follower->bare)
		must(follower, op_ring_pair_swap(&follower->pair), "swap");
	else
		must(follower, op_ring_pair_snapshot(&follower->pair, &ring), "snapshot");
	ring = op_ring_pair_read_ring(&follower->pair);
	before = digest(ring);
	walk(follower, ring);
	usleep(1000);
	if (follower->mode->wraps)
		await_wrap(follower);
	follower->moved += digest(ring) != before;
	op_ring_end(ring);
	if (ring->damaged)
		wrong(follower, "damaged", ring->damaged);
	if (!follower->bare && (follower->moved || ring->late))
		wrong(follower, "a frozen ring has changed", follower->moved);
}

static void listen_to_second(struct follower *follower)
{
	const struct perf_event_header *header;
	struct sample sample;

	op_ring_begin(&follower->second);
	while ((header = op_ring_next(&follower->second))) {
		uint64_t page;

		if (header->type != PERF_RECORD_SAMPLE || header->size != sizeof(sample))
			wrong(follower, "type of a record of the second opinion", header->type);
		memcpy(&sample, header, sizeof(sample));
		must(follower, words_add(&follower->seen.second, fault_word(&sample)), "memory");
		page = load_page(&follower->load, sample.address);
		if (!is_of_load(follower, &sample) || page == (follower->page - 1) % LOAD_PAGES)
			continue;
		follower->nr_jumped += (page - follower->page) % LOAD_PAGES;
		follower->page = (page + 1) % LOAD_PAGES;
	}
	op_ring_end(&follower->second);
}

static void turn(struct follower *follower)
{
	size_t room = follower->mode->wraps ? SECOND_BYTES : follower->mode->ring_bytes;
	struct mark begin = mark_now(follower);

	/*
	 * Two turns of the load and the work of other processes fit into the ring that must not
	 * overflow.
	 */
	load_give(&follower->load, follower->second_fd >= 0 ? room / sizeof(struct sample) / 8 : UINT64_MAX / 2);
	snapshot(follower);
	follower->since = begin;
	if (follower->second_fd >= 0)
		listen_to_second(follower);
}

static void *follow(void *arg)
{
	struct follower *follower = arg;

	load_pin(follower->reader_cpu);
	/* Other processes then hold it up less. It is not needed, so it may fail. */
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	while (follower->pair.counts.swaps < follower->snapshots)
		turn(follower);
	if (follower->clock_fd >= 0)
		must(follower, op_sys_ioctl(follower->clock_fd, PERF_EVENT_IOC_DISABLE, NULL), "disable");
	if (follower->fault_fd >= 0)
		must(follower, op_sys_ioctl(follower->fault_fd, PERF_EVENT_IOC_DISABLE, NULL), "disable");
	for (int i = 0; i < 2; i++)
		turn(follower);
	return NULL;
}

/* ---- events ---- */

static int open_event(const struct follower *follower, uint64_t config, uint64_t period, int group_fd, bool second)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.size = sizeof(attr),
		.sample_type = SAMPLE_TYPE,
		.sample_period = period,
		.read_format = PERF_FORMAT_LOST,
		.disabled = !second,
		.write_backward = !second,
		.use_clockid = 1,
		.clockid = OP_CLOCK,
	};

	if (follower->mode->stack_bytes) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = follower->mode->stack_bytes;
	}
	return op_sys_perf_event_open(&attr, -1, follower->cpu, group_fd, PERF_FLAG_FD_CLOEXEC);
}

static size_t large(const struct follower *follower, size_t nr_bytes)
{
	return follower->mode->wraps ? nr_bytes : nr_bytes << follower->larger;
}

/* The two events begin and end together: they are one group. */
static void open_faults(struct follower *follower)
{
	must(follower, follower->fault_fd = open_event(follower, PERF_COUNT_SW_PAGE_FAULTS, 1, -1, false), "page-faults");
	must(follower, op_ring_pair_attach(&follower->pair, follower->fault_fd), "attach");
	if (follower->mode->stack_bytes)
		return;
	must(follower, follower->second_fd = open_event(follower, PERF_COUNT_SW_PAGE_FAULTS, 1, follower->fault_fd, true),
	     "second");
	must(follower, op_ring_map(follower->second_fd, SECOND_BYTES << follower->larger, &follower->second),
	     "ring of the second opinion");
}

static void open_clock(struct follower *follower)
{
	must(follower,
	     follower->clock_fd = open_event(follower, PERF_COUNT_SW_CPU_CLOCK, follower->mode->clock_period_ns, -1, false),
	     "cpu-clock");
	must(follower, op_sys_ioctl(follower->clock_fd, PERF_EVENT_IOC_ID, &follower->clock_id), "identifier");
	must(follower, op_ring_pair_attach(&follower->pair, follower->clock_fd), "attach");
}

/*
 * Requests that must be refused: a ring that would be written in both directions, and settling
 * where it is not needed.
 */
static void check_refusals(struct follower *follower)
{
	struct op_ring_pair plain;
	struct op_ring *ring;
	int forward = open_event(follower, PERF_COUNT_SW_CPU_CLOCK, 1000000, -1, true);
	int backward = open_event(follower, PERF_COUNT_SW_CPU_CLOCK, 1000000, -1, false);

	must(follower, forward, "cpu-clock");
	must(follower, backward, "cpu-clock");
	must(follower, op_ring_pair_open(follower->cpu, follower->mode->ring_bytes, 0, &plain), "plain pair");
	if (op_ring_pair_attach(&follower->pair, forward) != -EINVAL || op_ring_pair_attach(&plain, backward) != -EINVAL)
		wrong(follower, "two directions in one ring", 0);
	if (op_ring_pair_settle(&plain) != -EINVAL || op_ring_pair_snapshot(&plain, &ring) != -EINVAL)
		wrong(follower, "a plain pair settles", 0);
	op_ring_pair_close(&plain);
	close(forward);
	close(backward);
}

static void open_all(struct follower *follower)
{
	follower->clock_fd = follower->fault_fd = follower->second_fd = -1;
	must(follower, op_ring_pair_open_overwrite(follower->cpu, large(follower, follower->mode->ring_bytes), 0, &follower->pair),
	     "pair");
	check_refusals(follower);
	if (follower->mode->clock_period_ns)
		open_clock(follower);
	if (follower->mode->faults)
		open_faults(follower);
	must(follower, load_start(follower->cpu, follower->mode->stack_bytes ? LOAD_STACKS_MAX : 1, &follower->load), "load");
	follower->page = op_load_relaxed(&follower->load.shared->touched) % LOAD_PAGES;
	follower->since = mark_now(follower);
	if (follower->clock_fd >= 0)
		must(follower, op_sys_ioctl(follower->clock_fd, PERF_EVENT_IOC_ENABLE, NULL), "enable");
	if (follower->fault_fd >= 0)
		must(follower, op_sys_ioctl(follower->fault_fd, PERF_EVENT_IOC_ENABLE, NULL), "enable");
}

static void close_all(struct follower *follower)
{
	const int fds[] = { follower->clock_fd, follower->fault_fd, follower->second_fd };

	load_end(&follower->load);
	op_ring_unmap(&follower->second);
	for (size_t i = 0; i < op_array_size(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	op_ring_pair_close(&follower->pair);
	seen_free(&follower->seen);
}

/* ---- the end ---- */

/*
 * The event's own count. Nothing may be lost: in overwrite mode there is always room, and the ring
 * of the second event is large.
 */
static uint64_t count_of(const struct follower *follower, int fd)
{
	uint64_t counts[2];

	if (op_sys_read(fd, counts, sizeof(counts)) != sizeof(counts))
		wrong(follower, "count", 0);
	if (counts[1] && fd == follower->second_fd)
		disturbed(follower, "page faults without room in the second opinion", counts[1]);
	if (counts[1])
		wrong(follower, "lost", counts[1]);
	return counts[0];
}

/*
 * The kernel counts some page faults without a sample, for both events alike, and gives some to one
 * of the two events only: `nr`, less those that the second event lacks too, are few in a million.
 */
static void check_few(const struct follower *follower, uint64_t nr, uint64_t kernels_own, const char *what)
{
	if (nr > kernels_own + 8 + follower->seen.second.nr / 20000)
		wrong(follower, what, nr);
}

static uint64_t check_faults(struct follower *follower)
{
	uint64_t count = count_of(follower, follower->fault_fd);
	uint64_t kernels_own = count_of(follower, follower->second_fd) - follower->seen.second.nr;
	uint64_t sampled =
		follower->seen.given.nr + (follower->mode->wraps ? follower->overwritten_bytes / sizeof(struct sample) : 0);
	size_t bad;

	if (!seen_agree(&follower->seen, sizeof(struct sample), &bad))
		wrong(follower, "the snapshots are not what the second opinion has, from turn", bad);
	check_few(follower, follower->seen.nr_one_sided, 0, "records that only one of the two opinions has");
	check_few(follower, count - sampled, kernels_own, "faults that were counted and are not in the snapshots");
	check_few(follower, follower->nr_jumped, kernels_own, "pages that are not in the second opinion");
	return count - sampled;
}

static void report(struct follower *follower)
{
	const struct op_ring_pair *pair = &follower->pair;
	uint64_t not_sampled = follower->second_fd >= 0 ? check_faults(follower) : 0;

	if (follower->clock_fd >= 0)
		count_of(follower, follower->clock_fd);
	if (follower->fault_fd >= 0)
		count_of(follower, follower->fault_fd);
	for (size_t i = 0; i < 2; i++)
		if (follower->told_bytes[i] != -op_load_relaxed(&pair->rings[i].k_control->data_head))
			wrong(follower, "bytes neither given nor overwritten, or more than there were", follower->told_bytes[i]);
	if (!follower->seen.given.nr && !follower->nr_clock)
		wrong(follower, "nothing seen", 0);
	if (follower->mode->wraps && !follower->overwritten_bytes)
		wrong(follower, "nothing overwritten in a small ring", 0);
	printf("%-16s CPU %-3d %4llu snapshots, %7.1f ms a swap, %5.1f ms to settle, %3llu late, %3llu moved; clock %7llu; faults "
	       "%8zu, "
	       "%8zu overwritten, %llu not sampled, %zu one-sided; %llu bytes overwritten\n",
	       follower->mode->name, follower->cpu, (unsigned long long)pair->counts.swaps,
	       (double)pair->counts.wait_ns / 1e6 / (double)pair->counts.swaps,
	       pair->settles ? (double)pair->settle_wait_ns / 1e6 / (double)pair->settles : 0, (unsigned long long)pair->moved,
	       (unsigned long long)follower->moved, (unsigned long long)follower->nr_clock, follower->seen.given.nr,
	       follower->seen.nr_overwritten, (unsigned long long)not_sampled, follower->seen.nr_one_sided,
	       (unsigned long long)follower->overwritten_bytes);
	fflush(stdout);
}

/*
 * The reader of a CPU runs on the next one, so that the handlers and the reader run at the same
 * time.
 */
static size_t place_followers(struct follower *followers, const struct follower *like)
{
	cpu_set_t allowed;
	size_t nr = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET((size_t)cpu, &allowed))
			continue;
		followers[nr] = *like;
		followers[nr++].cpu = cpu;
	}
	for (size_t i = 0; i < nr; i++)
		followers[i].reader_cpu = followers[(i + 1) % nr].cpu;
	return nr;
}

static void run_some(struct follower *followers, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		open_all(&followers[i]);
	for (size_t i = 0; i < nr; i++)
		if (pthread_create(&followers[i].thread, NULL, follow, &followers[i]))
			wrong(&followers[i], "thread", i);
	for (size_t i = 0; i < nr; i++)
		pthread_join(followers[i].thread, NULL);
	for (size_t i = 0; i < nr; i++) {
		report(&followers[i]);
		close_all(&followers[i]);
	}
}

static void run(const struct follower *like)
{
	static struct follower followers[CPU_SETSIZE];
	size_t nr = place_followers(followers, like), together = like->mode->alone ? 1 : nr;

	for (size_t i = 0; i < nr; i += together)
		run_some(followers + i, together);
}

static bool is_wanted(const char *name, char **wanted)
{
	if (!*wanted)
		return true;
	for (; *wanted; wanted++)
		if (!strcmp(*wanted, name))
			return true;
	return false;
}

static void list_modes(void)
{
	for (size_t i = 0; i < op_array_size(modes); i++)
		printf("%s\n", modes[i].name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "snapshots", required_argument, NULL, 'n' },
		{ "bare", no_argument, NULL, 'b' },
		{ "larger", required_argument, NULL, 'g' },
		{ "list", no_argument, NULL, 'l' },
		{ 0 },
	};
	struct follower like = { .snapshots = SNAPSHOTS };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'b') {
			like.bare = true;
		} else if (option == 'l') {
			list_modes();
			return 0;
		} else if ((option != 'n' || op_parse_u64(optarg, 1, 1000000, &like.snapshots) < 0) &&
			   (option != 'g' || op_parse_u64(optarg, 0, 6, &like.larger) < 0)) {
			fprintf(stderr, "usage: kernel_overwrite [--snapshots=N] [--bare] [--larger=N] [--list] [MODE...]\n");
			return 1;
		}
	}
	for (size_t i = 0; i < op_array_size(modes); i++) {
		if (!is_wanted(modes[i].name, argv + optind))
			continue;
		like.mode = &modes[i];
		run(&like);
	}
	return 0;
}
