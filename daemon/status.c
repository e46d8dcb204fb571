/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `opcontrol --status` shows: the ledger, summed up for the control protocol. */
#include <errno.h>
#include <unistd.h>

#include "daemon/jit/code.h"
#include "daemon/sync.h"
#include "daemon/unwritten.h"
#include "libop/base/clock.h"
#include "libop/events/event_list.h"

static uint64_t rss_bytes(void)
{
	unsigned long long size, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Time in throttling up to now, also when it has not ended. */
static uint64_t throttled_ns(const struct opd_event *event, uint64_t now_ns)
{
	uint64_t open_ns = event->throttled_since_ns && now_ns > event->throttled_since_ns ? now_ns - event->throttled_since_ns : 0;

	return event->throttled_ns + open_ns;
}

static void add_event(const struct opd_capture *capture, const struct opd_event *event, struct op_ledger_event *sum)
{
	uint64_t taken, lost;

	opd_capture_counts(capture, event, &taken, &lost);
	sum->taken += taken;
	sum->lost_kernel += lost;
	sum->received += event->received;
	sum->stored += event->stored;
	sum->unattributed += event->unattributed;
	sum->filtered += event->filtered;
	sum->throttled_ns += throttled_ns(event, op_now_ns());
	sum->nr_throttles += event->nr_throttles;
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		sum->lost[i] += event->lost[i];
}

void opd_sync_sum_event(const struct opd_capture *capture, size_t index, struct op_ledger_event *ret_event)
{
	const struct op_event *event = &capture->events[index];
	struct op_ledger_event sum = { .count = event->count, .unit_mask = event->unit_mask, .every_event = event->every_event, .role = event->role };

	snprintf(sum.name, sizeof(sum.name), "%s", event->name);
	for (size_t c = 0; c < capture->nr_cpus; c++)
		add_event(capture, &capture->cpus[c].events[index], &sum);
	/* Only where each event is a sample does the kernel's count say how many samples there were. */
	if (!event->every_event)
		sum.taken = sum.received + sum.lost_kernel;
	if (sum.taken > sum.received + sum.lost_kernel)
		sum.outstanding = sum.taken - sum.received - sum.lost_kernel;
	*ret_event = sum;
}

void opd_sync_sum_losses(const struct opd_capture *capture, struct opd_losses *ret_losses)
{
	struct opd_losses losses = { 0 };

	for (size_t e = 0; e < capture->nr_events; e++) {
		struct op_ledger_event sum;

		opd_sync_sum_event(capture, e, &sum);
		losses.kernel += sum.lost_kernel;
		for (size_t i = 0; i < OP_NR_LOSS; i++)
			losses.lost[i] += sum.lost[i];
	}
	*ret_losses = losses;
}

static uint64_t damaged(const struct opd_cpu *cpu)
{
	return cpu->pair.rings[0].damaged + cpu->pair.rings[1].damaged + cpu->memory.reader.rings[0].damaged +
	       cpu->memory.reader.rings[1].damaged + cpu->sideband.damaged;
}

static void sum_cpu(const struct opd_capture *capture, const struct opd_cpu *cpu, struct op_ledger_cpu *sum)
{
	struct op_swap_counts counts = cpu->counts_before;

	op_swap_counts_add(&counts, &cpu->pair.counts);
	*sum = (struct op_ledger_cpu){
		.cpu = cpu->cpu,
		.online = cpu->online,
		.swaps = counts.swaps,
		.swap_wait_ns = counts.wait_ns,
		.swap_longest_ns = counts.longest_wait_ns,
		.bytes_read = counts.bytes,
		.records_read = counts.records,
		.turn_bytes = counts.last_bytes,
		.turn_records = counts.last_records,
		.turn_most_bytes = counts.most_bytes,
		.turn_most_records = counts.most_records,
		.sideband_bytes = cpu->sideband_bytes,
		.sideband_lost = cpu->sideband_lost,
		.late = counts.late,
		.damaged = damaged(cpu),
	};
	for (size_t e = 0; e < capture->nr_events; e++) {
		struct op_ledger_event event = { 0 };

		if (!op_event_is_taken(capture->events[e].role))
			continue;
		add_event(capture, &cpu->events[e], &event);
		sum->received += event.received;
		sum->lost_kernel += event.lost_kernel;
		sum->throttled_ns += event.throttled_ns;
		for (size_t i = 0; i < OP_NR_LOSS; i++)
			sum->lost[i] += event.lost[i];
	}
}

static void fill_bounds(struct opd_pipeline *pipeline, uint64_t bounds[OP_NR_BOUNDS])
{
	const struct opd_processes *processes = &pipeline->resolver.processes;
	int last_error;

	bounds[OP_BOUND_too_many_images] = pipeline->count.nr_too_many;
	bounds[OP_BOUND_too_many_sample_files] = pipeline->count.limit.nr_samples[OPD_FILE_OF_IMAGE];
	bounds[OP_BOUND_classes_merged] = pipeline->count.limit.nr_samples[OPD_FILE_OF_CLASS];
	bounds[OP_BOUND_images_refused] = op_dcookie_nr_refused(pipeline->resolver.table);
	bounds[OP_BOUND_images_forgotten] = pipeline->resolver.forgetting.nr_forgotten;
	bounds[OP_BOUND_files_forgotten] = pipeline->count.nr_forgotten;
	bounds[OP_BOUND_mappings_dropped] = processes->account.nr_dropped;
	bounds[OP_BOUND_processes_dropped] = processes->nr_dropped;
	bounds[OP_BOUND_places_dropped] = processes->places.nr_dropped;
	bounds[OP_BOUND_memory_dropped] = pipeline->count.nr_memory_dropped;
	bounds[OP_BOUND_cgroups_forgotten] = pipeline->resolver.cgroups.nr_forgotten;
	bounds[OP_BOUND_cgroup_slots_taken_back] = pipeline->resolver.cgroups.nr_taken_back;
	if (!pipeline->count.cookie_file)
		return;
	bounds[OP_BOUND_dcookie_errors] = opd_cookie_file_errors(pipeline->count.cookie_file, &last_error);
	bounds[OP_BOUND_dcookie_lines_damaged] = pipeline->count.cookie_file->nr_damaged_lines;
}

static void fill_rings(const struct opd_sync *sync, struct op_status *status)
{
	const struct opd_capture *capture = &sync->pipeline->capture;

	status->ring_bytes = capture->ring_bytes;
	status->ring_is_auto = !sync->config->ring_bytes;
	status->ring_need_bytes = capture->plan.need_bytes;
	status->swap_threads = capture->plan.nr_threads;
	status->event_wait_ns = capture->plan.wait_ns;
	status->turn_planned_ns = capture->plan.turn_ns;
	status->visits = sync->visits.counts.nr_visits;
	status->visits_ns = sync->visits.counts.visits_ns;
	status->swapping_ns = sync->visits.counts.swapping_ns;
	status->turns = sync->visits.counts.nr_turns;
	status->turn_ns = sync->visits.counts.last_turn_ns;
	status->turn_longest_ns = sync->visits.counts.longest_turn_ns;
}

/* Nobody is told of the memory view's: it has no ledger. */
static size_t nr_events_told(const struct opd_capture *capture)
{
	size_t nr = 0;

	for (size_t i = 0; i < capture->nr_events; i++)
		nr += capture->events[i].role != OP_EVENT_MEMORY;
	return nr;
}

static void fill_status(struct opd_sync *sync, struct op_status *status)
{
	const struct opd_pipeline *pipeline = sync->pipeline;
	uint64_t now_ns = op_now_ns();

	*status = *sync->status;
	status->state = pipeline->capture.enabled ? OP_DAEMON_RUNNING : OP_DAEMON_PAUSED;
	status->nr_events = (uint32_t)nr_events_told(&pipeline->capture);
	status->nr_cpus = (uint32_t)pipeline->capture.nr_cpus;
	status->uptime_ns = now_ns - sync->begin_ns;
	status->running_ns = sync->running_ns + (pipeline->capture.enabled ? now_ns - sync->running_since_ns : 0);
	status->cpu_ns = op_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	status->rss_bytes = rss_bytes();
	status->nr_files = pipeline->count.open.nr;
	status->nr_session_files = pipeline->count.limit.nr;
	status->max_session_files = pipeline->count.limit.max;
	status->nr_processes = pipeline->resolver.processes.by_pid.nr_entries;
	status->nr_images = op_dcookie_count(pipeline->resolver.table);
	status->nr_images_counted = op_dcookie_nr_counted(pipeline->resolver.table);
	status->dumps = sync->dumps;
	fill_bounds(sync->pipeline, status->bounds);
	status->bounds[OP_BOUND_sessions_not_written] = opd_unwritten_count(sync);
	for (size_t kind = 0; kind < OP_IBS_NR_KINDS; kind++)
		op_ibs_stats_add(status->ibs, &pipeline->ibs.counts[kind]);
	memcpy(status->jit, pipeline->resolver.jit->counters, sizeof(status->jit));
	status->jit[OP_JIT_failed_objects] += pipeline->count.nr_failed_objects;
	status->maps_reread = pipeline->resolver.nr_rereads;
	status->nr_cgroups = pipeline->resolver.cgroups.nr_slots;
	status->not_split = pipeline->resolver.cgroups.not_split;
	status->of_unknown_cgroups = pipeline->resolver.cgroups.of_unknown;
	memcpy(status->arcs, pipeline->count.arcs, sizeof(status->arcs));
	fill_rings(sync, status);
	snprintf(status->kernel_note, sizeof(status->kernel_note), "%s", pipeline->resolver.kernel.note);
}

int opd_sync_make_status(struct opd_sync *sync, struct opd_job *job)
{
	const struct opd_capture *capture = &sync->pipeline->capture;
	size_t events_at = sizeof(struct op_status);
	size_t cpus_at = events_at + nr_events_told(capture) * sizeof(struct op_ledger_event);
	size_t nr_bytes = cpus_at + capture->nr_cpus * sizeof(struct op_ledger_cpu);
	uint8_t *payload = calloc(1, nr_bytes);
	struct op_ledger_event *events;

	if (!payload)
		return -ENOMEM;
	fill_status(sync, (struct op_status *)(void *)payload);
	events = (struct op_ledger_event *)(void *)(payload + events_at);
	for (size_t i = 0; i < capture->nr_events; i++)
		if (capture->events[i].role != OP_EVENT_MEMORY)
			opd_sync_sum_event(capture, i, events++);
	for (size_t i = 0; i < capture->nr_cpus; i++)
		sum_cpu(capture, &capture->cpus[i], (struct op_ledger_cpu *)(void *)(payload + cpus_at) + i);
	job->payload = payload;
	job->payload_bytes = nr_bytes;
	return 0;
}

int opd_sync_make_pulse(struct opd_sync *sync, struct opd_job *job)
{
	const struct opd_capture *capture = &sync->pipeline->capture;
	struct opd_pulse *pulse = calloc(1, sizeof(*pulse));

	if (!pulse)
		return -ENOMEM;
	pulse->now_ns = op_now_ns();
	pulse->profiling = capture->enabled;
	for (size_t i = 0; i < capture->nr_cpus; i++)
		pulse->nr_cpus += capture->cpus[i].online;
	for (size_t i = 0; i < capture->nr_events; i++) {
		struct op_ledger_event sum;

		opd_sync_sum_event(capture, i, &sum);
		pulse->taken += sum.taken;
		pulse->stored += sum.stored;
		pulse->filtered += sum.filtered;
		pulse->lost_kernel += sum.lost_kernel;
		pulse->lost += op_ledger_lost(&sum);
	}
	job->payload = pulse;
	job->payload_bytes = sizeof(*pulse);
	return 0;
}
