/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/stack_booking.h"

#include "pipeline/count/image_filter.h"
#include "pipeline/count/sink.h"
#include "pipeline/drive/attribute.h"
#include "pipeline/stacks/source.h"

/* ---- whose it is ---- */

static const char *comm_of(const struct opd_pipeline *pipeline, const struct op_sample *sample)
{
	const struct opd_process *process = opd_process_of(pipeline, sample);
	const struct opd_name *name = process ? opd_name_at(process->name, sample->time_ns) : NULL;
	const char *comm = NULL;

	if (name)
		comm = name->comm;
	else if (process)
		comm = opd_process_mm_at(process, sample->time_ns)->comm;
	return comm && *comm ? comm : NULL;
}

static const char *cgroup_of(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken)
{
	const struct opd_capture *capture = &pipeline->capture;
	const struct opd_process *process;
	const char *path;
	uint64_t id;

	if (!(opd_capture_sample_type(capture, &capture->events[taken->event]) & PERF_SAMPLE_CGROUP) ||
	    opd_cgroup_of(pipeline, taken->header, &taken->sample, &id) < 0)
		return NULL;
	process = opd_process_of(pipeline, &taken->sample);
	if (process)
		opd_process_mm_at(process, taken->sample.time_ns)->cgroup_id = id;
	path = opd_cgroups_find_path(&pipeline->resolver.cgroups, id, pipeline->resolver.now_ns);
	return path ? path : OPD_CGROUP_UNKNOWN;
}

/* ---- booking ---- */

/* Counts the image in which a walk stopped. The one with the fewest makes room. */
static void note_stop(struct opd_stacks *stacks, const struct opd_stack *stack)
{
	uint64_t cookie = stack->frames[stack->nr_frames - 1].location.cookie;
	struct opd_stacks_stop *fewest = &stacks->stops[0];

	for (size_t i = 0; i < OPD_STACKS_STOPS_MAX; i++) {
		struct opd_stacks_stop *stop = &stacks->stops[i];

		if (stop->nr && stop->cookie == cookie && stop->end == stack->end) {
			stop->nr++;
			return;
		}
		if (stop->nr < fewest->nr)
			fewest = stop;
	}
	*fewest = (struct opd_stacks_stop){ .cookie = cookie, .end = stack->end, .nr = 1 };
}

/* Kernel threads and idle CPUs have no application. */
static bool is_wanted(const struct opd_pipeline *pipeline, const struct opd_resolved *of)
{
	uint64_t image = of->location.cookie, app = of->app_cookie == OP_DCOOKIE_NONE ? image : of->app_cookie;
	const struct opd_count *count = &pipeline->count;

	return !count->filter || opd_image_filter_wants(count->filter, count->table, app, image);
}

/* The samples of other events are booked without their stacks. */
static bool is_only(const struct opd_pipeline *pipeline, const struct opd_stack_sample *taken)
{
	return op_event_is_stacks(pipeline->capture.events[taken->event].role);
}

void opd_stack_lose(const struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, int err)
{
	struct opd_event *account = taken->account;

	if (!is_only(pipeline, taken)) {
		account->ends[OP_STACK_END_no_room]++;
		return;
	}
	account->received += taken->weight;
	account->lost[err == -EBADMSG ? OP_LOSS_undecodable : OP_LOSS_no_memory] += taken->weight;
}

/* The program of a thread that woke another one. */
static uint64_t program_of_waker(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct opd_resolved *of)
{
	const struct op_sample sample = { .pid = taken->waker.pid,
					  .tid = taken->waker.tid,
					  .time_ns = taken->sample.time_ns,
					  .ip = pipeline->resolver.kernel.text_start,
					  .mode = OP_CPUMODE_KERNEL };
	struct opd_resolved resolved;

	if (taken->waker.is_interrupt)
		return OP_DCOOKIE_NONE;
	if (taken->waker.pid == taken->sample.pid)
		return of->app_cookie;
	return opd_resolve_caller(&pipeline->resolver, &sample, &resolved) ? OP_DCOOKIE_NONE : resolved.app_cookie;
}

void opd_stack_book(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct opd_resolved *of,
		    struct opd_stack *stack)
{
	struct opd_event *account = taken->account;
	struct opd_stacks *stacks = pipeline->stacks;
	bool only = is_only(pipeline, taken);
	uint64_t amount = only ? taken->weight : 0;

