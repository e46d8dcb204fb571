/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Perf events of the calling thread on the CPU that it is pinned to, and numbered page faults:
 * fault n touches page n of a region, so the address in its sample gives its number.
 */
#ifndef KERNEL_EVENTS_H
#define KERNEL_EVENTS_H

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "libop/perf/record.h"
#include "libop/ring/kernel_pair.h"
#include "libop/base/sys.h"
#include "tests/unit/cmocka_all.h"

#define FAULT_PAGES  (1u << 18)
#define FAULT_BYTES  4096u

struct faults {
	uint8_t *pages;
	uint64_t next; /* number of the next one */
};

/* Pins the calling thread to the first CPU that it may use. Returns that CPU. */
static inline int pin_to_a_cpu(void)
{
	cpu_set_t set;
	int cpu = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	return cpu;
}

static inline void faults_open(struct faults *faults)
{
	void *map;

	assert_int_equal(op_sys_mmap(NULL, (size_t)FAULT_PAGES * FAULT_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &map),
			 0);
	madvise(map, (size_t)FAULT_PAGES * FAULT_BYTES, MADV_NOHUGEPAGE);
	*faults = (struct faults){ .pages = map };
}

static inline void faults_close(struct faults *faults)
{
	op_sys_munmap(faults->pages, (size_t)FAULT_PAGES * FAULT_BYTES);
}

/* Without sanitizers, because their own memory would fault as well. */
__attribute__((no_sanitize("thread", "address"))) static inline void faults_take(struct faults *faults, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		((volatile uint8_t *)faults->pages)[faults->next++ * FAULT_BYTES] = 1;
}

/* Gives the touched pages back to the kernel. */
static inline void faults_forget(const struct faults *faults)
{
	assert_true(faults->next < FAULT_PAGES);
	madvise(faults->pages, faults->next * FAULT_BYTES, MADV_DONTNEED);
}

/* True and the number of the fault, when the address belongs to a numbered fault. */
static inline bool faults_number(const struct faults *faults, uint64_t address, uint64_t *ret_number)
{
	uint64_t offset = address - (uintptr_t)faults->pages;

	if (offset >= (uint64_t)FAULT_PAGES * FAULT_BYTES)
		return false;
	*ret_number = offset / FAULT_BYTES;
	return true;
}

static inline long nr_switches(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Sleeps until a context switch has happened: a timer may end before the thread sleeps. */
static inline void switch_context(void)
{
	long before = nr_switches();

	while (nr_switches() == before)
		nanosleep(&(struct timespec){ .tv_nsec = 1000 }, NULL);
}

/*
 * Opens a disabled software event of the calling thread, without a ring. Its samples have opd's
 * layout and end with the address. Returns its descriptor or -errno (-EINVAL: the kernel does not
 * know PERF_FORMAT_LOST).
 */
static inline int open_thread_event(uint64_t config, uint64_t period, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = config,
		.size = sizeof(attr),
		.sample_period = period,
		.sample_type = OP_SAMPLE_TYPE | PERF_SAMPLE_ADDR,
		.read_format = PERF_FORMAT_LOST,
		.sample_id_all = 1,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = OP_CLOCK,
	};

	return op_sys_perf_event_open(&attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The kernel's count of an event. */
static inline void read_event(int fd, uint64_t *ret_taken, uint64_t *ret_lost)
{
	uint64_t counts[2];

	assert_int_equal(op_sys_read(fd, counts, sizeof(counts)), sizeof(counts));
	*ret_taken = counts[0];
	*ret_lost = counts[1];
}

/*
 * False where the kernel does not allow what the tests do. Then prints the reason to stdout, in the
 * form that the test driver expects.
 */
static inline bool kernel_events_allowed(void)
{
	struct op_ring_pair pair;
	int fd, err;

	err = op_ring_pair_open(sched_getcpu(), (size_t)sysconf(_SC_PAGESIZE), 1, &pair);
	if (err < 0) {
		printf("skip: a ring for a whole CPU is refused: %s\n", strerror(-err));
		return false;
	}
	op_ring_pair_close(&pair);
	fd = open_thread_event(PERF_COUNT_SW_PAGE_FAULTS, 1, sched_getcpu());
	if (fd < 0) {
		printf("skip: an event with PERF_FORMAT_LOST is refused: %s\n", strerror(-fd));
		return false;
	}
	close(fd);
	return true;
}

#endif
