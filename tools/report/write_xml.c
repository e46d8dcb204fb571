/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/write_xml.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/clock.h"
#include "tools/events/cpu_types.h"
#include "tools/common/log.h"
#include "tools/report/xml_tables.h"
#include "tools/report/call_block.h"
#include "tools/report/xml_elements.h"

#define SCHEMA_VERSION "3.1"

struct writer {
	const struct opr_xml_document *document;
	FILE *out;
	struct opr_xml_index index;
	struct opr_xml_classes classes;
	int err;
};

/* ---- head ---- */

static void write_processor(FILE *out, const struct op_odb_header *header)
{
	const char *name = NULL, *slash;
	char first[32];

	opr_cpu_type(header->cpu_type, &name);
	slash = name ? strchr(name, '/') : NULL;
	if (!slash) {
		opr_xml_attribute(out, "cputype", name ? name : "unknown");
		return;
	}
	snprintf(first, sizeof(first), "%.*s", (int)(slash - name), name);
	opr_xml_attribute(out, "cputype", first);
	opr_xml_attribute(out, "processor", slash + 1);
}

static void write_options(struct writer *writer)
{
	const struct opr_xml_document *document = writer->document;

	opr_xml_begin(writer->out, "options");
	for (size_t i = 0; i < document->nr_options; i++)
		opr_xml_attribute(writer->out, document->options[i].name, document->options[i].value);
	opr_xml_empty(writer->out);
}

static void write_setup(struct writer *writer, const struct op_odb_header *header)
{
	FILE *out = writer->out;

	opr_xml_start(out, "setup");
	if (header->cpu_type == OP_CPU_TYPE_TIMER && !header->ctr_event) {
		opr_xml_begin(out, "timersetup");
		opr_xml_number(out, "rtcinterrupts", header->ctr_count);
		opr_xml_empty(out);
	} else {
		opr_xml_write_events(&writer->classes, out);
	}
	opr_xml_end(out, "setup");
	fputc('\n', out);
}

static void write_real(FILE *out, const char *name, double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6f", number);
	opr_xml_attribute(out, name, text);
}

static void write_class_origin(FILE *out, const struct opr_origin *origin, size_t index)
{
	const struct opr_class *class = &origin->classes->classes[index];
	double lost = opr_lost_share(origin->profile, class), seconds;
	bool is_about;

	seconds = opr_seconds_of_sample(origin->classes, class, &is_about) * (double)origin->totals[index];
	opr_xml_begin(out, "total");
	opr_xml_attribute(out, "name", class->title);
	opr_xml_attribute(out, "unit", class->unit);
	opr_xml_number(out, "count", origin->totals[index]);
	if (seconds > 0)
		write_real(out, "cpuseconds", seconds);
	if (lost >= 0)
		write_real(out, "lostpercent", 100 * lost);
	opr_xml_empty(out);
}

/* Where, when and how much; nothing for sessions without a ledger. */
static void write_origin(FILE *out, const struct opr_origin *origin)
{
	const struct opr_recorded *recorded = origin->recorded;
	char time[OPR_UTC_BYTES];

	if (!recorded->nr_sessions)
		return;
	opr_xml_begin(out, "recorded");
	opr_xml_number(out, "sessions", recorded->nr_sessions);
	if (recorded->begin_ns) {
		opr_format_utc(recorded->begin_ns, time);
		opr_xml_attribute(out, "begin", time);
		opr_format_utc(recorded->end_ns, time);
		opr_xml_attribute(out, "end", time);
		write_real(out, "seconds", (double)recorded->recorded_ns / OP_NS_PER_S);
	}
	opr_xml_open(out);
	for (size_t i = 0; i < recorded->hosts.nr_words; i++) {
		opr_xml_begin(out, "host");
		opr_xml_attribute(out, "name", recorded->hosts.words[i]);
		opr_xml_empty(out);
	}
	for (size_t i = 0; i < origin->classes->nr_classes; i++)
		write_class_origin(out, origin, i);
	opr_xml_end(out, "recorded");
}

