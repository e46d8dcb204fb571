/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-events/rule.h"

#include <string.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"

#define SAMPLE_TYPES                                                                                                               \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CGROUP |                       \
	 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define READ_FORMATS (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_LOST)

static const struct perf_event_attr used_flags = {
	.disabled = 1,
	.exclude_user = 1,
	.exclude_kernel = 1,
	.exclude_hv = 1,
	.exclude_idle = 1,
	.mmap = 1,
	.comm = 1,
	.freq = 1,
	.task = 1,
	.watermark = 1,
	.sample_id_all = 1,
	.exclude_callchain_kernel = 1,
	.exclude_callchain_user = 1,
	.mmap2 = 1,
	.comm_exec = 1,
	.use_clockid = 1,
	.write_backward = 1,
	.namespaces = 1,
	.ksymbol = 1,
	.bpf_event = 1,
	.cgroup = 1,
};

void ope_samplers_read(struct ope_samplers *ret_samplers)
{
	static const char *const paths[] = {
		"/sys/bus/event_source/devices/ibs_fetch/type",
		"/sys/bus/event_source/devices/ibs_op/type",
	};
	struct ope_samplers samplers = { { 0 } };

	for (size_t i = 0; i < op_array_size(paths); i++) {
		uint64_t type;

		if (!op_file_read_u64(paths[i], PERF_TYPE_MAX, INT32_MAX, &type))
			samplers.types[i] = (uint32_t)type;
	}
	*ret_samplers = samplers;
}

static uint64_t flags_of(const struct perf_event_attr *attr)
{
	uint64_t flags;

	memcpy(&flags, (const char *)attr + OP_ATTR_FLAGS_OFFSET, sizeof(flags));
	return flags;
}

static bool is_sampler(const struct ope_samplers *samplers, uint32_t type)
{
	return type >= PERF_TYPE_MAX && (type == samplers->types[0] || type == samplers->types[1]);
}

/* What a BPF program of opd writes to: the event WAIT. */
static bool is_bpf_output(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_BPF_OUTPUT;
}

static bool is_used_event(const struct ope_samplers *samplers, const struct perf_event_attr *attr)
{
	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		return attr->config < PERF_COUNT_HW_MAX;
	case PERF_TYPE_SOFTWARE:
		return attr->config <= PERF_COUNT_SW_DUMMY || is_bpf_output(attr);
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_RAW:
		return true;
	default:
		return is_sampler(samplers, attr->type);
	}
}

/* True when all is 0 that opd never sets. */
static bool has_no_more(const struct perf_event_attr *attr, bool of_sampler)
{
	static const struct perf_event_attr none;
	struct perf_event_attr rest = *attr;

	rest.type = rest.size = 0;
	rest.config = rest.sample_period = rest.sample_type = rest.read_format = 0;
	memset((char *)&rest + OP_ATTR_FLAGS_OFFSET, 0, sizeof(uint64_t));
	rest.wakeup_events = 0;
	if (of_sampler)
		rest.config1 = rest.config2 = 0;
	rest.sample_regs_user = 0;
	rest.sample_stack_user = 0;
	rest.clockid = 0;
	rest.sample_max_stack = 0;
	return !memcmp(&rest, &none, sizeof(rest));
}

bool ope_rule_allows(const struct ope_samplers *samplers, const struct op_event_request *request)
{
	const struct perf_event_attr *attr = &request->attr;
	bool of_sampler = is_sampler(samplers, attr->type);
	uint64_t sample_types = SAMPLE_TYPES | (of_sampler || is_bpf_output(attr) ? PERF_SAMPLE_RAW : 0);
	uint64_t flags = flags_of(&used_flags) | OP_ATTR_DEFER_CHAIN | OP_ATTR_DEFER_OUTPUT;

	if (request->cpu < 0 || request->reserved || attr->size != sizeof(*attr) || !is_used_event(samplers, attr))
		return false;
	return !(attr->sample_type & ~sample_types) && !(attr->read_format & ~(uint64_t)READ_FORMATS) &&
	       !(flags_of(attr) & ~flags) && attr->clockid == (attr->use_clockid ? OP_CLOCK : 0) && has_no_more(attr, of_sampler);
}
