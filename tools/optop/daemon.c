/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/optop/daemon.h"

#include <errno.h>

#include "libop/base/clock.h"
#include "libop/events/event_def.h"
#include "tools/common/log.h"

#define ANSWER_MS 2000

static void add_event(struct top_daemon *daemon, const struct op_ledger_event *event)
{
	/* WAIT counts microseconds, not samples. */
	if (event->role == OP_EVENT_DERIVED || op_event_is_time(event->role))
		return;
	if (op_ledger_counted_share(event) < daemon->counted_share)
		daemon->counted_share = op_ledger_counted_share(event);
	daemon->lost += event->lost_kernel;
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		daemon->lost += event->lost[i];
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		daemon->stacks += event->ends[i];
	daemon->complete += event->ends[OP_STACK_END_complete];
}

static int take(struct top_daemon *daemon, const void *payload, size_t nr_bytes)
{
	const struct op_ledger_event *events;
	const struct op_ledger_cpu *cpus;
	const struct op_status *status;

	if (op_control_status_parts(payload, nr_bytes, &status, &events, &cpus) < 0) {
		daemon->why = strdup("opd and this optop have different versions: restart opd");
		return daemon->why ? 0 : opr_no_memory();
	}
	daemon->answers = true;
	daemon->is_running = status->state == OP_DAEMON_RUNNING;
	daemon->pid = status->pid;
	daemon->nr_cpus = status->nr_cpus;
	daemon->cpu_ns = status->cpu_ns;
	daemon->rss_bytes = status->rss_bytes;
	daemon->stack_rate_hz = status->stack_rate_hz;
	daemon->counted_share = 1;
	for (uint32_t i = 0; i < status->nr_events; i++)
		if (!op_event_is_time(events[i].role))
			add_event(daemon, &events[i]);
	daemon->session_dir = strdup(status->session_dir);
	return daemon->session_dir ? 0 : opr_no_memory();
}

int top_daemon_ask(struct top_daemon *daemon, const char *socket)
{
	char *message = NULL;
	void *payload = NULL;
	size_t nr_bytes;
	int err = op_control_call_within(socket, OP_CONTROL_STATUS, ANSWER_MS, &payload, &nr_bytes, &message);

	top_daemon_free(daemon);
	*daemon = (struct top_daemon){ .when_ns = op_now_ns() };
	if (!err) {
		err = take(daemon, payload, nr_bytes);
	} else {
		daemon->why = message;
		message = NULL;
		err = 0;
	}
	free(message);
	free(payload);
	return err;
}

void top_daemon_free(struct top_daemon *daemon)
{
	free(daemon->why);
	free(daemon->session_dir);
	*daemon = (struct top_daemon){ 0 };
}
