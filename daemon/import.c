/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/import.h"

#include <errno.h>

#include "daemon/import_cpus.h"
#include "daemon/sync.h"
#include "libop/clock.h"

#define ROUND_RECORDS    (1u << 19)          /* for rings, and */
#define ROUND_BYTES      (32u * 1024 * 1024) /* of them, and of the side band, end a round where the file does not */
#define HELD_BYTES_MAX   (sizeof(struct held) + UINT16_MAX)
#define PRUNE_NS         OP_NS_PER_S
#define MAX_CLOSED_FILES 65536u

/* A record for a ring, waiting; it stands behind this. */
struct held {
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t nr_bytes; /* of the record */
};

static_assert(sizeof(struct held) % 8 == 0, "records are aligned");

struct held_sideband {
	uint64_t time_ns;
	size_t at; /* in sideband_bytes; those of one time are in the order of the file */
};

struct opd_import {
	struct opd_import_config config;
	struct opd_pipeline pipeline;
	struct op_dcookie_table *table;
	bool has_cookie_file;
	struct opd_book book; /* begun once the first sample has come */
	struct op_event_list events; /* empty: the first sample has not come */
	uint64_t *ids;
	struct opd_import_cpus cpus;
	uint8_t *held; /* in the order of the file */
	size_t nr_held, held_bytes, max_held_bytes;
	size_t round_held, round_bytes; /* that waited when the round began */
	struct held_sideband *sideband;
	size_t nr_sideband, max_sideband;
	struct op_text sideband_bytes;
	size_t round_sideband_bytes;
	uint64_t newest_ns, round_ns, counted_ns, next_prune_ns;
	uint64_t nr_late, nr_unannounced;
	size_t nr_announced; /* events when the first sample was counted */
};

/* ---- opening ---- */

static void open_count(struct opd_import *import)
{
	const struct opd_import_config *config = &import->config;

	import->pipeline.count = (struct opd_count){
		.session_fd = config->session_fd,
		.table = import->table,
		.cookie_file = &import->pipeline.cookie_file,
		.separate_lib = config->separate_lib,
		.separate_kernel = config->separate_kernel,
		.separate_thread = config->separate_thread,
		.separate_cpu = config->separate_cpu,
		.no_process_cookie = import->pipeline.resolver.pseudo[OPD_PSEUDO_NO_PROCESS],
		.max_open = config->max_open,
		.max_closed = MAX_CLOSED_FILES,
	};
}

int opd_import_open(const struct opd_import_config *config, struct opd_import **ret_import)
{
	struct opd_import *import = calloc(1, sizeof(*import));
	int err = 0;

	if (!import)
		return -ENOMEM;
	import->config = *config;
	import->table = op_dcookie_table_new();
	err = import->table ? opd_cookie_file_open(&import->pipeline.cookie_file, config->session_fd, import->table) : -ENOMEM;
	import->has_cookie_file = !err;
	if (!err)
		err = opd_resolver_init_foreign(&import->pipeline.resolver, import->table, config->max_images, config->vmlinux);
	if (err) {
		opd_import_close(import);
		return err;
	}
	open_count(import);
	*ret_import = import;
	return 0;
}

/* The events are known when their first sample is there. */
static int begin(struct opd_import *import, const struct op_perf_events *events)
{
	struct opd_pipeline *pipeline = &import->pipeline;
	int err = opd_import_events(events, import->config.features, &pipeline->ibs.cpu, &import->events);

	if (err)
		return err;
	import->nr_announced = events->nr_events;
	import->ids = calloc(events->nr_events + 1, sizeof(*import->ids));
	if (!import->ids)
		return -ENOMEM;
	for (size_t i = 0; i < events->nr_events; i++)
		import->ids[i] = i + 1;
	err = opd_import_cpus_open(&import->cpus, pipeline, import->events.events, import->events.nr_events, import->ids);
	pipeline->capture.callgraph = OP_CHAIN_DEPTH_MAX;
	if (!err)
		err = opd_book_open(&import->book, import->config.session_fd, &pipeline->capture, false);
	if (!err)
		opd_book_begin(&import->book);
	pipeline->count.events = import->events.events;
	return err;
}

/* ---- holding back ---- */

static int grow_held(struct opd_import *import)
{
	size_t max_bytes = import->max_held_bytes ? 2 * import->max_held_bytes : 4 * HELD_BYTES_MAX;
	uint8_t *more = realloc(import->held, max_bytes);

	if (!more)
		return -ENOMEM;
	import->held = more;
	import->max_held_bytes = max_bytes;
	return 0;
}

static int hold(struct opd_import *import, const struct op_perf_record *record)
{
	struct held *held;

	if (op_unlikely(import->max_held_bytes - import->held_bytes < HELD_BYTES_MAX) && grow_held(import) < 0)
		return -ENOMEM;
	held = (void *)(import->held + import->held_bytes);
	*held = (struct held){ .time_ns = record->time_ns, .cpu = record->cpu, .nr_bytes = record->header->size };
	memcpy(held + 1, record->header, record->header->size);
	import->held_bytes += sizeof(*held) + record->header->size;
	import->nr_held++;
	return 0;
}

