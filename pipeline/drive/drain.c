/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/drain.h"

#include <errno.h>

#include "pipeline/drive/attribute.h"
#include "pipeline/drive/notes.h"
#include "pipeline/drive/sources.h"
#include "pipeline/drive/stack_records.h"

/* a sample that stands for more events is damaged: in ns or cycles this is a quarter of an hour */
#define AMOUNT_MAX ((uint64_t)1 << 40)

typedef void (*handler)(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header);

/*
 * Some kernels (6.18 seen) set the identifier of a software event once for all events of that kind
 * on a CPU. With a second profiler on the host, samples in our ring then have its identifier
 * (do_perf_sw_event in kernel/events/core.c gives one perf_sample_data to all). Only our events
 * write to our ring, so when only one of them can be meant, it is that one.
 */
static bool shares_identifiers(const struct op_event *event)
{
	return event->type == PERF_TYPE_TRACEPOINT || (event->type == PERF_TYPE_SOFTWARE && !op_event_is_clock(event));
}

static struct opd_event *event_by_kind(const struct opd_pipeline *pipeline, const struct opd_cpu *cpu, uint32_t *ret_index)
{
	struct opd_event *found = NULL;

	*ret_index = 0;
	if (pipeline->capture.nr_opened == 1)
		return &cpu->events[0];
	for (size_t i = 0; i < pipeline->capture.nr_opened; i++) {
		if (!shares_identifiers(&pipeline->capture.events[i]))
			continue;
		if (found)
			return NULL;
		found = &cpu->events[i];
		*ret_index = (uint32_t)i;
	}
	return found;
}

/*
 * Such a sample may also have the time stamp of the other profiler, from another clock. An
 * impossible time is replaced by the present time, because the present mappings are the best guess.
 */
static void correct_time(const struct opd_pipeline *pipeline, struct op_sample *sample)
{
	const struct opd_resolver *resolver = &pipeline->resolver;

	if (sample->time_ns > resolver->now_ns || sample->time_ns < resolver->processes.horizon_ns)
		sample->time_ns = resolver->now_ns;
}

/* The identifiers rise in the order in which the events were opened. */
static bool has_id(const struct opd_task_fds *tasks, uint64_t id)
{
	size_t nr = op_nr_leading(tasks->ids, tasks->nr, row, *row < id);

	return nr < tasks->nr && tasks->ids[nr] == id;
}

static struct opd_event *other_event(const struct opd_pipeline *pipeline, const struct opd_cpu *cpu, uint64_t id,
				     uint32_t *ret_index)
{
	for (size_t i = 0; i < pipeline->capture.nr_opened; i++) {
		if (cpu->events[i].id == id || has_id(&cpu->events[i].more, id)) {
			*ret_index = (uint32_t)i;
			return &cpu->events[i];
		}
	}
	return event_by_kind(pipeline, cpu, ret_index);
}

/* There are few events per CPU, mostly one. */
static inline struct opd_event *event_by_id(const struct opd_pipeline *pipeline, const struct opd_cpu *cpu, uint64_t id,
					    uint32_t *ret_index)
{
	if (op_unlikely(cpu->events[0].id != id))
		return other_event(pipeline, cpu, id, ret_index);
	*ret_index = 0;
	return &cpu->events[0];
}

/* The identifier comes first. A sample without a known one is booked on the first event. */
static void lose_undecodable(const struct opd_pipeline *pipeline, const struct opd_cpu *cpu, const struct perf_event_header *header)
{
	struct opd_event *event = NULL;
	uint32_t index;
	uint64_t id;

	if (header->size >= sizeof(*header) + sizeof(id)) {
		memcpy(&id, header + 1, sizeof(id));
		event = event_by_id(pipeline, cpu, id, &index);
	}
	if (!event)
		event = &cpu->events[0];
	event->received++;
	event->lost[OP_LOSS_undecodable]++;
}

/* Processes do not change while a ring is read: equal addresses have equal answers. */
static inline bool is_repeated(const struct opd_repeat *repeat, const struct op_sample *sample)
{
	const struct op_sample *last = &repeat->sample;

	return repeat->event && sample->ip == last->ip && sample->id == last->id && sample->tid == last->tid &&
	       sample->pid == last->pid && sample->mode == last->mode && sample->time_ns >= last->time_ns;
}

/*
 * Adds the repetitions to the resolver's counts, because opd_resolve_check takes the most frequent
 * answers.
 */
