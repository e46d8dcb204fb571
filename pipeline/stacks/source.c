/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/source.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "pipeline/stacks/merge.h"

int opd_stack_decode(const struct opd_stacks *stacks, const struct opd_capture *capture, struct opd_resolver *resolver,
		     const struct opd_stack_sample *taken, struct op_stack_record *ret_record, struct opd_resolved *ret_of)
{
	const struct op_event *event = &capture->events[taken->event];
	const struct op_stack_layout layout = {
		.sample_type = opd_capture_sample_type(capture, event),
		.registers = event->has_stack ? event->stack_registers : stacks->registers,
		.machine = stacks->machine,
	};
	int err = op_stack_record(taken->header, taken->sample.mode, &layout, ret_record);

	if (!err && ret_record->has_chain && taken->nr_skipped <= ret_record->chain.nr_words) {
		ret_record->chain.words += taken->nr_skipped;
		ret_record->chain.nr_words -= taken->nr_skipped;
	}
	return err ? err : opd_resolve(resolver, &taken->sample, ret_of);
}

int opd_stack_make(struct opd_stacks *stacks, const struct opd_capture *capture, struct opd_resolver *resolver,
		   const struct opd_stack_sample *taken, const struct op_stack_record *record, const struct opd_resolved *of,
		   const struct op_chain *later_chain, bool may_wait)
{
	const struct opd_stack_lookup lookup = {
		.resolver = resolver,
		.tables = stacks->tables,
		.interpreters = stacks->interpreters,
		.runtimes = stacks->runtimes,
		.may_wait = may_wait,
		.max_stack = capture->max_stack,
		.machine = stacks->machine,
	};
	uint64_t begin_ns = op_now_ns();

	opd_stack_walk(&stacks->walk, &lookup, &taken->sample, of, record, later_chain);
	if (taken->runtime && stacks->walk.stack.names)
		opd_stack_merge(&stacks->walk.stack, taken->runtime);
	stacks->counts.walk_ns += op_now_ns() - begin_ns;
	stacks->counts.nr_walks++;
	stacks->counts.nr_frames += stacks->walk.stack.nr_frames;
	return stacks->walk.no_memory ? -ENOMEM : 0;
}
