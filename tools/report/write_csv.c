/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CSV by RFC 4180. The column `kind` tells what a line is. */
#include <inttypes.h>

#include "libop/base/clock.h"
#include "tools/report/columns.h"

#define SUMMARY_TEXTS 3 /* columns before the counts */
#define IMAGE_TEXTS   5

static void end_line(FILE *out)
{
	fputs("\r\n", out);
}

/* A title of a column of a class: in it, "samples" stands for the unit of the class. */
static void write_class_title(struct opr_writer *writer, const struct opr_class *class, const char *what)
{
	bool is_unit = !strcmp(what, "samples"), is_cut = !strcmp(what, "accumulated samples") && strcmp(class->unit, "samples");
	struct op_text title = { 0 };

	op_text_printf(&title, "%s %s", class->title, is_unit ? class->unit : is_cut ? "accumulated" : what);
	fputc(',', writer->out);
	opr_write_csv(writer->out, op_text_get(&title));
	op_text_free(&title);
}

/* The fields that all columns of a class, or all others, have in a line. */
static size_t nr_fields(const struct opr_layout *layout, bool of_class)
{
	size_t nr = 0;

	for OPR_EACH_COLUMN(column)
		if (column->is_of_class == of_class && opr_column_is_in_csv(column, layout))
			for (size_t i = 0; i < OPR_CSV_TITLES_MAX; i++)
				nr += !!column->csv_titles[i];
	return nr;
}

/* A line of the header: what it says and the value; the other columns are empty. */
static void write_fact(struct opr_writer *writer, const char *kind, const char *what, const char *class_title, const char *value)
{
	const struct opr_layout *layout = &writer->layout;
	size_t nr_of_row = layout->symbols ? nr_fields(layout, false) : layout->images ? IMAGE_TEXTS : SUMMARY_TEXTS;
	size_t nr_columns = nr_of_row + layout->classes->nr_classes * nr_fields(layout, true);
	struct op_text name = { 0 };

	op_text_printf(&name, "%s%s%s", what, *class_title ? " " : "", class_title);
	opr_write_csv_texts(writer->out, (const char *const[]){ kind, op_text_get(&name), value }, 3);
	op_text_free(&name);
	for (size_t i = 3; i < nr_columns; i++)
		fputc(',', writer->out);
	end_line(writer->out);
}

static void write_number(struct opr_writer *writer, const char *kind, const char *what, const char *class_title, double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", number);
	write_fact(writer, kind, what, class_title, text);
}

/* Where, when and how much; nothing for sessions without a ledger. */
static void write_origin(struct opr_writer *writer, const struct opr_origin *origin, const char *kind)
{
	const struct opr_recorded *recorded = origin->profile ? origin->recorded : NULL;
	char time[OPR_UTC_BYTES];

	if (!recorded || !recorded->nr_sessions)
		return;
	for (size_t i = 0; i < recorded->hosts.nr_words; i++)
		write_fact(writer, kind, "host", "", recorded->hosts.words[i]);
	write_number(writer, kind, "sessions", "", (double)recorded->nr_sessions);
	if (recorded->begin_ns) {
		opr_format_utc(recorded->begin_ns, time);
		write_fact(writer, kind, "begin", "", time);
		opr_format_utc(recorded->end_ns, time);
		write_fact(writer, kind, "end", "", time);
		write_number(writer, kind, "seconds", "", (double)recorded->recorded_ns / OP_NS_PER_S);
	}
	for (size_t i = 0; i < origin->classes->nr_classes; i++) {
		const struct opr_class *class = &origin->classes->classes[i];
		bool is_about;
		double seconds = opr_seconds_of_sample(origin->classes, class, &is_about) * (double)origin->totals[i];
		double lost = opr_lost_share(origin->profile, class);

		write_number(writer, kind, class->unit, class->title, (double)origin->totals[i]);
		if (seconds > 0)
			write_number(writer, kind, "cpu-seconds", class->title, seconds);
		if (lost >= 0)
			write_number(writer, kind, "lost-percent", class->title, 100 * lost);
	}
}

static void write_row_titles(struct opr_writer *writer)
{
	const char *comma = "";

	for OPR_EACH_COLUMN(column) {
		if (column->is_of_class || !opr_column_is_in_csv(column, &writer->layout))
			continue;
		for (size_t i = 0; i < OPR_CSV_TITLES_MAX && column->csv_titles[i]; i++) {
			fputs(comma, writer->out);
			if (column->is_unquoted)
				fputs(column->csv_titles[i], writer->out);
			else
				opr_write_csv(writer->out, column->csv_titles[i]);
			comma = ",";
		}
	}
}

static void write_class_titles(struct opr_writer *writer, const struct opr_class *class)
{
	for OPR_EACH_COLUMN(column)
		if (column->is_of_class && opr_column_is_in_csv(column, &writer->layout))
			write_class_title(writer, class, column->csv_titles[0]);
}

