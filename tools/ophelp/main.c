/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ophelp: lists events. */
#include <errno.h>
#include <inttypes.h>

#include "libop/events/event.h"
#include "libop/base/parse.h"
#include "tools/ophelp/events.h"
#include "tools/common/option_values.h"
#include "tools/common/output.h"
#include "tools/common/program.h"
#include "tools/common/log.h"

#define DEFAULT_COUNT 100000

struct options {
	int check_events, ignore_count, unit_mask, extra_mask, get_cpu_type, get_default, names, xml, no_pager;
	char *cpu_type; /* NULL: this host */
	uint64_t callgraph;
	struct opr_words words;
};

static int take_depth(void *field, const char *value)
{
	return op_parse_u64(value, 0, UINT32_MAX, field) < 0 ? opr_error(-EINVAL, "--callgraph=%s: not a number", value) : 0;
}

#define FIELD(name) offsetof(struct options, name)

static const struct opr_option rows[] = {
	{ "callgraph", 0, FIELD(callgraph), take_depth, "check events for use with call graphs of this depth", "depth" },
	{ "check-events", 'e', FIELD(check_events), NULL, "check the given events, and show what counts each", NULL },
	{ "cpu-type", 'c', FIELD(cpu_type), opr_take_string, "events of this type of CPU, by name or number", "cpu type" },
	{ "extra-mask", 'E', FIELD(extra_mask), NULL, "show the extra bits of the given events' unit masks", NULL },
	{ "get-cpu-type", 'r', FIELD(get_cpu_type), NULL, "show the type of the CPU", NULL },
	{ "get-default-event", 'd', FIELD(get_default), NULL, "show the default event", NULL },
	{ "ignore-count", 'i', FIELD(ignore_count), NULL, "do not check the counts of events", NULL },
	{ "names", 0, FIELD(names), NULL, "list names alone, as --event of opcontrol takes them", NULL },
	{ "no-pager", 0, FIELD(no_pager), NULL, "write to the terminal without a pager", NULL },
	{ "unit-mask", 'u', FIELD(unit_mask), NULL, "show the default unit masks of the given events", NULL },
	{ "xml", 'X', FIELD(xml), NULL, "list events as XML", NULL },
};

#undef FIELD

static const struct opr_command command = {
	.program = "ophelp",
	.arguments = "[EVENT]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.words = OPR_WORDS_EVENTS,
};

/* ---- answers ---- */

typedef int answer_fn(const struct options *options, const struct opr_help_events *events);

static int show_cpu_type(const struct options *options OP_UNUSED, const struct opr_help_events *events)
{
	puts(events->cpu_pretty);
	return 0;
}

/* The clock event of a type of CPU. Most types call it CPU_CLK_UNHALTED (oprofile 1.4). */
static const struct opr_help_event *find_clock(const struct opr_help_events *events, const char *cpu_type)
{
	static const struct {
		const char *cpu_type, *name;
	} others[] = {
		{ "i386/skylake", "cpu_clk_unhalted" },      { "i386/goldmont", "cpu_clk_unhalted" },
		{ "i386/goldmontplus", "cpu_clk_unhalted" }, { "i386/p4", "GLOBAL_POWER_EVENTS" },
		{ "i386/p4-ht", "GLOBAL_POWER_EVENTS" },
	};
	const struct opr_help_event *event = NULL;

	for (size_t i = 0; !event && i < op_array_size(others); i++)
		if (!strcmp(cpu_type, others[i].cpu_type))
			event = opr_help_find(events, others[i].name);
	return event ? event : opr_help_find(events, "CPU_CLK_UNHALTED");
}

/* The default event: the clock for a named type of CPU, opcontrol's default for this host. */
static int show_default(const struct options *options, const struct opr_help_events *events)
{
	const struct opr_help_event *event = options->cpu_type ? find_clock(events, options->cpu_type) : NULL;
	struct op_text text = { 0 };
	struct op_event own;
	bool has_pmu;

	if (options->cpu_type) {
		if (event)
			printf("%s:%d:%" PRIu32 ":1:1\n", event->name, DEFAULT_COUNT, opr_help_default_mask(events, event));
		return 0;
	}
	op_event_default(&own, &has_pmu);
	op_event_format(&own, &text);
	puts(op_text_get(&text));
	op_text_free(&text);
	return 0;
}

static int check_events(const struct options *options, const struct opr_help_events *events)
{
	const struct opr_help_check check = { .ignore_count = options->ignore_count, .callgraph = options->callgraph };

	if (!options->words.nr_words)
		return opr_error(-EINVAL, "no events to check");
	return opr_help_check(stdout, events, &options->words, &check);
}