static void write_head(struct writer *writer)
{
	const struct op_odb_header *header = &writer->document->classes->header;
	uint64_t nr_cpus = opr_xml_nr_cpus(&writer->classes);
	FILE *out = writer->out;

	fputs("<?xml version=\"1.0\" ?>\n", out);
	opr_xml_begin(out, "profile");
	opr_xml_attribute(out, "schemaversion", SCHEMA_VERSION);
	write_processor(out, header);
	fputc('\n', out);
	if (nr_cpus) {
		opr_xml_number(out, "separatedcpus", nr_cpus);
		fputc('\n', out);
	}
	fprintf(out, " mhz=\"%.2f\"\n", header->cpu_speed_mhz > 0 ? header->cpu_speed_mhz : 0);
	opr_xml_attribute(out, "title", writer->document->title);
	if (writer->document->graph && writer->document->graph->nr_stacks) {
		opr_xml_number(out, "stacks", writer->document->graph->nr_stacks);
		opr_xml_attribute(out, "stackevent", writer->document->graph->stack_event);
	}
	opr_xml_open(out);
	write_options(writer);
	write_setup(writer, header);
	opr_xml_write_classes(&writer->classes, out);
	write_origin(out, &writer->document->origin);
}

/* ---- counts and symbols ---- */

static const struct opr_xml_scope all_classes = { NULL, false };

/* Whether a class has a count and is in the scope. */
static bool is_counted(const struct writer *writer, const uint64_t *counts, size_t class_index, const struct opr_xml_scope *scope)
{
	return counts[class_index] && opr_xml_counts(scope, &writer->document->classes->classes[class_index]);
}

static void write_counts(struct writer *writer, const uint64_t *counts, const struct opr_xml_scope *scope)
{
	for (size_t i = 0; i < writer->document->report->nr_classes; i++)
		if (is_counted(writer, counts, i, scope))
			opr_xml_write_count(&writer->classes, writer->out, i, counts[i]);
}

static const uint64_t *counts_of(const struct writer *writer, const struct opr_symbol_row *row)
{
	return &writer->document->report->counts.values[row->counts];
}

/* The element that a <symbol> stands in. */
struct place {
	struct opr_xml_scope scope;
	bool in_module; /* else directly below <binary> */
};

/*
 * As in oprofile, callers and callees of a symbol below <module> have a <module> each, also those
 * of the same image, and those of a symbol below <binary> have none.
 */
static void write_end_of_arc(struct writer *writer, const struct opr_symbol_row *row, const struct place *place)
{
	if (place->in_module) {
		opr_xml_begin(writer->out, "module");
		opr_xml_attribute(writer->out, "name", row->image);
		opr_xml_open(writer->out);
	}
	opr_xml_begin(writer->out, "symbol");
	opr_xml_number(writer->out, "idref", opr_xml_id(&writer->index, row));
	if (row->is_self)
		opr_xml_attribute(writer->out, "self", "true");
	opr_xml_open(writer->out);
	write_counts(writer, counts_of(writer, row), &place->scope);
	opr_xml_end(writer->out, "symbol");
	if (place->in_module)
		opr_xml_end(writer->out, "module");
}

static void write_arcs(struct writer *writer, const char *tag, const struct opr_symbol_row *rows, size_t nr_rows,
		       const struct place *place)
{
	opr_xml_start(writer->out, tag);
	for (size_t i = 0; i < nr_rows; i++)
		write_end_of_arc(writer, &rows[i], place);
	opr_xml_end(writer->out, tag);
}

static void write_callgraph(struct writer *writer, const struct opr_symbol_row *row, const struct place *place)
{
	const struct opr_xml_document *document = writer->document;
	struct opr_block block;
	int err = opr_block_make(&block, document->graph, document->report, row, &document->limits, true);

	if (err < 0) {
		writer->err = err;
		return;
	}
	write_arcs(writer, "callers", block.callers, block.nr_callers, place);
	write_arcs(writer, "callees", block.callees, block.nr_callees, place);
	opr_block_free(&block);
}

static void write_detail_numbers(struct writer *writer, const struct opr_symbol_row *row, const struct opr_xml_scope *scope)
{
	size_t first, nr_details;
	int err = opr_xml_number_details(&writer->index, row, scope, &first, &nr_details);

	if (err < 0) {
		writer->err = err;
	} else if (nr_details) {
		opr_xml_number(writer->out, "detaillo", first);
		opr_xml_number(writer->out, "detailhi", first + nr_details - 1);
	}
}

