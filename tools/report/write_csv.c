/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CSV by RFC 4180. The column `kind` tells what a line is. */
#include <inttypes.h>
#include <math.h>

#include "libop/base/clock.h"
#include "tools/report/writer.h"

#define SUMMARY_TEXTS 3 /* columns before the counts */
#define SYMBOL_TEXTS  8
#define IMAGE_TEXTS   5
#define INLINED_TEXTS 4 /* more of them, after those of symbols */

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

static size_t nr_texts(const struct opr_layout *layout)
{
	return layout->symbols  ? SYMBOL_TEXTS + (layout->inlined ? INLINED_TEXTS : 0)
	       : layout->images ? IMAGE_TEXTS
				: SUMMARY_TEXTS;
}

/* A line of the header: what it says and the value; the other columns are empty. */
static void write_fact(struct opr_writer *writer, const char *kind, const char *what, const char *class_title, const char *value)
{
	const struct opr_layout *layout = &writer->layout;
	size_t nr_of_class = 2u + layout->accumulated + layout->diff + (layout->diff && layout->is_ours);
	size_t nr_columns = nr_texts(layout) + (layout->nr_stacks ? 2 : 0) + layout->classes->nr_classes * nr_of_class;
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

static void write_begin(struct opr_writer *writer)
{
	static const char *const summary[SUMMARY_TEXTS] = { "kind", "application", "image" };
	static const char *const symbols[SYMBOL_TEXTS] = { "kind",    "symbol", "image", "application",
							   "address", "file",	"line",	 "around" };
	static const char *const images[IMAGE_TEXTS] = { "kind", "image", "build-id", "symbols", "debug file" };
	static const char *const inlined[INLINED_TEXTS] = { "inlined by", "call file", "call line", "inliners" };
	const struct opr_layout *layout = &writer->layout;

	if (layout->no_header)
		return;
	if (layout->symbols)
		opr_write_csv_texts(writer->out, symbols, op_array_size(symbols));
	else if (layout->images)
		opr_write_csv_texts(writer->out, images, op_array_size(images));
	else
		opr_write_csv_texts(writer->out, summary, op_array_size(summary));
	if (layout->inlined) {
		fputc(',', writer->out);
		opr_write_csv_texts(writer->out, inlined, op_array_size(inlined));
	}
	fputs(layout->nr_stacks ? ",inclusive,inclusive %" : "", writer->out);
	for (size_t i = 0; i < layout->classes->nr_classes; i++) {
		const struct opr_class *class = &layout->classes->classes[i];

		write_title(writer, class, class->unit);
		write_title(writer, class, "%");
		if (layout->accumulated)
			write_title(writer, class, strcmp(class->unit, "samples") ? "accumulated" : "accumulated samples");
		if (layout->diff)
			write_title(writer, class, "change %");
		if (layout->diff && layout->is_ours)
			write_title(writer, class, "noise");
	}
	end_line(writer->out);
	write_origin(writer, &layout->before, "before");
	write_origin(writer, &layout->origin, "profile");
	if (layout->nr_stacks)
		write_number(writer, "profile", "inclusive of", layout->stack_event, (double)layout->nr_stacks);
}

static void write_change(FILE *out, double change)
{
	if (isinf(change))
		fputs(change > 0 ? ",new" : ",gone", out);
	else
		fprintf(out, ",%.6g", change);
}

static void write_counts(struct opr_writer *writer, const uint64_t *counts, const uint64_t *totals, const uint64_t *cumulated,
			 const struct opr_change *changes)
{
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		fprintf(writer->out, ",%" PRIu64 ",%.6g", counts[i], opr_percent(counts[i], totals[i]));
		if (writer->layout.accumulated && cumulated)
			fprintf(writer->out, ",%" PRIu64, cumulated[i]);
		else if (writer->layout.accumulated)
			fputc(',', writer->out);
		if (changes)
			write_change(writer->out, changes[i].percent);
		if (changes && writer->layout.is_ours)
			fputs(changes[i].is_noise ? ",yes" : ",no", writer->out);
	}
	end_line(writer->out);
}

static void write_application(struct opr_writer *writer, const struct opr_application *application)
{
	const uint64_t *totals = writer->layout.totals;
	const char *texts[] = { "application", application->row.name, "" };

	opr_write_csv_texts(writer->out, texts, op_array_size(texts));
	write_counts(writer, application->row.counts, totals, NULL, NULL);
	texts[0] = "image";
	for (size_t i = 0; i < application->nr_shown; i++) {
		texts[2] = application->images[i].name;
		opr_write_csv_texts(writer->out, texts, op_array_size(texts));
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
	opr_write_csv_texts(writer->out, texts, op_array_size(texts));
	if (writer->layout.inlined)
		opr_write_csv_inliners(writer->out, row);
	if (writer->layout.nr_stacks)
		fprintf(writer->out, ",%" PRIu64 ",%.6g", row->inclusive, opr_percent(row->inclusive, writer->layout.nr_stacks));
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

	opr_write_csv_texts(writer->out, texts, op_array_size(texts));
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