typedef int write_fn(const struct opr_help_events *events, const struct opr_help_event *event, const char *mask);

/* Calls `write` for each NAME[:count[:unitmask...]]. `mask` is NULL without one. */
static int for_each(const struct options *options, const struct opr_help_events *events, write_fn *write)
{
	int err = 0;

	for (size_t i = 0; i < options->words.nr_words && !err; i++) {
		char *fields = options->words.words[i], *mask;
		const struct opr_help_event *event = opr_help_take(events, &fields);

		if (!event)
			return opr_help_refuse(events, options->words.words[i]);
		strsep(&fields, ":");
		mask = strsep(&fields, ":");
		err = write(events, event, mask && *mask ? mask : NULL);
	}
	return err;
}

static int write_mask(const struct opr_help_events *events, const struct opr_help_event *event, const char *mask OP_UNUSED)
{
	printf("%" PRIu32 "\n", opr_help_default_mask(events, event));
	return 0;
}

static int write_number(const struct opr_help_events *events OP_UNUSED, const struct opr_help_event *event,
			const char *mask OP_UNUSED)
{
	printf("%" PRIu64 "\n", event->number);
	return 0;
}

/* A mask given as a number has no extra bits. */
static int write_extra(const struct opr_help_events *events, const struct opr_help_event *event, const char *mask)
{
	const struct opr_mask_value *value = opr_help_mask(events, event, mask);
	uint64_t number;

	if (!value && mask && op_parse_u64(mask, 0, UINT32_MAX, &number) < 0)
		return opr_error(-EINVAL, "%s: it has no unit mask %s", event->name, mask);
	printf("%" PRIu32 "\n", value ? value->extra : 0);
	return 0;
}

static int show_masks(const struct options *options, const struct opr_help_events *events)
{
	return for_each(options, events, write_mask);
}

static int show_extra(const struct options *options, const struct opr_help_events *events)
{
	return for_each(options, events, write_extra);
}

static bool is_pattern(const struct opr_words *words)
{
	return words->nr_words && strpbrk(words->words[0], "*?[");
}

/* For scripts. An event that opcontrol cannot take is left out. */
static void write_names(FILE *out, const struct opr_help_events *events, const struct opr_words *words)
{
	for (size_t i = 0; i < events->nr_events; i++) {
		const struct opr_help_event *event = &events->events[i];
		const char *name = event->source == OPR_HELP_FILES ? event->name : event->as;

		if (name && (!words->nr_words || opr_words_match(words, event->name)))
			fprintf(out, "%s\n", name);
	}
}

static bool any_matches(const struct options *options, const struct opr_help_events *events)
{
	for (size_t i = 0; i < events->nr_events; i++)
		if (opr_words_match(&options->words, events->events[i].name))
			return true;
	return false;
}

static int list(const struct options *options, const struct opr_help_events *events)
{
	struct opr_output output;
	int err;

	if (options->words.nr_words && !options->xml && !options->names && !is_pattern(&options->words))
		return for_each(options, events, write_number);
	if (options->words.nr_words && !any_matches(options, events))
		return opr_error(-ENOENT, "no event matches %s: ophelp alone lists all", options->words.words[0]);
	err = opr_output_open(&output, NULL, options->no_pager, "never");
	if (err)
		return err;
	if (options->names)
		write_names(output.out, events, &options->words);
	else if (options->xml)
		opr_help_write_xml(output.out, events, &options->words);
	else if (events->nr_events)
		opr_help_write_text(output.out, events, &options->words);
	else
		fputs("Using timer interrupt.\n", output.out);
	return opr_output_close(&output);
}

static answer_fn *choose(const struct options *options)
{
	const struct {
		int asked;
		answer_fn *answer;
	} answers[] = { { options->get_cpu_type, show_cpu_type }, { options->get_default, show_default },
			{ options->check_events, check_events },  { options->unit_mask, show_masks },
			{ options->extra_mask, show_extra },      { 1, list } };
	size_t i = 0;

	while (!answers[i].asked)
		i++;
	return answers[i].answer;
}

static int answer(const void *arg)
{
	const struct options *options = arg;
	struct opr_help_events events = { 0 };
	bool name_only = options->get_cpu_type;
	int err = options->cpu_type ? opr_help_read_type(&events, options->cpu_type, name_only)
				    : opr_help_read_host(&events, name_only);

	if (!err)
		err = choose(options)(options, &events);
	opr_help_free(&events);
	return err;
}

int main(int argc, const char **argv)
{
	struct options options = { 0 };

	return opr_command_run(&command, argc, argv, &options, &options.words, answer);
}