static int hold_sideband(struct opd_import *import, const struct op_perf_record *record)
{
	if (import->nr_sideband == import->max_sideband) {
		size_t max = import->max_sideband ? 2 * import->max_sideband : 1024;
		struct held_sideband *more = realloc(import->sideband, max * sizeof(*more));

		if (!more)
			return -ENOMEM;
		import->sideband = more;
		import->max_sideband = max;
	}
	import->sideband[import->nr_sideband++] =
		(struct held_sideband){ .time_ns = record->time_ns, .at = import->sideband_bytes.length };
	op_text_add_bytes(&import->sideband_bytes, record->header, record->header->size);
	return import->sideband_bytes.failed ? -ENOMEM : 0;
}

/* ---- counting ---- */

static int compare(const void *left, const void *right)
{
	const struct held_sideband *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static const struct perf_event_header *sideband_record(const struct opd_import *import, size_t index)
{
	return (const void *)(import->sideband_bytes.data + import->sideband[index].at);
}

/* What stays moves to the front. */
static int keep_sideband(struct opd_import *import, size_t first)
{
	struct op_text bytes = { 0 };

	for (size_t i = first; i < import->nr_sideband; i++) {
		const struct perf_event_header *record = sideband_record(import, i);

		import->sideband[i - first] = (struct held_sideband){ .time_ns = import->sideband[i].time_ns, .at = bytes.length };
		op_text_add_bytes(&bytes, record, record->size);
	}
	op_text_free(&import->sideband_bytes);
	import->sideband_bytes = bytes;
	import->nr_sideband -= first;
	return bytes.failed ? -ENOMEM : 0;
}

static int count_sideband(struct opd_import *import, uint64_t until_ns)
{
	size_t i = 0;
	int err = 0;

	if (!import->nr_sideband)
		return 0;
	qsort(import->sideband, import->nr_sideband, sizeof(*import->sideband), compare);
	for (; !err && i < import->nr_sideband && import->sideband[i].time_ns <= until_ns; i++)
		err = opd_import_cpus_put_sideband(&import->cpus, sideband_record(import, i));
	return err ? err : keep_sideband(import, i);
}

/* What has to wait moves to the front. */
static int count_held(struct opd_import *import, uint64_t until_ns)
{
	size_t nr_left = 0, left_bytes = 0;
	int err = 0;

	for (size_t at = 0; !err && at < import->held_bytes;) {
		const struct held *held = (const void *)(import->held + at);
		size_t nr_bytes = sizeof(*held) + held->nr_bytes;

		at += nr_bytes;
		if (held->time_ns <= until_ns) {
			err = opd_import_cpus_put(&import->cpus, held->cpu, (const void *)(held + 1));
			continue;
		}
		memmove(import->held + left_bytes, held, nr_bytes);
		left_bytes += nr_bytes;
		nr_left++;
	}
	import->nr_held = nr_left;
	import->held_bytes = left_bytes;
	return err;
}

static uint64_t gone_ns(uint32_t pid OP_UNUSED)
{
	return 0;
}

/* What was counted is never asked for again. */
static void prune(struct opd_import *import)
{
	struct opd_resolver *resolver = &import->pipeline.resolver;

	if (import->counted_ns < import->next_prune_ns)
		return;
	opd_processes_prune(&resolver->processes, import->counted_ns, gone_ns);
	opd_kernel_map_prune(&resolver->kernel, import->counted_ns);
	import->next_prune_ns = import->counted_ns + PRUNE_NS;
}

static int count_until(struct opd_import *import, const struct op_perf_events *events, uint64_t until_ns)
{
	int err;

	if (!events->nr_events)
		return 0;
	err = import->events.nr_events ? 0 : begin(import, events);
	if (!err)
		err = count_sideband(import, until_ns);
	if (!err)
		err = count_held(import, until_ns);
	if (!err)
		err = opd_import_cpus_visit_all(&import->cpus);
	import->counted_ns = op_max_u64(import->counted_ns, op_min_u64(until_ns, import->newest_ns));
	opd_cookie_file_flush(&import->pipeline.cookie_file, op_now_ns());
	prune(import);
	return err;
}

static int end_round(struct opd_import *import, const struct op_perf_events *events)
{
	uint64_t until_ns = import->round_ns;
	int err;

	import->round_ns = import->newest_ns;
	err = until_ns ? count_until(import, events, until_ns) : 0;
	import->round_held = import->nr_held;
	import->round_bytes = import->held_bytes;
	import->round_sideband_bytes = import->sideband_bytes.length;
	return err;
}

/* What came since the last round is enough for one. */
static inline bool is_full(const struct opd_import *import)
{
	return import->nr_held - import->round_held >= ROUND_RECORDS || import->held_bytes - import->round_bytes >= ROUND_BYTES ||
	       import->sideband_bytes.length - import->round_sideband_bytes >= ROUND_BYTES;
}

/* An event that the file has only told now is not among those that are counted: its sample is none that can be decoded. */
static int hold_sample(struct opd_import *import, const struct op_perf_record *record)
{
	static const struct perf_event_header undecodable = { .type = PERF_RECORD_SAMPLE, .size = sizeof(undecodable) };
	struct op_perf_record unannounced = *record;

	if (op_likely(!import->nr_announced || record->event == OP_PERF_NO_EVENT || record->event < import->nr_announced))
		return hold(import, record);
	if (record->header->type != PERF_RECORD_SAMPLE)
		return 0;
	import->nr_unannounced++;
	unannounced.header = &undecodable;
	return hold(import, &unannounced);
}

int opd_import_take(struct opd_import *import, const struct op_perf_events *events, const struct op_perf_record *record)
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
		err = hold_sample(import, record);
		break;
	case OP_PERF_SIDEBAND:
		err = hold_sideband(import, record);
		break;
	}
	import->newest_ns = op_max_u64(import->newest_ns, record->time_ns);
	import->nr_late += record->time_ns > 1 && record->time_ns <= import->counted_ns;
	if (!err && op_unlikely(is_full(import)))
		err = end_round(import, events);
	return err;
}

