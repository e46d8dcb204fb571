/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A second opinion on page faults: its own period-1 page-fault event on each online CPU, each with
 * a ring of its own that is large, read now and then and never swapped. Prints "ready", and when
 * its standard input ends, what the kernel counted, sampled and lost:
 *
 *   counted N sampled N lost N
 *
 * counted - sampled - lost is what the kernel counts without taking a sample, for every page-fault
 * event of the CPU alike.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/compiler.h"

#define RING_BYTES_MAX (64u << 20)
#define RINGS_BYTES    (512u << 20) /* together, about: the kernel does not swap them out */
#define CPUS_MAX 1024
#define READ_MS 200

static uint32_t ring_bytes = RING_BYTES_MAX;

struct eye {
	int fd;
	struct perf_event_mmap_page *control;
	uint64_t sampled;
};

static int open_eye(int cpu, size_t page_bytes, struct eye *eye)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP,
		.read_format = PERF_FORMAT_LOST,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	void *map;

	eye->fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (eye->fd < 0)
		return -errno;
	map = mmap(NULL, page_bytes + ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, eye->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	eye->control = map;
	return ioctl(eye->fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

/*
 * Counts the new records in the ring and gives their room back. A header never crosses the end of
 * the ring: records are aligned to its length.
 */
static void read_samples(struct eye *eye, size_t page_bytes)
{
	const uint8_t *data = (const uint8_t *)eye->control + page_bytes;
	uint64_t head = __atomic_load_n(&eye->control->data_head, __ATOMIC_ACQUIRE), at = eye->control->data_tail;

	while (at < head) {
		const struct perf_event_header *header = (const void *)(data + at % ring_bytes);

		eye->sampled += header->type == PERF_RECORD_SAMPLE;
		at += header->size;
	}
	__atomic_store_n(&eye->control->data_tail, at, __ATOMIC_RELEASE);
}

static bool input_has_ended(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char byte;

	return poll(&input, 1, READ_MS) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(void)
{
	static struct eye eyes[CPUS_MAX];
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), nr = 0;
	int nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	uint64_t counts[2], counted = 0, sampled = 0, lost = 0;

	while (ring_bytes > page_bytes && (uint64_t)ring_bytes * nr_cpus > RINGS_BYTES)
		ring_bytes /= 2;
	for (int cpu = 0; cpu < nr_cpus && nr < CPUS_MAX; cpu++) {
		int err = open_eye(cpu, page_bytes, &eyes[nr]);

		if (err == -ENODEV)
			continue; /* offline */
		if (err) {
			fprintf(stderr, "fault_oracle: CPU %d: %s\n", cpu, strerror(-err));
			return 1;
		}
		nr++;
	}
	puts("ready");
	fflush(stdout);
	while (!input_has_ended())
		for (size_t i = 0; i < nr; i++)
			read_samples(&eyes[i], page_bytes);
	for (size_t i = 0; i < nr; i++)
		ioctl(eyes[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL); /* the last handlers end */
	for (size_t i = 0; i < nr; i++) {
		if (read(eyes[i].fd, counts, sizeof(counts)) != sizeof(counts))
			return 1;
		counted += counts[0];
		lost += counts[1];
		read_samples(&eyes[i], page_bytes);
		sampled += eyes[i].sampled;
	}
	printf("counted %llu sampled %llu lost %llu\n", (unsigned long long)counted, (unsigned long long)sampled,
	       (unsigned long long)lost);
	return 0;
}
