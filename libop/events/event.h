/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Events: what is counted, and how a name becomes a perf_event_attr.
 *
 *   NAME:count[:unitmask[:kernel[:user]]]
 *
 * NAME is TIMER (count is a period in ns of PERF_COUNT_SW_CPU_CLOCK, idle excluded), one of perf's generic hardware and
 * software names (perf-list(1): cycles, instructions, cache-misses, page-faults ...), SUBSYSTEM:NAME, a tracepoint, or rNNN, a raw event in
 * hexadecimal, which may be given a name, rNNN=NAME (that is what opcontrol makes of names that libpfm4 knows).
 * kernel and user are 0 or 1 (default 1): whether code of that kind is sampled. Names compare without regard to case; the
 * canonical spelling is the table's. The derived events of IBS have a form of their own (libop/events/ibs_request.h).
 */
#ifndef OP_EVENTS_H
#define OP_EVENTS_H

#include <linux/perf_event.h>

#include "libop/base/compiler.h"
#include "libop/events/ibs_request.h"
#include "libop/base/text.h"

#define OP_EVENT_NAME_BYTES 64
#define OP_EVENTS_MAX 128 /* in one setup */
#define OP_EVENT_COUNT_MAX UINT32_MAX /* the field ctr_count of a sample file has 32 bits */

/* How an event comes to its samples. */
enum op_event_role {
	OP_EVENT_PLAIN,   /* the kernel takes one when the event's count has come */
	OP_EVENT_SAMPLER, /* so it does of an IBS sampler, which has no sample files: what its samples say is the derived events' */
	OP_EVENT_DERIVED, /* counted out of the samples of a sampler; may add more than 1, in a unit of its own */
	OP_EVENT_MEMORY,  /* what the memory view keeps of them, below mem/ and in no ledger (libop/session/memory_view.h) */
	OP_NR_EVENT_ROLES,
};

struct op_event {
	char name[OP_EVENT_NAME_BYTES]; /* canonical; has no '.' and no '/', so that it can be part of a file name */
	uint64_t count;			/* sampling period: events, or ns for TIMER */
	uint32_t unit_mask;
	bool kernel, user;
	bool is_timer;	   /* TIMER */
	bool every_event;  /* a software event with count 1: each event is a sample, so the event's own count is `taken` */
	uint32_t type;	   /* perf_event_attr.type */
	uint64_t config;   /* perf_event_attr.config */
	uint32_t number;   /* header field ctr_event: 0 for TIMER, else a number of opd's own that is never reused; raw events:
			      bit 31 and the code, folded to 31 bits; tracepoints: bit 30 and a hash of the name */
	enum op_event_role role;
	struct op_ibs_sampler sampler;       /* of a SAMPLER how it is set, of a DERIVED one how its sampler is */
	const struct op_ibs_event *derived;  /* of a DERIVED one */
	uint32_t cpu_type;                   /* of a DERIVED one, the header field cpu_type: whose event files have the number */
	uint32_t first_derived, end_derived; /* of a SAMPLER: where its events are in the list (libop/events/event_list.h) */
	uint32_t memory;                     /* of a SAMPLER: where its MEMORY event is; 0: it has none */
	bool without_chain;                  /* its samples have no call chain, whatever those of the others have */
};

/*
 * Reads one specification. 0; -EINVAL and *ret_why, a text that names the event and what is wrong with it, to be freed by the
 * caller; -ENOMEM.
 */
int op_event_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* True when the count is a period in ns: TIMER, cpu-clock, task-clock. */
bool op_event_is_clock(const struct op_event *event) OP_NONNULL;

#define OP_EVENT_CALLGRAPH_FACTOR 15 /* the smallest period is so many times as large with call graphs, as oprofile has it */

/* The smallest period that the event may have. */
uint64_t op_event_min_count(const struct op_event *event) OP_NONNULL;

/* The specification with all five fields, as daemonrc keeps it. */
void op_event_format(const struct op_event *event, struct op_text *text) OP_NONNULL;

/* One row of the table of events. */
struct op_event_info {
	const char *name;	 /* canonical */
	const char *also;	 /* another name for it, or NULL */
	const char *description; /* what it counts, in words */
	uint64_t min_count;	 /* smallest period */
};

/* Row `index` of the table, from 0; NULL after the last. Raw events have no row. */
const struct op_event_info *op_event_info(size_t index) OP_MUST_CHECK;

/* What the event counts, in words ("Page faults"); NULL when the name is none of opd's. */
const char *op_event_description(const char *name) OP_NONNULL;

/* What kind of event has such a number: a raw event, a tracepoint; NULL when it is of the table, or no number of opd's. */
const char *op_event_kind(uint32_t number);

/*
 * The number (ctr_event) in the sample files of an event of that name. False: the name does not tell, as that which a raw event was given. A raw event may have been
 * given the name of another one by the stream that it was imported from: op_event_is_raw_number.
 */
bool op_event_number(const char *name, uint32_t *ret_number) OP_NONNULL OP_MUST_CHECK;
bool op_event_is_raw_number(uint32_t number) OP_MUST_CHECK;

/*
 * The default: cycles with a period of about 1,000 samples per busy CPU-second where cycles can be counted, else TIMER:1000000.
 * *ret_has_pmu says which.
 */
void op_event_default(struct op_event *ret_event, bool *ret_has_pmu) OP_NONNULL;

/* Fills type, config, period, exclude_* of a zeroed attr, and its size. What else is asked for is the caller's. */
void op_event_attr(const struct op_event *event, struct perf_event_attr *attr) OP_NONNULL;

/*
 * Asks the kernel whether this host counts the event, on the first online CPU. 0; -errno and *ret_why, one line that names
 * the event and the reason (no PMU, not permitted, period too small ...), to be freed by the caller.
 */
int op_event_check(const struct op_event *event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* The line that explains an errno of perf_event_open for this event; to be freed by the caller, NULL without memory. */
char *op_event_explain(const struct op_event *event, int err) OP_NONNULL OP_MUST_CHECK;

#endif
