/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --status, as text and as JSON; prometheus.c has the third form. */
#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

#define NS_PER_SEC 1000000000ull

/* ---- text ---- */

static void show_state(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	switch (daemon->presence) {
	case CTL_ABSENT:
		puts("Daemon not running");
		break;
	case CTL_NO_ANSWER:
		printf("Daemon running: pid %d\n", (int)daemon->pid);
		ctl_fail_no_answer(ctl, daemon);
		break;
	case CTL_PRESENT:
		printf("Daemon %s: pid %d\n", daemon->status->state == OP_DAEMON_RUNNING ? "running" : "paused", (int)daemon->pid);
		break;
	}
}

static void show_separation(const struct opcontrol *ctl, const struct op_status *status)
{
	const struct op_setup *setup = &ctl->setup;
	const struct {
		const char *word;
		bool given;
	} words[] = {
		{ " library", status ? status->separate_lib : setup->separate_lib },
		{ " kernel", status ? status->separate_kernel : setup->separate_kernel },
		{ " thread", status ? status->separate_thread : setup->separate_thread },
		{ " cpu", status ? status->separate_cpu : setup->separate_cpu },
		{ " cgroup", status ? status->separate_cgroup : setup->separate_cgroup },
		{ " process-name", status ? status->separate_name : setup->separate_name },
		{ " user", status ? status->separate_user : setup->separate_user },
	};
	bool any = false;

	fputs("Separate options:", stdout);
	for (size_t i = 0; i < op_array_size(words); i++) {
		any |= words[i].given;
		fputs(words[i].given ? words[i].word : "", stdout);
	}
	puts(any ? "" : " none");
}

#define NO_EFFECT " (of no effect)"

static void show_size(const char *title, uint64_t value)
{
	if (value)
		printf("%s: %" PRIu64 NO_EFFECT "\n", title, value);
}

static void show_name(const char *title, const char *name)
{
	printf("%s: ", title);
	opr_write_escaped(stdout, name);
	putchar('\n');
}

static void show_setup(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	const struct op_status *status = daemon->status;
	const struct op_setup *setup = &ctl->setup;
	const char *vmlinux = status ? status->vmlinux : setup->vmlinux ? setup->vmlinux : "";
	const char *filter = status ? status->image_filter : setup->image_filter ? setup->image_filter : "";

	show_name("Session-dir", status ? status->session_dir : ctl->session_dir);
	for (size_t i = 0; i < setup->nr_events; i++) {
		struct op_text text = { 0 };

		op_event_format(&setup->events[i], &text);
		printf("Event %zu: %s\n", i, op_text_get(&text));
		op_text_free(&text);
	}
	show_separation(ctl, status);
	ctl_show_stacks(ctl, daemon);
	if (status)
		ctl_show_waits(status, true);
	show_name("vmlinux file", *vmlinux ? vmlinux : "none");
	show_name("Image filter", *filter ? filter : "none");
	printf("Call-graph depth: %" PRIu64 "\n", status ? status->callgraph : setup->callgraph);
	show_size("Buffer size", setup->buffer_size);
	show_size("CPU buffer watershed", setup->buffer_watershed);
	show_size("CPU buffer size", setup->cpu_buffer_size);
	if (ctl->setup_waits)
		printf("New setup: waits in %s/" OP_SETUP_NEW_NAME " until the daemon is started again\n", ctl->config.session_dir);
	if (status && *status->kernel_note)
		show_name("Kernel", status->kernel_note);
}

static double seconds(uint64_t ns)
{
	return (double)ns / NS_PER_SEC;
}

/* Some derived events of IBS count something else than samples. */
static void show_unit(const struct op_ledger_event *event)
{
	const struct op_ibs_event *derived = event->role == OP_EVENT_DERIVED ? op_ibs_event_of_session(event->name) : NULL;

	if (derived && derived->amount != OP_IBS_SAMPLES)
		printf("    in %s, not samples\n", op_ibs_event_unit(derived));
}

