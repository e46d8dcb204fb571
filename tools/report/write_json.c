/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON: one object. An array of numbers has one number for each class, in the order of "classes".
 */
#include <inttypes.h>
#include <math.h>

#include "tools/report/writer.h"

void opr_write_json(FILE *out, const char *string)
{
	struct op_text text = { 0 };

	op_text_add_json(&text, string);
	fprintf(out, "\"%s\"", op_text_get(&text));
	op_text_free(&text);
}

static void write_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	opr_write_json(out, value);
	fputs(", ", out);
}

static void write_counts(struct opr_writer *writer, const char *name, const uint64_t *counts)
{
	fprintf(writer->out, "\"%s\": [", name);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++)
		fprintf(writer->out, "%s%" PRIu64, i ? ", " : "", counts[i]);
	fputc(']', writer->out);
}

static void write_samples(struct opr_writer *writer, const uint64_t *counts, const uint64_t *totals)
{
	write_counts(writer, "samples", counts);
	fputs(", \"percent\": [", writer->out);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++)
		fprintf(writer->out, "%s%.6g", i ? ", " : "", opr_percent(counts[i], totals[i]));
	fputc(']', writer->out);
}

static void write_accumulated(struct opr_writer *writer, const uint64_t *cumulated)
{
	if (!writer->layout.accumulated)
		return;
	fputs(", ", writer->out);
	write_counts(writer, "accumulated", cumulated);
}

static void write_changes(struct opr_writer *writer, const double *changes)
{
	fputs(", \"change\": [", writer->out);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		if (isinf(changes[i]))
			fprintf(writer->out, "%s\"%s\"", i ? ", " : "", changes[i] > 0 ? "new" : "gone");
		else
			fprintf(writer->out, "%s%.6g", i ? ", " : "", changes[i]);
	}
	fputc(']', writer->out);
}

/* Begins an item of a list, on a new line. */
static void begin_item(struct opr_writer *writer, size_t nr_before, const char *indent)
{
	fprintf(writer->out, "%s\n%s{ ", nr_before ? "," : "", indent);
}

static const char *rows_name(const struct opr_layout *layout)
{
	return layout->symbols ? "symbols" : layout->images ? "images" : "applications";
}

static void write_begin(struct opr_writer *writer)
{
	const struct opr_classes *classes = writer->layout.classes;

	fputs("{\n", writer->out);
	fputs("  \"cpu\": ", writer->out);
	opr_write_json(writer->out, classes->cpu_line);
	if (classes->event_line) {
		fputs(",\n  \"event\": ", writer->out);
		opr_write_json(writer->out, classes->event_line);
	}
	fputs(",\n  \"classes\": [", writer->out);
	for (size_t i = 0; i < classes->nr_classes; i++) {
		begin_item(writer, i, "    ");
		write_member(writer->out, "title", classes->classes[i].title);
		write_member(writer->out, "description", classes->classes[i].description);
		write_member(writer->out, "unit", classes->classes[i].unit);
		fprintf(writer->out, "\"samples\": %" PRIu64 " }", writer->layout.totals[i]);
	}
	fprintf(writer->out, "\n  ],\n  \"%s\": [", rows_name(&writer->layout));
}

static void write_application(struct opr_writer *writer, const struct opr_application *application)
{
	const uint64_t *totals = writer->layout.totals;
	const uint64_t *image_totals = writer->layout.global_percent ? totals : application->row.counts;

	begin_item(writer, writer->nr_rows, "    ");
	write_member(writer->out, "name", application->row.name);
	write_samples(writer, application->row.counts, totals);
	fputs(", \"images\": [", writer->out);
	for (size_t i = 0; i < application->nr_images; i++) {
		begin_item(writer, i, "      ");
		write_member(writer->out, "name", application->images[i].name);
		write_samples(writer, application->images[i].counts, image_totals);
		fputs(" }", writer->out);
	}
	fputs("\n    ] }", writer->out);
}

static void write_location(FILE *out, uint64_t vma, const char *file, unsigned int line)
{
	fprintf(out, "\"address\": \"0x%" PRIx64 "\", ", vma);
	if (file) {
		write_member(out, "file", file);
		fprintf(out, "\"line\": %u, ", line);
	}
}

