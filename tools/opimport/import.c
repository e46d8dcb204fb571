/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opimport/import.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"
#include "pipeline/drive/sources.h"
#include "pipeline/drive/stack_records.h"
#include "pipeline/ledger/event_sums.h"
#include "pipeline/timeline/by_time.h"
#include "tools/opimport/backlog.h"
#include "tools/opimport/cpu_table.h"
#include "tools/opimport/event_match.h"

#define MEMORY_BYTES     ((size_t)64 * 1024 * 1024)
#define PRUNE_NS         OP_NS_PER_S
#define MAX_CLOSED_FILES 65536u

struct opi_import {
	struct opi_import_config config;
	struct opd_pipeline pipeline;
	struct op_session_files files; /* set when they are complete */
	struct op_event_list events;   /* empty before the first sample */
	struct opd_tables *tables;     /* for stacks; NULL: no event has them */
	struct opd_by_time by_time;
	int timeline_error;            /* why there is no timeline */
	uint64_t *ids;
	struct opi_cpu_table cpus;
	struct opi_backlog backlog;
	size_t round_start; /* records for rings that waited when the round began */
	uint64_t newest_ns, round_ns, counted_ns, pruned_ns;
	uint64_t nr_late, nr_unordered, nr_unannounced, nr_unknown, nr_lost_unknown;
	uint64_t lost_again[OP_PERF_EVENTS_MAX]; /* by LOST records; used when perf wrote no sums */
	bool has_sums;
	size_t nr_announced; /* events when the first sample was counted */
	/* of their samples at that time: enum op_ibs_kind + 1; 0: no registers */
	uint8_t *kinds;
};

/* ---- opening ---- */

int opi_import_open(const struct opi_import_config *config, struct opi_import **ret_import)
{
	struct opi_import *import = calloc(1, sizeof(*import));
	int err;

	if (!import)
		return -ENOMEM;
	import->config = *config;
	import->config.stacks.stop = config->stop;
	opi_backlog_init(&import->backlog, config->session_fd, config->memory_bytes ? config->memory_bytes : MEMORY_BYTES);
	err = opd_pipeline_open(&import->pipeline, &(struct opd_pipeline_config){
							   .session_fd = config->session_fd,
							   .vmlinux = config->vmlinux,
							   .max_images = config->max_images,
							   .is_foreign = true,
							   .separate_lib = config->separate_lib,
							   .separate_kernel = config->separate_kernel,
							   .separate_thread = config->separate_thread,
							   .separate_cpu = config->separate_cpu,
							   .separate_name = config->separate_name,
							   .max_open = config->max_open,
							   .max_closed = MAX_CLOSED_FILES,
							   .max_files = config->max_files,
							   .max_stack_bytes = config->max_stack_bytes,
							   .bytes_of = "SessionKeepFree",
						   });
	if (err) {
		opi_backlog_free(&import->backlog);
		free(import);
		return err;
	}
	import->pipeline.resolver.witness = config->witness;
	*ret_import = import;
	return 0;
}

int opi_import_name_kernel(struct opi_import *import, const char *vmlinux)
{
	import->config.stacks.is_own_kernel = true;
	return opd_kernel_map_name_foreign(&import->pipeline.resolver.kernel, vmlinux);
}

static uint8_t kind_of(const struct op_perf_features *features, const struct op_perf_event *event)
{
	enum op_ibs_kind kind;

	return op_perf_is_ibs(features, event, &kind) ? (uint8_t)(kind + 1) : 0;
}

