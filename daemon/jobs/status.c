/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/jobs/status.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/events/event_list.h"
#include "pipeline/jit/space.h"
#include "pipeline/ledger/event_sums.h"
#include "pipeline/stacks/state.h"
#include "pipeline/stacks/tables.h"
#include "pipeline/waits/deep.h"
#include "pipeline/waits/source.h"

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
	bounds[OP_BOUND_mappings_dropped] = processes->account.mappings.nr_dropped;
	bounds[OP_BOUND_processes_dropped] = processes->nr_dropped;
	bounds[OP_BOUND_places_dropped] = processes->mount_views.nr_dropped;
	if (processes->mount_views.lookers) {
		bounds[OP_BOUND_looks_unanswered] = opd_lookers_nr_unanswered(processes->mount_views.lookers);
		bounds[OP_BOUND_helpers_ended] = opd_lookers_nr_ended(processes->mount_views.lookers);
	}
	bounds[OP_BOUND_memory_dropped] = pipeline->count.nr_memory_dropped;
	bounds[OP_BOUND_cgroups_forgotten] = pipeline->resolver.cgroups.nr_forgotten;
	bounds[OP_BOUND_programs_refused] = pipeline->count.nr_unnamed;
	bounds[OP_BOUND_process_names_skipped] = processes->nr_names_skipped;
	bounds[OP_BOUND_cgroup_slots_taken_back] = pipeline->resolver.cgroups.nr_taken_back;
	if (!pipeline->count.cookie_file)
		return;
	bounds[OP_BOUND_dcookie_errors] = opd_cookie_file_errors(pipeline->count.cookie_file, &last_error);
	bounds[OP_BOUND_dcookie_lines_damaged] = pipeline->count.cookie_file->nr_damaged_lines;
}

static int more_walks_first(const void *a, const void *b)
{
	uint64_t nr_a = ((const struct op_stack_stop *)a)->nr, nr_b = ((const struct op_stack_stop *)b)->nr;

	return (nr_a < nr_b) - (nr_a > nr_b);
}

static void fill_tables(const struct opd_pipeline *pipeline, struct op_status *status)
{
	struct opd_tables_counts counts;

	if (!pipeline->stacks || !pipeline->stacks->tables)
		return;
	opd_tables_get_counts(pipeline->stacks->tables, &counts);
	status->tables_made = counts.made;
	status->tables_from_cache = counts.from_cache;
	status->tables_failed = counts.failed;
	status->tables_waiting = counts.nr_waiting;
	status->bounds[OP_BOUND_helpers_ended] += counts.nr_ended;
	status->bounds[OP_BOUND_tables_crashed] = counts.crashed;
	status->bounds[OP_BOUND_tables_timed_out] = counts.timed_out;
	status->bounds[OP_BOUND_tables_uncached] = counts.uncached;
}

static void fill_stacks(const struct opd_pipeline *pipeline, struct op_status *status)
{
	const struct opd_capture *capture = &pipeline->capture;
	const struct op_dcookie_table *table = pipeline->resolver.table;
	struct op_stack_stop *to = status->stack_stops;

	status->stack_wanted_hz = capture->plan.stack_wanted_hz;
	status->stack_rate_hz = capture->plan.stack_rate_hz;
	status->stack_ring_bytes = capture->stack_ring_bytes;
	for (size_t i = 0; i < capture->nr_opened; i++)
		status->stack_bytes = op_max_u64(status->stack_bytes, capture->events[i].stack_bytes);
	if (!pipeline->stacks)
		return;
	status->stack_walks = pipeline->stacks->counts.nr_walks;
	status->stack_frames = pipeline->stacks->counts.nr_frames;
	status->stack_walk_ns = pipeline->stacks->counts.walk_ns;
	status->stacks_waiting = pipeline->stacks->queue.nr;
	for (size_t i = 0; i < OPD_STACKS_STOPS_MAX; i++) {
		const struct opd_stacks_stop *stop = &pipeline->stacks->stops[i];

		if (!stop->nr || !op_dcookie_has(table, stop->cookie))
			continue;
		snprintf(to->image, sizeof(to->image), "%s", op_dcookie_row(table, stop->cookie)->id.name.name);
		to->end = stop->end;
		to++->nr = stop->nr;
	}
	qsort(status->stack_stops, (size_t)(to - status->stack_stops), sizeof(*to), more_walks_first);
}

static void fill_rings(const struct opd_recording *recording, const struct op_config *config, struct op_status *status)
{
	const struct opd_capture *capture = &recording->pipeline->capture;
	const struct opd_visit_counts *counts = &recording->visits.counts;

	status->ring_bytes = capture->ring_bytes;
	status->ring_is_auto = !config->ring_bytes;
	status->ring_need_bytes = capture->plan.need_bytes;
	status->swap_threads = capture->plan.nr_threads;
	status->event_wait_ns = capture->plan.wait_ns;
	status->turn_planned_ns = capture->plan.turn_ns;
	status->visits = counts->nr_visits;
	status->visits_ns = counts->visits_ns;
	status->swapping_ns = counts->swapping_ns;
	status->turns = counts->nr_turns;
	status->turn_ns = counts->last_turn_ns;
	status->turn_longest_ns = counts->longest_turn_ns;
	status->rescan_left = opd_rescan_left(&recording->visits.rescan);
}