static void write_symbol(struct writer *writer, const struct opr_symbol_row *row, const struct place *place)
{
	opr_xml_begin(writer->out, "symbol");
	opr_xml_number(writer->out, "idref", opr_xml_id(&writer->index, row));
	if (writer->document->details)
		write_detail_numbers(writer, row, &place->scope);
	if (writer->document->graph && writer->document->graph->nr_stacks)
		opr_xml_number(writer->out, "inclusive", row->inclusive);
	opr_xml_open(writer->out);
	if (writer->document->graph)
		write_callgraph(writer, row, place);
	write_counts(writer, counts_of(writer, row), &place->scope);
	opr_xml_end(writer->out, "symbol");
}

/* ---- rows in groups ---- */

/* Whether a row has samples in the scope. A row without samples is in the scope of all classes. */
static bool has_counts(const struct writer *writer, const struct opr_symbol_row *row, const struct opr_xml_scope *scope)
{
	const uint64_t *counts = counts_of(writer, row);

	if (!scope->of)
		return true;
	for (size_t i = 0; i < writer->document->report->nr_classes; i++)
		if (is_counted(writer, counts, i, scope))
			return true;
	return false;
}

/* Neighbouring rows of one application, or of one image in it. */
struct run {
	const struct opr_symbol_row *rows;
	size_t nr_rows;
};

static struct run image_run(const struct run *rest)
{
	struct run run = { rest->rows, 0 };

	while (run.nr_rows < rest->nr_rows && !strcmp(rest->rows[run.nr_rows].image, rest->rows->image))
		run.nr_rows++;
	return run;
}

static struct run app_run(const struct run *rest)
{
	struct run run = { rest->rows, 0 };

	while (run.nr_rows < rest->nr_rows && !strcmp(rest->rows[run.nr_rows].app, rest->rows->app))
		run.nr_rows++;
	return run;
}

static void skip(struct run *rest, size_t nr_rows)
{
	rest->rows += nr_rows;
	rest->nr_rows -= nr_rows;
}

static void write_run_counts(struct writer *writer, const struct run *run, const struct opr_xml_scope *scope)
{
	size_t nr_classes = writer->document->report->nr_classes;
	uint64_t *sums = calloc(nr_classes, sizeof(*sums));

	if (!sums) {
		writer->err = opr_no_memory();
		return;
	}
	for (size_t i = 0; i < run->nr_rows; i++)
		for (size_t j = 0; j < nr_classes; j++)
			sums[j] += counts_of(writer, &run->rows[i])[j];
	write_counts(writer, sums, scope);
	free(sums);
}

static void write_run_symbols(struct writer *writer, const struct run *run, const struct place *place)
{
	for (size_t i = 0; i < run->nr_rows; i++)
		if (has_counts(writer, &run->rows[i], &place->scope))
			write_symbol(writer, &run->rows[i], place);
}

static bool run_has_counts(const struct writer *writer, const struct run *run, const struct opr_xml_scope *scope)
{
	for (size_t i = 0; i < run->nr_rows; i++)
		if (has_counts(writer, &run->rows[i], scope))
			return true;
	return false;
}

static void write_module(struct writer *writer, const struct run *run, const struct opr_xml_scope *scope)
{
	const struct place place = { *scope, true };

	if (!run_has_counts(writer, run, scope))
		return;
	opr_xml_begin(writer->out, "module");
	opr_xml_attribute(writer->out, "name", run->rows->image);
	opr_xml_open(writer->out);
	write_run_counts(writer, run, scope);
	write_run_symbols(writer, run, &place);
	opr_xml_end(writer->out, "module");
}

/* The symbols of the application itself come first: they belong to no module. */
static void write_binary(struct writer *writer, struct run app)
{
	const struct place place = { all_classes, false };
	const char *own = app.rows->app;
	struct run rest = app, run;

	opr_xml_begin(writer->out, "binary");
	opr_xml_attribute(writer->out, "name", own);
	opr_xml_open(writer->out);
	for (; rest.nr_rows; skip(&rest, run.nr_rows)) {
		run = image_run(&rest);
		if (strcmp(run.rows->image, own))
			continue;
		write_run_counts(writer, &run, &all_classes);
		write_run_symbols(writer, &run, &place);
	}
	for (rest = app; rest.nr_rows; skip(&rest, run.nr_rows)) {
		run = image_run(&rest);
		if (strcmp(run.rows->image, own))
			write_module(writer, &run, &all_classes);
	}
	opr_xml_end(writer->out, "binary");
}