/* At the first sample: its events are known. */
static int open_events(struct opi_import *import, const struct op_perf_events *events)
{
	struct opd_pipeline *pipeline = &import->pipeline;
	int err = opi_events_match(events, import->config.features, import->config.stop, &pipeline->ibs.cpu, &import->events);

	if (err)
		return err;
	import->nr_announced = events->nr_events;
	import->ids = calloc(events->nr_events + 1, sizeof(*import->ids));
	import->kinds = calloc(events->nr_events + 1, sizeof(*import->kinds));
	if (!import->ids || !import->kinds)
		return -ENOMEM;
	for (size_t i = 0; i < events->nr_events; i++) {
		import->ids[i] = i + 1;
		import->kinds[i] = kind_of(import->config.features, &events->events[i]);
	}
	pipeline->count.events = import->events.events;
	pipeline->count.nr_events = import->events.nr_events;
	pipeline->count.limit.nr_last_max = import->events.nr_events;
	err = opi_cpu_table_open(&import->cpus, pipeline, import->events.events, import->events.nr_events, import->ids);
	pipeline->capture.callgraph = OP_CHAIN_DEPTH_MAX;
	if (!err)
		err = opi_stacks_open(pipeline, events, import->config.features, &import->config.stacks, &import->tables);
	if (!err)
		err = opd_ledger_open(&pipeline->ledger, import->config.session_fd, &pipeline->capture, false);
	if (err)
		return err;
	opd_ledger_begin(&pipeline->ledger);
	pipeline->count.ledger = &pipeline->ledger;
	return opd_by_time_open(&import->by_time, &pipeline->count, import->tables, &pipeline->ledger);
}

/* The session may use all free bytes but keep_free_bytes. Others write there, too. */
static void update_limit(struct opi_import *import)
{
	struct opd_file_limit *limit = &import->pipeline.count.limit;
	uint64_t keep_bytes = import->config.keep_free_bytes, free_bytes;
	struct statvfs vfs;

	if (!keep_bytes || op_sys_statvfs(import->config.session_fd, &vfs) < 0)
		return;
	free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	free_bytes -= op_min_u64(free_bytes, keep_bytes);
	opd_file_limit_give(limit, op_max_u64(opd_file_limit_bytes(limit) + free_bytes, 1));
}

/* ---- counting ---- */

static int put(void *arg, uint32_t cpu, const struct perf_event_header *record)
{
	struct opi_import *import = arg;

	if (op_unlikely(op_stop_is_set(import->config.stop)))
		return -EINTR;
	return opi_cpu_table_put(&import->cpus, cpu, record);
}

static int put_sideband(void *arg, uint32_t cpu OP_UNUSED, const struct perf_event_header *record)
{
	struct opi_import *import = arg;

	if (op_unlikely(op_stop_is_set(import->config.stop)))
		return -EINTR;
	return opi_cpu_table_put_sideband(&import->cpus, record);
}

static uint64_t gone_ns(uint32_t pid OP_UNUSED)
{
	return 0;
}

/* Forgets old processes. Few samples are older: those with the time stamp of another profiler. */
static void prune(struct opi_import *import)
{
	struct opd_resolver *resolver = &import->pipeline.resolver;

	if (import->counted_ns < import->pruned_ns + 2 * PRUNE_NS)
		return;
	import->pruned_ns = import->counted_ns - PRUNE_NS;
	opd_processes_prune(&resolver->processes, import->pruned_ns, gone_ns);
	opd_kernel_map_prune(&resolver->kernel, import->pruned_ns);
}

static void end_turn(struct opi_import *import)
{
	uint64_t horizon_ns = op_min_u64(import->counted_ns, opd_sources_oldest_ns(&import->pipeline));

	opd_count_end_turn(&import->pipeline.count, import->counted_ns, horizon_ns);
}

static int take_slice(struct opi_import *import, uint64_t until_ns)
{
	int err = opi_backlog_take_sideband(&import->backlog, until_ns, put_sideband, import);

	if (!err)
		err = opi_backlog_take(&import->backlog, until_ns, put, import);
	if (!err)
		err = opi_cpu_table_visit_all(&import->cpus);
	if (err)
		return err;
	if (import->pipeline.stacks)
		opd_stack_records_block(&import->pipeline);
	return 0;
}

