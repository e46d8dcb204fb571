/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Specifications of IBS events, and how they become a perf_event_attr. A specification is
 *
 *   NAME:count[:unitmask[:kernel[:user]]][:FILTER...]
 *
 * NAME is in the table of libop/events/ibs_derived.h, and the numbers are those of any event
 * (libop/events/event.h). A FILTER is a word anywhere behind the count:
 *
 *   l3miss         only samples that missed the L3 cache; Zen 4
 *   ldlat=CYCLES   ops: only loads that waited longer; Zen 5
 *   rand           fetches: random low bits of the count
 *
 * A CPU has one sampler for fetches and one for ops. All events of a kind use the same samples, so
 * they share count, unit mask and filters. Any thread.
 */
#ifndef OP_IBS_REQUEST_H
#define OP_IBS_REQUEST_H

#include "libop/events/ibs_derived.h"
#include "libop/base/text.h"

/* of every event: the field ctr_count of a sample file has 32 bits */
#define OP_EVENT_COUNT_MAX UINT32_MAX
#define OP_IBS_LD_LAT_MIN 128
#define OP_IBS_LD_LAT_MAX 2048

/* What the CPU and the kernel offer. */
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

/* The settings of a sampler. */
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
 * Parses one specification. 0; -EINVAL and *ret_why, a message with the nearest allowed value if
 * there is one, which the caller frees; -ENOENT: not an event of IBS; -ENOMEM.
 */
int op_ibs_request_parse(const char *spec, const struct op_ibs_host *host, struct op_ibs_request *ret_request,
			 char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* Makes the message "event SPEC: WHY", which the caller frees. Returns -EINVAL, or -ENOMEM. */
int op_event_refuse(const char *spec, const char *why, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* The samplers of a list of requests, at most one of each kind. */
struct op_ibs_plan {
	struct op_ibs_sampler samplers[OP_IBS_NR_KINDS];
	size_t nr_samplers;
};

/* 0; -EINVAL and *ret_why, as above: two requests of a kind need different settings; -ENOMEM. */
int op_ibs_plan(const struct op_ibs_request *requests, size_t nr_requests, struct op_ibs_plan *ret_plan,
		char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * Fills size, type, config, config1, config2, period and exclude_* of a zeroed attr. pmu_type is
 * the number in /sys/bus/event_source/devices/ibs_fetch/type or ibs_op/type. The caller sets the
 * rest, such as PERF_SAMPLE_RAW.
 */
void op_ibs_attr(const struct op_ibs_sampler *sampler, uint32_t pmu_type, struct perf_event_attr *attr) OP_NONNULL;

/* Writes the filters as in a specification, each behind a ':'. */
void op_ibs_filter_format(const struct op_ibs_filter *filter, struct op_text *text) OP_NONNULL;

/*
 * The reverse of op_ibs_attr: count, unit mask and filters of a sampler of known kind. An invalid
 * period is 0.
 */
void op_ibs_attr_read(const struct perf_event_attr *attr, struct op_ibs_sampler *sampler) OP_NONNULL;

/* The nearest allowed period; the same one when it is allowed. */
uint64_t op_ibs_period_nearest(enum op_ibs_kind kind, uint64_t period) OP_MUST_CHECK;

#endif
