/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON for the Firefox Profiler: its "processed profile", version 48. The format is described in
 * github.com/firefox-devtools/profiler: docs-developer/processed-profile-format.md and
 * CHANGELOG-formats.md, src/types/profile.js.
 *
 * Each group of stacks is a thread. Tables are columns: a stack is a frame and the stack of its
 * caller, and a frame is a function. Samples have weights. Their times are made up: stacks have
 * none, so samples follow each other as if one CPU had taken all.
 */
#include <inttypes.h>

#include "libop/base/clock.h"
#include "libop/base/grow.h"
#include "libop/events/event_def.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/export/export.h"
#include "tools/export/numbers.h"
#include "tools/report/writer.h"
#include "tools/stacks/arrange.h"

#define FORMAT_VERSION	 48
#define GECKO_VERSION	 30 /* of the format of Firefox that belongs to it */
#define NONE		 SIZE_MAX
#define RESOURCE_LIBRARY 1

enum category { OTHER, USER, KERNEL, RUNTIME };

struct stack {
	size_t prefix; /* NONE: the outermost function */
	size_t frame;
};

struct sample {
	size_t stack; /* NONE: nothing is known of it */
	uint64_t weight;
};

/* The tables of a thread. */
struct thread {
	struct opr_numbers strings, frames, resources; /* keys: text, pointer, text */
	struct stack *stacks;
	struct sample *samples;
	size_t nr_stacks, nr_samples, stacks_capacity, samples_capacity;
	bool failed;
};

struct firefox {
	const struct opr_stack_report *report;
	struct opr_numbers libs; /* names */
	size_t nr_threads;
	double interval_ms;
	FILE *out;
};

static size_t number_string(struct thread *thread, const char *string)
{
	return opr_number_of_string(&thread->strings, string);
}

/* ---- columns ---- */

/* `none` stands for NONE. */
static void write_numbers(FILE *out, const char *name, size_t nr, size_t (*value)(const struct thread *thread, size_t index),
			  const struct thread *thread, const char *none)
{
	fprintf(out, ", \"%s\": [", name);
	for (size_t i = 0; i < nr; i++) {
		size_t number = value(thread, i);

		fputs(i ? "," : "", out);
		if (number == NONE)
			fputs(none, out);
		else
			fprintf(out, "%zu", number);
	}
	fputc(']', out);
}

static void write_same(FILE *out, const char *name, size_t nr, const char *value)
{
	fprintf(out, ", \"%s\": [", name);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s%s", i ? "," : "", value);
	fputc(']', out);
}

static const struct opr_call_function *function_of(const struct thread *thread, size_t frame)
{
	const struct opr_call_function *function;

	memcpy(&function, thread->frames.items[frame]->bytes, sizeof(function));
	return function;
}

static size_t category_of(const struct thread *thread, size_t frame)
{
	switch (function_of(thread, frame)->kind) {
	case OPR_CALL_USER:
	case OPR_CALL_INLINED:
		return USER;
	case OPR_CALL_KERNEL:
		return KERNEL;
	case OPR_CALL_RUNTIME:
		return RUNTIME;
	case OPR_CALL_GROUP:
	case OPR_CALL_END:
	case OPR_CALL_STATE:
	case OPR_CALL_WAKER:
	case OPR_CALL_LESS:
		break;
	}
	return OTHER;
}

static size_t itself(const struct thread *thread, size_t index)
{
	(void)thread;
	return index;
}

/* Names were numbered when the frames were added, so they are found now. */
static size_t find_number(const struct opr_numbers *numbers, const void *key, size_t nr_bytes)
{
	uint64_t hash = op_hash_bytes(nr_bytes, key, nr_bytes);

	for (struct op_hlink *link = op_htable_first(&numbers->table, hash); link; link = op_htable_next(link)) {
		const struct opr_numbered *item = op_container_of(link, struct opr_numbered, link);

		if (item->nr_bytes == nr_bytes && !memcmp(item->bytes, key, nr_bytes))
			return item->number;
	}
	return NONE;
}

static size_t name_of(const struct thread *thread, size_t frame)
{
	const char *name = opr_call_bare_name(function_of(thread, frame));

	return find_number(&thread->strings, name, strlen(name));
}

static size_t file_of(const struct thread *thread, size_t frame)
{
	const struct opr_call_function *function = function_of(thread, frame);
	const char *file = function->kind == OPR_CALL_RUNTIME ? function->place.source : NULL;

	return file ? find_number(&thread->strings, file, strlen(file)) : NONE;
}

