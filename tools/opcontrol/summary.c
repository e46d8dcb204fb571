/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --status without --verbose: what an administrator wants to know, in lines of 80 columns. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/walk.h"
#include "libop/timeline/read.h"
#include "tools/common/formatting.h"
#include "tools/common/when.h"
#include "tools/opcontrol/opcontrol.h"

#define WIDTH      80u
#define STOPS_SHOWN 3u
#define NAME_WIDTH 24
#define UNATTRIBUTED_TOLD 0.05
#define NS_PER_US  1000u
#define START_NS   (30u * OP_NS_PER_S)
#define NS_PER_HOUR (3600.0 * OP_NS_PER_S)

/* Writes a paragraph. A word that is too long, as a path, has a line of its own. */
static void show_text(const char *title, const char *text)
{
	size_t indent = strlen(title), column = indent;
	bool is_first = true;

	fputs(title, stdout);
	while (*text) {
		size_t length = strcspn(text, " ");

		if (!is_first && column + 1 + length > WIDTH) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!is_first) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)length, text);
		column += length;
		text += length + strspn(text + length, " ");
		is_first = false;
	}
	putchar('\n');
}

static void show_built(const char *title, struct op_text *text)
{
	show_text(title, op_text_get(text));
	op_text_free(text);
}

/* ---- what is profiled ---- */

static void add_word(struct op_text *text, bool given, const char *word)
{
	if (given)
		op_text_printf(text, "%s%s", text->length ? ", " : "", word);
}

/* Of a daemon the events that it counts, else those of the setup. */
static void show_events(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	const struct op_status *status = daemon->status;
	const struct op_setup *setup = &ctl->setup;
	struct op_text text = { 0 };

	for (uint32_t i = 0; status && i < status->nr_events; i++)
		if (!op_event_is_stacks(daemon->events[i].role))
			op_text_printf(&text, "%s%s:%" PRIu64, i ? ", " : "", daemon->events[i].name, daemon->events[i].count);
	for (size_t i = 0; !status && i < setup->nr_events; i++)
		op_text_printf(&text, "%s%s:%" PRIu64, i ? ", " : "", setup->events[i].name, setup->events[i].count);
	if (!text.length)
		op_text_add(&text, "the default event");
	if (status)
		op_text_printf(&text, " on %" PRIu32 " %s", status->nr_cpus, status->nr_cpus == 1 ? "CPU" : "CPUs");
	show_built("Profiles: ", &text);
}

static void add_stack_setup(const struct opcontrol *ctl, struct op_text *text)
{
	op_stack_setup_format(&ctl->setup.stacks, text);
	if (!text->length)
		op_text_add(text, ctl->config.stacks ? "on" : "off");
}

/* The rate and the share of complete stacks. */
static void add_stacks(const struct ctl_daemon *daemon, struct op_text *text)
{
	const struct op_status *status = daemon->status;
	uint64_t nr = 0, nr_complete = 0;

	for (uint32_t i = 0; i < status->nr_events; i++) {
		uint64_t nr_more;

		if (op_event_is_time(daemon->events[i].role))
			continue;
		nr += op_ledger_stacks(&daemon->events[i], &nr_more);
		nr_complete += nr_more;
	}
	if (status->stack_rate_hz)
		op_text_printf(text, "%" PRIu64 " Hz on each CPU", status->stack_rate_hz);
	else
		op_text_add(text, status->stack_bytes ? "with each sample" : "off");
	if (status->stack_rate_hz < status->stack_wanted_hz)
		op_text_printf(text, " (not %" PRIu64 ": the rings have no room, see StackRingMaxUse= and RingSize=)",
			       status->stack_wanted_hz);
	if (nr)
		op_text_printf(text, ", %.1f %% complete", 100.0 * (double)nr_complete / (double)nr);
	if (status->stack_rate_hz && *status->no_deep)
		op_text_printf(text, "; not deeper than StackBytes=: %s", status->no_deep);
}

/* How large the copies would have to be. */
static void add_cut(const struct op_status *status, struct op_text *text)
{
	uint64_t nr = status->deep[OP_DEEP_cut];

	if (nr)
		op_text_printf(text, "; too short by %" PRIu64 " KiB on average, %" PRIu64 " KiB at most",
			       status->deep[OP_DEEP_cut_bytes] / nr / 1024, status->deep[OP_DEEP_cut_most_bytes] / 1024);
}

