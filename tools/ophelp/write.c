/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <inttypes.h>

#include "tools/ophelp/events.h"
#include "tools/report/xml_elements.h"

#define LINE_WIDTH      99
#define TAB_WIDTH       8
#define NR_COUNTERS_MAX 32
#define ZERO_MASKS      "zero" /* the set of events without masks */

static const char *const headings[] = {
#define X(name, heading) [OPR_HELP_##name] = heading,
	OPR_HELP_SOURCES(X)
#undef X
};

static bool is_chosen(const struct opr_help_event *event, const struct opr_words *words)
{
	return !words->nr_words || opr_words_match(words, event->name);
}

/* Writes words behind a tab, and continues behind a tab on the next lines. */
static void write_wrapped(FILE *out, const char *first, const char *text)
{
	size_t column = TAB_WIDTH + strlen(first);

	fprintf(out, "\t%s", first);
	while (*text) {
		size_t length = strcspn(text, " ");

		if (column + 1 + length > LINE_WIDTH) {
			fputs("\n\t", out);
			column = TAB_WIDTH;
		}
		fprintf(out, "%.*s", (int)length, text);
		column += length;
		text += length;
		if (*text) {
			fputc(' ', out);
			column++;
			text++;
		}
	}
	fputc('\n', out);
}

static void write_counters(FILE *out, uint32_t counters)
{
	bool any = false;

	fputs("counter: ", out);
	for (unsigned int i = 0; i < NR_COUNTERS_MAX; i++) {
		if (!(counters & 1u << i))
			continue;
		fprintf(out, "%s%u", any ? ", " : "", i);
		any = true;
	}
	if (!any)
		fputs("all", out);
}

static const struct opr_mask_set *set_of(const struct opr_help_events *events, const struct opr_help_event *event, size_t index)
{
	const struct opr_mask_set *set = event->row ? opr_event_set(&events->files, event->row, index) : NULL;

	return set && strcmp(set->name, ZERO_MASKS) ? set : NULL;
}

static void write_masks(FILE *out, const struct opr_help_events *events, const struct opr_help_event *event)
{
	const struct opr_mask_set *set = set_of(events, event, 0);

	if (!set)
		return;
	fprintf(out, "\tUnit masks (default 0x%02" PRIx32 ")\n\t----------\n", opr_help_default_mask(events, event));
	for (size_t i = 0; (set = set_of(events, event, i)); i++) {
		for (size_t j = 0; j < set->nr_values; j++) {
			const struct opr_mask_value *value = &set->values[j];
			char first[96];

			snprintf(first, sizeof(first), value->name ? "0x%02" PRIx32 ": (name=%s) " : "0x%02" PRIx32 ": ",
				 value->value, value->name);
			write_wrapped(out, first, value->description);
		}
	}
}

static void write_event(FILE *out, const struct opr_help_events *events, const struct opr_help_event *event)
{
	char first[16] = "";

	fprintf(out, "%s: (", event->name);
	if (event->ext)
		fprintf(out, "ext: %s", event->ext);
	else
		write_counters(out, event->counters);
	fputs(")\n", out);
	write_wrapped(out, first, event->description);
	if (event->minimum)
		fprintf(out, "\t(min count: %" PRIu64 ")\n", event->minimum);
	if (event->as && strcmp(event->as, event->name))
		fprintf(out, "\t(opcontrol --event=%s:COUNT)\n", event->as);
	write_masks(out, events, event);
}

void opr_help_write_text(FILE *out, const struct opr_help_events *events, const struct opr_words *words)
{
	enum opr_help_source source = OPR_HELP_FILES;

	fprintf(out, "oprofile: available events for CPU type \"%s\"\n\n", events->cpu_pretty);
	fputs("opcontrol(1) says how events are chosen, the manual of the processor what they count.\n", out);
	for (size_t i = 0; i < events->nr_events; i++) {
		const struct opr_help_event *event = &events->events[i];

		if (!is_chosen(event, words))
			continue;
		if (event->source != source && event->source != OPR_HELP_FILES)
			fprintf(out, "\n%s:\n", headings[event->source]);
		source = event->source;
		if (source == OPR_HELP_tracepoint)
			fprintf(out, "%s\n", event->name);
		else
			write_event(out, events, event);
	}
}

/* ---- XML ---- */

static void write_xml_masks(FILE *out, const struct opr_help_events *events, const struct opr_help_event *event)
{
	static const char *const types[] = {
		[OPR_MASK_BITMASK] = "bitmask",
		[OPR_MASK_EXCLUSIVE] = "exclusive",
		[OPR_MASK_MANDATORY] = "mandatory",
	};
	const struct opr_mask_set *set;

	for (size_t i = 0; (set = set_of(events, event, i)); i++) {
		opr_xml_begin(out, "unit_masks");
		opr_xml_number(out, "default", opr_help_default_mask(events, event));
		opr_xml_attribute(out, "category", types[set->type]);
		opr_xml_open(out);
		for (size_t j = 0; j < set->nr_values; j++) {
			opr_xml_begin(out, "unit_mask");
			if (set->values[j].name)
				opr_xml_attribute(out, "name", set->values[j].name);
			opr_xml_number(out, "mask", set->values[j].value);
			opr_xml_attribute(out, "desc", set->values[j].description);
			opr_xml_empty(out);
		}
		opr_xml_end(out, "unit_masks");
	}
}

static void write_xml_event(FILE *out, const struct opr_help_events *events, const struct opr_help_event *event)
{
	opr_xml_begin(out, "event");
	opr_xml_attribute(out, "event_name", event->name);
	opr_xml_attribute(out, "desc", event->description);
	opr_xml_number(out, "counter_mask", event->counters);
	if (event->ext)
		opr_xml_attribute(out, "ext", event->ext);
	opr_xml_number(out, "min_count", event->minimum);
	if (!set_of(events, event, 0)) {
		opr_xml_empty(out);
		return;
	}
	opr_xml_open(out);
	write_xml_masks(out, events, event);
	opr_xml_end(out, "event");
}

void opr_help_write_xml(FILE *out, const struct opr_help_events *events, const struct opr_words *words)
{
	char *title = NULL;

	fputs("<?xml version=\"1.0\"?>\n", out);
	opr_xml_begin(out, "help_events");
	opr_xml_attribute(out, "schemaversion", "2.0");
	opr_xml_open(out);
	if (asprintf(&title, "oprofile: available events for CPU type \"%s\"", events->cpu_pretty) < 0)
		title = NULL;
	opr_xml_begin(out, "header");
	opr_xml_attribute(out, "title", title ? title : "");
	opr_xml_attribute(out, "doc", "opcontrol(1)");
	opr_xml_empty(out);
	for (size_t i = 0; i < events->nr_events; i++)
		if (is_chosen(&events->events[i], words))
			write_xml_event(out, events, &events->events[i]);
	opr_xml_end(out, "help_events");
	free(title);
}
