/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/timeline/by_time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/timeline/append.h"
#include "pipeline/count/count.h"
#include "pipeline/ledger/ledger.h"
#include "pipeline/stacks/stack.h"

#define APART_NS       (OP_NS_PER_S / 10) /* a recording is read in slices of any length */
#define SPAN_NODES_MAX 8192u /* 120 spans have 60 MB at most */
/* of a span in the file; more are merged, as opd does */
#define FILE_SAMPLES_MAX 1344u
#define FILE_STACKS_MAX  1664u

/* ---- spans ---- */

static bool is_made(const struct op_minute *span)
{
	return span->nr_nodes;
}

static int make_span(const struct opd_by_time *by_time, struct op_minute *span)
{
	int err = op_minute_init(span, SPAN_NODES_MAX);

	if (!err)
		err = opd_timeline_add_events(&by_time->nodes, span);
	if (err)
		op_minute_free(span);
	return err;
}

/* Makes one span of two neighbours. */
static int join(struct op_minute *first, struct op_minute *second)
{
	int err = 0;

	if (is_made(first) && is_made(second)) {
		err = op_minute_merge(first, second);
		op_minute_free(second);
	} else if (is_made(second)) {
		*first = *second;
	}
	*second = (struct op_minute){ 0 };
	return err;
}

static int double_length(struct opd_by_time *by_time)
{
	int err = 0;

	for (size_t i = 0; i < OPD_SPANS_MAX / 2 && !err; i++) {
		err = join(&by_time->spans[2 * i], &by_time->spans[2 * i + 1]);
		if (i) {
			by_time->spans[i] = by_time->spans[2 * i];
			by_time->spans[2 * i] = (struct op_minute){ 0 };
		}
	}
	by_time->length_ns *= 2;
	return err;
}

/* The span of a time. NULL: no memory. What is older than the first sample belongs to its span. */
static struct op_minute *span_of(struct opd_by_time *by_time, uint64_t time_ns)
{
	struct op_minute *span = NULL;

	if (!by_time->length_ns) {
		by_time->first_ns = time_ns;
		by_time->length_ns = OP_NS_PER_S;
	}
	by_time->newest_ns = op_max_u64(by_time->newest_ns, time_ns);
	time_ns -= op_min_u64(time_ns, by_time->first_ns);
	while (!by_time->failed && time_ns / by_time->length_ns >= OPD_SPANS_MAX)
		by_time->failed = double_length(by_time);
	if (!by_time->failed) {
		span = &by_time->spans[time_ns / by_time->length_ns];
		by_time->failed = !is_made(span) && make_span(by_time, span);
	}
	return by_time->failed ? NULL : span;
}

static void take_samples(void *host, struct opd_keyed_sample *samples, size_t nr)
{
	struct opd_by_time *by_time = host;

	for (size_t i = 0; i < nr; i++) {
		struct op_minute *span = samples[i].is_stored ? span_of(by_time, samples[i].time_ns) : NULL;

		if (span)
			opd_timeline_add_sample(&by_time->nodes, span, &samples[i]);
	}
}

static void take_stack(void *host, struct opd_stack *stack)
{
	struct opd_by_time *by_time = host;
	struct op_minute *span = span_of(by_time, stack->sample->time_ns);

	if (span)
		opd_timeline_add_stack(&by_time->nodes, span, stack);
}

int opd_by_time_open(struct opd_by_time *by_time, struct opd_count *count, struct opd_tables *tables, struct opd_ledger *ledger)
{
	const struct opd_sink sink = { .name = "spans", .sample = take_samples, .stack = take_stack, .host = by_time };

	*by_time = (struct opd_by_time){
		.nodes = { .count = count, .tables = tables, .ledger = ledger, .dir_fd = -1 }
	};
	by_time->spans = calloc(OPD_SPANS_MAX, sizeof(*by_time->spans));
	by_time->nodes.steps = opd_timeline_new_steps();
	if (!by_time->spans || !by_time->nodes.steps) {
		opd_by_time_close(by_time);
		return -ENOMEM;
	}
	count->apart_ns = APART_NS;
	opd_sinks_add(&count->sinks, &sink);
	return 0;
}

/* ---- writing ---- */

/* What the session had stored of an event when this program began. */
static uint64_t stored_before(const struct opd_by_time *by_time, const struct op_event *event)
{
	struct op_ledger_event key = { .count = event->count, .unit_mask = event->unit_mask };
	const struct op_ledger_event *base;

	snprintf(key.name, sizeof(key.name), "%s", event->name);
	base = by_time->nodes.ledger ? op_session_ledger_find(&by_time->nodes.ledger->base, &key) : NULL;
	return base ? base->stored : 0;
}

