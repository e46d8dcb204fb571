/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opd says of itself: samples, losses and its own cost since the last question. One thread. */
#ifndef TOP_DAEMON_H
#define TOP_DAEMON_H

#include "libop/control/protocol.h"

/* Zeroed at first. */
struct top_daemon {
	bool answers;
	char *why; /* it does not answer; NULL: no reason is known */
	bool is_running; /* else it is paused */
	uint32_t pid, nr_cpus;
	uint64_t when_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns, rss_bytes;
	/* of the session: stacks, those with all callers, and lost samples and stacks */
	uint64_t stacks, complete, lost;
	double counted_share; /* of its time, for the event that was counted the least */
	uint64_t stack_rate_hz; /* 0: no stacks, or one with each sample */
	char *session_dir;
};

/* Asks for the status. `daemon` is changed when there is no answer, too. 0 or -ENOMEM. */
int top_daemon_ask(struct top_daemon *daemon, const char *socket) OP_NONNULL OP_MUST_CHECK;

void top_daemon_free(struct top_daemon *daemon) OP_NONNULL;

#endif