static size_t line_of(const struct thread *thread, size_t frame)
{
	const struct opr_call_function *function = function_of(thread, frame);

	return function->kind == OPR_CALL_RUNTIME && function->place.line ? function->place.line : NONE;
}

static size_t resource_of(const struct thread *thread, size_t frame)
{
	const char *image = function_of(thread, frame)->image;

	return find_number(&thread->resources, image, strlen(image));
}

static size_t resource_name(const struct thread *thread, size_t resource)
{
	const struct opr_numbered *item = thread->resources.items[resource];

	return find_number(&thread->strings, item->bytes, item->nr_bytes);
}

static size_t stack_prefix(const struct thread *thread, size_t index)
{
	return thread->stacks[index].prefix;
}

static size_t stack_frame(const struct thread *thread, size_t index)
{
	return thread->stacks[index].frame;
}

static size_t stack_category(const struct thread *thread, size_t index)
{
	return category_of(thread, thread->stacks[index].frame);
}

static size_t sample_stack(const struct thread *thread, size_t index)
{
	return thread->samples[index].stack;
}

static size_t sample_weight(const struct thread *thread, size_t index)
{
	return thread->samples[index].weight;
}

/* ---- tables ---- */

/* The weights in ms. */
static void write_ms(FILE *out, const struct thread *thread)
{
	fputs(", \"weight\": [", out);
	for (size_t i = 0; i < thread->nr_samples; i++)
		fprintf(out, "%s%" PRIu64 ".%03u", i ? "," : "", thread->samples[i].weight / 1000,
			(unsigned int)(thread->samples[i].weight % 1000));
	fputc(']', out);
}

static void write_samples(const struct firefox *firefox, const struct thread *thread)
{
	bool is_time = firefox->report->view != OPR_VIEW_CPU;
	FILE *out = firefox->out;
	uint64_t nr_before = 0;

	fprintf(out, ",\n      \"samples\": { \"length\": %zu, \"weightType\": \"%s\"", thread->nr_samples,
		is_time ? "tracing-ms" : "samples");
	write_numbers(out, "stack", thread->nr_samples, sample_stack, thread, "null");
	if (is_time)
		write_ms(out, thread);
	else
		write_numbers(out, "weight", thread->nr_samples, sample_weight, thread, "null");
	fputs(", \"time\": [", out);
	for (size_t i = 0; i < thread->nr_samples; i++) {
		fprintf(out, "%s%.6g", i ? "," : "", firefox->interval_ms * (double)nr_before);
		nr_before += thread->samples[i].weight;
	}
	fputs("] }", out);
	fputs(",\n      \"markers\": { \"length\": 0, \"data\": [], \"name\": [], \"startTime\": [], \"endTime\": [], "
	      "\"phase\": [], \"category\": [] }",
	      out);
}

static void write_frames(const struct thread *thread, FILE *out)
{
	size_t nr = thread->frames.nr_items;

	fprintf(out, ",\n      \"frameTable\": { \"length\": %zu", nr);
	write_same(out, "address", nr, "-1");
	write_same(out, "inlineDepth", nr, "0");
	write_numbers(out, "category", nr, category_of, thread, "null");
	write_same(out, "subcategory", nr, "0");
	write_numbers(out, "func", nr, itself, thread, "null");
	write_same(out, "nativeSymbol", nr, "null");
	write_same(out, "innerWindowID", nr, "0");
	write_same(out, "implementation", nr, "null");
	write_numbers(out, "line", nr, line_of, thread, "null");
	write_same(out, "column", nr, "null");
	fprintf(out, " },\n      \"funcTable\": { \"length\": %zu", nr);
	write_numbers(out, "name", nr, name_of, thread, "null");
	write_same(out, "isJS", nr, "false");
	write_same(out, "relevantForJS", nr, "false");
	write_numbers(out, "resource", nr, resource_of, thread, "-1");
	write_numbers(out, "fileName", nr, file_of, thread, "null");
	write_numbers(out, "lineNumber", nr, line_of, thread, "null");
	write_same(out, "columnNumber", nr, "null");
	fputs(" }", out);
}

