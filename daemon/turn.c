/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/turn.h"

#include <errno.h>
#include <stdlib.h>

#include "libop/base/clock.h"
#include "libop/base/log.h"
#include "libop/session/layout.h"
#include "pipeline/capture/cpus.h"
#include "pipeline/capture/kernel_source.h"
#include "pipeline/files/lookers.h"
#include "pipeline/stacks/state.h"
#include "pipeline/stacks/tables.h"

#define RATE_CHECK_INTERVAL_NS (10u * (uint64_t)OP_NS_PER_S)
#define RING_REMEDY            "a larger RingSize= or a longer period, or more CPU time for opd (Nice=, CPUWeight= of opd.service)"
#define STACKS_REMEDY          "a lower StackRate= or StackBytes=, or more CPU time for opd (Nice=, CPUWeight= of opd.service)"
#define MAX_SAMPLE_RATE_PATH   "/proc/sys/kernel/perf_event_max_sample_rate"

/* ---- CPUs that come and go ---- */

static void close_cpu(struct opd_recording *recording, struct opd_cpu *cpu)
{
	opd_visit_offline_cpu(&recording->visits, cpu);
	opd_capture_cpu_close(&recording->pipeline->capture, cpu);
	op_log_with(OP_LOG_NOTICE, &(struct op_log_field){ .name = "OPD_CPU", .number = cpu->cpu }, 1,
		    "CPU %u went offline: all its samples were read", cpu->cpu);
}

/* There are no records of what happened on the CPU before its side band was open: /proc is read. */
static void open_cpu(struct opd_turns *turns, size_t index)
{
	static struct op_rate rate;
	struct opd_capture *capture = &turns->recording->pipeline->capture;
	struct opd_cpu *cpu = &capture->cpus[index];
	uint64_t now_ns = op_now_ns(), suppressed;
	char *why = NULL;
	int err = opd_capture_cpu_open(capture, cpu, &why);

	if (!err) {
		if (!cpu->online)
			return; /* it went offline again */
		err = opd_loop_watch_cpu(turns->loop, index);
	}
	if (!err) {
		opd_visits_missed(&turns->recording->visits, turns->loop->horizon_ns);
		op_log_with(OP_LOG_NOTICE, &(struct op_log_field){ .name = "OPD_CPU", .number = cpu->cpu }, 1, "CPU %u came online",
			    cpu->cpu);
	} else if (op_rate_allows(&rate, now_ns, OP_LOG_INTERVAL_NS, &suppressed)) {
		op_log(OP_LOG_WARNING, "CPU %u came online: %s", cpu->cpu, why ? why : strerror(-err));
	}
	free(why);
}

/*
 * True when the CPU was offline between two checks. The kernel then has removed its events, and
 * reports nothing about that.
 */
static bool was_offline(const struct opd_cpu *cpu)
{
	uint64_t online_id = opd_cpu_online_id(cpu->cpu);

	return online_id && online_id != cpu->online_id;
}

void opd_turn_check_cpus(struct opd_turns *turns)
{
	struct opd_capture *capture = &turns->recording->pipeline->capture;
	uint32_t *online;
	size_t nr_online;

	if (opd_cpus_read(OPD_CPUS_ONLINE, &online, &nr_online) < 0)
		return;
	for (size_t i = 0; i < capture->nr_cpus; i++) {
		struct opd_cpu *cpu = &capture->cpus[i];
		bool is_online = opd_cpus_has(online, nr_online, cpu->cpu);

		if (!cpu->source->is_host)
			continue;
		if (cpu->online && (!is_online || was_offline(cpu)))
			close_cpu(turns->recording, cpu);
		if (!cpu->online && is_online)
			open_cpu(turns, i);
	}
	free(online);
}

/* ---- log lines ---- */

/* The kernel lowers its limit when interrupts take long, and then throttles samples. */
static void check_sample_rate(struct opd_turns *turns)
{
	FILE *file = fopen(MAX_SAMPLE_RATE_PATH, "re");
	unsigned long long rate;

	if (!file)
		return;
	if (fscanf(file, "%llu", &rate) == 1) {
		if (turns->max_sample_rate && rate < turns->max_sample_rate)
			op_log(OP_LOG_WARNING,
				"the kernel lowered kernel.perf_event_max_sample_rate from %llu to %llu, because interrupts took "
				"too long: samples may be throttled; use a longer period",
				(unsigned long long)turns->max_sample_rate, rate);
		turns->max_sample_rate = rate;
	}
	fclose(file);
}

