/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/memory_source.h"

#include <errno.h>
#include <sys/epoll.h>

#include "libop/events/event_list.h"

static void memory_fds(const struct opd_cpu *cpu, struct opd_source_fds *ret_fds)
{
	*ret_fds = (struct opd_source_fds){
		.samples = { cpu->memory.wake_fd, -1 },
		.stacks = { -1, -1 },
		.sideband = cpu->memory.sideband_wake_fd,
	};
}

static uint64_t memory_pending(const struct opd_cpu *cpu)
{
	return op_ring_pending(&cpu->memory.reader.rings[0]) + op_ring_pending(&cpu->memory.reader.rings[1]);
}

static int memory_swap(struct opd_cpu *cpu)
{
	int err = op_mring_pair_swap(&cpu->memory.reader);

	if (!err)
		cpu->pair.counts.swaps++;
	return err;
}

static struct op_ring *memory_read_ring(struct opd_cpu *cpu)
{
	return op_mring_pair_read_ring(&cpu->memory.reader);
}

/*
 * A wake-up is a write to an eventfd. With EPOLLET no thread has to read the eventfd, and no
 * wake-up is missed.
 */
const struct opd_source opd_source_memory = {
	.epoll_events = EPOLLIN | EPOLLET,
	.fds = memory_fds,
	.pending = memory_pending,
	.swap = memory_swap,
	.read_ring = memory_read_ring,
};

static void abandon_memory(struct opd_cpu *cpu)
{
	op_mring_pair_reader_close(&cpu->memory.reader);
	free(cpu->events);
	cpu->events = NULL;
}

static int open_memory(struct opd_cpu *cpu, const struct opd_memory_cpu *from, size_t nr_events, size_t nr_opened)
{
	int err;

	*cpu = (struct opd_cpu){
		.cpu = from->cpu,
		.source = &opd_source_memory,
		.pair.anchor_fds = { -1, -1 },
		.sideband_fd = -1,
		.memory = { .wake_fd = from->pair->rings[0].wake_fd, .sideband_wake_fd = from->sideband->wake_fd },
		.events = calloc(nr_events, sizeof(*cpu->events)),
	};
	if (!cpu->events)
		return -ENOMEM;
	for (size_t e = 0; e < nr_events; e++) {
		cpu->events[e].fd = -1;
		cpu->events[e].id = e < nr_opened ? from->ids[e] : 0;
	}
	err = op_mring_pair_reader_open(from->pair, &cpu->memory.reader);
	if (!err)
		err = op_mring_reader(from->sideband, &cpu->sideband);
	if (err)
		abandon_memory(cpu);
	cpu->online = !err;
	return err;
}

int opd_capture_open_memory(struct opd_capture *capture, const struct op_event *events, size_t nr_events,
			    const struct opd_memory_cpu *cpus, size_t nr_cpus)
{
	struct opd_capture opened = {
		.events = events,
		.nr_events = nr_events,
		.nr_opened = op_event_nr_opened(events, nr_events),
	};
	int err = 0;

	for (size_t e = 0; e < nr_events; e++)
		if (events[e].every_event)
			return -EINVAL;
	opened.cpus = calloc(nr_cpus, sizeof(*opened.cpus));
	if (!opened.cpus)
		return -ENOMEM;
	for (; !err && opened.nr_cpus < nr_cpus; opened.nr_cpus++)
		err = open_memory(&opened.cpus[opened.nr_cpus], &cpus[opened.nr_cpus], nr_events, opened.nr_opened);
	if (err) {
		opd_capture_close(&opened);
		return err;
	}
	opened.nr_online = nr_cpus;
	*capture = opened;
	return 0;
}

int opd_capture_add_memory(struct opd_capture *capture, const struct opd_memory_cpu *cpu)
{
	struct opd_cpu *cpus = realloc(capture->cpus, (capture->nr_cpus + 1) * sizeof(*cpus));
	int err;

	if (!cpus)
		return -ENOMEM;
	capture->cpus = cpus;
	err = open_memory(&cpus[capture->nr_cpus], cpu, capture->nr_events, capture->nr_opened);
	if (err)
		return err;
	capture->nr_cpus++;
	capture->nr_online++;
	return 0;
}
