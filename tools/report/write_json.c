/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON: one object. An array of numbers has one number for each class, in the order of "classes".
 */
#include <inttypes.h>

#include "libop/base/clock.h"
#include "tools/report/columns.h"

static void write_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	opr_write_json(out, value);
	fputs(", ", out);
}

/* An array with a value for each class, for each of the columns that the cell has. */
static void write_counts(struct opr_cell *cell)
{
	FILE *out = cell->writer->out;
	const char *comma = "";

	for OPR_EACH_COLUMN(column) {
		if (!column->is_of_class || (column->is_of_change && !cell->changes) ||
		    (column->is_accumulated && !cell->cumulated) || !opr_column_is_in_json(column, &cell->writer->layout))
			continue;
		fprintf(out, "%s\"%s\": [", comma, column->json_name);
		for (cell->index = 0; cell->index < cell->writer->layout.classes->nr_classes; cell->index++) {
			fputs(cell->index ? ", " : "", out);
			column->json(cell, out);
		}
		fputc(']', out);
		comma = ", ";
	}
}

static void write_samples(struct opr_writer *writer, const uint64_t *counts, const uint64_t *totals)
{
	struct opr_cell cell = { .writer = writer, .counts = counts, .totals = totals };

	write_counts(&cell);
}

/* Writes a row or a detail, without the end of its object. */
static void write_members(struct opr_cell *cell, bool is_detail)
{
	for OPR_EACH_COLUMN(column)
		if (!column->is_of_class && (!is_detail || column->is_of_detail) &&
		    opr_column_is_in_json(column, &cell->writer->layout))
			column->json(cell, cell->writer->out);
	write_counts(cell);
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

/* Where and when; nothing for sessions without a ledger. */
static void write_recorded(FILE *out, const struct opr_recorded *recorded, const char *indent)
{
	char begin[OPR_UTC_BYTES], end[OPR_UTC_BYTES];

	if (!recorded->nr_sessions)
		return;
	fprintf(out, ",\n%s\"hosts\": [", indent);
	for (size_t i = 0; i < recorded->hosts.nr_words; i++) {
		fputs(i ? ", " : "", out);
		opr_write_json(out, recorded->hosts.words[i]);
	}
	fprintf(out, "],\n%s\"sessions\": %zu", indent, recorded->nr_sessions);
	if (!recorded->begin_ns)
		return;
	opr_format_utc(recorded->begin_ns, begin);
	opr_format_utc(recorded->end_ns, end);
	fprintf(out, ",\n%s\"begin\": \"%s\", \"end\": \"%s\", \"seconds\": %.3f", indent, begin, end,
		(double)recorded->recorded_ns / OP_NS_PER_S);
}

static void write_class(FILE *out, const struct opr_origin *origin, size_t index)
{
	const struct opr_class *class = &origin->classes->classes[index];
	uint64_t total = origin->totals[index];
	bool is_about;
	double seconds = opr_seconds_of_sample(origin->classes, class, &is_about) * (double)total;
	double lost = opr_lost_share(origin->profile, class);

	write_member(out, "title", class->title);
	write_member(out, "description", class->description);
	write_member(out, "unit", class->unit);
	fprintf(out, "\"samples\": %" PRIu64, total);
	if (origin->recorded->nr_sessions && seconds > 0)
		fprintf(out, ", \"cpu-seconds\": %.6g", seconds);
	if (lost >= 0)
		fprintf(out, ", \"lost-percent\": %.6g", 100 * lost);
	fputs(" }", out);
}

static void write_classes(struct opr_writer *writer, const struct opr_origin *origin, const char *indent)
{
	fprintf(writer->out, ",\n%s\"classes\": [", indent);
	for (size_t i = 0; i < origin->classes->nr_classes; i++) {
		begin_item(writer, i, "    ");
		write_class(writer->out, origin, i);
	}
	fprintf(writer->out, "\n%s]", indent);
}

static void write_before(struct opr_writer *writer, const struct opr_origin *before)
{
	if (!before->profile)
		return;
	fputs(",\n  \"before\": {\n    \"cpu\": ", writer->out);
	opr_write_json(writer->out, before->classes->cpu_line);
	write_recorded(writer->out, before->recorded, "    ");
	write_classes(writer, before, "    ");
	fputs(" }", writer->out);
}

static void write_begin(struct opr_writer *writer)
{
	const struct opr_layout *layout = &writer->layout;

	fputs("{\n", writer->out);
	fputs("  \"cpu\": ", writer->out);
	opr_write_json(writer->out, layout->classes->cpu_line);
	if (layout->classes->event_line) {
		fputs(",\n  \"event\": ", writer->out);
		opr_write_json(writer->out, layout->classes->event_line);
	}
	write_recorded(writer->out, layout->origin.recorded, "  ");
	write_before(writer, &layout->before);
	write_classes(writer, &layout->origin, "  ");
	if (layout->nr_stacks) {
		fprintf(writer->out, ",\n  \"inclusive-of\": %" PRIu64 ", \"inclusive-event\": ", layout->nr_stacks);
		opr_write_json(writer->out, layout->stack_event);
	}
	fprintf(writer->out, ",\n  \"%s\": [", rows_name(layout));
}

static void write_application(struct opr_writer *writer, const struct opr_application *application)
{
	const uint64_t *totals = writer->layout.totals;
	const uint64_t *image_totals = writer->layout.global_percent ? totals : application->row.counts;

	begin_item(writer, writer->nr_rows, "    ");
	write_member(writer->out, "name", application->row.name);
	write_samples(writer, application->row.counts, totals);
	fputs(", \"images\": [", writer->out);
	for (size_t i = 0; i < application->nr_shown; i++) {
		begin_item(writer, i, "      ");
		write_member(writer->out, "name", application->images[i].name);
		write_samples(writer, application->images[i].counts, image_totals);
		fputs(" }", writer->out);
	}
	fputs("\n    ] }", writer->out);
}

/* Writes a row, without the end of its object. */
static void write_row(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts, const uint64_t *totals,
		      const uint64_t *cumulated)
{
	struct opr_cell cell = { .writer = writer, .row = row, .vma = row->vma, .file = row->file, .line = row->line,
				 .counts = counts, .totals = totals, .cumulated = cumulated, .changes = row->changes };

	write_members(&cell, false);
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	begin_item(writer, writer->nr_rows, "    ");
	write_row(writer, row, counts, writer->layout.totals, writer->cumulated);
	fputs(row->nr_details ? ", \"details\": [" : " }", writer->out);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	struct opr_cell cell = { .writer = writer, .row = row, .vma = detail->vma, .counts = counts,
				 .totals = writer->layout.global_percent ? writer->layout.totals : symbol_counts,
				 .cumulated = writer->detail_cumulated };

	cell.file = opr_detail_line(writer, row, detail, &cell.line);
	begin_item(writer, writer->nr_details, "      ");
	write_members(&cell, true);
	fputs(writer->nr_details + 1 == row->nr_details ? " }\n    ] }" : " }", writer->out);
}

static void write_calls(struct opr_writer *writer, const char *name, const struct opr_symbol_row *rows, size_t nr_rows,
			 const uint64_t *totals, const struct opr_symbol_report *report)
{
	fprintf(writer->out, ", \"%s\": [", name);
	for (size_t i = 0; i < nr_rows; i++) {
		begin_item(writer, i, "      ");
		write_row(writer, &rows[i], &report->counts.values[rows[i].counts],
			  writer->layout.global_percent ? writer->layout.totals : totals, NULL);
		fputs(" }", writer->out);
	}
	fputs("\n    ]", writer->out);
}

static void write_block(struct opr_writer *writer, const struct opr_block *block, const struct opr_symbol_report *report)
{
	begin_item(writer, writer->nr_rows, "    ");
	write_row(writer, block->row, &report->counts.values[block->row->counts], writer->layout.totals, NULL);
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
	uint64_t nr_complete;

	write_member(out, "session", slash ? slash + 1 : session->path);
	write_member(out, "event", event->name);
	fprintf(out, "\"count\": %" PRIu64 ", \"unit-mask\": %" PRIu32 ", \"received\": %" PRIu64 ", \"stored\": %" PRIu64,
		event->count, event->unit_mask, event->received, event->stored);
	fprintf(out, ", \"unattributed\": %" PRIu64 ", \"filtered\": %" PRIu64 ", \"lost_kernel\": %" PRIu64, event->unattributed,
		event->filtered, event->lost_kernel);
	if (op_event_is_time(event->role))
		fputs(", \"unit\": \"microseconds\"", out);
	if (event->enabled_ns)
		fprintf(out, ", \"enabled_ns\": %" PRIu64 ", \"counted_ns\": %" PRIu64, event->enabled_ns, event->counted_ns);
	for (enum op_loss reason = 0; reason < OP_NR_LOSS; reason++)
		fprintf(out, ", \"lost_%s\": %" PRIu64, op_loss_name(reason), event->lost[reason]);
	for (enum op_stack_end end = 0; op_ledger_stacks(event, &nr_complete) && end < OP_NR_STACK_ENDS; end++)
		fprintf(out, ", \"end_%s\": %" PRIu64, op_stack_end_name(end), event->ends[end]);
	fputs(" }", out);
}

/* Writes the ledgers of the sessions that have one. */
static void write_ledgers(struct opr_writer *writer)
{
	const struct opr_profile *profile = writer->layout.origin.profile;
	size_t nr_rows = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++) {
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