static int count_slice(struct opi_import *import, uint64_t until_ns)
{
	int err;

	update_limit(import);
	err = take_slice(import, until_ns);
	import->counted_ns = op_max_u64(import->counted_ns, op_min_u64(until_ns, import->newest_ns));
	end_turn(import);
	prune(import);
	return err;
}

static int count_until(struct opi_import *import, const struct op_perf_events *events, uint64_t until_ns)
{
	uint64_t slice_ns;
	int err;

	if (!events->nr_events)
		return 0;
	err = import->events.nr_events ? 0 : open_events(import, events);
	while (!err && (slice_ns = opi_backlog_slice(&import->backlog, until_ns)) < until_ns)
		err = count_slice(import, slice_ns);
	if (!err)
		err = count_slice(import, until_ns);
	return err ? err : opi_backlog_compact(&import->backlog);
}

/* Rounds may be short. Looking through the backlog pays off only after twice the time. */
static int end_round(struct opi_import *import, const struct op_perf_events *events)
{
	uint64_t until_ns = import->round_ns;
	int err = 0;

	import->round_ns = import->newest_ns;
	if (until_ns >= import->counted_ns + 2 * OPI_IMPORT_LATE_NS)
		err = count_until(import, events, until_ns - OPI_IMPORT_LATE_NS);
	import->round_start = import->backlog.nr_ring;
	return err;
}

/* True at the end of a round in a file without rounds. */
static inline bool is_full(const struct opi_import *import)
{
	return import->config.round_records && import->backlog.nr_ring - import->round_start >= import->config.round_records;
}

static uint64_t nr_lost_in(const struct perf_event_header *header)
{
	struct op_lost_record lost = { 0 };

	if (header->type == PERF_RECORD_LOST ? op_record_lost(header, &lost) : op_record_lost_samples(header, &lost))
		return 0;
	return lost.lost;
}

static void leave_out(struct opi_import *import, const struct op_perf_record *record)
{
	uint32_t type = record->header->type;
	bool is_sample = type == PERF_RECORD_SAMPLE, is_unknown = record->event == OP_PERF_NO_EVENT;

	import->nr_unknown += is_sample && is_unknown;
	import->nr_unannounced += is_sample && !is_unknown;
	if (type == PERF_RECORD_LOST || type == PERF_RECORD_LOST_SAMPLES)
		import->nr_lost_unknown += nr_lost_in(record->header);
}

/* Leaves out samples, and losses, of events that the file does not list or listed too late. */
static int add_for_ring(struct opi_import *import, const struct op_perf_record *record)
{
	import->has_sums |= record->is_sum;
	if (op_likely(record->event != OP_PERF_NO_EVENT && (!import->nr_announced || record->event < import->nr_announced)))
		return opi_backlog_add(&import->backlog, record);
	leave_out(import, record);
	return 0;
}

/* At the end of the file: without perf's sums, the LOST records are all that is known. */
static int add_lost_again(struct opi_import *import, const struct op_perf_events *events)
{
	int err = 0;

	for (uint32_t event = 0; !err && !import->has_sums && event < events->nr_events; event++) {
		const struct {
			struct perf_event_header header;
			uint64_t id, lost;
		} lost = { { .type = PERF_RECORD_LOST, .size = sizeof(lost) }, (uint64_t)event + 1, import->lost_again[event] };
		const struct op_perf_record record = {
			.kind = OP_PERF_RING, .event = event, .time_ns = import->newest_ns, .header = &lost.header
		};

		import->lost_again[event] = 0;
		if (lost.lost)
			err = add_for_ring(import, &record);
	}
	return err;
}

/*
 * A late sample still finds its mapping, unless that was forgotten. A late mapping comes too late
 * for the samples that were counted. Records that perf synthesized have the time 1.
 */
