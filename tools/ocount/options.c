/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/ocount/options.h"

#include <errno.h>
#include <limits.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/base/parse.h"
#include "tools/common/log.h"
#include "tools/common/option_values.h"

#define CPU_MAX          65535
#define NS_PER_MS        1000000u
#define INTERVAL_STEP_MS 100 /* as in oprofile */
#define INTERVAL_MS_MAX  (365ull * 24 * 3600 * 1000)

static int add_number(struct ocn_numbers *list, int number)
{
	for (size_t i = 0; i < list->nr_numbers; i++)
		if (list->numbers[i] == number)
			return 0;
	if (!op_grow(&list->numbers, &list->capacity, list->nr_numbers + 1))
		return opr_no_memory();
	list->numbers[list->nr_numbers++] = number;
	return 0;
}

/* Adds the numbers of "2,3,4-11"; ranges only where they are allowed. */
static int take_numbers(struct ocn_numbers *list, const char *value, uint64_t min, uint64_t max, bool ranges, const char *what)
{
	struct opr_words words = { 0 };
	int err = opr_words_split(&words, value) ? opr_no_memory() : 0;

	if (!err && !words.nr_words)
		err = opr_error(-EINVAL, "%s: the list is empty", what);
	for (size_t i = 0; i < words.nr_words && !err; i++) {
		char *word = words.words[i], *dash = ranges ? strchr(word, '-') : NULL;
		uint64_t first, last;
		bool is_bad;

		if (dash)
			*dash = '\0';
		is_bad = op_parse_u64(word, min, max, &first) || op_parse_u64(dash ? dash + 1 : word, min, max, &last) ||
			 last < first;
		if (dash)
			*dash = '-';
		if (is_bad)
			err = opr_error(-EINVAL, "%s: '%s' is not a number of %ju or more%s", what, word, (uintmax_t)min,
					ranges ? ", and no range such as 4-11" : "");
		for (uint64_t number = first; !err && number <= last; number++)
			err = add_number(list, (int)number);
	}
	opr_words_free(&words);
	return err;
}

static int take_processes(void *field, const char *value)
{
	return take_numbers(field, value, 1, INT_MAX, false, "--process-list");
}

static int take_threads(void *field, const char *value)
{
	return take_numbers(field, value, 1, INT_MAX, false, "--thread-list");
}

static int take_cpus(void *field, const char *value)
{
	return take_numbers(field, value, 0, CPU_MAX, true, "--cpu-list");
}

/* MILLISECONDS[:NUMBER], in steps of 100 ms, at least one. */
static int take_interval(void *field, const char *value)
{
	struct ocn_interval *interval = field;
	char *copy = strdup(value), *colon = copy ? strchr(copy, ':') : NULL;
	uint64_t ms = 0, number = 0;
	int err = copy ? 0 : -ENOMEM;

	if (colon)
		*colon = '\0';
	if (!err)
		err = op_parse_u64(copy, 0, INTERVAL_MS_MAX, &ms);
	if (!err && colon)
		err = op_parse_u64(colon + 1, 1, UINT32_MAX, &number);
	free(copy);
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err)
		return opr_error(-EINVAL, "--time-interval=%s: MILLISECONDS or MILLISECONDS:NUMBER, such as 1000:5", value);
	ms = op_max_u64((ms + INTERVAL_STEP_MS / 2) / INTERVAL_STEP_MS, 1) * INTERVAL_STEP_MS;
	*interval = (struct ocn_interval){ ms * NS_PER_MS, number };
	return 0;
}

#define FIELD(name) offsetof(struct ocn_options, name)

static const struct opr_option rows[] = {
	{ "brief-format", 'b', FIELD(brief), NULL, "lines for programs: [CPU or task,]event,count,percent of the time", NULL },
	{ "cpu-list", 'C', FIELD(cpus), take_cpus, "count on these CPUs, such as 0,2,4-11, until Ctrl-C", "cpus" },
	{ "events", 'e', FIELD(events), opr_take_more_words,
	  "the events to count, NAME[:UNITMASK[:KERNEL[:USER]]], with commas between (ophelp lists the names)", "event" },
	{ "output-file", 'f', FIELD(output_file), opr_take_string, "write the counts to this file", "file" },
	{ "process-list", 'p', FIELD(processes), take_processes, "count these processes and their later children, until they end",
	  "pids" },
	{ "separate-cpu", 'c', FIELD(separate_cpu), NULL, "one count for each CPU", NULL },
	{ "separate-thread", 't', FIELD(separate_thread), NULL, "one count for each thread", NULL },
	{ "system-wide", 's', FIELD(system_wide), NULL, "count on all CPUs, until Ctrl-C (as root)", NULL },
	{ "thread-list", 'r', FIELD(threads), take_threads, "count these threads, until they end", "tids" },
	{ "time-interval", 'i', FIELD(interval), take_interval, "print the counts of each interval; stop after NUMBER intervals",
	  "milliseconds[:number]" },
	{ "verbose", 'V', FIELD(verbose), NULL, "print details to stderr", NULL },
};

#undef FIELD

static const struct opr_command command = {
	.program = "ocount",
	.arguments = "[COMMAND [ARGUMENT]...]",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.words = OPR_WORDS_COMMAND,
};

static int choose_mode(struct ocn_options *options)
{
	const struct {
		bool given;
		const char *name;
	} modes[] = { [OCN_COMMAND] = { options->command.nr_words, "a command" },
		      [OCN_PROCESSES] = { options->processes.nr_numbers, "--process-list" },
		      [OCN_THREADS] = { options->threads.nr_numbers, "--thread-list" },
		      [OCN_CPUS] = { options->cpus.nr_numbers, "--cpu-list" },
		      [OCN_SYSTEM] = { options->system_wide, "--system-wide" } };
	const char *first = NULL;

	for (size_t i = 0; i < op_array_size(modes); i++) {
		if (!modes[i].given)
			continue;
		if (first)
			return opr_error(-EINVAL, "%s and %s do not go together", first, modes[i].name);
		first = modes[i].name;
		options->mode = (enum ocn_mode)i;
	}
	return first ? 0
		     : opr_error(-EINVAL, "nothing to count: give a command, --process-list, --thread-list, --cpu-list or "
					  "--system-wide (see ocount --help)");
}

static int check(const struct ocn_options *options)
{
	if (options->separate_cpu && options->mode != OCN_CPUS && options->mode != OCN_SYSTEM)
		return opr_error(-EINVAL, "--separate-cpu needs --system-wide or --cpu-list");
	if (options->separate_thread && options->mode != OCN_PROCESSES && options->mode != OCN_THREADS)
		return opr_error(-EINVAL, "--separate-thread needs --process-list or --thread-list");
	return 0;
}

int ocn_options_parse(struct ocn_options *options, int argc, const char **argv, enum opr_request *ret_request)
{
	int err = opr_command_read(&command, argc, argv, options, &options->command, ret_request);

	if (err || *ret_request == OPR_DONE)
		return err;
	err = choose_mode(options);
	return err ? err : check(options);
}

void ocn_options_free(struct ocn_options *options)
{
	opr_command_free(&command, options);
	opr_words_free(&options->events);
	opr_words_free(&options->command);
	free(options->processes.numbers);
	free(options->threads.numbers);
	free(options->cpus.numbers);
}
