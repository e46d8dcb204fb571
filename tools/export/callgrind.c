/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The profile of callgrind (valgrind.org, "Callgrind Format Specification"): for each function its
 * own samples, and those of the functions that it called.
 *
 * A stack counts for a call once, where the callee comes first. So calls into a function add up to
 * the stacks that it is in, also when it is recursive: callgrind_annotate --inclusive=yes and
 * KCachegrind take this sum as its inclusive cost.
 */
#include <ctype.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/export/export.h"
#include "tools/export/numbers.h"
#include "tools/stacks/arrange.h"

struct function {
	size_t name, image, file; /* numbers of strings */
	size_t line;              /* where it begins; 0: not known */
};

struct call {
	size_t caller, callee;
};

struct callgrind {
	const struct opr_stack_report *report;
	struct opr_numbers strings, functions, calls; /* keys: text, struct function, struct call */
	size_t nr_events;
	/* nr_events counts for each function, and for each call */
	uint64_t *self, *called;
	size_t self_capacity, called_capacity;
	uint64_t *last_stack; /* by number of the function: the last stack that it was in */
	size_t last_capacity;
	uint64_t nr_stacks;
	size_t *first_of; /* by number of a name: 1 + the first function with it; 0: none so far */
	FILE *out;
};

static size_t number_function(struct callgrind *callgrind, const struct opr_call_function *function)
{
	struct opr_numbers *strings = &callgrind->strings;
	bool is_of_runtime = function->kind == OPR_CALL_RUNTIME;
	const struct function key = {
		opr_number_of_escaped(strings, function->name),
		opr_number_of_escaped(strings, function->image[0] ? function->image : "???"),
		opr_number_of_escaped(strings, is_of_runtime && function->place.source ? function->place.source : "???"),
		is_of_runtime ? function->place.line : 0,
	};

	return opr_number_of(&callgrind->functions, &key, sizeof(key), NULL);
}

/* Makes room for nr_items numbers; new ones are 0. */
static bool make_room(struct opr_numbers *numbers, uint64_t **array, size_t *capacity, size_t nr_items)
{
	size_t before = *capacity;

	if (!op_grow(array, capacity, nr_items)) {
		numbers->failed = true;
		return false;
	}
	memset(*array + before, 0, (*capacity - before) * sizeof(**array));
	return true;
}

static size_t event_of(const struct callgrind *callgrind, const struct opr_call_function *group)
{
	const struct opr_words *events = &callgrind->report->sums->events;

	for (size_t i = 0; callgrind->nr_events > 1 && i < callgrind->nr_events; i++)
		if (!strcmp(events->words[i], group->name))
			return i;
	return 0;
}

static void add_stack(struct callgrind *callgrind, const struct opr_call_node *node)
{
	const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1];
	size_t nr = opr_call_path(node, path), event = event_of(callgrind, path[0]), number = 0;
	struct opr_numbers *functions = &callgrind->functions, *calls = &callgrind->calls;

	opr_progress_tick();
	callgrind->nr_stacks++;
	for (size_t i = 0; i < nr; i++) {
		struct call call = { .caller = number };

		number = call.callee = number_function(callgrind, path[i]);
		if (!make_room(functions, &callgrind->last_stack, &callgrind->last_capacity, number + 1))
			return;
		if (callgrind->last_stack[number] == callgrind->nr_stacks)
			continue;
		callgrind->last_stack[number] = callgrind->nr_stacks;
		if (i) {
			size_t index = opr_number_of(calls, &call, sizeof(call), NULL) * callgrind->nr_events + event;

			if (make_room(calls, &callgrind->called, &callgrind->called_capacity, index + 1))
				callgrind->called[index] += node->self;
		}
	}
	number = number * callgrind->nr_events + event;
	if (make_room(functions, &callgrind->self, &callgrind->self_capacity, number + 1))
		callgrind->self[number] += node->self;
}

/* ---- writing ---- */

static const struct function *function_at(const struct callgrind *callgrind, size_t number)
{
	return (const struct function *)(const void *)callgrind->functions.items[number]->bytes;
}

static const struct call *call_at(const struct callgrind *callgrind, size_t number)
{
	return (const struct call *)(const void *)callgrind->calls.items[number]->bytes;
}

/*
 * Readers know a function by its name. One of another image or file with the same name gets its
 * file, or its image.
 */
static void write_name(struct callgrind *callgrind, const char *prefix, size_t number)
{
	const struct function *function = function_at(callgrind, number);
	const char *name = callgrind->strings.items[function->name]->bytes;
	const char *image = callgrind->strings.items[function->image]->bytes;
	const char *file = callgrind->strings.items[function->file]->bytes;
	size_t *first = &callgrind->first_of[function->name];

	if (!*first)
		*first = number + 1;
	fprintf(callgrind->out, "%sob=(%zu) %s\n%s=(%zu) %s\n%sfn=(%zu) %s", prefix, function->image + 1, image,
		*prefix ? "cfi" : "fl", function->file + 1, file, prefix, number + 1, *name ? name : "(no name)");
	if (*first != number + 1)
		fprintf(callgrind->out, " (%s)", strcmp(file, "???") ? file : image);
	fputc('\n', callgrind->out);
}