static void write_begin(struct opr_writer *writer)
{
	static const char *const summary[SUMMARY_TEXTS] = { "kind", "application", "image" };
	static const char *const images[IMAGE_TEXTS] = { "kind", "image", "build-id", "symbols", "debug file" };
	const struct opr_layout *layout = &writer->layout;

	if (layout->no_header)
		return;
	if (layout->symbols)
		write_row_titles(writer);
	else if (layout->images)
		opr_write_csv_texts(writer->out, images, op_array_size(images));
	else
		opr_write_csv_texts(writer->out, summary, op_array_size(summary));
	for (size_t i = 0; i < layout->classes->nr_classes; i++)
		write_class_titles(writer, &layout->classes->classes[i]);
	end_line(writer->out);
	write_origin(writer, &layout->before, "before");
	write_origin(writer, &layout->origin, "profile");
	if (layout->nr_stacks)
		write_number(writer, "profile", "inclusive of", layout->stack_event, (double)layout->nr_stacks);
}

/* The columns of the classes, which end a line. */
static void write_counts(struct opr_cell *cell)
{
	struct opr_writer *writer = cell->writer;

	for (cell->index = 0; cell->index < writer->layout.classes->nr_classes; cell->index++) {
		for OPR_EACH_COLUMN(column) {
			if (!column->is_of_class || (column->is_of_change && !cell->changes) ||
			    !opr_column_is_in_csv(column, &writer->layout))
				continue;
			fputc(',', writer->out);
			column->csv(cell, writer->out);
		}
	}
	end_line(writer->out);
}

static void write_line(struct opr_cell *cell)
{
	FILE *out = cell->writer->out;
	const char *comma = "";

	for OPR_EACH_COLUMN(column) {
		if (column->is_of_class || !opr_column_is_in_csv(column, &cell->writer->layout))
			continue;
		fputs(comma, out);
		column->csv(cell, out);
		comma = ",";
	}
	write_counts(cell);
}

static void write_count_row(struct opr_writer *writer, const char *const *texts, size_t nr_texts, const uint64_t *counts,
			    const uint64_t *totals)
{
	struct opr_cell cell = { .writer = writer, .counts = counts, .totals = totals };

	opr_write_csv_texts(writer->out, texts, nr_texts);
	write_counts(&cell);
}

static void write_application(struct opr_writer *writer, const struct opr_application *application)
{
	const uint64_t *totals = writer->layout.totals;
	const char *texts[] = { "application", application->row.name, "" };

	write_count_row(writer, texts, op_array_size(texts), application->row.counts, totals);
	texts[0] = "image";
	for (size_t i = 0; i < application->nr_shown; i++) {
		texts[2] = application->images[i].name;
		write_count_row(writer, texts, op_array_size(texts), application->images[i].counts,
				writer->layout.global_percent ? totals : application->row.counts);
	}
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	struct opr_cell cell = { .writer = writer, .row = row, .kind = "symbol", .around = "", .vma = row->vma,
				 .file = row->file, .line = row->line, .counts = counts, .totals = writer->layout.totals,
				 .cumulated = writer->cumulated, .changes = row->changes };

	write_line(&cell);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	struct opr_cell cell = { .writer = writer, .row = row, .kind = "detail", .around = "", .vma = detail->vma,
				 .counts = counts, .totals = writer->layout.global_percent ? writer->layout.totals : symbol_counts,
				 .cumulated = writer->detail_cumulated };

	cell.file = opr_detail_line(writer, row, detail, &cell.line);
	write_line(&cell);
}

static void write_calls(struct opr_writer *writer, const char *kind, const struct opr_symbol_row *rows, size_t nr_rows,
			 const uint64_t *totals, const struct opr_symbol_report *report, const char *around)
{
	for (size_t i = 0; i < nr_rows; i++) {
		const struct opr_symbol_row *row = &rows[i];
		struct opr_cell cell = { .writer = writer, .row = row, .kind = row->is_self ? "self" : kind, .around = around,
					 .vma = row->vma, .file = row->file, .line = row->line,
					 .counts = &report->counts.values[row->counts],
					 .totals = writer->layout.global_percent ? writer->layout.totals : totals };

		write_line(&cell);
	}
}

static void write_block(struct opr_writer *writer, const struct opr_block *block, const struct opr_symbol_report *report)
{
	const uint64_t *counts = &report->counts.values[block->row->counts];

	for (size_t i = 0; i < report->nr_classes; i++)
		writer->cumulated[i] += counts[i];
	write_calls(writer, "caller", block->callers, block->nr_callers, block->caller_totals, report, block->row->name);
	write_symbol(writer, block->row, counts);
	write_calls(writer, "callee", block->callees, block->nr_callees, block->callee_totals, report, block->row->name);
}

static void write_image(struct opr_writer *writer, const struct opr_image_row *row, const char *hint)
{
	const char *const texts[] = { "image", row->name, row->identity, opr_symbol_state_word(row->debug.state), hint };

	write_count_row(writer, texts, op_array_size(texts), row->counts, writer->layout.totals);
}

const struct opr_writer_ops opr_csv_writer = {
	.begin = write_begin,
	.application = write_application,
	.symbol = write_symbol,
	.detail = write_detail,
	.block = write_block,
	.image = write_image,
};
