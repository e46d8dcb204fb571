/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/capture/cpu_rings.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/perf/record.h"

uint64_t opd_capture_sample_type(const struct opd_capture *capture, const struct op_event *event)
{
	uint64_t sample_type = capture->with_cgroup || event->with_cgroup ? OP_SAMPLE_TYPE_CGROUP : OP_SAMPLE_TYPE;

	if (event->role == OP_EVENT_SAMPLER)
		sample_type = OP_SAMPLE_TYPE_IBS(capture->with_cgroup);
	if (event->role == OP_EVENT_WAITS)
		sample_type |= PERF_SAMPLE_RAW;
	if (event->stack_bytes || event->has_stack)
		sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	return op_event_has_stack(event) || opd_capture_has_chain(capture, event) ? sample_type | PERF_SAMPLE_CALLCHAIN
										  : sample_type;
}

static void close_task_fds(struct opd_task_fds *tasks)
{
	for (size_t i = 0; i < tasks->nr; i++)
		close(tasks->fds[i]);
	free(tasks->fds);
	free(tasks->ids);
	*tasks = (struct opd_task_fds){ .fds = NULL };
}

void opd_cpu_close_rings(struct opd_cpu *cpu, size_t nr_events)
{
	for (size_t e = 0; cpu->events && e < nr_events; e++) {
		if (cpu->events[e].fd >= 0)
			close(cpu->events[e].fd);
		cpu->events[e].fd = -1;
		close_task_fds(&cpu->events[e].more);
	}
	close_task_fds(&cpu->tracking);
	if (cpu->notes_id)
		close(cpu->notes_fd);
	cpu->notes_id = 0;
	op_ring_pair_close(&cpu->pair);
	if (opd_cpu_has_stack_pair(cpu))
		op_ring_pair_close(&cpu->stack_pair);
	op_mring_pair_reader_close(&cpu->memory.reader);
	op_ring_unmap(&cpu->sideband);
	if (cpu->sideband_fd >= 0)
		close(cpu->sideband_fd);
	cpu->sideband_fd = -1;
}

/* read_format of perf_event_open(2). Without PERF_FORMAT_LOST, `lost` is not there. */
struct descriptor_counts {
	uint64_t value, time_enabled, time_running, lost;
};

static int add_counts(const struct opd_capture *capture, int fd, struct opd_counts *sum)
{
	struct descriptor_counts counts = { 0 };
	size_t want = capture->has_format_lost ? sizeof(counts) : offsetof(struct descriptor_counts, lost);
	ssize_t nr = op_sys_read(fd, &counts, want);

	if (nr < 0)
		return (int)nr;
	if ((size_t)nr != want)
		return -EIO;
	sum->taken += counts.value;
	sum->lost += counts.lost;
	sum->enabled_ns += counts.time_enabled;
	sum->counted_ns += counts.time_running;
	return 0;
}

/* Leaves *ret_counts alone when a descriptor cannot be read. */
static void read_counts(const struct opd_capture *capture, const struct opd_event *event, struct opd_counts *ret_counts)
{
	struct opd_counts counts = { 0 };
	int err = add_counts(capture, event->fd, &counts);

	for (size_t i = 0; !err && i < event->more.nr; i++)
		err = add_counts(capture, event->more.fds[i], &counts);
	if (err)
		return;
	/*
	 * PERF_FORMAT_LOST counts at the moment of a loss, for the event that lost. LOST records
	 * have the same sum in the end, but each one is written only when its ring has room again
	 * and an event comes, and names that event. Neither includes LOST_SAMPLES, which the kernel
	 * drops before it asks a ring for room.
	 */
	counts.lost = (capture->has_format_lost ? counts.lost : event->lost_records) + event->lost_samples;
	*ret_counts = counts;
}

/* The sum of the LOST records, for an event whose descriptor counts no losses. */
static uint64_t recorded_lost(const struct opd_event *event)
{
	return event->lost_records + event->lost_samples;
}

void opd_capture_counts(const struct opd_capture *capture, const struct opd_event *event, struct opd_counts *ret_counts)
{
	const struct opd_counts *base = &event->base, *before = &event->before;
	struct opd_counts now = *base;

	/* A closed descriptor has no counts: LOST records may have some. */
	if (event->fd >= 0)
		read_counts(capture, event, &now);
	else
		now.lost = recorded_lost(event);
	*ret_counts = (struct opd_counts){
		.taken = before->taken + now.taken - base->taken,
		.lost = before->lost + now.lost - base->lost,
		.enabled_ns = before->enabled_ns + now.enabled_ns - base->enabled_ns,
		.counted_ns = before->counted_ns + now.counted_ns - base->counted_ns,
	};
}

static uint64_t nr_dropped(int fd)
{
	struct descriptor_counts counts;

	return fd >= 0 && op_sys_read(fd, &counts, sizeof(counts)) == sizeof(counts) ? counts.lost : 0;
}

uint64_t opd_capture_sideband_dropped(const struct opd_cpu *cpu)
{
	uint64_t nr = nr_dropped(cpu->sideband_fd);

	for (size_t i = 0; i < cpu->tracking.nr; i++)
		nr += nr_dropped(cpu->tracking.fds[i]);
	return nr;
}

static void reset_event(const struct opd_capture *capture, struct opd_event *event)
{
	struct opd_event fresh = {
		.fd = event->fd,
		.id = event->id,
		.more = event->more,
		.lost_records = event->lost_records,
		.lost_samples = event->lost_samples,
	};

	if (fresh.fd < 0) {
		fresh.base.lost = recorded_lost(event);
	} else {
		fresh.base = event->base;
		read_counts(capture, event, &fresh.base);
	}
	*event = fresh;
}

void opd_capture_reset_ledger(struct opd_capture *capture)
{
	for (size_t c = 0; c < capture->nr_cpus; c++) {
		struct opd_cpu *cpu = &capture->cpus[c];

		for (size_t e = 0; e < capture->nr_events; e++)
			reset_event(capture, &cpu->events[e]);
		cpu->sideband_bytes = cpu->sideband_lost = 0;
		cpu->pair.counts = cpu->stack_pair.counts = cpu->counts_before = (struct op_swap_counts){ 0 };
	}
}

void opd_capture_cpu_close(struct opd_capture *capture, struct opd_cpu *cpu)
{
	for (size_t e = 0; e < capture->nr_events; e++) {
		struct opd_event *event = &cpu->events[e];

		opd_capture_counts(capture, event, &event->before);
		event->base = (struct opd_counts){ 0 };
		event->lost_records = event->lost_samples = 0;
	}
	op_swap_counts_add(&cpu->counts_before, &cpu->stack_pair.counts);
	op_swap_counts_add(&cpu->counts_before, &cpu->pair.counts);
	opd_cpu_close_rings(cpu, capture->nr_events);
	cpu->online = false;
	capture->nr_online--;
}

void opd_capture_close(struct opd_capture *capture)
{
	for (size_t c = 0; capture->cpus && c < capture->nr_cpus; c++) {
		opd_cpu_close_rings(&capture->cpus[c], capture->nr_events);
		free(capture->cpus[c].events);
	}
	free(capture->cpus);
	*capture = (struct opd_capture){ 0 };
}
