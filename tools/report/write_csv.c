/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CSV by RFC 4180. The column `kind` tells what a line is. */
#include <inttypes.h>
#include <math.h>

#include "tools/report/writer.h"

void opr_write_csv(FILE *out, const char *text)
{
	char escaped[OP_ESCAPED_BYTES];

	fputc('"', out);
	while (*text) {
		if (*text == '"')
			fputc('"', out);
		text += op_escape(text, escaped);
		fputs(escaped, out);
	}
	fputc('"', out);
}

static void write_texts(FILE *out, const char *const *texts, size_t nr_texts)
{
	for (size_t i = 0; i < nr_texts; i++) {
		if (i)
			fputc(',', out);
		opr_write_csv(out, texts[i]);
	}
}

static void end_line(FILE *out)
{
	fputs("\r\n", out);
}

static void write_title(struct opr_writer *writer, const struct opr_class *class, const char *what)
{
	struct op_text title = { 0 };

	op_text_printf(&title, "%s %s", class->title, what);
	fputc(',', writer->out);
	opr_write_csv(writer->out, op_text_get(&title));
	op_text_free(&title);
}

static void write_begin(struct opr_writer *writer)
{
	static const char *const summary[] = { "kind", "application", "image" };
	static const char *const symbols[] = { "kind", "symbol", "image", "application", "address", "file", "line", "around" };
	static const char *const images[] = { "kind", "image", "build-id", "symbols", "debug file" };
	const struct opr_layout *layout = &writer->layout;

	if (layout->no_header)
		return;
	if (layout->symbols)
		write_texts(writer->out, symbols, op_array_size(symbols));
	else if (layout->images)
		write_texts(writer->out, images, op_array_size(images));
	else
		write_texts(writer->out, summary, op_array_size(summary));
	for (size_t i = 0; i < layout->classes->nr_classes; i++) {
		const struct opr_class *class = &layout->classes->classes[i];

		write_title(writer, class, class->unit);
		write_title(writer, class, "%");
		if (layout->accumulated)
			write_title(writer, class, strcmp(class->unit, "samples") ? "accumulated" : "accumulated samples");
		if (layout->diff)
			write_title(writer, class, "change %");
	}
	end_line(writer->out);
}

static void write_change(FILE *out, double change)
{
	if (isinf(change))
		fputs(change > 0 ? ",new" : ",gone", out);
	else
		fprintf(out, ",%.6g", change);
}

static void write_counts(struct opr_writer *writer, const uint64_t *counts, const uint64_t *totals, const uint64_t *cumulated,
			 const double *changes)
{
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		fprintf(writer->out, ",%" PRIu64 ",%.6g", counts[i], opr_percent(counts[i], totals[i]));
		if (writer->layout.accumulated && cumulated)
			fprintf(writer->out, ",%" PRIu64, cumulated[i]);
		else if (writer->layout.accumulated)
			fputc(',', writer->out);
		if (changes)
			write_change(writer->out, changes[i]);
	}
	end_line(writer->out);
}

static void write_application(struct opr_writer *writer, const struct opr_application *application)
{
	const uint64_t *totals = writer->layout.totals;
	const char *texts[] = { "application", application->row.name, "" };

	write_texts(writer->out, texts, op_array_size(texts));
	write_counts(writer, application->row.counts, totals, NULL, NULL);
	texts[0] = "image";
	for (size_t i = 0; i < application->nr_images; i++) {
		texts[2] = application->images[i].name;
		write_texts(writer->out, texts, op_array_size(texts));
		write_counts(writer, application->images[i].counts,
			     writer->layout.global_percent ? totals : application->row.counts, NULL, NULL);
	}
}

/* Writes the columns before the counts. */
static void write_row_fields(struct opr_writer *writer, const char *kind, const struct opr_symbol_row *row, uint64_t vma,
			const char *file, unsigned int line_number, const char *around)
{
	char address[24], line[16] = "";
	const char *texts[] = { kind, row->name, row->image, row->app, address, file ? file : "", line, around };

	snprintf(address, sizeof(address), "0x%" PRIx64, vma);
	if (file)
		snprintf(line, sizeof(line), "%u", line_number);
	write_texts(writer->out, texts, op_array_size(texts));
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	write_row_fields(writer, "symbol", row, row->vma, row->file, row->line, "");
	write_counts(writer, counts, writer->layout.totals, writer->cumulated, row->changes);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	unsigned int line;
	const char *file = opr_detail_line(writer, row, detail, &line);

	write_row_fields(writer, "detail", row, detail->vma, file, line, "");
	write_counts(writer, counts, writer->layout.global_percent ? writer->layout.totals : symbol_counts,
		     writer->detail_cumulated, NULL);
}

static void write_calls(struct opr_writer *writer, const char *kind, const struct opr_symbol_row *rows, size_t nr_rows,
			 const uint64_t *totals, const struct opr_symbol_report *report, const char *around)
{
	for (size_t i = 0; i < nr_rows; i++) {
		const struct opr_symbol_row *row = &rows[i];

		write_row_fields(writer, row->is_self ? "self" : kind, row, row->vma, row->file, row->line, around);
		write_counts(writer, &report->counts.values[row->counts],
			     writer->layout.global_percent ? writer->layout.totals : totals, NULL, NULL);
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

	write_texts(writer->out, texts, op_array_size(texts));
	write_counts(writer, row->counts, writer->layout.totals, NULL, NULL);
}

const struct opr_writer_ops opr_csv_writer = {
	.begin = write_begin,
	.application = write_application,
	.symbol = write_symbol,
	.detail = write_detail,
	.block = write_block,
	.image = write_image,
};
