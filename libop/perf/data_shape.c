/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_shape.h"

#define SKID_BYTES 4096u

/*
 * The kernel gives precise cycles and micro-ops to ibs_op. No other event of these types has raw
 * data.
 */
static bool may_be_forwarded(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW;
}

bool op_perf_may_be_ibs(const struct op_perf_features *features, const struct op_perf_event *event)
{
	enum op_ibs_kind kind;

	if (!(event->attr.sample_type & PERF_SAMPLE_RAW) || op_perf_is_ibs(features, event, &kind))
		return false;
	return event->attr.type >= PERF_TYPE_MAX ? !features->has_pmus : may_be_forwarded(&event->attr);
}

static bool is_kind(enum op_ibs_kind kind, const uint8_t *raw, uint32_t raw_bytes, uint64_t ip)
{
	struct op_ibs_cpu cpu;
	struct op_ibs ibs;

	op_ibs_cpu_init(0, 0, &cpu);
	return op_ibs_decode(&cpu, kind, raw, raw_bytes, &ibs) == OP_IBS_OK &&
	       !(ibs.notes & (OP_IBS_NOTE_UNKNOWN_CAPS | OP_IBS_NOTE_MISSING)) && ibs.has & OP_IBS_HAS_IP && ibs.ip &&
	       (ibs.ip > ip ? ibs.ip - ip : ip - ibs.ip) <= SKID_BYTES;
}

bool op_perf_recognise(struct op_perf_events *events, uint32_t event, const uint8_t *raw, uint32_t raw_bytes, uint64_t ip)
{
	uint32_t type = events->events[event].attr.type;

	for (enum op_ibs_kind kind = 0; kind < OP_IBS_NR_KINDS; kind++) {
		if (!is_kind(kind, raw, raw_bytes, ip))
			continue;
		for (size_t i = 0; i < events->nr_events; i++)
			if (i == event || (type >= PERF_TYPE_MAX && events->events[i].attr.type == type))
				events->events[i].recognised = (uint8_t)(kind + 1);
		return true;
	}
	return false;
}