static void end_repeat(struct opd_pipeline *pipeline)
{
	struct opd_repeat *repeat = &pipeline->repeat;

	if (repeat->nr)
		opd_resolve_repeated(&pipeline->resolver, &repeat->sample, repeat->nr);
	repeat->event = NULL;
	repeat->nr = 0;
}

static void note_late(struct opd_cpu *cpu, const struct op_sample *sample)
{
	cpu->reading_pair->counts.late += op_ring_pair_is_late(cpu->reading_pair, cpu->reading, sample->time_ns);
}

static void take_deferred(struct opd_pipeline *pipeline, struct opd_cpu *cpu OP_UNUSED, const struct perf_event_header *header)
{
	if (pipeline->stacks)
		opd_stack_records_take_deferred(pipeline, header);
}

/* A sample that stands for many events: one was received already. */
static void count_amount(struct opd_pipeline *pipeline, struct opd_counted *counted, uint64_t amount)
{
	if (!amount || amount > AMOUNT_MAX) {
		counted->account->lost[OP_LOSS_undecodable]++;
		return;
	}
	counted->account->received += amount - 1;
	for (uint64_t left = amount; left; left -= counted->amount) {
		counted->amount = (uint32_t)op_min_u64(left, UINT32_MAX);
		opd_count_attributed(pipeline, counted);
	}
}

static void take_new(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header,
		     struct op_sample *sample)
{
	struct opd_resolved resolved;
	struct opd_counted counted;
	uint32_t index;
	struct opd_event *event = event_by_id(pipeline, cpu, sample->id, &index);
	const struct op_event *kind = &pipeline->capture.events[index];
	const struct opd_record record = { .header = header, .sample = sample, .cpu = cpu, .account = event, .event = index };
	int err;

	end_repeat(pipeline);
	sample->cpu = cpu->cpu;
	if (op_unlikely(cpu->notes_id && sample->id == cpu->notes_id)) {
		if (pipeline->interpreters &&
		    opd_interpreter_notes_take(&pipeline->interpreter_notes, pipeline->interpreters, header, sample))
			return;
		if (pipeline->notes)
			opd_notes_take(pipeline->notes, header, sample);
		return;
	}
	if (!event) {
		lose_undecodable(pipeline, cpu, header);
		return;
	}
	if (op_unlikely(sample->id != event->id))
		correct_time(pipeline, sample);
	note_late(cpu, sample);
	if (op_unlikely(kind->role != OP_EVENT_PLAIN)) {
		if (!opd_sources_take(pipeline, &record))
			lose_undecodable(pipeline, cpu, header);
		return;
	}
	event->received++;
	err = opd_attribute(pipeline, kind, header, sample, &resolved, &counted);
	if (op_unlikely(err)) {
		opd_lose_unattributed(event, err);
		return;
	}
	counted.event = index;
	counted.account = event;
	counted.amount = 1;
	if (op_unlikely(kind->carries_amount)) {
		count_amount(pipeline, &counted, op_record_amount(header));
		return;
	}
	opd_count_attributed(pipeline, &counted);
	if (op_unlikely(op_event_has_stack(kind))) {
		opd_stack_records_take_record(pipeline, &record);
		return;
	}
	if (resolved.lasts && sample->id == event->id && !pipeline->capture.with_cgroup &&
	    !opd_capture_has_chain(&pipeline->capture, kind))
		pipeline->repeat = (struct opd_repeat){ .sample = *sample, .event = event };
}

static void take_sample(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header)
{
	struct op_sample sample;

	if (op_record_sample(header, &sample) < 0) {
		lose_undecodable(pipeline, cpu, header);
		return;
	}
	if (!is_repeated(&pipeline->repeat, &sample) || !opd_count_again(&pipeline->count, sample.time_ns)) {
		take_new(pipeline, cpu, header, &sample);
		return;
	}
	pipeline->repeat.event->received++;
	pipeline->repeat.nr++;
	note_late(cpu, &sample);
}

static struct opd_event *event_that_lost(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct op_lost_record *record)
{
	uint32_t index;
	struct opd_event *event = event_by_id(pipeline, cpu, record->id, &index);

	return event ? event : &cpu->events[0];
}

static void take_lost(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header)
{
	struct op_lost_record record;

	if (!op_record_lost(header, &record))
		event_that_lost(pipeline, cpu, &record)->lost_records += record.lost;
}

static void take_lost_samples(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header)
{
	struct op_lost_record record;

	if (!op_record_lost_samples(header, &record))
		event_that_lost(pipeline, cpu, &record)->lost_samples += record.lost;
}