static void show_event(const struct op_ledger_event *event)
{
	char name[OP_EVENT_NAME_BYTES + 32];
	uint64_t lost = op_ledger_lost(event);
	double share = op_ledger_loss_share(event->received, event->filtered, event->lost_kernel, lost);

	snprintf(name, sizeof(name), "%s:%" PRIu64, event->name, event->count);
	printf("  %-26s %13" PRIu64 " %13" PRIu64 " %13" PRIu64 " %13" PRIu64 " %12" PRIu64 " %10" PRIu64 " %10.3f s\n", name,
	       event->taken, event->received, event->stored, event->unattributed, event->lost_kernel, lost,
	       seconds(event->throttled_ns));
	show_unit(event);
	if (op_ledger_counted_share(event) < OP_COUNTED_NEEDED)
		printf("    counted %.1f %% of the time: there are more events than counters\n",
		       100 * op_ledger_counted_share(event));
	if (event->filtered)
		printf("    filtered: %" PRIu64 " (left out: --image does not name their images)\n", event->filtered);
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		if (event->lost[i])
			printf("    lost_%s: %" PRIu64 " (%s)\n", op_loss_name((enum op_loss)i), event->lost[i],
			       op_loss_meaning((enum op_loss)i));
	for (size_t i = 0; i < OP_NR_STACK_ENDS; i++)
		if (event->ends[i])
			printf("    end_%s: %" PRIu64 " (%s)\n", op_stack_end_name((enum op_stack_end)i), event->ends[i],
			       op_stack_end_meaning((enum op_stack_end)i));
	if (event->outstanding)
		printf("    outstanding: %" PRIu64 " (in the rings, or counted by the kernel without a sample)\n",
		       event->outstanding);
	if (share > OP_LOSS_TOLERATED)
		printf("    Warning: %.3g %% of the samples of %s were lost\n", 100.0 * share, name);
}

static void show_events(const struct ctl_daemon *daemon)
{
	printf("\nLedger, in samples:\n  %-26s %13s %13s %13s %13s %12s %10s %12s\n", "event", "taken", "received", "stored",
	       "unattributed", "lost_kernel", "lost", "throttled");
	for (uint32_t i = 0; i < daemon->status->nr_events; i++)
		if (!op_event_is_time(daemon->events[i].role))
			show_event(&daemon->events[i]);
	for (uint32_t i = 0; i < daemon->status->nr_events; i++)
		if (op_event_is_time(daemon->events[i].role)) {
			puts("\nLedger of waits, in microseconds:");
			show_event(&daemon->events[i]);
		}
}

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1000000;
}

static double per(uint64_t sum, uint64_t nr)
{
	return nr ? (double)sum / (double)nr : 0;
}

static void show_cpus(const struct ctl_daemon *daemon)
{
	printf("\n  %-8s %10s %12s %9s %14s %14s %12s %12s %8s %16s %14s %12s\n", "CPU", "swaps", "swap wait", "ms/swap",
	       "bytes read", "records read", "bytes/turn", "at most", "late", "side band bytes", "side band lost", "lost_kernel");
	for (uint32_t i = 0; i < daemon->status->nr_cpus; i++) {
		const struct op_ledger_cpu *cpu = &daemon->cpus[i];
		char name[32];

		snprintf(name, sizeof(name), "%" PRIu32 "%s", cpu->cpu, cpu->online ? "" : " (off)");
		printf("  %-8s %10" PRIu64 " %10.3f s %9.1f %14" PRIu64 " %14" PRIu64 " %12.0f %12" PRIu64 " %8" PRIu64
		       " %16" PRIu64 " %14" PRIu64 " %12" PRIu64 "\n",
		       name, cpu->swaps, seconds(cpu->swap_wait_ns), per(cpu->swap_wait_ns, cpu->swaps) / 1000000, cpu->bytes_read,
		       cpu->records_read, per(cpu->bytes_read, cpu->swaps), cpu->turn_most_bytes, cpu->late, cpu->sideband_bytes,
		       cpu->sideband_lost, cpu->lost_kernel);
		if (cpu->damaged)
			printf("    damaged: %" PRIu64 " times lengths in a ring of this CPU made no sense\n", cpu->damaged);
	}
}

static void show_rings(const struct op_status *status)
{
	printf("\nRings: two of %" PRIu64 " KiB for each CPU (%s; %" PRIu64 " KiB needed), %" PRIu32 " swapping thread%s\n",
	       status->ring_bytes / 1024, status->ring_is_auto ? "auto" : "RingSize", (status->ring_need_bytes + 1023) / 1024,
	       status->swap_threads, status->swap_threads == 1 ? "" : "s");
	printf("       %" PRIu64 " turns, the last took %.1f ms, the longest %.1f ms, planned %.1f ms at %.1f ms for one event\n",
	       status->turns, milliseconds(status->turn_ns), milliseconds(status->turn_longest_ns),
	       milliseconds(status->turn_planned_ns), milliseconds(status->event_wait_ns));
}