/* Samples of the kernel, and not a word on where it is. */
static bool lacks_kernel(const struct opd_import *import)
{
	const struct opd_kernel_map *kernel = &import->pipeline.resolver.kernel;

	return !kernel->text_start && op_dcookie_row(import->table, kernel->no_vmlinux_cookie)->name;
}

static int write_book(struct opd_import *import)
{
	struct op_session_ledger ledger;
	int err;

	if (!import->book.begun)
		return 0;
	import->book.hides_kernel = lacks_kernel(import);
	err = opd_book_sum(&import->book, OP_SESSION_stopped, &ledger);
	if (err)
		return err;
	err = opd_book_write(&import->book, &ledger);
	op_session_ledger_free(&ledger);
	return err;
}

static int write_out(struct opd_import *import)
{
	struct opd_cookie_snapshot *snapshot = opd_cookie_file_begin(&import->pipeline.cookie_file);
	int err = opd_cookie_file_publish(&import->pipeline.cookie_file, snapshot);

	if (!err)
		err = write_book(import);
	return err;
}

int opd_import_finish(struct opd_import *import, const struct op_perf_events *events)
{
	int err = count_until(import, events, UINT64_MAX);

	opd_count_flush(&import->pipeline.count);
	opd_count_close_files(&import->pipeline.count);
	return err ? err : write_out(import);
}

/* ---- what came out ---- */

size_t opd_import_nr_events(const struct opd_import *import)
{
	return import->pipeline.capture.nr_events;
}

void opd_import_ledger(const struct opd_import *import, size_t index, struct op_ledger_event *ret_event)
{
	opd_sync_sum_event(&import->pipeline.capture, index, ret_event);
}

void opd_import_counts(const struct opd_import *import, struct opd_import_counts *ret_counts)
{
	const struct opd_capture *capture = &import->pipeline.capture;

	*ret_counts = (struct opd_import_counts){
		.nr_late = import->nr_late,
		.nr_unannounced = import->nr_unannounced,
		.sideband_records = import->cpus.sideband_records,
		.sideband_bytes = capture->nr_cpus ? capture->cpus[0].sideband_bytes : 0,
		.nr_cpus = capture->nr_cpus,
		.nr_images = op_dcookie_nr_counted(import->table),
		.nr_memory_dropped = import->pipeline.count.nr_memory_dropped,
		.nr_calls = import->pipeline.count.arcs[OP_ARC_stored],
		.nr_bad_chains = import->pipeline.count.arcs[OP_ARC_undecodable],
	};
	for (size_t kind = 0; kind < OP_IBS_NR_KINDS; kind++)
		op_ibs_stats_add(ret_counts->ibs, &import->pipeline.ibs.counts[kind]);
}

void opd_import_close(struct opd_import *import)
{
	if (!import)
		return;
	opd_count_close_files(&import->pipeline.count);
	opd_resolver_free(&import->pipeline.resolver);
	opd_book_close(&import->book);
	opd_capture_close(&import->pipeline.capture);
	opd_import_cpus_close(&import->cpus);
	op_dcookie_table_free(import->table);
	if (import->has_cookie_file)
		opd_cookie_file_close(&import->pipeline.cookie_file);
	op_text_free(&import->sideband_bytes);
	free(import->sideband);
	free(import->held);
	op_event_list_free(&import->events);
	free(import->ids);
	free(import);
}