/* Writes a row, without the end of its object. */
static void write_row(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts, const uint64_t *totals)
{
	write_member(writer->out, "symbol", row->name);
	write_member(writer->out, "image", row->image);
	write_member(writer->out, "application", row->app);
	write_location(writer->out, row->vma, row->file, row->line);
	if (row->is_self)
		fputs("\"self\": true, ", writer->out);
	write_samples(writer, counts, totals);
	if (row->changes)
		write_changes(writer, row->changes);
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	begin_item(writer, writer->nr_rows, "    ");
	write_row(writer, row, counts, writer->layout.totals);
	write_accumulated(writer, writer->cumulated);
	fputs(row->nr_details ? ", \"details\": [" : " }", writer->out);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	unsigned int line;
	const char *file = opr_detail_line(writer, row, detail, &line);

	begin_item(writer, writer->nr_details, "      ");
	write_location(writer->out, detail->vma, file, line);
	write_samples(writer, counts, writer->layout.global_percent ? writer->layout.totals : symbol_counts);
	write_accumulated(writer, writer->detail_cumulated);
	fputs(writer->nr_details + 1 == row->nr_details ? " }\n    ] }" : " }", writer->out);
}

static void write_calls(struct opr_writer *writer, const char *name, const struct opr_symbol_row *rows, size_t nr_rows,
			 const uint64_t *totals, const struct opr_symbol_report *report)
{
	fprintf(writer->out, ", \"%s\": [", name);
	for (size_t i = 0; i < nr_rows; i++) {
		begin_item(writer, i, "      ");
		write_row(writer, &rows[i], &report->counts.values[rows[i].counts],
			  writer->layout.global_percent ? writer->layout.totals : totals);
		fputs(" }", writer->out);
	}
	fputs("\n    ]", writer->out);
}

static void write_block(struct opr_writer *writer, const struct opr_block *block, const struct opr_symbol_report *report)
{
	begin_item(writer, writer->nr_rows, "    ");
	write_row(writer, block->row, &report->counts.values[block->row->counts], writer->layout.totals);
	write_calls(writer, "callers", block->callers, block->nr_callers, block->caller_totals, report);
	write_calls(writer, "callees", block->callees, block->nr_callees, block->callee_totals, report);
	fputs(" }", writer->out);
}

static void write_image(struct opr_writer *writer, const struct opr_image_row *row, const char *hint)
{
	begin_item(writer, writer->nr_rows, "    ");
	write_member(writer->out, "name", row->name);
	write_member(writer->out, "build-id", row->identity);
	write_member(writer->out, "symbols", opr_symbol_state_word(row->debug.state));
	write_member(writer->out, "debug file", hint);
	write_samples(writer, row->counts, writer->layout.totals);
	fputs(" }", writer->out);
}

static void write_ledger_row(FILE *out, const struct opr_session *session, const struct op_ledger_event *event)
{
	const char *slash = strrchr(session->path, '/');

	write_member(out, "session", slash ? slash + 1 : session->path);
	write_member(out, "event", event->name);
	fprintf(out, "\"count\": %" PRIu64 ", \"unit-mask\": %" PRIu32 ", \"received\": %" PRIu64 ", \"stored\": %" PRIu64,
		event->count, event->unit_mask, event->received, event->stored);
	fprintf(out, ", \"unattributed\": %" PRIu64 ", \"filtered\": %" PRIu64 ", \"lost_kernel\": %" PRIu64, event->unattributed,
		event->filtered, event->lost_kernel);
	for (enum op_loss reason = 0; reason < OP_NR_LOSS; reason++)
		fprintf(out, ", \"lost_%s\": %" PRIu64, op_loss_name(reason), event->lost[reason]);
	fputs(" }", out);
}

/* Writes the ledgers of the sessions that have one. */
static void write_ledgers(struct opr_writer *writer)
{
	const struct opr_profile *profile = writer->layout.profile;
	size_t nr_rows = 0;

	for (size_t i = 0; profile && i < profile->nr_sessions; i++) {
		const struct opr_session *session = &profile->sessions[i];

		for (size_t j = 0; j < session->ledger.nr_events; j++) {
			fputs(nr_rows ? "" : ",\n  \"ledger\": [", writer->out);
			begin_item(writer, nr_rows++, "    ");
			write_ledger_row(writer->out, session, &session->ledger.events[j]);
		}
	}
	fputs(nr_rows ? "\n  ]" : "", writer->out);
}

static void write_end(struct opr_writer *writer)
{
	fputs("\n  ]", writer->out);
	write_ledgers(writer);
	fputs("\n}\n", writer->out);
}

const struct opr_writer_ops opr_json_writer = {
	.begin = write_begin,
	.application = write_application,
	.symbol = write_symbol,
	.detail = write_detail,
	.block = write_block,
	.image = write_image,
	.end = write_end,
};