static void show_counter(const char *title, uint64_t count, const char *meaning)
{
	if (count)
		printf("        %s: %" PRIu64 " (%s)\n", title, count, meaning);
}

static void show_daemon(const struct op_status *status)
{
	double uptime = seconds(status->uptime_ns), cpu = seconds(status->cpu_ns);
	char share[64] = "";

	if (uptime >= 1)
		snprintf(share, sizeof(share), " (%.2f %% of one CPU)", 100 * cpu / uptime);
	printf("\nDaemon: up %.0f s, profiling for %.0f s, %.3f s CPU time%s, %.1f MiB resident\n", uptime,
	       seconds(status->running_ns), cpu, share, (double)status->rss_bytes / (1024 * 1024));
	printf("        %" PRIu64 " sample files, %" PRIu64 " of them open, %" PRIu64 " processes, %" PRIu64 " images, %" PRIu64
	       " of them with samples, %" PRIu64 " dumps\n",
	       status->nr_session_files, status->nr_files, status->nr_processes, status->nr_images, status->nr_images_counted,
	       status->dumps);
	for (size_t i = 0; i < OP_NR_BOUNDS; i++)
		show_counter(op_bound_name((enum op_bound)i), status->bounds[i], op_bound_meaning((enum op_bound)i));
	if (status->separate_name || status->separate_user)
		printf("        %" PRIu64 " programs: applications by the name or user of their processes\n", status->nr_programs);
	if (status->separate_cgroup)
		printf("        %" PRIu64 " cgroups; %" PRIu64 " samples are stored, but not by cgroup, %" PRIu64
		       " of cgroups that are not known\n",
		       status->nr_cgroups, status->not_split, status->of_unknown_cgroups);
}

