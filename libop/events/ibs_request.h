/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a user asks of IBS, and what that is for perf_event_open. A specification is
 *
 *   NAME:count[:unitmask[:kernel[:user]]][:FILTER...]
 *
 * with NAME out of libop/events/ibs_derived.h; the numbers are those of any event (libop/events/event.h). A FILTER is a word, anywhere behind the
 * count: `l3miss` (only what missed the L3 cache; Zen 4), `ldlat=CYCLES` (ops: only loads that waited longer; Zen 5),
 * `rand` (fetches: the low bits of the count are random).
 *
 * A CPU has one sampler for fetches and one for ops. All events of a kind are read out of the same samples, so they have the
 * count, unit mask and filters in common.
 */
#ifndef OP_IBS_REQUEST_H
#define OP_IBS_REQUEST_H

#include "libop/events/ibs_derived.h"
#include "libop/base/text.h"

#define OP_IBS_LD_LAT_MIN 128
#define OP_IBS_LD_LAT_MAX 2048

/* What the CPU offers. */
struct op_ibs_host {
	struct op_ibs_cpu cpu;
	uint32_t caps;			    /* enum op_ibs_caps */
	uint32_t pmu_types[OP_IBS_NR_KINDS]; /* perf_event_attr.type of its samplers */
};

struct op_ibs_filter {
	bool l3_miss_only;
	bool random;
	uint32_t load_latency; /* cycles; 0: any */
};

/* How a sampler is set. */
struct op_ibs_sampler {
	enum op_ibs_kind kind;
	uint64_t count; /* cycles or dispatched ops between two samples, fetches for OP_IBS_FETCH */
	uint32_t unit_mask;
	bool kernel, user;
	struct op_ibs_filter filter;
};

struct op_ibs_request {
	const struct op_ibs_event *event;
	struct op_ibs_sampler sampler;
};

/*
 * Reads one specification. 0; -EINVAL and *ret_why, a text that names the event, what is wrong with it and where it can be the
 * nearest value that is allowed, to be freed by the caller; -ENOENT: the name is none of IBS; -ENOMEM.
 */
int op_ibs_request_parse(const char *spec, const struct op_ibs_host *host, struct op_ibs_request *ret_request,
			 char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* The samplers that requests need: at most one of each kind. */
struct op_ibs_plan {
	struct op_ibs_sampler samplers[OP_IBS_NR_KINDS];
	size_t nr_samplers;
};

/* 0; -EINVAL and *ret_why, as above, when two of a kind do not agree; -ENOMEM. */
int op_ibs_plan(const struct op_ibs_request *requests, size_t nr_requests, struct op_ibs_plan *ret_plan,
		char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Fills config, config1, config2, the period and exclude_* of a zeroed attr, and its size. pmu_type is the number in
 * /sys/bus/event_source/devices/ibs_fetch/type or ibs_op/type. PERF_SAMPLE_RAW and the rest are the caller's.
 */
void op_ibs_attr(const struct op_ibs_sampler *sampler, uint32_t pmu_type, struct perf_event_attr *attr) OP_NONNULL;

/* What a specification says beyond NAME:count:unitmask:kernel:user, each part with its ':' before it. */
void op_ibs_filter_format(const struct op_ibs_filter *filter, struct op_text *text) OP_NONNULL;

/* The other way round: count, unit mask and filters of a sampler whose kind is given, out of an attr that some kernel took. */
void op_ibs_attr_read(const struct perf_event_attr *attr, struct op_ibs_sampler *sampler) OP_NONNULL;

/* The period that is allowed and nearest to this one; the same when it is allowed itself. */
uint64_t op_ibs_period_nearest(enum op_ibs_kind kind, uint64_t period) OP_MUST_CHECK;

/*
 * The period of an event that has it in attr.config instead of attr.sample_period, as Linux 6.15 reads it. 0; -EINVAL: bits that
 * the CPU does not have, or a period that the kernel refuses.
 */
int op_ibs_config_period(enum op_ibs_kind kind, uint32_t caps, uint64_t config, uint64_t *ret_period) OP_NONNULL OP_MUST_CHECK;

#endif