static void write_resources(struct firefox *firefox, const struct thread *thread)
{
	size_t nr = thread->resources.nr_items;
	FILE *out = firefox->out;
	char type[8];

	snprintf(type, sizeof(type), "%d", RESOURCE_LIBRARY);
	fprintf(out, ",\n      \"resourceTable\": { \"length\": %zu, \"lib\": [", nr);
	for (size_t i = 0; i < nr; i++)
		fprintf(out, "%s%zu", i ? "," : "", opr_number_of_string(&firefox->libs, thread->resources.items[i]->bytes));
	fputc(']', out);
	write_numbers(out, "name", nr, resource_name, thread, "null");
	write_same(out, "host", nr, "null");
	write_same(out, "type", nr, type);
	fputs(" },\n      \"nativeSymbols\": { \"length\": 0, \"libIndex\": [], \"address\": [], \"name\": [], "
	      "\"functionSize\": [] }",
	      out);
}

static void write_thread(struct firefox *firefox, const struct thread *thread, const char *name, const char *process)
{
	FILE *out = firefox->out;

	fputs(firefox->nr_threads++ ? ",\n    { \"name\": " : "\n    { \"name\": ", out);
	opr_write_json(out, name);
	fputs(", \"processName\": ", out);
	opr_write_json(out, process);
	/* All are main threads of processes, because those are shown first. */
	fprintf(out,
		", \"pid\": \"%zu\", \"tid\": \"%zu\", \"isMainThread\": true,\n"
		"      \"processType\": \"default\", \"processStartupTime\": 0, \"processShutdownTime\": null, "
		"\"registerTime\": 0, \"unregisterTime\": null, \"pausedRanges\": []",
		firefox->nr_threads, firefox->nr_threads);
	write_samples(firefox, thread);
	fprintf(out, ",\n      \"stackTable\": { \"length\": %zu", thread->nr_stacks);
	write_numbers(out, "prefix", thread->nr_stacks, stack_prefix, thread, "null");
	write_numbers(out, "frame", thread->nr_stacks, stack_frame, thread, "null");
	write_numbers(out, "category", thread->nr_stacks, stack_category, thread, "null");
	write_same(out, "subcategory", thread->nr_stacks, "0");
	fputs(" }", out);
	write_frames(thread, out);
	write_resources(firefox, thread);
	fputs(",\n      \"stringArray\": [", out);
	for (size_t i = 0; i < thread->strings.nr_items; i++) {
		fputs(i ? ", " : "", out);
		opr_write_json(out, thread->strings.items[i]->bytes);
	}
	fputs("] }", out);
}

/* ---- from the tree ---- */

static size_t number_frame(struct thread *thread, const struct opr_call_function *function)
{
	bool is_new;
	size_t number = opr_number_of(&thread->frames, &function, sizeof(const struct opr_call_function *), &is_new);

	if (is_new) {
		number_string(thread, opr_call_bare_name(function));
		if (function->kind == OPR_CALL_RUNTIME && function->place.source)
			number_string(thread, function->place.source);
		if (function->image[0]) {
			number_string(thread, function->image);
			opr_number_of_string(&thread->resources, function->image);
		}
	}
	return number;
}

static void add_sample(struct thread *thread, size_t stack, uint64_t weight)
{
	if (!weight)
		return;
	if (!op_grow(&thread->samples, &thread->samples_capacity, thread->nr_samples + 1)) {
		thread->failed = true;
		return;
	}
	thread->samples[thread->nr_samples++] = (struct sample){ stack, weight };
}

/* Adds the stacks below a group. The one before in each depth is the caller of the next depth. */
static void fill_thread(struct thread *thread, const struct opr_call_node *group)
{
	size_t last[OPR_CALL_DEPTH_MAX + 2] = { NONE }, depth = 0;
	const struct opr_call_node *node = group->children;

	add_sample(thread, NONE, group->self);
	while (node && !thread->failed) {
		opr_progress_tick();
		if (!op_grow(&thread->stacks, &thread->stacks_capacity, thread->nr_stacks + 1)) {
			thread->failed = true;
			break;
		}
		thread->stacks[thread->nr_stacks] = (struct stack){ last[depth], number_frame(thread, node->function) };
		add_sample(thread, thread->nr_stacks, node->self);
		if (node->children) {
			last[++depth] = thread->nr_stacks++;
			node = node->children;
			continue;
		}
		thread->nr_stacks++;
		while (node != group && !node->next) {
			node = node->parent;
			depth--;
		}
		node = node == group ? NULL : node->next;
	}
}

static int add_thread(struct firefox *firefox, const struct opr_call_node *group, const char *event)
{
	struct thread thread = { 0 };
	int err = 0;

	fill_thread(&thread, group);
	if (thread.failed || thread.strings.failed || thread.frames.failed || thread.resources.failed)
		err = opr_no_memory();
	else
		write_thread(firefox, &thread, group->function->name, event);
	opr_numbers_free(&thread.strings);
	opr_numbers_free(&thread.frames);
	opr_numbers_free(&thread.resources);
	free(thread.stacks);
	free(thread.samples);
	return err;
}