static void show_runtime(const struct op_status *status, enum op_runtime runtime)
{
	const uint64_t *stats = status->runtimes[runtime];

	if (!stats[OP_RUNTIME_STAT_samples] && !stats[OP_RUNTIME_STAT_refused])
		return;
#define X(name, meaning)                                                                                                           \
	if (stats[OP_RUNTIME_STAT_##name])                                                                                         \
		printf("        %s, " #name ": %" PRIu64 " (%s)\n", op_runtime_word(runtime),                                    \
		       stats[OP_RUNTIME_STAT_##name], meaning);
	OP_RUNTIME_STATS(X)
#undef X
}

static void show_counters(const struct op_status *status)
{
#define X(name, is_loss, meaning)                                                                                                  \
	show_counter((is_loss) ? "Warning: arcs_" #name : "arcs_" #name, status->arcs[OP_ARC_##name], meaning);
	OP_ARC_STATS(X)
#undef X
#define X(name, meaning) show_counter("Deep stacks, " #name, status->deep[OP_DEEP_##name], meaning);
	OP_DEEP_STATS(X)
#undef X
	for (enum op_runtime i = OP_RUNTIME_none + 1; i < OP_NR_RUNTIMES; i++)
		show_runtime(status, i);
#define X(name, member, meaning) show_counter("IBS records, " #name, status->ibs[OP_IBS_STAT_##name], meaning);
	OP_IBS_STATS(X)
#undef X
	if (status->jit[OP_JIT_functions])
		printf("        JIT code of %" PRIu64 " processes: %" PRIu64 " functions, %" PRIu64 " with samples\n",
		       status->jit[OP_JIT_processes], status->jit[OP_JIT_functions], status->jit[OP_JIT_sampled]);
#define X(name, refusal, meaning) show_counter("JIT code, " #name, (refusal) ? status->jit[OP_JIT_##name] : 0, meaning);
	OP_JIT_COUNTERS(X)
#undef X
}

static void show_text(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	show_state(ctl, daemon);
	if (!ctl->verbose) {
		ctl_show_summary(ctl, daemon);
		return;
	}
	show_setup(ctl, daemon);
	if (!daemon->status)
		return;
	show_events(daemon);
	show_cpus(daemon);
	show_rings(daemon->status);
	show_daemon(daemon->status);
	show_counters(daemon->status);
}

/* ---- JSON: keys are the names of the fields ---- */

enum kind { U32, U64, BOOL32, STRING, STACK_END };

struct field {
	const char *name;
	size_t offset;
	enum kind kind;
};

#define WAIT_ROW(name) { "wait_" #name, offsetof(struct op_status, waits.name), U64 }
#define ROW(type, field, kind)                                                                                                     \
	{                                                                                                                          \
#field, offsetof(struct type, field), kind                                                                         \
	}
#define LOSS_ROW(type, reason)                                                                                                     \
	{                                                                                                                          \
		"lost_" #reason, offsetof(struct type, lost) + OP_LOSS_##reason * sizeof(uint64_t), U64                            \
	}

static const struct field status_fields[] = {
	ROW(op_status, pid, U32),
	ROW(op_status, nr_events, U32),
	ROW(op_status, nr_cpus, U32),
	ROW(op_status, separate_lib, BOOL32),
	ROW(op_status, separate_kernel, BOOL32),
	ROW(op_status, separate_thread, BOOL32),
	ROW(op_status, separate_cpu, BOOL32),
	ROW(op_status, separate_cgroup, BOOL32),
	ROW(op_status, separate_name, BOOL32),
	ROW(op_status, separate_user, BOOL32),
	ROW(op_status, nr_programs, U64),
	ROW(op_status, nr_cgroups, U64),
	ROW(op_status, not_split, U64),
	ROW(op_status, of_unknown_cgroups, U64),
	ROW(op_status, callgraph, U64),
	ROW(op_status, uptime_ns, U64),
	ROW(op_status, running_ns, U64),
	ROW(op_status, cpu_ns, U64),
	ROW(op_status, rss_bytes, U64),
	ROW(op_status, nr_files, U64),
	ROW(op_status, nr_session_files, U64),
	ROW(op_status, max_session_files, U64),
	ROW(op_status, nr_processes, U64),
	ROW(op_status, nr_images, U64),
	ROW(op_status, nr_images_counted, U64),
	ROW(op_status, dumps, U64),
#define X(bound, meaning) { #bound, offsetof(struct op_status, bounds) + OP_BOUND_##bound * sizeof(uint64_t), U64 },
	OP_BOUNDS(X)
#undef X
#define X(name, is_loss, meaning) { "arcs_" #name, offsetof(struct op_status, arcs) + OP_ARC_##name * sizeof(uint64_t), U64 },
		OP_ARC_STATS(X)
#undef X
#define X(name, meaning) { "deep_" #name, offsetof(struct op_status, deep) + OP_DEEP_##name * sizeof(uint64_t), U64 },
			OP_DEEP_STATS(X)
#undef X
#define STAT(runtime, name)                                                                                                        \
	{ #runtime "_" #name,                                                                                                    \
	  offsetof(struct op_status, runtimes) +                                                                                   \
		  (OP_RUNTIME_##runtime * OP_NR_RUNTIME_STATS + OP_RUNTIME_STAT_##name) * sizeof(uint64_t),                        \
	  U64 },
#define X(runtime)                                                                                                                 \
	STAT(runtime, processes)                                                                                                   \
	STAT(runtime, refused)                                                                                                     \
	STAT(runtime, samples)                                                                                                     \
	STAT(runtime, complete)                                                                                                    \
	STAT(runtime, none)                                                                                                        \
	STAT(runtime, fault)                                                                                                       \
	STAT(runtime, deep)                                                                                                        \
	STAT(runtime, moved)                                                                                                       \
	STAT(runtime, unnamed)
			OP_RUNTIMES(X)
#undef X
#define X(name, member, meaning) { "ibs_" #name, offsetof(struct op_status, ibs) + OP_IBS_STAT_##name * sizeof(uint64_t), U64 },
			OP_IBS_STATS(X)
#undef X
#define X(name, refusal, meaning) { "jit_" #name, offsetof(struct op_status, jit) + OP_JIT_##name * sizeof(uint64_t), U64 },
				OP_JIT_COUNTERS(X)
#undef X
					ROW(op_status, maps_reread, U64),
	ROW(op_status, rescan_left, U64),
	ROW(op_status, ring_bytes, U64),
	ROW(op_status, ring_need_bytes, U64),
	ROW(op_status, ring_is_auto, BOOL32),
	ROW(op_status, swap_threads, U32),
	ROW(op_status, event_wait_ns, U64),
	ROW(op_status, visits, U64),
	ROW(op_status, visits_ns, U64),
	ROW(op_status, swapping_ns, U64),
	ROW(op_status, turns, U64),
	ROW(op_status, turn_ns, U64),
	ROW(op_status, turn_longest_ns, U64),
	ROW(op_status, turn_planned_ns, U64),
	ROW(op_status, stack_wanted_hz, U64),
	ROW(op_status, stack_rate_hz, U64),
	ROW(op_status, stack_bytes, U64),
	ROW(op_status, stack_ring_bytes, U64),
	ROW(op_status, stack_walks, U64),
	ROW(op_status, stack_frames, U64),
	ROW(op_status, stack_walk_ns, U64),
	ROW(op_status, stacks_waiting, U64),
	ROW(op_status, tables_made, U64),
	ROW(op_status, tables_from_cache, U64),
	ROW(op_status, tables_failed, U64),
	ROW(op_status, tables_waiting, U64),
	ROW(op_status, has_pmu, BOOL32),
	ROW(op_status, wait_quantum_ns, U64),
	ROW(op_status, no_waits, STRING),
	ROW(op_status, no_deep, STRING),
	ROW(op_status, no_runtimes, STRING),
	WAIT_ROW(switches),
	WAIT_ROW(idle),
	WAIT_ROW(kernel),
	WAIT_ROW(emitted),
	WAIT_ROW(skipped),
	WAIT_ROW(lost),
	WAIT_ROW(records),
#define X(name, number, meaning) \
	{ "wait_" #name "_us", offsetof(struct op_status, waits.total_us) + (number) * sizeof(uint64_t), U64 },
	OP_WAIT_STATES(X)
#undef X
	ROW(op_status, session_dir, STRING),
	ROW(op_status, vmlinux, STRING),
	ROW(op_status, image_filter, STRING),
	ROW(op_status, kernel_note, STRING),
};

static const struct field stop_fields[] = {
	ROW(op_stack_stop, image, STRING),
	ROW(op_stack_stop, end, STACK_END),
	ROW(op_stack_stop, nr, U64),
};

static const struct field event_fields[] = {
	ROW(op_ledger_event, name, STRING),
	ROW(op_ledger_event, count, U64),
	ROW(op_ledger_event, unit_mask, U32),
	ROW(op_ledger_event, every_event, BOOL32),
	ROW(op_ledger_event, role, U32),
	ROW(op_ledger_event, taken, U64),
	ROW(op_ledger_event, received, U64),
	ROW(op_ledger_event, stored, U64),
	ROW(op_ledger_event, unattributed, U64),
	ROW(op_ledger_event, filtered, U64),
	ROW(op_ledger_event, lost_kernel, U64),
#define X(reason, meaning) LOSS_ROW(op_ledger_event, reason),
	OP_LOSS_REASONS(X)
#undef X
		ROW(op_ledger_event, outstanding, U64),
	ROW(op_ledger_event, throttled_ns, U64),
	ROW(op_ledger_event, nr_throttles, U64),
	ROW(op_ledger_event, enabled_ns, U64),
	ROW(op_ledger_event, counted_ns, U64),
#define X(name, meaning) { "end_" #name, offsetof(struct op_ledger_event, ends) + OP_STACK_END_##name * sizeof(uint64_t), U64 },
	OP_STACK_ENDS(X)
#undef X
};

static const struct field cpu_fields[] = {
	ROW(op_ledger_cpu, cpu, U32),
	ROW(op_ledger_cpu, online, BOOL32),
	ROW(op_ledger_cpu, swaps, U64),
	ROW(op_ledger_cpu, swap_wait_ns, U64),
	ROW(op_ledger_cpu, swap_longest_ns, U64),
	ROW(op_ledger_cpu, bytes_read, U64),
	ROW(op_ledger_cpu, records_read, U64),
	ROW(op_ledger_cpu, turn_bytes, U64),
	ROW(op_ledger_cpu, turn_records, U64),
	ROW(op_ledger_cpu, turn_most_bytes, U64),
	ROW(op_ledger_cpu, turn_most_records, U64),
	ROW(op_ledger_cpu, sideband_bytes, U64),
	ROW(op_ledger_cpu, sideband_lost, U64),
	ROW(op_ledger_cpu, late, U64),
	ROW(op_ledger_cpu, damaged, U64),
	ROW(op_ledger_cpu, received, U64),
	ROW(op_ledger_cpu, lost_kernel, U64),
#define X(reason, meaning) LOSS_ROW(op_ledger_cpu, reason),
	OP_LOSS_REASONS(X)
#undef X
		ROW(op_ledger_cpu, throttled_ns, U64),
};

static void add_value(struct op_text *text, const struct field *field, const void *record)
{
	const char *value = (const char *)record + field->offset;
	uint64_t end;

	switch (field->kind) {
	case U32:
		op_text_printf(text, "%" PRIu32, *(const uint32_t *)(const void *)value);
		break;
	case U64:
		op_text_printf(text, "%" PRIu64, *(const uint64_t *)(const void *)value);
		break;
	case BOOL32:
		op_text_add(text, *(const uint32_t *)(const void *)value ? "true" : "false");
		break;
	case STACK_END:
		end = *(const uint64_t *)(const void *)value;
		op_text_printf(text, "\"%s\"", end < OP_NR_STACK_ENDS ? op_stack_end_name((enum op_stack_end)end) : "");
		break;
	case STRING:
		op_text_add_char(text, '"');
		op_text_add_json(text, value);
		op_text_add_char(text, '"');
		break;
	}
}

/* The members of one object, without its braces. */
static void add_members(struct op_text *text, const struct field *fields, size_t nr_fields, const void *record)
{
	for (size_t i = 0; i < nr_fields; i++) {
		op_text_printf(text, "%s\"%s\":", i ? "," : "", fields[i].name);
		add_value(text, &fields[i], record);
	}
}

static void add_array(struct op_text *text, const char *name, const struct field *fields, size_t nr_fields, const void *records,
		      size_t record_bytes, size_t nr_records)
{
	op_text_printf(text, ",\"%s\":[", name);
	for (size_t i = 0; i < nr_records; i++) {
		op_text_add(text, i ? ",{" : "{");
		add_members(text, fields, nr_fields, (const char *)records + i * record_bytes);
		op_text_add_char(text, '}');
	}
	op_text_add_char(text, ']');
}

static void add_daemon(struct op_text *text, const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	const struct op_status *status = daemon->status;
	size_t nr_stops;

	op_text_printf(text, "{\"state\":\"%s\",\"setup_waits\":%s,", status->state == OP_DAEMON_RUNNING ? "running" : "paused",
		       ctl->setup_waits ? "true" : "false");
	add_members(text, status_fields, op_array_size(status_fields), status);
	for (nr_stops = 0; nr_stops < OP_STACK_STOPS && status->stack_stops[nr_stops].nr; nr_stops++)
		;
	add_array(text, "stack_stops", stop_fields, op_array_size(stop_fields), status->stack_stops,
		  sizeof(*status->stack_stops), nr_stops);
	add_array(text, "events", event_fields, op_array_size(event_fields), daemon->events, sizeof(*daemon->events),
		  status->nr_events);
	add_array(text, "cpus", cpu_fields, op_array_size(cpu_fields), daemon->cpus, sizeof(*daemon->cpus), status->nr_cpus);
	op_text_add_char(text, '}');
}

static int show_json(const struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	struct op_text text = { 0 };
	bool failed;

	switch (daemon->presence) {
	case CTL_ABSENT:
		op_text_add(&text, "{\"state\":\"not running\"}");
		break;
	case CTL_NO_ANSWER:
		op_text_printf(&text, "{\"state\":\"%s\",\"pid\":%d}", daemon->other_version ? "another version" : "not answering",
			       (int)daemon->pid);
		break;
	case CTL_PRESENT:
		add_daemon(&text, ctl, daemon);
		break;
	}
	failed = text.failed;
	if (!failed)
		puts(op_text_get(&text));
	op_text_free(&text);
	return failed ? opr_no_memory() : 0;
}

int ctl_show_status(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	if (ctl->format == CTL_PROMETHEUS)
		return ctl_show_prometheus(ctl, daemon);
	if (ctl->format == CTL_JSON)
		return show_json(ctl, daemon);
	show_text(ctl, daemon);
	return 0;
}