/* The ledger: what the session had stored before, and what is in the span. */
static int add_ledger(const struct opd_count *count, struct op_minute *span, uint64_t *before)
{
	for (uint32_t i = 0; i < count->nr_events; i++) {
		bool is_stacks = count->events[i].role == OP_EVENT_STACKS;
		uint64_t stored;
		int err;

		if (count->events[i].role == OP_EVENT_MEMORY)
			continue;
		err = op_minute_total(span, is_stacks ? OP_MINUTE_STACKS : OP_MINUTE_SAMPLES, i, &stored);
		err = err ? err : op_minute_add_row(span, i, "before", (int64_t)before[i]);
		err = err || !stored ? err : op_minute_add_row(span, i, "stored", (int64_t)stored);
		err = err || !stored ? err : op_minute_add_row(span, i, "received", (int64_t)stored);
		if (err)
			return err;
		before[i] += stored;
	}
	return 0;
}

static struct op_timeline_clocks clocks_at(const struct opd_by_time *by_time, uint64_t mono_ns, uint64_t newest_wall_ns)
{
	uint64_t ago_ns = by_time->newest_ns + 1 - mono_ns;

	return (struct op_timeline_clocks){ .wall_ns = newest_wall_ns - op_min_u64(newest_wall_ns, ago_ns),
					    .boot_ns = mono_ns,
					    .mono_ns = mono_ns };
}

static int write_spans(struct opd_by_time *by_time, struct op_timeline_writer *writer, uint64_t newest_wall_ns)
{
	const struct op_encode_limits limits = { .max_samples = FILE_SAMPLES_MAX, .max_stacks = FILE_STACKS_MAX };
	const struct opd_count *count = by_time->nodes.count;
	uint64_t *before = calloc(count->nr_events + 1, sizeof(*before));
	size_t nr = (by_time->newest_ns - by_time->first_ns) / by_time->length_ns + 1;
	uint32_t gap = op_timeline_append_nr_blocks(writer) ? OP_GAP_OFF : OP_GAP_FIRST;
	int err = before ? 0 : -ENOMEM;

	for (size_t i = 0; i < count->nr_events && !err; i++)
		before[i] = stored_before(by_time, &count->events[i]);

	for (size_t i = 0; i < nr && !err; i++) {
		struct op_minute *span = &by_time->spans[i];
		uint64_t begin_ns = by_time->first_ns + i * by_time->length_ns;
		uint64_t end_ns = i + 1 < nr ? begin_ns + by_time->length_ns : by_time->newest_ns + 1;

		err = is_made(span) ? 0 : make_span(by_time, span);
		if (err)
			break;
		span->begin = clocks_at(by_time, begin_ns, newest_wall_ns);
		span->end = clocks_at(by_time, end_ns, newest_wall_ns);
		span->gap = i ? OP_GAP_NONE : gap;
		err = add_ledger(count, span, before);
		if (!err)
			err = op_timeline_append(writer, span, &limits);
	}
	free(before);
	return err;
}

int opd_by_time_write(struct opd_by_time *by_time, int session_fd, uint64_t newest_wall_ns)
{
	struct op_timeline_writer *writer = NULL;
	bool was_there = false;
	int dir_fd, err;

	if (by_time->failed)
		return -ENOMEM;
	if (!by_time->length_ns || !by_time->newest_ns)
		return 0; /* no samples, or they have no times */
	dir_fd = op_session_open_current(session_fd);
	err = dir_fd < 0 ? dir_fd : op_timeline_append_open(dir_fd, OP_SESSION_TIMELINE, &writer, NULL);
	if (!err) {
		was_there = op_timeline_append_nr_blocks(writer);
		op_timeline_append_together(writer);
		err = write_spans(by_time, writer, newest_wall_ns);
	}
	if (!err)
		err = op_timeline_append_sync(writer);
	op_timeline_append_close(writer);
	if (err && dir_fd >= 0 && !was_there)
		(void)op_file_unlink_below(dir_fd, OP_SESSION_TIMELINE);
	if (dir_fd >= 0)
		close(dir_fd);
	return err;
}

void opd_by_time_close(struct opd_by_time *by_time)
{
	for (size_t i = 0; by_time->spans && i < OPD_SPANS_MAX; i++)
		op_minute_free(&by_time->spans[i]);
	free(by_time->spans);
	free(by_time->nodes.steps);
	by_time->spans = NULL;
	by_time->nodes.steps = NULL;
}