/* ---- by thread ---- */

static void write_id(FILE *out, const char *name, int64_t id)
{
	if (id == OP_CLASS_ALL)
		opr_xml_attribute(out, name, "all");
	else
		opr_xml_number(out, name, (uint64_t)id);
}

static void write_thread(struct writer *writer, struct run app, const struct opr_class *class)
{
	const struct opr_xml_scope scope = { class, true };
	struct run run;

	if (!run_has_counts(writer, &app, &scope))
		return;
	opr_xml_begin(writer->out, "thread");
	write_id(writer->out, "tid", class->tid);
	opr_xml_open(writer->out);
	write_run_counts(writer, &app, &scope);
	for (; app.nr_rows; skip(&app, run.nr_rows)) {
		run = image_run(&app);
		write_module(writer, &run, &scope);
	}
	opr_xml_end(writer->out, "thread");
}

static void write_threads(struct writer *writer, const struct run *app, size_t first)
{
	const struct opr_classes *classes = writer->document->classes;
	int64_t tgid = classes->classes[first].tgid;

	for (size_t i = first; i < classes->nr_classes; i++) {
		const struct opr_class *class = &classes->classes[i];
		bool is_written = class->tgid != tgid;

		for (size_t j = first; j < i && !is_written; j++)
			is_written = classes->classes[j].tgid == tgid && classes->classes[j].tid == class->tid;
		if (!is_written)
			write_thread(writer, *app, class);
	}
}

static void write_process(struct writer *writer, const struct run *app, size_t first)
{
	const struct opr_xml_scope scope = { &writer->document->classes->classes[first], false };

	if (!run_has_counts(writer, app, &scope))
		return;
	opr_xml_begin(writer->out, "process");
	write_id(writer->out, "pid", scope.of->tgid);
	opr_xml_attribute(writer->out, "name", app->rows->app);
	opr_xml_open(writer->out);
	write_run_counts(writer, app, &scope);
	write_threads(writer, app, first);
	opr_xml_end(writer->out, "process");
}

static void write_processes(struct writer *writer)
{
	const struct opr_classes *classes = writer->document->classes;
	const struct opr_symbol_report *report = writer->document->report;

	for (size_t i = 0; i < classes->nr_classes; i++) {
		struct run rest = { report->rows, report->nr_rows }, app;
		bool is_written = false;

		for (size_t j = 0; j < i && !is_written; j++)
			is_written = classes->classes[j].tgid == classes->classes[i].tgid;
		for (; !is_written && rest.nr_rows; skip(&rest, app.nr_rows)) {
			app = app_run(&rest);
			write_process(writer, &app, i);
		}
	}
}

static void write_binaries(struct writer *writer)
{
	const struct opr_symbol_report *report = writer->document->report;
	struct run rest = { report->rows, report->nr_rows }, app;

	for (; rest.nr_rows; skip(&rest, app.nr_rows)) {
		app = app_run(&rest);
		write_binary(writer, app);
	}
}

int opr_report_xml(const struct opr_xml_document *document, FILE *out)
{
	struct writer writer = { .document = document, .out = out };
	const struct opr_xml_tables tables = { .report = document->report,
					       .classes = &writer.classes,
					       .index = &writer.index,
					       .graph = document->graph,
					       .limits = &document->limits,
					       .lines = document->lines };

	writer.err = opr_xml_index_make(&writer.index, document->report, document->classes);
	if (!writer.err)
		writer.err = opr_xml_classes_make(&writer.classes, document->classes);
	if (!writer.err) {
		write_head(&writer);
		if (writer.classes.by_thread)
			write_processes(&writer);
		else
			write_binaries(&writer);
		if (!writer.err)
			writer.err = opr_xml_write_symbols(&tables, out);
		if (document->details && !writer.err)
			writer.err = opr_xml_write_details(&tables, out);
		opr_xml_end(out, "profile");
		opr_verbose(OPR_TOPIC_xml, "XML of %zu rows, %zu details and %zu classes", document->report->nr_rows,
			    document->details ? document->report->nr_details : 0, document->classes->nr_classes);
	}
	opr_xml_classes_free(&writer.classes);
	opr_xml_index_free(&writer.index);
	return writer.err;
}
