/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every kind of sample is attributed and counted here. Sync thread only. */
#ifndef OPD_ATTRIBUTE_H
#define OPD_ATTRIBUTE_H

#include "pipeline/drive/pipeline.h"

static inline const struct opd_process *opd_process_of(const struct opd_pipeline *pipeline, const struct op_sample *sample)
{
	return opd_is_pid(sample->pid) ? opd_process_find(&pipeline->resolver.processes, sample->pid) : NULL;
}

/*
 * The number of the cgroup. 0: unknown. A task that has given up its memory to end has registers
 * and no stack. The kernel then writes an empty copy of the stack that is a word longer than the
 * room for it (perf_output_sample_ustack() in kernel/events/core.c; seen on 5.10 and 6.18), so a 0
 * stands at the end of the record and the cgroup behind it. The cgroup of another stack since the
 * exec or the fork is taken. 0 or -EBADMSG.
 */
static inline int opd_cgroup_of(const struct opd_pipeline *pipeline, const struct perf_event_header *header,
				const struct op_sample *sample, uint64_t *ret_id)
{
	int err = op_record_sample_cgroup(header, ret_id);

	if (op_unlikely(!err && !*ret_id)) {
		const struct opd_process *process = opd_process_of(pipeline, sample);

		*ret_id = process ? opd_process_mm_at(process, sample->time_ns)->cgroup_id : 0;
	}
	return err;
}

/*
 * Finds the image, the cgroup and the callers of a sample of `event`, whose record is `header`.
 * *ret_counted is complete but for event, account and amount, and refers to *ret_resolved. 0,
 * -ENOMEM or -EBADMSG. Inline, since it runs for each sample.
 */
static inline int opd_attribute(struct opd_pipeline *pipeline, const struct op_event *event, const struct perf_event_header *header,
				const struct op_sample *sample, struct opd_resolved *ret_resolved, struct opd_counted *ret_counted)
{
	const struct opd_capture *capture = &pipeline->capture;
	int err = opd_resolve(&pipeline->resolver, sample, ret_resolved);

	*ret_counted = (struct opd_counted){ .resolved = ret_resolved, .pid = sample->pid, .tid = sample->tid, .cpu = sample->cpu,
					     .time_ns = sample->time_ns };
	if (!err && op_unlikely(capture->with_cgroup))
		err = opd_cgroup_of(pipeline, header, sample, &ret_counted->cgroup_id);
	if (op_unlikely(capture->callgraph)) {
		pipeline->arcs.nr_callers = 0;
		if (!err && opd_capture_has_chain(capture, event))
			opd_arcs_follow(&pipeline->arcs, &pipeline->resolver, header, sample, ret_resolved,
					pipeline->count.arcs);
	}
	return err;
}

/* Counts an attributed sample and the calls of its chain. */
static inline void opd_count_attributed(struct opd_pipeline *pipeline, const struct opd_counted *counted)
{
	opd_count_sample(&pipeline->count, counted);
	if (op_unlikely(pipeline->arcs.nr_callers))
		opd_arcs_count(&pipeline->arcs, &pipeline->count, counted);
}

/* Books a sample that opd_attribute could not attribute. */
static inline void opd_lose_unattributed(struct opd_event *account, int err)
{
	account->lost[err == -EBADMSG ? OP_LOSS_undecodable : OP_LOSS_no_memory]++;
}

#endif
