/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --status --format=prometheus: the text format of Prometheus, also a textfile of node_exporter. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "libop/session/contents.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define NS_PER_S 1e9

/* ---- lines ---- */

/* Begins a metric. A counter begins again when opd starts. */
static void begin(struct op_text *text, const char *name, const char *type, const char *help)
{
	op_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* In a label \, " and the end of a line are escaped. What is no text was escaped before. */
static void add_label(struct op_text *text, const char *name, const char *value)
{
	struct op_text clean = { 0 };

	op_text_add_escaped(&clean, value);
	op_text_printf(text, "%s=\"", name);
	for (const char *c = op_text_get(&clean); *c; c++) {
		if (*c == '\\' || *c == '"')
			op_text_add_char(text, '\\');
		if (*c == '\n')
			op_text_add(text, "\\n");
		else
			op_text_add_char(text, *c);
	}
	op_text_add_char(text, '"');
	text->failed |= clean.failed;
	op_text_free(&clean);
}

static void add_gauge(struct op_text *text, const char *name, const char *help, double value)
{
	begin(text, name, "gauge", help);
	op_text_printf(text, "%s %.15g\n", name, value);
}

static void add_counter(struct op_text *text, const char *name, const char *help, double value)
{
	begin(text, name, "counter", help);
	op_text_printf(text, "%s %.15g\n", name, value);
}

/* ---- of each event ---- */

static void begin_of_event(struct op_text *text, const char *metric, const struct op_ledger_event *event)
{
	op_text_printf(text, "%s{", metric);
	add_label(text, "event", event->name);
	op_text_printf(text, ",period=\"%" PRIu64 "\",unit_mask=\"%" PRIu32 "\"", event->count, event->unit_mask);
}

static const struct {
	const char *name, *help;
	size_t offset;
	double per_unit;
} event_counters[] = {
	{ "opd_samples_taken_total", "Samples that the kernel took, of which some may be lost.",
	  offsetof(struct op_ledger_event, taken), 1 },
	{ "opd_samples_received_total", "Samples that opd received.", offsetof(struct op_ledger_event, received), 1 },
	{ "opd_samples_stored_total", "Samples in the files of sessions.", offsetof(struct op_ledger_event, stored), 1 },
	{ "opd_samples_unattributed_total", "Stored samples that belong to no image.",
	  offsetof(struct op_ledger_event, unattributed), 1 },
	{ "opd_samples_filtered_total", "Samples that the user left out with --image.",
	  offsetof(struct op_ledger_event, filtered), 1 },
	{ "opd_event_throttled_seconds_total", "Time in which the kernel suspended the event.",
	  offsetof(struct op_ledger_event, throttled_ns), NS_PER_S },
	{ "opd_event_enabled_seconds_total", "Time in which the event was wanted, of all CPUs.",
	  offsetof(struct op_ledger_event, enabled_ns), NS_PER_S },
	{ "opd_event_counted_seconds_total", "Time in which the event had a counter, of all CPUs.",
	  offsetof(struct op_ledger_event, counted_ns), NS_PER_S },
};

static void add_event_counters(struct op_text *text, const struct ctl_daemon *daemon)
{
	for (size_t i = 0; i < op_array_size(event_counters); i++) {
		begin(text, event_counters[i].name, "counter", event_counters[i].help);
		for (uint32_t j = 0; j < daemon->status->nr_events; j++) {
			if (op_event_is_time(daemon->events[j].role))
				continue; /* opd_wait_seconds_total */
			const char *field = (const char *)&daemon->events[j] + event_counters[i].offset;

			begin_of_event(text, event_counters[i].name, &daemon->events[j]);
			op_text_printf(text, "} %.15g\n",
				       (double)*(const uint64_t *)(const void *)field / event_counters[i].per_unit);
		}
	}
}

static void add_loss(struct op_text *text, const struct op_ledger_event *event, const char *reason, uint64_t count)
{
	begin_of_event(text, "opd_samples_lost_total", event);
	op_text_add_char(text, ',');
	add_label(text, "reason", reason);
	op_text_printf(text, "} %" PRIu64 "\n", count);
}

/* All reasons, also without losses: an alert on an increase needs the 0 before it. */
static void add_losses(struct op_text *text, const struct ctl_daemon *daemon)
{
	begin(text, "opd_samples_lost_total", "counter", "Samples that were lost; kernel: in full rings.");
	for (uint32_t i = 0; i < daemon->status->nr_events; i++) {
		const struct op_ledger_event *event = &daemon->events[i];

		if (op_event_is_time(event->role))
			continue;
		add_loss(text, event, "kernel", event->lost_kernel);
		for (size_t j = 0; j < OP_NR_LOSS; j++)
			add_loss(text, event, op_loss_name((enum op_loss)j), event->lost[j]);
	}
}

static void add_stacks(struct op_text *text, const struct ctl_daemon *daemon)
{
	begin(text, "opd_stacks_total", "counter", "Stacks by how their walk ended; complete: at the start of the program.");
	for (uint32_t i = 0; i < daemon->status->nr_events; i++) {
		const struct op_ledger_event *event = &daemon->events[i];
		uint64_t nr_complete;

		if (op_event_is_time(event->role) || !op_ledger_stacks(event, &nr_complete))
			continue;
		for (size_t j = 0; j < OP_NR_STACK_ENDS; j++) {
			begin_of_event(text, "opd_stacks_total", event);
			op_text_add_char(text, ',');
			add_label(text, "end", op_stack_end_name((enum op_stack_end)j));
			op_text_printf(text, "} %" PRIu64 "\n", event->ends[j]);
		}
	}
}

static void add_waits(struct op_text *text, const struct op_wait_ledger *waits)
{
	const struct {
		const char *name;
		uint64_t nr;
	} kinds[] = { { "idle", waits->idle }, { "kernel", waits->kernel }, { "emitted", waits->emitted },
		      { "skipped", waits->skipped }, { "lost", waits->lost } };

	if (!op_wait_ledger_is_used(waits))
		return;
	begin(text, "opd_wait_seconds_total", "counter", "Time that threads waited, of all threads, exact.");
	for (size_t i = 1; i < OP_NR_WAIT_STATES; i++) {
		op_text_add(text, "opd_wait_seconds_total{");
		add_label(text, "state", op_wait_state_name((enum op_wait_state)i));
		op_text_printf(text, "} %.15g\n", (double)waits->total_us[i] / 1e6);
	}
	begin(text, "opd_switches_total", "counter", "Switches of threads, by what became of the wait that ended.");
	for (size_t i = 0; i < op_array_size(kinds); i++) {
		op_text_add(text, "opd_switches_total{");
		add_label(text, "wait", kinds[i].name);
		op_text_printf(text, "} %" PRIu64 "\n", kinds[i].nr);
	}
}

/* ---- of the daemon ---- */

static void add_limits(struct op_text *text, const struct op_status *status)
{
	begin(text, "opd_limit_reached_total", "counter", "How often a limit was reached; opd-status(5) has their meaning.");
	for (size_t i = 0; i < OP_NR_BOUNDS; i++) {
		op_text_add(text, "opd_limit_reached_total{");
		add_label(text, "limit", op_bound_name((enum op_bound)i));
		op_text_printf(text, "} %" PRIu64 "\n", status->bounds[i]);
	}
}

static void add_status(struct op_text *text, const struct ctl_daemon *daemon)
{
	const struct op_status *status = daemon->status;

	add_gauge(text, "opd_profiling", "1: opd samples; 0: it is paused.", status->state == OP_DAEMON_RUNNING);
	add_gauge(text, "opd_uptime_seconds", "Time since opd started.", (double)status->uptime_ns / NS_PER_S);
	add_counter(text, "opd_profiled_seconds_total", "Time in which opd sampled.", (double)status->running_ns / NS_PER_S);
	add_counter(text, "opd_cpu_seconds_total", "CPU time of opd.", (double)status->cpu_ns / NS_PER_S);
	add_gauge(text, "opd_resident_memory_bytes", "Resident memory of opd.", (double)status->rss_bytes);
	add_gauge(text, "opd_cpus", "CPUs that opd samples.", status->nr_cpus);
	add_gauge(text, "opd_ring_bytes", "Size of one ring; each CPU has two.", (double)status->ring_bytes);
	add_gauge(text, "opd_images", "Images with samples.", (double)status->nr_images_counted);
	add_gauge(text, "opd_session_files", "Sample files of the current session.", (double)status->nr_session_files);
	add_gauge(text, "opd_stack_rate_hertz", "Stack samples of a busy CPU in a second; 0: none at a rate of their own.",
		  (double)status->stack_rate_hz);
	add_gauge(text, "opd_stack_rate_wanted_hertz", "The same, as the setup asks for.", (double)status->stack_wanted_hz);
	add_event_counters(text, daemon);
	add_losses(text, daemon);
	add_stacks(text, daemon);
	add_waits(text, &status->waits);
	add_limits(text, status);
}

/* ---- sessions on the disk ---- */

static void add_sessions(struct op_text *text, const char *session_dir)
{
	int fd = open(session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct ctl_history history = { 0 };
	uint64_t nr_bytes;

	if (!ctl_find_history(session_dir, &history)) {
		add_gauge(text, "opd_sessions_closed", "Closed sessions on the disk.", (double)history.nr_sessions);
		if (history.begin_ns)
			add_gauge(text, "opd_oldest_session_timestamp_seconds", "When the oldest session began, since 1970.",
				  (double)history.begin_ns / NS_PER_S);
	}
	err = fd < 0 ? -errno : op_session_disk_bytes(fd, "samples", &nr_bytes);
	if (!err)
		add_gauge(text, "opd_sessions_bytes", "Bytes on the disk of all sessions.", (double)nr_bytes);
	if (fd >= 0)
		close(fd);
}

int ctl_show_prometheus(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	const char *session_dir = daemon->status ? daemon->status->session_dir : ctl->session_dir;
	struct op_text text = { 0 };
	bool failed;

	add_gauge(&text, "opd_up", "1: opd answers; 0: it does not run, or does not answer.", daemon->presence == CTL_PRESENT);
	begin(&text, "opd_info", "gauge", "Version of opcontrol and session directory, as labels.");
	op_text_add(&text, "opd_info{");
	add_label(&text, "version", PACKAGE_VERSION);
	op_text_add_char(&text, ',');
	add_label(&text, "session_dir", session_dir);
	op_text_add(&text, "} 1\n");
	if (daemon->status)
		add_status(&text, daemon);
	add_sessions(&text, session_dir);
	failed = text.failed;
	if (!failed)
		fputs(op_text_get(&text), stdout);
	op_text_free(&text);
	return failed ? opr_no_memory() : 0;
}