/* For each runtime that was seen, how many of its samples have names. */
static void show_runtimes(const struct op_status *status)
{
	struct op_text text = { 0 };

	for (enum op_runtime i = OP_RUNTIME_none + 1; i < OP_NR_RUNTIMES; i++) {
		const uint64_t *stats = status->runtimes[i];

		if (stats[OP_RUNTIME_STAT_samples])
			op_text_printf(&text, "%s%s in %" PRIu64 " %s, %" PRIu64 " samples, %.1f %% with all names",
				       text.length ? "; " : "", op_runtime_word(i), stats[OP_RUNTIME_STAT_processes],
				       stats[OP_RUNTIME_STAT_processes] == 1 ? "process" : "processes",
				       stats[OP_RUNTIME_STAT_samples],
				       100.0 * (double)stats[OP_RUNTIME_STAT_complete] / (double)stats[OP_RUNTIME_STAT_samples]);
		if (stats[OP_RUNTIME_STAT_refused]) {
			bool is_process = i == OP_RUNTIME_node || i == OP_RUNTIME_java;
			bool is_one = stats[OP_RUNTIME_STAT_refused] == 1;

			op_text_printf(&text, "%s%s: %" PRIu64 " %s cannot be read, the log says why", text.length ? "; " : "",
				       op_runtime_word(i), stats[OP_RUNTIME_STAT_refused],
				       is_process ? (is_one ? "process" : "processes") : (is_one ? "file" : "files"));
		}
	}
	if (status->stack_rate_hz && *status->no_runtimes)
		op_text_printf(&text, "%sPython, PHP, Perl and Ruby have no names: %s", text.length ? "; " : "",
			       status->no_runtimes);
	if (text.length)
		show_built("Runtimes: ", &text);
}

/* Where callers are missing most often, and why. */
static void show_stops(const struct op_status *status)
{
	for (size_t i = 0; i < STOPS_SHOWN && status->stack_stops[i].nr; i++) {
		const struct op_stack_stop *stop = &status->stack_stops[i];
		enum op_stack_end end = stop->end < OP_NR_STACK_ENDS ? (enum op_stack_end)stop->end : OP_STACK_END_no_row;
		struct op_text image = { 0 }, why = { 0 };

		if (!i)
			puts("Callers are missing, most often above:");
		op_text_add_escaped(&image, stop->image);
		printf("  %s (%" PRIu64 ")\n", op_text_get(&image), stop->nr);
		op_text_printf(&why, "%s: %s", op_stack_end_name(end), op_stack_end_meaning(end));
		if (end == OP_STACK_END_cut)
			add_cut(status, &why);
		show_built("      ", &why);
		op_text_free(&image);
	}
}

void ctl_show_stacks(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	struct op_text text = { 0 };

	if (daemon->status)
		add_stacks(daemon, &text);
	else
		add_stack_setup(ctl, &text);
	show_built("Stacks: ", &text);
	if (!daemon->status)
		return;
	show_stops(daemon->status);
	show_runtimes(daemon->status);
}

static void show_separation(const struct opcontrol *ctl, const struct op_status *status)
{
	const struct op_setup *setup = &ctl->setup;
	const char *filter = status ? status->image_filter : setup->image_filter ? setup->image_filter : "";
	uint64_t callgraph = status ? status->callgraph : setup->callgraph;
	struct op_text text = { 0 };

	add_word(&text, status ? status->separate_lib : setup->separate_lib, "library");
	add_word(&text, status ? status->separate_kernel : setup->separate_kernel, "kernel");
	add_word(&text, status ? status->separate_thread : setup->separate_thread, "thread");
	add_word(&text, status ? status->separate_cpu : setup->separate_cpu, "cpu");
	add_word(&text, status ? status->separate_cgroup : setup->separate_cgroup, "cgroup");
	add_word(&text, status ? status->separate_name : setup->separate_name, "process-name");
	add_word(&text, status ? status->separate_user : setup->separate_user, "user");
	show_text("Separate: ", text.length ? op_text_get(&text) : "none");
	op_text_free(&text);
	if (*filter)
		show_text("Only images: ", filter);
	if (callgraph)
		printf("Call graph: up to %" PRIu64 " callers\n", callgraph);
	if (status && *status->kernel_note)
		show_text("Kernel: ", status->kernel_note);
	if (ctl->setup_waits)
		puts("A new setup waits until the daemon is started again (opcontrol --verbose --status)");
}

/* ---- the ledger ---- */

static void show_event(const struct op_ledger_event *event)
{
	uint64_t lost = op_ledger_lost(event) + event->lost_kernel;
	double share = op_ledger_loss_share(event->received, event->filtered, event->lost_kernel, op_ledger_lost(event));
	char name[OP_EVENT_NAME_BYTES + 32], percent[32] = "-";

	snprintf(name, sizeof(name), "%s:%" PRIu64, event->name, event->count);
	if (strlen(name) > NAME_WIDTH)
		printf("  %s\n  %*s", name, NAME_WIDTH, "");
	else
		printf("  %-*s", NAME_WIDTH, name);
	if (event->stored)
		snprintf(percent, sizeof(percent), "%.4f", 100.0 * (double)event->unattributed / (double)event->stored);
	printf(" %14" PRIu64 " %12" PRIu64 " %9.4f %14s\n", event->stored, lost, 100 * share, percent);
	if (event->role != OP_EVENT_STACKS && (double)event->unattributed > UNATTRIBUTED_TOLD * (double)event->stored)
		puts("    unattributed: of processes or code that opd does not see. In a container\n"
		     "    it sees only those of the container: run opd on the host");
	if (event->filtered)
		printf("    filtered: %" PRIu64 " (--image does not name their images)\n", event->filtered);
}

