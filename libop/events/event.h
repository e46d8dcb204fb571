/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Events: their table, their specifications, and how they become a perf_event_attr. Any thread.
 *
 *   NAME:count[:unitmask[:kernel[:user]]]
 *
 * NAME is one of
 *
 *   TIMER            the count is a period in ns of PERF_COUNT_SW_CPU_CLOCK, idle excluded
 *   cycles ...       perf's generic hardware and software events (perf-list(1)), in any case
 *   SUBSYSTEM:NAME   a tracepoint
 *   rNNN, rNNN=NAME  a raw event in hexadecimal; opcontrol makes these of the names of libpfm4
 *   IBS_...          the derived events of IBS, with more fields (libop/events/ibs_request.h)
 *
 * kernel and user are 0 or 1 (the default): whether to sample code of that kind.
 */
#ifndef OP_EVENTS_H
#define OP_EVENTS_H

#include <linux/perf_event.h>

#include "libop/base/text.h"
#include "libop/events/event_def.h"

/* Parses one specification. 0; -EINVAL and *ret_why, a message that the caller frees; -ENOMEM. */
int op_event_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* True when the count is a period in ns: TIMER, cpu-clock, task-clock. */
bool op_event_is_clock(const struct op_event *event) OP_NONNULL;

#define OP_EVENT_CALLGRAPH_FACTOR 15 /* of the smallest period with call graphs, as in oprofile */

/* The smallest period of an event. */
uint64_t op_event_min_count(const struct op_event *event) OP_NONNULL;

/* Writes the specification with all five fields, as in daemonrc. */
void op_event_format(const struct op_event *event, struct op_text *text) OP_NONNULL;

/* One row of the table of events. */
struct op_event_info {
	const char *name;	 /* canonical */
	const char *also;	 /* another name, or NULL */
	const char *description; /* what the event counts, in words */
	uint64_t min_count;	 /* smallest period */
};

/* Row `index` of the table, from 0; NULL after the last. Raw events have no row. */
const struct op_event_info *op_event_info(size_t index) OP_MUST_CHECK;

/* What an event counts, in words ("Page faults"); NULL for an unknown name. */
const char *op_event_description(const char *name) OP_NONNULL;

/*
 * The kind of event with this number: a raw event or a tracepoint; NULL for events of the table and
 * unknown numbers.
 */
const char *op_event_kind(uint32_t number);

/*
 * The number (ctr_event) in the sample files of an event by its name. False: the name does not
 * tell, for example the name of a raw event. An imported raw event may have the name of another
 * event, so check op_event_is_raw_number on the number in the file.
 */
bool op_event_number(const char *name, uint32_t *ret_number) OP_NONNULL OP_MUST_CHECK;
bool op_event_is_raw_number(uint32_t number) OP_MUST_CHECK;

/*
 * The default event: cycles, about 1,000 samples per busy second of a CPU, if this host can count
 * cycles (*ret_has_pmu); otherwise TIMER:997000, which is not in step with the
 * scheduler's tick.
 */
void op_event_default(struct op_event *ret_event, bool *ret_has_pmu) OP_NONNULL;

/*
 * Makes the event STACKS: samples of busy CPUs at this rate, by cycles or else by the CPU's clock,
 * with a copy of so many bytes of the user stack.
 */
void op_event_make_stacks(bool with_cycles, uint32_t rate_hz, uint32_t stack_bytes, struct op_event *ret_event) OP_NONNULL;

/* Makes the event WAIT. The caller sets stack_bytes. */
void op_event_make_waits(struct op_event *ret_event) OP_NONNULL;

/* Gives STACKS another rate, at least 1. */
void op_event_set_stack_rate(struct op_event *event, uint32_t rate_hz) OP_NONNULL;

/*
 * For --callgraph: if one of the events is STACKS with copies, the calls of the first event that
 * counts the time of the same code come from there, and its own samples have no chain. Chains need
 * frame pointers, and end early where there are none. Copies with every sample (--stacks=event)
 * would need ten times the room in the rings: 64 MiB for some seven CPUs.
 */
void op_event_take_calls_of_stacks(struct op_event *events, size_t nr_events) OP_NONNULL;

/*
 * True for the events whose samples are stacks alone: they are in the file of stacks, and in no
 * sample file.
 */
static inline bool op_event_is_stacks(uint32_t role)
{
	return role == OP_EVENT_STACKS || role == OP_EVENT_WAITS;
}

/* True for events whose counts are microseconds. */
static inline bool op_event_is_time(uint32_t role)
{
	return role == OP_EVENT_WAITS;
}

/* True when samples of the event have a stack. */
static inline bool op_event_has_stack(const struct op_event *event)
{
	return event->stack_bytes || event->has_stack || op_event_is_stacks(event->role);
}

/* Fills size, type, config, period and exclude_* of a zeroed attr. The caller sets the rest. */
void op_event_attr(const struct op_event *event, struct perf_event_attr *attr) OP_NONNULL;

/*
 * Tries to open the event on the first online CPU. 0; -errno and *ret_why, one line with the event
 * and the reason (no PMU, not permitted, period too small ...), which the caller frees.
 */
int op_event_check(const struct op_event *event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * The line that explains an errno of perf_event_open for this event. The caller frees it. NULL: out
 * of memory.
 */
char *op_event_explain(const struct op_event *event, int err) OP_NONNULL OP_MUST_CHECK;

#endif
