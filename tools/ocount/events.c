/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/ocount/events.h"

#include <errno.h>

#include "libop/events/tracepoint.h"
#include "tools/common/log.h"
#include "tools/events/user_events.h"

#define DEFAULT_WITHOUT_PMU "cpu-clock"
#define ANY_COUNT           "1000000" /* an event has a period; nobody samples here */

struct perf_event_attr ocn_event_attr(const struct ocn_event *event)
{
	struct perf_event_attr attr = { 0 };

	op_event_attr(&event->event, &attr);
	attr.sample_period = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return attr;
}

/* ---- specifications ---- */

/* Where the name of the event ends: a tracepoint has a colon in it. */
static size_t name_bytes(const char *spec)
{
	size_t length = strcspn(spec, ":");

	if (spec[length] && op_tracepoint_has_subsystem(spec))
		length += 1 + strcspn(spec + length + 1, ":");
	return length;
}

/* Messages name the event as the user does. */
static void hide_count(char *why)
{
	char *count = strstr(why, ":" ANY_COUNT);
	size_t length = strlen(":" ANY_COUNT);

	if (count)
		memmove(count, count + length, strlen(count + length) + 1);
}

/* NAME[:rest] becomes NAME:COUNT[:rest], the form of an event that is sampled. */
static int parse(const char *spec, struct ocn_event *event)
{
	size_t length = name_bytes(spec);
	struct op_text full = { 0 };
	char *why = NULL;
	int err;

	op_text_printf(&full, "%.*s:" ANY_COUNT "%s", (int)length, spec, spec + length);
	err = full.failed ? -ENOMEM : opr_event_parse(op_text_get(&full), &event->event, &why);
	op_text_free(&full);
	if (why)
		hide_count(why);
	if (opr_error_why(err, why))
		return err;
	if (event->event.role != OP_EVENT_PLAIN)
		return opr_error(-EINVAL, "event %s: only samples show it: 'operf --events=%s:250000' takes them", spec, spec);
	if (op_event_is_clock(&event->event) && !(event->event.kernel && event->event.user))
		return opr_error(-EINVAL,
				 "event %s: the kernel counts a clock in user and kernel mode together: ask for both, or let "
				 "'operf' sample it in one mode",
				 spec);
	event->shown = strdup(spec);
	return event->shown ? 0 : opr_no_memory();
}

static int use_default(struct ocn_event *event)
{
	bool has_pmu;

	op_event_default(&event->event, &has_pmu);
	if (!has_pmu)
		return parse(DEFAULT_WITHOUT_PMU, event);
	event->shown = strdup(event->event.name);
	return event->shown ? 0 : opr_no_memory();
}

/* ---- permission ---- */

static int try_event(const struct ocn_event *event)
{
	struct perf_event_attr attr = ocn_event_attr(event);

	return opr_event_try(&attr);
}

/* Leaves the kernel out where this user may not count it. */
static int fit(struct ocn_event *event, bool *user_only)
{
	bool only_kernel = opr_event_is_of_kernel(&event->event);
	int err = try_event(event);

	if (opr_event_is_refusal(err) && event->event.kernel && !only_kernel) {
		event->event.kernel = false;
		err = try_event(event);
		*user_only |= !err && !op_event_is_clock(&event->event);
	}
	if (!err)
		return 0;
	if (opr_event_is_refusal(err) && only_kernel)
		return opr_error(err, "event %s: only the kernel has it, and kernel.perf_event_paranoid forbids to count it: run "
				      "ocount as root, or 'sysctl kernel.perf_event_paranoid=1' (as root) allows it",
				 event->shown);
	return opr_error_why(err, op_event_explain(&event->event, err));
}

int ocn_events_make(const struct ocn_options *options, struct ocn_events *events)
{
	size_t nr = op_max_u64(options->events.nr_words, 1);
	int err = 0;

	if (nr > OP_EVENTS_MAX)
		return opr_error(-EINVAL, "no more than %d events", OP_EVENTS_MAX);
	events->events = calloc(nr, sizeof(*events->events));
	if (!events->events)
		return opr_no_memory();
	events->nr_events = nr;
	if (!options->events.nr_words)
		err = use_default(&events->events[0]);
	for (size_t i = 0; i < options->events.nr_words && !err; i++)
		err = parse(options->events.words[i], &events->events[i]);
	for (size_t i = 0; i < nr && !err; i++)
		if (options->mode != OCN_CPUS && options->mode != OCN_SYSTEM)
			err = fit(&events->events[i], &events->user_only);
	return err;
}

void ocn_events_free(struct ocn_events *events)
{
	for (size_t i = 0; i < events->nr_events; i++)
		free(events->events[i].shown);
	free(events->events);
}
