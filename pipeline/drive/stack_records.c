/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/stack_records.h"

#include <poll.h>

#include "libop/base/clock.h"
#include "libop/process/stop.h"
#include "pipeline/drive/notes.h"
#include "pipeline/drive/stack_booking.h"

#define BLOCK_MS 100 /* in one wait for a table */

static void fill(struct opd_stack_waiting *waiting, const struct opd_stack_walk *walk)
{
	waiting->deferred = walk->deferred;
	waiting->pending_cookie = walk->pending_cookie;
	waiting->pending_source = walk->pending_source;
	waiting->awaits_runtime = walk->awaits_runtime;
}

/* False: there is no room. */
static bool put_aside(struct opd_stacks *stacks, const struct opd_stack_sample *taken)
{
	struct opd_stack_waiting *waiting;

	if (opd_stack_queue_add(&stacks->queue, taken, &waiting) < 0)
		return false;
	fill(waiting, &stacks->walk);
	waiting->since_ns = op_now_ns();
	stacks->counts.nr_waited++;
	return true;
}

void opd_stack_records_take(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken)
{
	struct opd_stacks *stacks = pipeline->stacks;

	if (op_likely(opd_stack_try(pipeline, taken, NULL, true)))
		return;
	if (put_aside(stacks, taken))
		return;
	stacks->counts.nr_queue_full++;
	if (stacks->block_ns) {
		opd_stack_records_block(pipeline);
		if (opd_stack_try(pipeline, taken, NULL, true) || put_aside(stacks, taken))
			return;
	}
	(void)!opd_stack_try(pipeline, taken, NULL, false);
}

/*
 * The calls of STACKS are those of another event, which takes more samples: a stack stands for all
 * its samples on this CPU since the stack before. So calls and samples have one measure.
 */
static void add_calls_of_stacks(const struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct opd_stack_sample *taken)
{
	for (uint32_t i = 0; i < pipeline->capture.nr_opened; i++) {
		struct opd_event *event = &cpu->events[i];

		if (!pipeline->capture.events[i].calls_of_stacks)
			continue;
		taken->nr_calls = (uint32_t)op_min_u64(event->received - event->received_before, UINT32_MAX);
		taken->calls_event = i;
		taken->calls_account = event;
		event->received_before = event->received;
	}
}

void opd_stack_records_join(struct opd_pipeline *pipeline, struct opd_stack_sample *taken)
{
	const struct opd_capture *capture = &pipeline->capture;
	const struct op_stack_layout layout = {
		.sample_type = opd_capture_sample_type(capture, &capture->events[taken->event]),
		.registers = pipeline->stacks->registers,
		.machine = pipeline->stacks->machine,
	};

	if (pipeline->interpreters)
		opd_interpreter_notes_join(&pipeline->interpreter_notes, taken);
	if (pipeline->notes)
		opd_notes_join(pipeline->notes, &layout, taken);
}

void opd_stack_records_take_record(void *host, const struct opd_record *record)
{
	struct opd_pipeline *pipeline = host;
	struct opd_stack_sample taken = {
		.header = record->header,
		.sample = *record->sample,
		.account = record->account,
		.event = record->event,
		.weight = 1,
	};

	if (op_unlikely(pipeline->capture.callgraph)) {
		if (pipeline->capture.events[record->event].role == OP_EVENT_STACKS) {
			add_calls_of_stacks(pipeline, record->cpu, &taken);
		} else if (!op_event_is_time(pipeline->capture.events[record->event].role)) {
			taken.nr_calls = 1;
			taken.calls_event = record->event;
			taken.calls_account = record->account;
		}
	}
	opd_stack_records_join(pipeline, &taken);
	opd_stack_records_take(pipeline, &taken);
}

/* Walks a waiting sample again. */
static void again(struct opd_pipeline *pipeline, struct opd_stack_waiting *waiting, const struct op_chain *later_chain,
		  bool may_wait)
{
	struct opd_stacks *stacks = pipeline->stacks;

	if (opd_stack_try(pipeline, &waiting->taken, later_chain, may_wait))
		opd_stack_queue_done(&stacks->queue, waiting);
	else
		fill(waiting, &stacks->walk);
}

