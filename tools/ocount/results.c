/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The columns, words and blanks are those of ocount(1) of oprofile 1.4, which scripts read. A count
 * is scaled when its event ran less than 99 % of the time: the kernel let events take turns.
 */
#include "tools/ocount/results.h"

#include <inttypes.h>

#include "libop/base/clock.h"
#include "tools/common/formatting.h"

#define NAME_SPACE     8 /* behind the longest name */
#define OWNER_WIDTH    10
#define COUNT_WIDTH    25
#define SCALED_FROM    0.01
#define COUNT_BYTES    32 /* of 2^64 with commas */
#define NS_PER_TENTH   100000000u
#define SECONDS_OF_MIN 60

static bool is_separate(const struct ocn_results *results)
{
	return results->options->separate_cpu || results->options->separate_thread;
}

/* The event of a counter, by its index. */
static const struct ocn_event *event_of(const struct ocn_results *results, size_t index)
{
	const struct ocn_events *events = results->counters->events;

	return &events->events[index % events->nr_events];
}

/* One counter, or the sum of those of an event. */
static struct ocn_reading reading_of(const struct ocn_results *results, size_t index)
{
	const struct ocn_counters *counters = results->counters;
	struct ocn_reading sum = { 0 };

	if (is_separate(results))
		return counters->counters[index].now;
	for (size_t i = index; i < counters->nr_counters; i += counters->events->nr_events) {
		sum.count += counters->counters[i].now.count;
		sum.enabled_ns += counters->counters[i].now.enabled_ns;
		sum.running_ns += counters->counters[i].now.running_ns;
	}
	return sum;
}

/* A task that sleeps all through an interval is counted there, with 0. */
static bool was_counted(const struct ocn_results *results, size_t index)
{
	const struct ocn_counters *counters = results->counters;
	bool any = counters->counters[index].last.enabled_ns;

	for (size_t i = index; i < counters->nr_counters && !is_separate(results); i += counters->events->nr_events)
		any |= counters->counters[i].last.enabled_ns != 0;
	return any;
}

static size_t nr_lines(const struct ocn_results *results)
{
	return is_separate(results) ? results->counters->nr_counters : results->counters->events->nr_events;
}

static bool is_scaled(const struct ocn_counters *counters)
{
	for (size_t i = 0; i < counters->nr_counters; i++) {
		const struct ocn_reading *reading = &counters->counters[i].now;
		double lost = (double)reading->enabled_ns - (double)reading->running_ns;

		if (reading->enabled_ns && lost / (double)reading->enabled_ns > SCALED_FROM)
			return true;
	}
	return false;
}

/* The part of the time in which the event was counted. */
static double fraction(const struct ocn_reading *reading, bool scaled)
{
	return scaled && reading->enabled_ns ? (double)reading->running_ns / (double)reading->enabled_ns : 1;
}

static uint64_t scaled_count(const struct ocn_reading *reading, bool scaled)
{
	double part = fraction(reading, scaled);

	return part < 1 && part > 0 ? (uint64_t)((double)reading->count / part) : reading->count;
}

/* ---- brief ---- */

static void write_brief(const struct ocn_results *results, bool scaled)
{
	fputc('\n', results->out);
	for (size_t i = 0; i < nr_lines(results); i++) {
		const struct ocn_reading reading = reading_of(results, i);

		if (is_separate(results))
			fprintf(results->out, "%d,", results->counters->counters[i].owner);
		opr_write_escaped(results->out, event_of(results, i)->shown);
		fprintf(results->out, ",%" PRIu64 ",", scaled_count(&reading, scaled));
		if (was_counted(results, i))
			fprintf(results->out, "%.2f\n", fraction(&reading, scaled) * 100);
		else
			fputs(is_separate(results) ? "0\n" : "Event not counted\n", results->out);
	}
}

/* ---- columns ---- */

static void write_duration(FILE *out, uint64_t ns)
{
	uint64_t seconds = ns / OP_NS_PER_S, minutes = seconds / SECONDS_OF_MIN;

	fputs("Events were actively counted for ", out);
	if (minutes)
		fprintf(out, " %" PRIu64 " minute%s and %" PRIu64 " seconds.\n", minutes, minutes > 1 ? "s" : "",
			seconds % SECONDS_OF_MIN);
	else if (seconds)
		fprintf(out, "%.1f seconds.\n", (double)ns / OP_NS_PER_S);
	else
		fprintf(out, "%" PRIu64 " nanoseconds.\n", ns);
}

static void write_target(const struct ocn_results *results)
{
	static const char *const targets[] = { [OCN_PROCESSES] = "the specified process(es)",
					       [OCN_THREADS] = "the specified thread(s)",
					       [OCN_CPUS] = "the specified CPU(s)",
					       [OCN_SYSTEM] = "the whole system" };

	if (results->options->mode != OCN_COMMAND)
		fputs(targets[results->options->mode], results->out);
	else
		opr_write_escaped(results->out, results->command ? results->command : results->options->command.words[0]);
	fputs(":\n", results->out);
}

static void format_count(uint64_t count, char text[COUNT_BYTES])
{
	char digits[COUNT_BYTES];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
}

static void write_columns(const struct ocn_results *results, bool scaled)
{
	bool of_cpus = results->options->mode == OCN_CPUS || results->options->mode == OCN_SYSTEM;
	int width = 0;

	for (size_t i = 0; i < results->counters->events->nr_events; i++)
		width = (int)op_max_u64((uint64_t)width, strlen(results->counters->events->events[i].shown));
	width += 1 + NAME_SPACE;
	fprintf(results->out, "\t%-*s", width, "Event");
	if (is_separate(results))
		fprintf(results->out, "%-*s", OWNER_WIDTH, of_cpus ? "CPU" : "Task ID");
	fprintf(results->out, "%-*s%% time counted\n", COUNT_WIDTH, "Count");
	for (size_t i = 0; i < nr_lines(results); i++) {
		const struct ocn_reading reading = reading_of(results, i);
		char count[COUNT_BYTES];

		fprintf(results->out, "\t%-*s", width, event_of(results, i)->shown);
		if (is_separate(results))
			fprintf(results->out, "%-*d", OWNER_WIDTH, results->counters->counters[i].owner);
		format_count(scaled_count(&reading, scaled), count);
		fprintf(results->out, "%-*s", COUNT_WIDTH, count);
		if (was_counted(results, i))
			fprintf(results->out, "%.2f\n", fraction(&reading, scaled) * 100);
		else
			fputs("Event not counted\n", results->out);
	}
}

void ocn_results_write(const struct ocn_results *results, uint64_t ns)
{
	bool scaled = is_scaled(results->counters);

	if (results->options->brief) {
		write_brief(results, scaled);
		return;
	}
	fputc('\n', results->out);
	if (!results->options->interval.ns)
		write_duration(results->out, ns);
	fprintf(results->out, "Event counts (%s) for ", scaled ? "scaled" : "actual");
	write_target(results);
	write_columns(results, scaled);
}

void ocn_results_write_time(const struct ocn_results *results, uint64_t realtime_ns)
{
	uint64_t tenths = (realtime_ns + NS_PER_TENTH / 2) / NS_PER_TENTH;

	fputs(results->options->brief ? "\ntimestamp," : "\nCurrent time (seconds since epoch): ", results->out);
	if (results->options->interval.ns % OP_NS_PER_S)
		fprintf(results->out, "%" PRIu64 ".%" PRIu64 "\n", tenths / 10, tenths % 10);
	else
		fprintf(results->out, "%" PRIu64 "\n", realtime_ns / OP_NS_PER_S);
}