static void note_order(struct opi_import *import, const struct op_perf_record *record)
{
	uint64_t until_ns = record->kind == OP_PERF_SIDEBAND ? import->counted_ns : import->pruned_ns;

	if (op_likely(record->time_ns > import->counted_ns || record->time_ns <= 1))
		return;
	import->nr_late++;
	import->nr_unordered += record->time_ns <= until_ns;
}

int opi_import_take(struct opi_import *import, const struct op_perf_events *events, const struct op_perf_record *record)
{
	int err = 0;

	switch (record->kind) {
	case OP_PERF_PASSED_OVER:
		return 0;
	case OP_PERF_ROUND:
		return end_round(import, events);
	case OP_PERF_KERNEL: {
		struct op_mmap_record part;

		return op_record_mmap(record->header, &part) < 0 ? 0
								 : opd_kernel_map_part(&import->pipeline.resolver.kernel, &part);
	}
	case OP_PERF_RING:
		err = add_for_ring(import, record);
		break;
	case OP_PERF_LOST_AGAIN:
		import->lost_again[record->event] += nr_lost_in(record->header);
		break;
	case OP_PERF_SIDEBAND:
		err = opi_backlog_add_sideband(&import->backlog, record);
		break;
	}
	import->newest_ns = op_max_u64(import->newest_ns, record->time_ns);
	note_order(import, record);
	if (!err && op_unlikely(is_full(import)))
		err = end_round(import, events);
	return err;
}

/* True when there are samples of the kernel, but the file does not say where the kernel is. */
static bool lacks_kernel(const struct opi_import *import)
{
	const struct opd_kernel_map *kernel = &import->pipeline.resolver.kernel;

	return !kernel->text_start && op_dcookie_row(import->pipeline.count.table, kernel->no_vmlinux_cookie)->name;
}

/* The session has the time of its recording, as its timeline, so that a window finds it. */
static void set_times(const struct opi_import *import, struct op_session_ledger *ledger)
{
	const struct opd_by_time *by_time = &import->by_time;
	uint64_t recorded_ns = import->config.recorded_ns, span_ns = by_time->newest_ns + 1 - by_time->first_ns;

	if (!by_time->length_ns || !by_time->newest_ns || span_ns > recorded_ns)
		return;
	ledger->begin_ns = recorded_ns - span_ns;
	ledger->end_ns = recorded_ns;
}

static int write_ledger(struct opi_import *import)
{
	const char *host = import->config.features->hostname;
	struct op_session_ledger ledger;
	int err;

	if (!import->pipeline.ledger.begun)
		return 0;
	import->pipeline.ledger.foreign_host = host ? host : "";
	import->pipeline.ledger.foreign_kernel = import->config.features->os_release;
	import->pipeline.ledger.hides_kernel = lacks_kernel(import);
	err = opd_ledger_sum(&import->pipeline.ledger, OP_SESSION_stopped, &ledger);
	if (err)
		return err;
	set_times(import, &ledger);
	err = opd_ledger_write(&import->pipeline.ledger, &ledger);
	op_session_ledger_free(&ledger);
	return err;
}

/* The table of images is written only here, as nobody reads the session before. */
static int write_out(struct opi_import *import)
{
	struct opd_cookie_snapshot *snapshot = opd_cookie_file_begin(&import->pipeline.cookie_file);
	int err = opd_cookie_file_publish(&import->pipeline.cookie_file, snapshot);

	if (!err)
		err = write_ledger(import);
	return err;
}

int opi_import_finish(struct opi_import *import, const struct op_perf_events *events)
{
	int err = add_lost_again(import, events);

	if (!err)
		err = count_until(import, events, UINT64_MAX);
	opd_count_flush(&import->pipeline.count);
	if (!err && import->events.nr_events)
		import->timeline_error = opd_by_time_write(&import->by_time, import->config.session_fd, import->config.recorded_ns);
	if (!opd_count_note_files(&import->pipeline.count, &import->files))
		import->pipeline.ledger.files = &import->files;
	opd_count_close_files(&import->pipeline.count);
	return err ? err : write_out(import);
}

