/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/pipeline/ibs_sample.h"

#include <errno.h>

#include "daemon/pipeline/drain.h"
#include "libop/session/memory_view.h"

/* A sample on its way. */
struct taken {
	struct opd_pipeline *pipeline;
	struct opd_cpu *cpu;
	const struct op_event *sampler;
	struct op_ibs ibs;
	struct op_memory_view_add adds[OP_MEM_ADDS_MAX];
	size_t nr_adds;
	struct opd_resolved resolved;
	struct opd_counted counted;
};

static bool decode(struct taken *taken, const struct perf_event_header *header)
{
	struct opd_ibs *ibs = &taken->pipeline->ibs;
	enum op_ibs_kind kind = taken->sampler->sampler.kind;
	const void *raw;
	size_t raw_bytes;
	enum op_ibs_reason reason =
		op_ibs_raw(header, opd_capture_sample_type(&taken->pipeline->capture, taken->sampler), &raw, &raw_bytes);

	if (reason == OP_IBS_OK)
		reason = op_ibs_decode(&ibs->cpu, kind, raw, raw_bytes, &taken->ibs);
	op_ibs_count(&ibs->counts[kind], reason, &taken->ibs);
	return reason == OP_IBS_OK;
}

/* Most samples are none of the few events that were asked for, and need no address then. */
static bool is_wanted(const struct taken *taken)
{
	const struct op_event *events = taken->pipeline->capture.events;

	if (taken->nr_adds)
		return true;
	for (uint32_t i = taken->sampler->first_derived; i < taken->sampler->end_derived; i++)
		if (op_ibs_event_adds(events[i].derived, &taken->ibs))
			return true;
	return false;
}

static void count_derived(struct taken *taken)
{
	for (uint32_t i = taken->sampler->first_derived; i < taken->sampler->end_derived; i++) {
		uint32_t amount = op_ibs_event_adds(taken->pipeline->capture.events[i].derived, &taken->ibs);

		if (!amount)
			continue;
		taken->counted.event = i;
		taken->counted.account = &taken->cpu->events[i];
		taken->counted.amount = amount;
		taken->counted.account->received += amount;
		opd_count_sample(&taken->pipeline->count, &taken->counted);
		if (op_unlikely(opd_capture_has_chain(&taken->pipeline->capture, taken->sampler)))
			opd_arcs_count(&taken->pipeline->arcs, &taken->pipeline->count, &taken->counted);
	}
}

static void remember(struct taken *taken)
{
	uint64_t offset = taken->resolved.location.offset;

	taken->counted.event = taken->sampler->memory;
	taken->counted.account = &taken->cpu->events[taken->sampler->memory];
	for (size_t i = 0; i < taken->nr_adds; i++) {
		taken->resolved.location.offset = op_memory_view_key(offset, taken->adds[i].fact);
		taken->counted.amount = taken->adds[i].amount;
		opd_count_sample(&taken->pipeline->count, &taken->counted);
	}
}

/* 0, or why the sample is lost. */
static int resolve_and_count(struct taken *taken, const struct perf_event_header *header, struct op_sample *sample)
{
	int err;

	if (taken->ibs.has & OP_IBS_HAS_IP)
		sample->ip = taken->ibs.ip;
	err = opd_resolve(&taken->pipeline->resolver, sample, &taken->resolved);
	if (!err && taken->pipeline->capture.with_cgroup)
		err = op_record_sample_cgroup(header, &taken->counted.cgroup_id);
	if (err)
		return err;
	if (op_unlikely(opd_capture_has_chain(&taken->pipeline->capture, taken->sampler)))
		opd_arcs_follow(&taken->pipeline->arcs, &taken->pipeline->resolver, header, sample, &taken->resolved,
				taken->pipeline->count.arcs);
	taken->counted.resolved = &taken->resolved;
	taken->counted.pid = sample->pid;
	taken->counted.tid = sample->tid;
	taken->counted.cpu = sample->cpu;
	count_derived(taken);
	remember(taken);
	return 0;
}

void opd_ibs_take(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct perf_event_header *header, uint32_t index,
		  struct op_sample *sample)
{
	struct opd_event *account = &cpu->events[index];
	struct taken taken = { .pipeline = pipeline, .cpu = cpu, .sampler = &pipeline->capture.events[index] };
	int err = 0;

	if (!decode(&taken, header)) {
		account->lost[OP_LOSS_undecodable]++;
		return;
	}
	if (taken.sampler->memory)
		taken.nr_adds = op_memory_view_adds(&taken.ibs, taken.adds);
	if (is_wanted(&taken))
		err = resolve_and_count(&taken, header, sample);
	if (err) {
		account->lost[err == -EBADMSG ? OP_LOSS_undecodable : OP_LOSS_no_memory]++;
		return;
	}
	account->stored++;
	account->unattributed += taken.resolved.unattributed;
}