void opd_stack_records_take_deferred(struct opd_pipeline *pipeline, const struct perf_event_header *header)
{
	struct opd_stacks *stacks = pipeline->stacks;
	struct op_deferred_record record;
	struct opd_stack_waiting *waiting;

	if (!stacks->queue.nr || op_deferred_record(header, &record) < 0)
		return;
	for (waiting = opd_stack_queue_first(&stacks->queue); waiting; waiting = opd_stack_queue_next(&stacks->queue, waiting))
		if (waiting->deferred == record.cookie && waiting->taken.sample.tid == record.who.tid)
			again(pipeline, waiting, &record.chain, false);
	opd_stack_queue_trim(&stacks->queue);
}

/* False: its table is still missing. A runtime is asked again. */
static bool has_table(struct opd_stacks *stacks, const struct opd_stack_waiting *waiting)
{
	const struct op_row_table *table;

	if (waiting->awaits_runtime)
		return opd_runtimes_can_ask(stacks->runtimes, waiting->taken.sample.pid);
	if (!stacks->tables)
		return false;
	return !waiting->deferred && opd_tables_find(stacks->tables, waiting->pending_cookie, &waiting->pending_source, &table) !=
					     OPD_CODE_PENDING;
}

/*
 * Walks those that waited since before since_ns, and with is_known those whose tables have come or
 * that wait for a runtime.
 */
static void walk_waiting(struct opd_pipeline *pipeline, uint64_t since_ns, bool is_known)
{
	struct opd_stacks *stacks = pipeline->stacks;
	struct opd_stack_waiting *waiting;

	for (waiting = opd_stack_queue_first(&stacks->queue); waiting; waiting = opd_stack_queue_next(&stacks->queue, waiting)) {
		bool is_late = waiting->since_ns <= since_ns;

		if (is_late || (is_known && has_table(stacks, waiting)))
			again(pipeline, waiting, NULL, !is_late);
		else if (!is_known) /* the rest came later */
			break;
	}
	opd_stack_queue_trim(&stacks->queue);
	opd_count_flush(&pipeline->count);
}

void opd_stack_records_turn(void *host)
{
	struct opd_pipeline *pipeline = host;
	struct opd_stacks *stacks = pipeline->stacks;
	uint64_t now_ns = op_now_ns();
	bool is_known = stacks && stacks->tables && opd_tables_turn(stacks->tables);

	if (stacks && stacks->runtimes)
		is_known |= opd_runtimes_turn(stacks->runtimes, &pipeline->resolver);
	if (stacks && stacks->queue.nr)
		walk_waiting(pipeline, now_ns > OPD_STACK_RECORDS_WAIT_NS ? now_ns - OPD_STACK_RECORDS_WAIT_NS : 0, is_known);
}

void opd_stack_records_finish(void *host, uint64_t wait_ns)
{
	struct opd_pipeline *pipeline = host;
	struct opd_stacks *stacks = pipeline->stacks;
	uint64_t begin_ns = op_now_ns();

	if (!stacks)
		return;
	while (stacks->queue.nr && stacks->tables && opd_tables_is_busy(stacks->tables) && op_now_ns() - begin_ns < wait_ns &&
	       !op_stop_is_set(stacks->stop)) {
		struct pollfd fd = { .fd = opd_tables_fd(stacks->tables), .events = POLLIN };

		poll(&fd, 1, BLOCK_MS);
		walk_waiting(pipeline, 0, opd_tables_turn(stacks->tables));
	}
	walk_waiting(pipeline, UINT64_MAX, false);
}

void opd_stack_records_block(struct opd_pipeline *pipeline)
{
	struct opd_stacks *stacks = pipeline->stacks;
	uint64_t begin_ns = op_now_ns();

	opd_stack_records_finish(pipeline, stacks->block_ns);
	stacks->block_ns -= op_min_u64(stacks->block_ns, op_now_ns() - begin_ns);
}

/* ---- the rest of the source ---- */

bool opd_stack_records_is_of(const struct op_event *event)
{
	return event->role == OP_EVENT_STACKS;
}

void opd_stack_records_begin_session(void *host, bool is_reset)
{
	struct opd_pipeline *pipeline = host;

	if (pipeline->stacks && is_reset)
		opd_stacks_reset(pipeline->stacks);
	else if (pipeline->stacks)
		opd_stacks_begin_session(pipeline->stacks);
}

uint64_t opd_stack_records_oldest_ns(void *host)
{
	struct opd_pipeline *pipeline = host;

	return pipeline->stacks ? opd_stack_queue_oldest_ns(&pipeline->stacks->queue) : UINT64_MAX;
}

int opd_stack_records_fd(void *host)
{
	const struct opd_pipeline *pipeline = host;

	return pipeline->stacks ? opd_stacks_fd(pipeline->stacks) : -1;
}