	account->received += amount;
	if (!is_wanted(pipeline, of)) {
		account->filtered += amount;
		return;
	}
	stack->event = taken->event;
	stack->weight = taken->weight;
	stack->state = taken->state;
	stack->goes_on = taken->goes_on;
	stack->waker = taken->waker.is_known || taken->waker.is_interrupt ? &taken->waker : NULL;
	stack->waker_app = stack->waker ? program_of_waker(pipeline, taken, of) : OP_DCOOKIE_NONE;
	stack->app_cookie = of->app_cookie;
	stack->comm = comm_of(pipeline, &taken->sample);
	stack->cgroup = cgroup_of(pipeline, taken);
	opd_sinks_stack(&pipeline->count.sinks, stack);
	if (stack->error) {
		stacks->counts.nr_not_stored++;
		account->lost[opd_loss_of(stack->error)] += amount;
		account->ends[OP_STACK_END_no_room] += !only;
		return;
	}
	if (stacks->runtimes && only)
		opd_runtimes_count(stacks->runtimes, stack->end == OP_STACK_END_complete,
				   stack->end == OP_STACK_END_cut || stack->end == OP_STACK_END_too_deep);
	if (stack->has_room && stack->end != OP_STACK_END_complete)
		note_stop(stacks, stack);
	account->ends[stack->has_room ? stack->end : OP_STACK_END_no_room] += only ? amount : 1;
	account->stored += amount;
	account->unattributed += of->unattributed ? amount : 0;
}

/* Its native code stands beside it, as a frame of its own. */
static bool is_interpreted(const struct opd_resolved *frame)
{
	return frame->runtime_name && !frame->native_offset;
}

/* The calls of the last stack: those of native code. */
static void count_calls(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct opd_resolved *of)
{
	const struct opd_stack *stack = &pipeline->stacks->walk.stack;
	const struct opd_resolved *callee = of;
	struct opd_resolved frames[2]; /* a caller and its callee, where their native code is */
	/* then the sample itself is the first native frame, and calls nobody */
	bool is_sample = is_interpreted(&stack->frames[0]);
	uint32_t nr_left = pipeline->capture.callgraph;
	struct opd_counted caller = {
		.account = taken->calls_account,
		.event = taken->calls_event,
		.amount = taken->nr_calls,
		.pid = taken->sample.pid,
		.tid = taken->sample.tid,
		.cpu = taken->sample.cpu,
		.time_ns = taken->sample.time_ns,
	};

	if (pipeline->capture.with_cgroup && opd_cgroup_of(pipeline, taken->header, &taken->sample, &caller.cgroup_id) < 0)
		return;
	for (size_t i = 1; i < stack->nr_frames && nr_left; i++) {
		struct opd_resolved *frame = callee == &frames[0] ? &frames[1] : &frames[0];

		if (stack->frames[i - 1].is_inlined || is_interpreted(&stack->frames[i]))
			continue;
		if (is_sample) {
			is_sample = false;
			continue;
		}
		nr_left--;
		*frame = stack->frames[i];
		if (frame->runtime_name)
			frame->location.offset = frame->native_offset + 1;
		caller.resolved = frame;
		opd_count_call(&pipeline->count, &caller, callee);
		callee = frame;
	}
}

/* By how much the copy was too short, where the size of the stack is known. */
static void note_cut(const struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct opd_resolved *of,
		     const struct op_stack_record *record)
{
	struct opd_stacks *stacks = pipeline->stacks;
	struct opd_stacks_counts *counts = &stacks->counts;
	uint64_t nr_missing = taken->stack_distance - op_min_u64(record->nr_stack_bytes, taken->stack_distance);

	if (stacks->walk.stack.end != OP_STACK_END_cut || !nr_missing || !is_wanted(pipeline, of))
		return;
	counts->nr_cut++;
	counts->cut_bytes += nr_missing;
	counts->cut_most_bytes = op_max_u64(counts->cut_most_bytes, nr_missing);
}

bool opd_stack_try(struct opd_pipeline *pipeline, const struct opd_stack_sample *taken, const struct op_chain *later_chain,
		   bool may_wait)
{
	struct opd_stacks *stacks = pipeline->stacks;
	struct op_stack_record record;
	struct opd_resolved of;
	int err = opd_stack_decode(stacks, &pipeline->capture, &pipeline->resolver, taken, &record, &of);

	/* A call may have other images than the sample. */
	if (!err && (is_wanted(pipeline, &of) || taken->nr_calls)) {
		err = opd_stack_make(stacks, &pipeline->capture, &pipeline->resolver, taken, &record, &of, later_chain,
				     may_wait);
		if (!err && may_wait && (stacks->walk.stack.end == OP_STACK_END_no_table_yet || stacks->walk.deferred))
			return false;
	}
	if (err) {
		opd_stack_lose(pipeline, taken, err);
		return true;
	}
	note_cut(pipeline, taken, &of, &record);
	opd_stack_book(pipeline, taken, &of, &stacks->walk.stack);
	if (op_unlikely(taken->nr_calls))
		count_calls(pipeline, taken, &of);
	return true;
}