/* The counts of a function, or of a call in it: at the line where it begins, or 0. */
static void write_counts(const struct callgrind *callgrind, size_t number, const uint64_t *counts)
{
	fprintf(callgrind->out, "%zu", function_at(callgrind, number)->line);
	for (size_t i = 0; i < callgrind->nr_events; i++)
		fprintf(callgrind->out, " %" PRIu64, counts[i]);
	fputc('\n', callgrind->out);
}

static void write_header(const struct callgrind *callgrind)
{
	const struct opr_words *events = &callgrind->report->sums->events;
	struct op_text text = { 0 };
	char *rest = NULL;

	fputs("# callgrind format\nversion: 1\ncreator: opd\n", callgrind->out);
	opr_stacks_describe(callgrind->report, &text);
	for (char *line = text.failed ? NULL : strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		fprintf(callgrind->out, "desc: %s\n", line);
	op_text_free(&text);
	fputs("positions: line\nevents:", callgrind->out);
	for (size_t i = 0; i < callgrind->nr_events; i++) {
		fputc(' ', callgrind->out);
		for (const char *c = events->words[i]; *c; c++)
			fputc(isalnum((unsigned char)*c) ? *c : '_', callgrind->out);
	}
	fputs("\n\n", callgrind->out);
}

static int compare_callers(const void *left, const void *right)
{
	const struct call *a = *(const struct call *const *)left, *b = *(const struct call *const *)right;

	return (a->caller > b->caller) - (a->caller < b->caller);
}

static const uint64_t *counts_of(const struct callgrind *callgrind, const struct call *call)
{
	const char *bytes = (const char *)(const void *)call;
	const struct opr_numbered *item = (const void *)(bytes - offsetof(struct opr_numbered, bytes));

	return &callgrind->called[item->number * callgrind->nr_events];
}

/* Each function with its calls. `calls` are sorted by caller. */
static void write_functions(struct callgrind *callgrind, const struct call *const *calls)
{
	const struct call *const *end = calls + callgrind->calls.nr_items;

	for (size_t i = 0; i < callgrind->functions.nr_items; i++) {
		write_name(callgrind, "", i);
		write_counts(callgrind, i, &callgrind->self[i * callgrind->nr_events]);
		for (; calls < end && (*calls)->caller == i; calls++) {
			const uint64_t *counts = counts_of(callgrind, *calls);
			uint64_t nr_samples = 0;

			for (size_t event = 0; event < callgrind->nr_events; event++)
				nr_samples += counts[event];
			write_name(callgrind, "c", (*calls)->callee);
			/* How often it was called is not known. */
			fprintf(callgrind->out, "calls=%" PRIu64 " %zu\n", nr_samples,
				function_at(callgrind, (*calls)->callee)->line);
			write_counts(callgrind, i, counts);
		}
		fputc('\n', callgrind->out);
	}
}

static void write_totals(const struct callgrind *callgrind)
{
	fputs("totals:", callgrind->out);
	for (size_t event = 0; event < callgrind->nr_events; event++) {
		uint64_t total = 0;

		for (size_t i = 0; i < callgrind->functions.nr_items; i++)
			total += callgrind->self[i * callgrind->nr_events + event];
		fprintf(callgrind->out, " %" PRIu64, total);
	}
	fputc('\n', callgrind->out);
}

static int write_all(struct callgrind *callgrind)
{
	const struct call **calls = calloc(callgrind->calls.nr_items + 1, sizeof(*calls));
	int err = 0;

	callgrind->first_of = calloc(callgrind->strings.nr_items + 1, sizeof(*callgrind->first_of));
	if (calls && callgrind->first_of) {
		for (size_t i = 0; i < callgrind->calls.nr_items; i++)
			calls[i] = call_at(callgrind, i);
		qsort(calls, callgrind->calls.nr_items, sizeof(*calls), compare_callers);
		write_header(callgrind);
		write_functions(callgrind, calls);
		write_totals(callgrind);
	} else {
		err = opr_no_memory();
	}
	free(calls);
	free(callgrind->first_of);
	return err;
}

int opr_export_callgrind(const struct opr_stack_report *report, FILE *out)
{
	struct callgrind callgrind = { .report = report, .out = out, .nr_events = report->sums->events.nr_words };
	struct opr_numbers *functions = &callgrind.functions, *calls = &callgrind.calls;
	int err;

	for (const struct opr_call_node *node = opr_call_next(&report->tree->root); node; node = opr_call_next(node))
		if (node->self)
			add_stack(&callgrind, node);
	if (!make_room(functions, &callgrind.self, &callgrind.self_capacity, functions->nr_items * callgrind.nr_events) ||
	    !make_room(calls, &callgrind.called, &callgrind.called_capacity, calls->nr_items * callgrind.nr_events) ||
	    callgrind.strings.failed || functions->failed || calls->failed)
		err = opr_no_memory();
	else
		err = write_all(&callgrind);
	opr_numbers_free(&callgrind.strings);
	opr_numbers_free(functions);
	opr_numbers_free(calls);
	free(callgrind.self);
	free(callgrind.called);
	free(callgrind.last_stack);
	return err;
}