/* Rows that cannot be written, once a minute. */
static void report_cookies(struct opd_turns *turns, uint64_t now_ns)
{
	static struct op_rate rate;
	struct opd_cookie_file *file = turns->recording->pipeline->count.cookie_file;
	uint64_t nr_errors, suppressed;
	int err;

	if (!file)
		return;
	nr_errors = opd_cookie_file_errors(file, &err);
	if (nr_errors == turns->nr_cookie_errors || !op_rate_allows(&rate, now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		return;
	op_log(OP_LOG_WARNING,
		"%llu failures to write the table of images, " OP_SESSION_CURRENT "/" OP_DCOOKIE_FILE
		": %s; opd goes on counting and tries again",
		(unsigned long long)(nr_errors - turns->nr_cookie_errors), strerror(-err));
	turns->nr_cookie_errors = nr_errors;
}

static void report_loss(const char *what, const char *reason, uint64_t nr_lost, const char *why, const char *session_dir)
{
	const struct op_log_field fields[] = {
		{ .name = "OPD_LOSS", .text = reason },
		{ .name = "OPD_SAMPLES", .number = nr_lost },
		{ .name = "OPD_SESSION_DIR", .text = session_dir },
	};

	op_log_with(OP_LOG_WARNING, fields, op_array_size(fields), "%llu %s lost (lost_%s): %s, session directory %s",
		    (unsigned long long)nr_lost, what, reason, why, session_dir);
}

void opd_turn_report_losses(struct opd_turns *turns, uint64_t now_ns, bool is_last)
{
	static struct op_rate rates[OP_NR_LOSS + 2];
	struct opd_losses losses;
	uint64_t suppressed;

	opd_sum_losses(&turns->recording->pipeline->capture, &losses);
	for (size_t i = 0; i < OP_NR_LOSS; i++)
		if (losses.lost[i] > turns->reported.lost[i] &&
		    (is_last || op_rate_allows(&rates[i], now_ns, OP_LOG_INTERVAL_NS, &suppressed))) {
			report_loss("samples", op_loss_name((enum op_loss)i), losses.lost[i] - turns->reported.lost[i],
				    op_loss_meaning((enum op_loss)i), turns->session_dir);
			turns->reported.lost[i] = losses.lost[i];
		}
	if (losses.kernel > turns->reported.kernel &&
	    (is_last || op_rate_allows(&rates[OP_NR_LOSS], now_ns, OP_LOG_INTERVAL_NS, &suppressed))) {
		report_loss("samples", "kernel", losses.kernel - turns->reported.kernel,
			    "the rings were full, as opd came too late: " RING_REMEDY, turns->session_dir);
		turns->reported.kernel = losses.kernel;
	}
	if (losses.stacks > turns->reported.stacks &&
	    (is_last || op_rate_allows(&rates[OP_NR_LOSS + 1], now_ns, OP_LOG_INTERVAL_NS, &suppressed))) {
		report_loss("stacks", "kernel", losses.stacks - turns->reported.stacks,
			    "the rings for stacks were full, as opd came too late: " STACKS_REMEDY, turns->session_dir);
		turns->reported.stacks = losses.stacks;
	}
}

/* The kernel ends helpers first where memory is short. */
static void report_helpers(struct opd_turns *turns, uint64_t now_ns)
{
	static struct op_rate rate;
	const struct opd_pipeline *pipeline = turns->recording->pipeline;
	struct opd_lookers *lookers = pipeline->resolver.processes.mount_views.lookers;
	struct opd_tables_counts counts = { 0 };
	uint64_t nr, suppressed;

	if (!lookers)
		return;
	if (pipeline->stacks && pipeline->stacks->tables)
		opd_tables_get_counts(pipeline->stacks->tables, &counts);
	nr = opd_lookers_nr_ended(lookers) + counts.nr_ended;
	if (nr == turns->nr_helpers_ended || !op_rate_allows(&rate, now_ns, OP_LOG_INTERVAL_NS, &suppressed))
		return;
	op_log(OP_LOG_WARNING, "helper processes of opd that ended or were killed: %llu; others take their place",
	       (unsigned long long)(nr - turns->nr_helpers_ended));
	turns->nr_helpers_ended = nr;
}

/* ---- the turn ---- */

void opd_turn_end(struct opd_turns *turns, uint64_t now_ns)
{
	report_helpers(turns, now_ns);
	report_cookies(turns, now_ns);
	if (now_ns >= turns->next_rate_check_ns) {
		check_sample_rate(turns);
		turns->next_rate_check_ns = now_ns + RATE_CHECK_INTERVAL_NS;
	}
	opd_rotate_if_due(turns->rotation, now_ns);
	opd_retain_if_due(turns->rotation->retention, now_ns);
	opd_unwritten_retry(&turns->recording->dumps.unwritten, now_ns);
}
