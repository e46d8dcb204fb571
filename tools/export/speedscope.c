/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON for speedscope (github.com/jlfwong/speedscope, file-format-spec.ts): a table of frames, and
 * for each event a profile of stacks with their weights.
 */
#include <inttypes.h>

#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/export/export.h"
#include "tools/export/numbers.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"

/* The functions of all stacks, as keys that are pointers. */
static const struct opr_call_function *frame_of(const struct opr_numbers *frames, size_t number)
{
	const struct opr_call_function *function;

	memcpy(&function, frames->items[number]->bytes, sizeof(function));
	return function;
}

static size_t number_frame(struct opr_numbers *frames, const struct opr_call_function *function)
{
	return opr_number_of(frames, &function, sizeof(const struct opr_call_function *), NULL);
}

static void write_frames(const struct opr_numbers *frames, FILE *out)
{
	fputs("  \"shared\": { \"frames\": [", out);
	for (size_t i = 0; i < frames->nr_items; i++) {
		const struct opr_call_function *function = frame_of(frames, i);

		fprintf(out, "%s\n    { \"name\": ", i ? "," : "");
		opr_write_json(out, opr_call_bare_name(function));
		if (function->kind == OPR_CALL_RUNTIME) {
			fputs(", \"file\": ", out);
			opr_write_json(out, function->place.source ?: function->image);
			if (function->place.line)
				fprintf(out, ", \"line\": %u", function->place.line);
		} else if (function->image[0]) {
			fputs(", \"file\": ", out);
			opr_write_json(out, function->image);
		}
		fputs(" }", out);
	}
	fputs("\n  ] },\n", out);
}

static bool is_of_event(const struct opr_call_node *node, const struct opr_call_node *event)
{
	while (node->parent && node != event)
		node = node->parent;
	return node == event;
}

/* `event`: the root, or the node of an event. */
static void write_profile(const struct opr_call_node *event, const char *name, const char *unit, struct opr_numbers *frames,
			  FILE *out)
{
	const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1];
	size_t nr_above = event->parent ? 1 : 0, nr_written = 0;

	fputs("    { \"type\": \"sampled\", \"name\": ", out);
	opr_write_json(out, name);
	fprintf(out, ", \"unit\": \"%s\", \"startValue\": 0, \"endValue\": %" PRIu64 ",\n      \"samples\": [", unit, event->total);
	for (const struct opr_call_node *node = event; node && is_of_event(node, event); node = opr_call_next(node)) {
		size_t nr;

		opr_progress_tick();
		if (!node->self)
			continue;
		nr = opr_call_path(node, path);
		fputs(nr_written++ ? ",\n        [" : "\n        [", out);
		for (size_t i = nr_above; i < nr; i++)
			fprintf(out, "%s%zu", i > nr_above ? "," : "", number_frame(frames, path[i]));
		fputc(']', out);
	}
	fputs("],\n      \"weights\": [", out);
	nr_written = 0;
	for (const struct opr_call_node *node = event; node && is_of_event(node, event); node = opr_call_next(node))
		if (node->self)
			fprintf(out, "%s%" PRIu64, nr_written++ ? "," : "", node->self);
	fputs("] }", out);
}

static void write_profiles(const struct opr_stack_report *report, struct opr_numbers *frames, FILE *out)
{
	const struct opr_call_node *root = &report->tree->root;
	const char *unit = report->view == OPR_VIEW_CPU ? "none" : "microseconds";

	fputs("  \"profiles\": [\n", out);
	if (report->sums->events.nr_words < 2) {
		write_profile(root, report->sums->events.words[0], unit, frames, out);
	} else {
		for (const struct opr_call_node *event = root->children; event; event = event->next) {
			fputs(event == root->children ? "" : ",\n", out);
			write_profile(event, event->function->name, unit, frames, out);
		}
	}
	fputs("\n  ],\n", out);
}

int opr_export_speedscope(const struct opr_stack_report *report, FILE *out)
{
	struct opr_numbers frames = { 0 };
	struct op_text text = { 0 };
	int err;

	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
		number_frame(&frames, node->function);
	opr_stacks_describe_line(report, &text);
	err = frames.failed || text.failed ? opr_no_memory() : 0;
	if (!err) {
		fputs("{\n  \"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n", out);
		write_frames(&frames, out);
		write_profiles(report, &frames, out);
		fputs("  \"exporter\": \"opd\",\n  \"name\": ", out);
		opr_write_json(out, op_text_get(&text));
		fputs("\n}\n", out);
	}
	op_text_free(&text);
	opr_numbers_free(&frames);
	return err;
}