/* Events of the memory view have no ledger. */
static size_t nr_ledger_events(const struct opd_capture *capture)
{
	size_t nr = 0;

	for (size_t i = 0; i < capture->nr_events; i++)
		nr += capture->events[i].role != OP_EVENT_MEMORY;
	return nr;
}

static void fill_status(struct opd_recording *recording, const struct op_config *config, const struct op_status *fixed,
			struct op_status *status)
{
	struct opd_pipeline *pipeline = recording->pipeline;
	struct opd_minutes_state minutes;
	uint64_t now_ns = op_now_ns();

	*status = *fixed;
	status->state = pipeline->capture.enabled ? OP_DAEMON_RUNNING : OP_DAEMON_PAUSED;
	status->nr_events = (uint32_t)nr_ledger_events(&pipeline->capture);
	status->nr_cpus = (uint32_t)pipeline->capture.nr_cpus;
	status->uptime_ns = now_ns - recording->begin_ns;
	status->running_ns = recording->running_ns + (pipeline->capture.enabled ? now_ns - recording->running_since_ns : 0);
	status->cpu_ns = op_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	status->rss_bytes = rss_bytes();
	status->nr_files = pipeline->count.open.nr;
	status->nr_session_files = pipeline->count.limit.nr;
	status->max_session_files = pipeline->count.limit.max;
	status->nr_processes = pipeline->resolver.processes.by_pid.nr_entries;
	status->nr_images = op_dcookie_count(pipeline->resolver.table);
	status->nr_images_counted = op_dcookie_nr_counted(pipeline->resolver.table);
	status->dumps = recording->dumps.nr_done;
	fill_bounds(pipeline, status->bounds);
	opd_minutes_state(&recording->minutes, &minutes);
	status->bounds[OP_BOUND_minutes_lost] = minutes.nr_lost + recording->timeline.nr_no_memory;
	status->bounds[OP_BOUND_minutes_lengthened] = recording->timeline.nr_late;
	status->bounds[OP_BOUND_sessions_not_written] = opd_unwritten_count(&recording->dumps.unwritten);
	for (size_t kind = 0; kind < OP_IBS_NR_KINDS; kind++)
		op_ibs_stats_add(status->ibs, &pipeline->ibs.counts[kind]);
	memcpy(status->jit, pipeline->resolver.jit->counters, sizeof(status->jit));
	status->jit[OP_JIT_failed_objects] += pipeline->count.nr_failed_objects;
	status->maps_reread = pipeline->resolver.nr_rereads;
	status->nr_programs = op_dcookie_nr_programs(pipeline->resolver.table);
	status->nr_cgroups = pipeline->resolver.cgroups.nr_slots;
	status->not_split = pipeline->resolver.cgroups.not_split;
	status->of_unknown_cgroups = pipeline->resolver.cgroups.of_unknown;
	memcpy(status->arcs, pipeline->count.arcs, sizeof(status->arcs));
	fill_stacks(pipeline, status);
	fill_tables(pipeline, status);
	if (pipeline->waits)
		status->wait_quantum_ns = opd_waits_sum(pipeline->waits, &status->waits);
	if (pipeline->deep)
		opd_deep_sum(pipeline->deep, status->deep);
	if (pipeline->stacks && pipeline->stacks->runtimes)
		opd_runtimes_add_counts(pipeline->stacks->runtimes, status->runtimes);
	if (pipeline->interpreters)
		opd_interpreters_add_counts(pipeline->interpreters, status->runtimes);
	fill_rings(recording, config, status);
	snprintf(status->kernel_note, sizeof(status->kernel_note), "%s", pipeline->resolver.kernel.note);
}

int opd_status_make(struct opd_recording *recording, const struct op_config *config, const struct op_status *fixed,
		    struct opd_job *job)
{
	const struct opd_capture *capture = &recording->pipeline->capture;
	size_t events_at = sizeof(struct op_status);
	size_t cpus_at = events_at + nr_ledger_events(capture) * sizeof(struct op_ledger_event);
	size_t nr_bytes = cpus_at + capture->nr_cpus * sizeof(struct op_ledger_cpu);
	uint8_t *payload = calloc(1, nr_bytes);
	struct op_ledger_event *events;

	if (!payload)
		return -ENOMEM;
	fill_status(recording, config, fixed, (struct op_status *)(void *)payload);
	events = (struct op_ledger_event *)(void *)(payload + events_at);
	for (size_t i = 0; i < capture->nr_events; i++)
		if (capture->events[i].role != OP_EVENT_MEMORY)
			opd_sum_event(capture, i, events++);
	for (size_t i = 0; i < capture->nr_cpus; i++)
		opd_sum_cpu(capture, &capture->cpus[i], (struct op_ledger_cpu *)(void *)(payload + cpus_at) + i);
	job->payload = payload;
	job->payload_bytes = nr_bytes;
	return 0;
}

int opd_pulse_make(const struct opd_capture *capture, struct opd_job *job)
{
	struct opd_pulse *pulse = calloc(1, sizeof(*pulse));

	if (!pulse)
		return -ENOMEM;
	pulse->now_ns = op_now_ns();
	pulse->profiling = capture->enabled;
	for (size_t i = 0; i < capture->nr_cpus; i++)
		pulse->nr_cpus += capture->cpus[i].online;
	for (size_t i = 0; i < capture->nr_events; i++) {
		struct op_ledger_event sum;

		opd_sum_event(capture, i, &sum);
		if (op_event_is_time(sum.role))
			continue; /* no samples */
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
