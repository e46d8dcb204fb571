/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/drive/ibs_sample.h"

#include <errno.h>

#include "libop/session/memory_view.h"
#include "pipeline/drive/attribute.h"

/* A decoded record. */
struct decoded {
	const struct op_event *sampler;
	struct op_ibs ibs;
	struct op_memory_view_add adds[OP_MEM_ADDS_MAX];
	size_t nr_adds;
};

static bool decode(struct opd_pipeline *pipeline, const struct perf_event_header *header, struct decoded *decoded)
{
	enum op_ibs_kind kind = decoded->sampler->sampler.kind;
	const void *raw;
	size_t raw_bytes;
	enum op_ibs_reason reason =
		op_ibs_raw(header, opd_capture_sample_type(&pipeline->capture, decoded->sampler), &raw, &raw_bytes);

	if (reason == OP_IBS_OK)
		reason = op_ibs_decode(&pipeline->ibs.cpu, kind, raw, raw_bytes, &decoded->ibs);
	op_ibs_count(&pipeline->ibs.counts[kind], reason, &decoded->ibs);
	if (reason == OP_IBS_OK && decoded->sampler->memory)
		decoded->nr_adds = op_memory_view_adds(&decoded->ibs, decoded->adds);
	return reason == OP_IBS_OK;
}

/* Most samples belong to none of the few chosen events. Their address need not be resolved. */
static bool is_wanted(const struct op_event *events, const struct decoded *decoded)
{
	if (decoded->nr_adds)
		return true;
	for (uint32_t i = decoded->sampler->first_derived; i < decoded->sampler->end_derived; i++)
		if (op_ibs_event_adds(events[i].derived, &decoded->ibs))
			return true;
	return false;
}

static void count_derived(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct decoded *decoded,
			  struct opd_counted *counted)
{
	for (uint32_t i = decoded->sampler->first_derived; i < decoded->sampler->end_derived; i++) {
		counted->amount = op_ibs_event_adds(pipeline->capture.events[i].derived, &decoded->ibs);
		if (!counted->amount)
			continue;
		counted->event = i;
		counted->account = &cpu->events[i];
		counted->account->received += counted->amount;
		opd_count_attributed(pipeline, counted);
	}
}

/* The memory view keeps the data access beside the offset of the instruction. */
static void count_memory(struct opd_pipeline *pipeline, struct opd_cpu *cpu, const struct decoded *decoded,
			 struct opd_resolved *resolved, struct opd_counted *counted)
{
	uint64_t offset = resolved->location.offset;

	counted->event = decoded->sampler->memory;
	counted->account = &cpu->events[counted->event];
	for (size_t i = 0; i < decoded->nr_adds; i++) {
		resolved->location.offset = op_memory_view_key(offset, decoded->adds[i].fact);
		counted->amount = decoded->adds[i].amount;
		opd_count_sample(&pipeline->count, counted);
	}
}

bool opd_ibs_is_of(const struct op_event *event)
{
	return event->role == OP_EVENT_SAMPLER;
}

void opd_ibs_take(void *host, const struct opd_record *record)
{
	struct opd_pipeline *pipeline = host;
	const struct op_event *events = pipeline->capture.events;
	const struct perf_event_header *header = record->header;
	struct op_sample *sample = record->sample;
	struct opd_event *account = record->account;
	struct decoded decoded = { .sampler = &events[record->event] };
	struct opd_resolved resolved;
	struct opd_counted counted;
	int err;

	account->received++;
	if (!decode(pipeline, header, &decoded)) {
		account->lost[OP_LOSS_undecodable]++;
		return;
	}
	if (!is_wanted(events, &decoded)) {
		account->stored++;
		return;
	}
	if (decoded.ibs.has & OP_IBS_HAS_IP)
		sample->ip = decoded.ibs.ip;
	err = opd_attribute(pipeline, decoded.sampler, header, sample, &resolved, &counted);
	if (err) {
		opd_lose_unattributed(account, err);
		return;
	}
	account->stored++;
	account->unattributed += resolved.unattributed;
	count_derived(pipeline, record->cpu, &decoded, &counted);
	count_memory(pipeline, record->cpu, &decoded, &resolved, &counted);
}
