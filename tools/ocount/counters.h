/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The counters of a run: one for each event of each task or CPU. One thread. */
#ifndef OCN_COUNTERS_H
#define OCN_COUNTERS_H

#include <sys/types.h>

#include "tools/ocount/events.h"

/* What read(2) gives, or the difference of two readings. */
struct ocn_reading {
	uint64_t count, enabled_ns, running_ns;
};

struct ocn_counter {
	int fd;
	int owner; /* the task or CPU */
	struct ocn_reading last, now; /* now: since `last` was read */
};

struct ocn_counters {
	const struct ocn_events *events;
	struct ocn_counter *counters; /* by task or CPU, then in the order of events */
	size_t nr_counters, capacity;
	uint64_t begin_ns; /* op_now_ns() */
};

/*
 * Opens the counters. `pid` is the command of OCN_COMMAND, which they count from its exec on. Freed
 * with ocn_counters_close in any case. 0, or -errno after a message.
 */
int ocn_counters_open(struct ocn_counters *counters, const struct ocn_options *options, const struct ocn_events *events,
		      pid_t pid) OP_NONNULL OP_MUST_CHECK;

/* Sets `now` of each counter to what was counted since the last call. 0 or -errno. */
int ocn_counters_read(struct ocn_counters *counters) OP_NONNULL OP_MUST_CHECK;

/* True while one of the tasks exists. */
bool ocn_any_task(const struct ocn_options *options) OP_NONNULL;

void ocn_counters_close(struct ocn_counters *counters) OP_NONNULL;

#endif