/* The event and the time of a THROTTLE or UNTHROTTLE record; NULL: none of opd's events. */
static struct opd_event *event_of_throttle(struct opd_pipeline *pipeline, struct opd_cpu *cpu,
					   const struct perf_event_header *header, uint64_t *ret_time_ns)
{
	struct op_throttle_record record;
	struct opd_event *event;
	uint32_t index;

	if (op_record_throttle(header, &record) < 0)
		return NULL;
	event = event_by_id(pipeline, cpu, record.id, &index);
	if (event)
		*ret_time_ns = record.time_ns;
	return event;
}

static void take_throttle(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header)
{
	uint64_t time_ns;
	struct opd_event *event = event_of_throttle(pipeline, cpu, header, &time_ns);

	if (!event)
		return;
	event->nr_throttles++;
	event->throttled_since_ns = time_ns;
}

static void take_unthrottle(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header)
{
	uint64_t time_ns;
	struct opd_event *event = event_of_throttle(pipeline, cpu, header, &time_ns);

	if (!event || !event->throttled_since_ns)
		return;
	if (time_ns > event->throttled_since_ns)
		event->throttled_ns += time_ns - event->throttled_since_ns;
	event->throttled_since_ns = 0;
}

static const handler handlers[] = {
	[PERF_RECORD_LOST] = take_lost,
	[PERF_RECORD_THROTTLE] = take_throttle,
	[PERF_RECORD_UNTHROTTLE] = take_unthrottle,
	[PERF_RECORD_SAMPLE] = take_sample,
	[PERF_RECORD_LOST_SAMPLES] = take_lost_samples,
	[OP_RECORD_CALLCHAIN_DEFERRED] = take_deferred,
};

/* Returns the bytes to be read. */
static uint64_t begin(struct opd_cpu *cpu, struct op_ring *ring)
{
	bool is_of_stacks = ring == &cpu->stack_pair.rings[0] || ring == &cpu->stack_pair.rings[1];

	op_ring_begin(ring);
	if (op_unlikely(cpu->in_place))
		ring->head = is_of_stacks ? cpu->frozen_stacks_head : cpu->frozen_head;
	cpu->reading = ring;
	cpu->reading_pair = is_of_stacks ? &cpu->stack_pair : &cpu->pair;
	return ring->head - ring->tail;
}

static inline void take(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header)
{
	if (op_likely(header->type < op_array_size(handlers) && handlers[header->type]))
		handlers[header->type](pipeline, cpu, header);
}

static void end(struct opd_pipeline *pipeline, struct op_ring_pair *pair, struct op_ring *ring, uint64_t nr_bytes,
		uint64_t nr_records)
{
	end_repeat(pipeline);
	opd_count_flush(&pipeline->count);
	op_ring_end(ring);
	if (nr_bytes)
		op_swap_counts_add_read(&pair->counts, nr_bytes, nr_records);
}

void opd_drain_ring(struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct op_ring *ring)
{
	const struct perf_event_header *header;
	uint64_t nr_bytes = begin(cpu, ring), nr_records = 0;

	while ((header = op_ring_next(ring))) {
		nr_records++;
		take(pipeline, cpu, header);
	}
	end(pipeline, cpu->reading_pair, ring, nr_bytes, nr_records);
}

/* A record that is no sample has the time of the samples around it. */
static uint64_t time_of(const struct perf_event_header *header)
{
	struct op_sample sample;

	return header->type == PERF_RECORD_SAMPLE && !op_record_sample(header, &sample) ? sample.time_ns : 0;
}

void opd_drain_in_order(struct opd_pipeline *pipeline, struct opd_cpu *cpu, struct op_ring *flats, struct op_ring *stacks)
{
	uint64_t flat_bytes = begin(cpu, flats), stack_bytes = begin(cpu, stacks), nr_flats = 0, nr_stacks = 0;
	const struct perf_event_header *flat = op_ring_next(flats), *stack = op_ring_next(stacks);

	while (flat || stack) {
		bool is_stack = stack && (!flat || time_of(stack) <= time_of(flat));

		cpu->reading = is_stack ? stacks : flats;
		cpu->reading_pair = is_stack ? &cpu->stack_pair : &cpu->pair;
		take(pipeline, cpu, is_stack ? stack : flat);
		if (is_stack) {
			nr_stacks++;
			stack = op_ring_next(stacks);
		} else {
			nr_flats++;
			flat = op_ring_next(flats);
		}
	}
	end(pipeline, &cpu->pair, flats, flat_bytes, nr_flats);
	end(pipeline, &cpu->stack_pair, stacks, stack_bytes, nr_stacks);
}