/* Each name of a limit or an event that lost samples or was throttled. */
static void show_warnings(const struct ctl_daemon *daemon)
{
	const struct op_status *status = daemon->status;
	struct op_text losses = { 0 }, throttled = { 0 }, shared = { 0 }, limits = { 0 };

	for (uint32_t i = 0; i < status->nr_events; i++) {
		const struct op_ledger_event *event = &daemon->events[i];

		add_word(&losses,
			 op_ledger_loss_share(event->received, event->filtered, event->lost_kernel, op_ledger_lost(event)) >
				 OP_LOSS_TOLERATED,
			 event->name);
		add_word(&throttled, event->nr_throttles, event->name);
		if (op_ledger_counted_share(event) < OP_COUNTED_NEEDED)
			op_text_printf(&shared, "%s%s %.0f %%", shared.length ? ", " : "", event->name,
				       100 * op_ledger_counted_share(event));
	}
	for (size_t i = 0; i < OP_NR_BOUNDS; i++)
		add_word(&limits, status->bounds[i], op_bound_name((enum op_bound)i));
	if (losses.length)
		show_text("Warning: samples were lost: ", op_text_get(&losses));
	if (throttled.length)
		show_text("Warning: the kernel throttled: ", op_text_get(&throttled));
	if (shared.length)
		show_text("Warning: more events than counters, counted for a part of the time: ", op_text_get(&shared));
	if (limits.length)
		show_text("Limits that were reached: ", op_text_get(&limits));
	if (losses.length || throttled.length || shared.length || limits.length)
		puts("(opcontrol --status --verbose says more)");
	op_text_free(&losses);
	op_text_free(&throttled);
	op_text_free(&shared);
	op_text_free(&limits);
}

static void show_ledger(const struct ctl_daemon *daemon)
{
	printf("Ledger, in samples:\n  %-*s %14s %12s %9s %14s\n", NAME_WIDTH, "event", "stored", "lost", "lost %",
	       "unattributed %");
	for (uint32_t i = 0; i < daemon->status->nr_events; i++)
		if (!op_event_is_time(daemon->events[i].role))
			show_event(&daemon->events[i]);
	show_warnings(daemon);
}

static void show_cost(const struct op_status *status)
{
	printf("Cost: %.2f %% of one CPU, %.1f MiB of memory%s\n",
	       status->uptime_ns ? 100.0 * (double)status->cpu_ns / (double)status->uptime_ns : 0.0,
	       (double)status->rss_bytes / (1024 * 1024), status->uptime_ns < START_NS ? " (the start costs more)" : "");
}

/* ---- what is kept ---- */

static void add_timeline(struct ctl_history *history, int session_fd)
{
	struct op_timeline *timeline;
	struct op_block first, last;

	if (op_timeline_open(session_fd, OP_SESSION_TIMELINE, &timeline))
		return;
	if (!op_timeline_ends(timeline, &first, &last)) {
		uint64_t begin_ns = first.tail.begin.wall_ns, end_ns = last.tail.end.wall_ns;

		history->minute_ns = history->minute_ns ? op_min_u64(history->minute_ns, begin_ns) : begin_ns;
		history->timeline_bytes += op_timeline_bytes(timeline);
		history->timeline_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	}
	op_timeline_close(timeline);
}

struct looking {
	struct ctl_history *history;
	int samples_fd;
};

