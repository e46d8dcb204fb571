/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/merge.h"

#include <string.h>

/* A caller is one byte behind its call. */
static bool is_loop(const struct opd_stack *stack, size_t frame, const struct opd_interpreter_stack *runtime)
{
	const struct op_location *location = &stack->frames[frame].location;
	uint64_t position = location->offset - (frame ? 1 : 0);

	return location->cookie == runtime->cookie && position >= runtime->loop_start && position < runtime->loop_end;
}

/* How many functions the innermost loop of the rest ran. */
static size_t nr_of_loop(const struct opd_interpreter_stack *runtime, size_t from)
{
	size_t nr = 0;

	while (from + nr < runtime->nr_frames && !runtime->calls[from + nr++].is_entry)
		;
	return nr;
}

static struct opd_resolved frame_of(const struct opd_stack *stack, const struct opd_interpreter_stack *runtime, size_t call)
{
	return (struct opd_resolved){
		.location = { .cookie = runtime->cookie, .offset = runtime->calls[call].line },
		.runtime_name = runtime->calls[call].name,
		.app_cookie = stack->frames[0].app_cookie,
	};
}

/*
 * From the outermost frame on, so that frames move to their last place at once. nr_loops: that have
 * functions, from the innermost one on; firsts: where those of each begin.
 */
static void spread(struct opd_stack *stack, const struct opd_interpreter_stack *runtime, size_t nr_outer, size_t outer_first,
		   size_t nr_loops, const uint16_t *firsts)
{
	size_t to = stack->nr_frames + runtime->nr_frames, loops_left = 0;

	for (size_t i = 0; i < stack->nr_frames; i++)
		loops_left += is_loop(stack, i, runtime);
	for (size_t i = nr_outer; i-- > 0;)
		stack->frames[--to] = frame_of(stack, runtime, outer_first + i);
	for (size_t i = stack->nr_frames; i-- > 0;) {
		bool was_loop = is_loop(stack, i, runtime);

		stack->frames[--to] = stack->frames[i];
		if (!was_loop || --loops_left >= nr_loops)
			continue;
		if (!i) /* the sample was in the loop, which is a caller now */
			stack->frames[to].location.offset++;
		for (size_t call = firsts[loops_left + 1]; call-- > firsts[loops_left];)
			stack->frames[--to] = frame_of(stack, runtime, call);
	}
}

/*
 * No frame is in the loop: an interpreter of tail calls (Python 3.14) has none. All functions lie
 * below its innermost frame then. Reports fold its own frames, so it matters little which it is.
 * False: no frame is of the interpreter.
 */
static bool put_below_innermost(struct opd_stack *stack, const struct opd_interpreter_stack *runtime)
{
	size_t nr = runtime->nr_frames, at = 0;

	while (at < stack->nr_frames && (stack->frames[at].location.cookie != runtime->cookie || stack->frames[at].is_kernel))
		at++;
	if (at == stack->nr_frames)
		return false;
	memmove(&stack->frames[at + nr], &stack->frames[at], (stack->nr_frames - at) * sizeof(*stack->frames));
	if (!at) /* the sample was there, and is a caller now */
		stack->frames[nr].location.offset++;
	for (size_t i = 0; i < nr; i++)
		stack->frames[at + i] = frame_of(stack, runtime, i);
	stack->nr_frames += nr;
	return true;
}

void opd_stack_merge(struct opd_stack *stack, const struct opd_interpreter_stack *runtime)
{
	uint16_t firsts[OPD_STACK_FRAMES_MAX + 1];
	size_t nr_loops = 0, nr_named = 0;

	if (stack->nr_frames > OPD_STACK_FRAMES_MAX || runtime->nr_frames > OPD_STACK_RUNTIME_MAX)
		return;
	firsts[0] = 0;
	for (size_t i = 0; i < stack->nr_frames && nr_named < runtime->nr_frames; i++) {
		if (!is_loop(stack, i, runtime))
			continue;
		nr_named += nr_of_loop(runtime, nr_named);
		firsts[++nr_loops] = (uint16_t)nr_named;
	}
	if (!nr_loops && put_below_innermost(stack, runtime))
		return;
	spread(stack, runtime, runtime->nr_frames - nr_named, nr_named, nr_loops, firsts);
	stack->nr_frames += runtime->nr_frames;
}