static void write_meta(const struct firefox *firefox)
{
	const struct opr_stack_report *report = firefox->report;
	FILE *out = firefox->out;
	struct op_text text = { 0 };

	fprintf(out,
		"{\n  \"meta\": { \"version\": %d, \"preprocessedProfileVersion\": %d, \"product\": \"opd\",\n"
		"    \"importedFrom\": \"opd\",\n"
		"    \"interval\": %.6g, \"startTime\": %.3f, \"processType\": 0, \"stackwalk\": 1, \"debug\": false,\n"
		"    \"symbolicated\": true, \"usesOnlyOneStackType\": true, \"doesNotUseFrameImplementation\": true,\n"
		"    \"sourceCodeIsNotOnSearchfox\": true, \"markerSchema\": [],\n"
		"    \"extensions\": { \"length\": 0, \"id\": [], \"name\": [], \"baseURL\": [] },\n"
		"    \"sampleUnits\": { \"time\": \"ms\", \"eventDelay\": \"ms\", \"threadCPUDelta\": \"ns\" },\n"
		"    \"categories\": [\n"
		"      { \"name\": \"Other\", \"color\": \"grey\", \"subcategories\": [\"Other\"] },\n"
		"      { \"name\": \"User\", \"color\": \"blue\", \"subcategories\": [\"Other\"] },\n"
		"      { \"name\": \"Kernel\", \"color\": \"orange\", \"subcategories\": [\"Other\"] },\n"
		"      { \"name\": \"Runtime\", \"color\": \"green\", \"subcategories\": [\"Other\"] }],\n"
		"    \"extra\": [{ \"label\": \"opd\", \"entries\": [\n"
		"      { \"label\": \"Recorded\", \"format\": \"string\", \"value\": ",
		GECKO_VERSION, FORMAT_VERSION, firefox->interval_ms, (double)report->recorded->begin_ns / OP_NS_PER_MS);
	opr_stacks_describe_line(report, &text);
	opr_write_json(out, op_text_get(&text));
	op_text_free(&text);
	fputs(" }] }] },\n  \"pages\": [], \"counters\": [], \"profilerOverhead\": [],\n  \"threads\": [", out);
}

static void write_libs(const struct firefox *firefox)
{
	FILE *out = firefox->out;

	fputs("],\n  \"libs\": [", out);
	for (size_t i = 0; i < firefox->libs.nr_items; i++) {
		static const char *const names[] = { "name", "path", "debugName", "debugPath" };

		fputs(i ? ",\n    { " : "\n    { ", out);
		for (size_t n = 0; n < op_array_size(names); n++) {
			fprintf(out, "\"%s\": ", names[n]);
			opr_write_json(out, firefox->libs.items[i]->bytes);
			fputs(", ", out);
		}
		fputs("\"arch\": \"\", \"breakpadId\": \"\", \"codeId\": null }", out);
	}
	fputs("]\n}\n", out);
}

/* The time between samples in ms, where the event tells it: STACKS:10101010:0 has its ns. */
static double interval_of(const struct opr_stack_report *report)
{
	static const char stacks[] = OP_STACKS_NAME ":";
	const struct opr_words *events = &report->sums->events;
	unsigned long ns = 0;

	if (report->view != OPR_VIEW_CPU)
		return 0.001; /* a weight is a microsecond */
	if (events->nr_words && !strncmp(events->words[0], stacks, strlen(stacks)))
		ns = strtoul(events->words[0] + strlen(stacks), NULL, 10);
	return ns ? (double)ns / OP_NS_PER_MS : 1;
}

int opr_export_firefox(const struct opr_stack_report *report, FILE *out)
{
	struct firefox firefox = { .report = report, .out = out, .interval_ms = interval_of(report) };
	const struct opr_words *events = &report->sums->events;
	int err = 0;

	write_meta(&firefox);
	for (const struct opr_call_node *node = report->tree->root.children; node && !err; node = node->next) {
		if (events->nr_words < 2 || node->function->kind == OPR_CALL_LESS) {
			err = add_thread(&firefox, node, events->words[0]);
			continue;
		}
		for (const struct opr_call_node *group = node->children; group && !err; group = group->next)
			err = add_thread(&firefox, group, node->function->name);
	}
	write_libs(&firefox);
	if (!err && firefox.libs.failed)
		err = opr_no_memory();
	opr_numbers_free(&firefox.libs);
	return err;
}