static int look_at(const char *name, void *arg)
{
	const struct looking *looking = arg;
	struct ctl_history *history = looking->history;
	int fd = *name == '.' ? -1 : openat(looking->samples_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct op_session_ledger ledger;

	if (fd < 0)
		return 0; /* hidden, removed, or no directory */
	history->nr_sessions += strcmp(name, "current") != 0;
	if (!op_session_ledger_read(fd, &ledger, NULL)) {
		if (ledger.begin_ns && (!history->begin_ns || ledger.begin_ns < history->begin_ns))
			history->begin_ns = ledger.begin_ns;
		op_session_ledger_free(&ledger);
	}
	add_timeline(history, fd);
	close(fd);
	return 0;
}

int ctl_find_history(const char *session_dir, struct ctl_history *history)
{
	struct looking looking = { .history = history };
	struct op_text path = { 0 };
	int err;

	op_text_printf(&path, "%s/samples", session_dir);
	looking.samples_fd = open(op_text_get(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = looking.samples_fd < 0 ? -errno : op_session_visit_dir(looking.samples_fd, ".", look_at, &looking);
	if (looking.samples_fd >= 0)
		close(looking.samples_fd);
	op_text_free(&path);
	return err;
}

static void add_limits(const struct op_config *config, struct op_text *text)
{
	if (config->session_interval_us) {
		op_text_add(text, ". A new one every ");
		opr_add_span(text, config->session_interval_us * NS_PER_US);
	}
	if (config->session_keep_us) {
		op_text_add(text, ", kept for ");
		opr_add_span(text, config->session_keep_us * NS_PER_US);
	}
	if (config->session_max_use)
		op_text_printf(text, ", up to %" PRIu64 " MiB", config->session_max_use >> 20);
}

static void show_timeline(const struct ctl_history *history)
{
	struct op_text text = { 0 };
	char since[OPR_WHEN_BYTES];
	double nr_hours = (double)history->timeline_ns / NS_PER_HOUR;

	if (!history->minute_ns)
		return;
	opr_when_format(history->minute_ns / NS_PER_US, since);
	op_text_printf(&text, "since %s, %.1f KiB", since, (double)history->timeline_bytes / 1024);
	if (nr_hours > 0)
		op_text_printf(&text, ", %.0f KiB an hour", (double)history->timeline_bytes / 1024 / nr_hours);
	show_built("Timeline: ", &text);
}

static void show_history(const struct opcontrol *ctl, const char *session_dir)
{
	struct ctl_history history = { 0 };
	struct op_text text = { 0 };
	char since[OPR_WHEN_BYTES];
	int err = ctl_find_history(session_dir, &history);

	if (err && err != -ENOENT)
		op_text_printf(&text, "%s", strerror(-err));
	else
		op_text_printf(&text, "%zu closed %s", history.nr_sessions, history.nr_sessions == 1 ? "session" : "sessions");
	if (history.begin_ns) {
		opr_when_format(history.begin_ns / NS_PER_US, since);
		op_text_printf(&text, " and the current one, since %s", since);
	}
	add_limits(&ctl->config, &text);
	show_built("History: ", &text);
	show_timeline(&history);
	show_text("Session-dir: ", session_dir);
}

/* ---- all of it ---- */

static void show_times(const struct op_status *status)
{
	struct op_text text = { 0 };

	op_text_add(&text, "Up ");
	opr_add_span(&text, status->uptime_ns);
	op_text_add(&text, ", profiling for ");
	opr_add_span(&text, status->running_ns);
	show_built("", &text);
}

/* Shares of the exact time of all states. */
static void add_wait_states(const struct op_wait_ledger *waits, struct op_text *text)
{
	uint64_t total_us = op_wait_ledger_total_us(waits);
	const char *between = "";

	for (size_t i = 1; i < OP_NR_WAIT_STATES && total_us; i++) {
		if (!waits->total_us[i])
			continue;
		op_text_printf(text, "%s%s %.1f %%", between, op_wait_state_name((enum op_wait_state)i),
			       100.0 * (double)waits->total_us[i] / (double)total_us);
		between = ", ";
	}
}

void ctl_show_waits(const struct op_status *status, bool is_verbose)
{
	const struct op_wait_ledger *waits = &status->waits;
	struct op_text text = { 0 };

	if (*status->no_waits) {
		show_text("Waits: not sampled: ", status->no_waits);
		return;
	}
	if (!status->wait_quantum_ns)
		return;
	opr_add_span(&text, op_wait_ledger_total_us(waits) * 1000);
	op_text_printf(&text, " of all threads in %" PRIu64 " records", waits->records);
	if (waits->total_us[OP_WAIT_blocked]) {
		op_text_add(&text, ": ");
		add_wait_states(waits, &text);
	}
	show_built("Waits: ", &text);
	if (!is_verbose)
		return;
	printf("  one record stands for %.0f ms of a thread's waiting\n", (double)status->wait_quantum_ns / 1e6);
	printf("  switches: %" PRIu64 " = idle %" PRIu64 " + kernel %" PRIu64 " + emitted %" PRIu64 " + skipped %" PRIu64
	       " + lost %" PRIu64 "\n",
	       waits->switches, waits->idle, waits->kernel, waits->emitted, waits->skipped, waits->lost);
}

void ctl_show_summary(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	const struct op_status *status = daemon->status;

	if (status)
		show_times(status);
	show_events(ctl, daemon);
	show_separation(ctl, status);
	ctl_show_stacks(ctl, daemon);
	if (status) {
		ctl_show_waits(status, false);
		show_ledger(daemon);
		show_cost(status);
	}
	show_history(ctl, status ? status->session_dir : ctl->session_dir);
}