/* ---- results ---- */

size_t opi_import_nr_events(const struct opi_import *import)
{
	return import->pipeline.capture.nr_events;
}

void opi_import_ledger(const struct opi_import *import, size_t index, struct op_ledger_event *ret_event)
{
	opd_sum_event(&import->pipeline.capture, index, ret_event);
}

bool opi_import_is_read(const struct opi_import *import, size_t index)
{
	return import->events.events[index].carries_amount;
}

size_t opi_import_nr_outdated(const struct opi_import *import, const struct op_perf_events *events)
{
	const struct op_perf_features *features = import->config.features;
	const struct op_ibs_cpu *counted_as = &import->pipeline.ibs.cpu;
	struct op_ibs_cpu cpu;
	size_t nr_outdated = 0;
	bool is_other_cpu;

	opi_events_find_cpu(features, &cpu);
	is_other_cpu = cpu.family != counted_as->family || cpu.model != counted_as->model;
	for (size_t i = 0; i < import->nr_announced; i++) {
		uint8_t kind = kind_of(features, &events->events[i]);

		nr_outdated += kind != import->kinds[i] || (kind && is_other_cpu);
	}
	return nr_outdated;
}

void opi_import_counts(const struct opi_import *import, struct opi_import_counts *ret_counts)
{
	const struct opd_capture *capture = &import->pipeline.capture;
	struct opd_tables_counts tables = { 0 };

	if (import->tables)
		opd_tables_get_counts(import->tables, &tables);
	*ret_counts = (struct opi_import_counts){
		.nr_late = import->nr_late,
		.timeline_error = import->timeline_error,
		.nr_unordered = import->nr_unordered,
		.nr_unannounced = import->nr_unannounced,
		.nr_unknown = import->nr_unknown,
		.nr_lost_unknown = import->nr_lost_unknown,
		.sideband_records = import->cpus.sideband_records,
		.sideband_bytes = capture->nr_cpus ? capture->cpus[0].sideband_bytes : 0,
		.nr_cpus = capture->nr_cpus + import->cpus.nr_shared,
		.nr_images = op_dcookie_nr_counted(import->pipeline.count.table),
		.nr_memory_dropped = import->pipeline.count.nr_memory_dropped,
		.nr_merged = import->pipeline.count.limit.nr_samples[OPD_FILE_OF_IMAGE],
		.nr_not_split = import->pipeline.count.limit.nr_samples[OPD_FILE_OF_CLASS],
		.nr_calls = import->pipeline.count.arcs[OP_ARC_stored],
		.nr_bad_chains = import->pipeline.count.arcs[OP_ARC_undecodable],
		.nr_tables = tables.made,
		.nr_no_table = tables.failed,
	};
	for (enum op_arc_stat i = OP_ARC_lost_no_room; i < OP_NR_ARC_STATS; i++)
		ret_counts->nr_lost_calls += import->pipeline.count.arcs[i];
	for (size_t i = 0; i < import->nr_announced; i++)
		ret_counts->nr_undivided += import->kinds[i] && import->events.events[i].role != OP_EVENT_SAMPLER;
	for (size_t kind = 0; kind < OP_IBS_NR_KINDS; kind++)
		op_ibs_stats_add(ret_counts->ibs, &import->pipeline.ibs.counts[kind]);
}

void opi_import_close(struct opi_import *import)
{
	if (!import)
		return;
	opd_pipeline_close(&import->pipeline);
	opd_by_time_close(&import->by_time);
	opd_tables_free(import->tables);
	opd_ledger_close(&import->pipeline.ledger);
	opd_capture_close(&import->pipeline.capture);
	opi_cpu_table_close(&import->cpus);
	opi_backlog_free(&import->backlog);
	op_event_list_free(&import->events);
	free(import->ids);
	free(import->kinds);
	free(import);
}
