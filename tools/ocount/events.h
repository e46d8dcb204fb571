/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The events of a run, as far as this user may count them. */
#ifndef OCN_EVENTS_H
#define OCN_EVENTS_H

#include "libop/events/event.h"
#include "tools/ocount/options.h"

struct ocn_event {
	struct op_event event;
	char *shown; /* its name and the fields that the user gave, "cycles:0:1:0" */
};

struct ocn_events {
	struct ocn_event *events;
	size_t nr_events;
	bool user_only; /* the kernel is left out, because this user may not count it */
};

/*
 * Reads --events, or takes the default event: cycles, else cpu-clock. Freed with ocn_events_free in
 * any case. 0, or -errno after a message.
 */
int ocn_events_make(const struct ocn_options *options, struct ocn_events *events) OP_NONNULL OP_MUST_CHECK;

void ocn_events_free(struct ocn_events *events) OP_NONNULL;

/* The attribute of a counter of an event. */
struct perf_event_attr ocn_event_attr(const struct ocn_event *event) OP_NONNULL;

#endif
