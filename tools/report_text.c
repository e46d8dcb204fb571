/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layout of oprofile's reports, to the column. */
#include <inttypes.h>

#include "tools/escape.h"
#include "tools/report_writer.h"

#define PERCENT_WIDTH 7
#define TITLE_WIDTH   17
#define RULE          "------------------"
#define NO_LOCATION   "(no location information)"

struct column {
	const char *title;
	size_t width;
};

static const struct column vma_column = { "vma", 9 };
static const struct column samples_column = { "samples", 9 };
static const struct column cumulated_column = { "cum. samples", 14 };
static const struct column percent_column = { "%", 9 };
static const struct column cumulated_percent_column = { "cum. %", 11 };
static const struct column line_column = { "linenr info", 28 };
static const struct column image_column = { "image name", 25 };
static const struct column app_column = { "app name", 25 };
static const struct column symbol_column = { "symbol name", 0 };
static const struct column build_id_column = { "build-id", 42 };
static const struct column symbols_column = { "symbols", 12 };
static const struct column debug_column = { "debug file", 0 };

struct percent_text {
	char text[64];
};

/* Seven columns: four decimals as far as they fit, small numbers in scientific notation, nothing at all as one 0. */
static struct percent_text format_percent(uint64_t count, uint64_t total)
{
	double percent = total ? (double)count / (double)total * 100.0 : 0;
	struct percent_text text;

	if (!count || !total)
		snprintf(text.text, sizeof(text.text), "%*s", PERCENT_WIDTH, "0");
	else if (percent > 0.001)
		snprintf(text.text, PERCENT_WIDTH + 1, "%*.4f", PERCENT_WIDTH, percent);
	else
		snprintf(text.text, sizeof(text.text), "%*.1e", PERCENT_WIDTH, percent);
	return text;
}

static const char *show_name(const struct opr_writer *writer, const char *name)
{
	return writer->layout.long_names ? name : opr_base_name(name);
}

/* A path that was found may be a relative one. */
static const char *show_path(const struct opr_writer *writer, const char *shown, const char *name)
{
	const char *slash;

	if (writer->layout.long_names || shown == name)
		return show_name(writer, shown);
	slash = strrchr(shown, '/');
	return slash ? slash + 1 : shown;
}

static void write_description(struct opr_writer *writer)
{
	const struct opr_classes *classes = writer->layout.classes;

	fprintf(writer->out, "%s\n", classes->cpu_line);
	if (classes->event_line)
		fprintf(writer->out, "%s\n", classes->event_line);
	for (size_t i = 0; i < classes->nr_classes; i++)
		fprintf(writer->out, "%s\n", classes->classes[i].description);
}

/* ---- summary ---- */

static void write_title(struct opr_writer *writer, const char *title)
{
	char shown[TITLE_WIDTH + 1];

	if (strlen(title) > TITLE_WIDTH)
		snprintf(shown, sizeof(shown), "%.*s...", TITLE_WIDTH - 3, title);
	else
		snprintf(shown, sizeof(shown), "%*s", TITLE_WIDTH, title);
	opr_write_escaped(writer->out, shown);
	fputc('|', writer->out);
}

static void write_summary_header(struct opr_writer *writer, const char *indent)
{
	const struct opr_classes *classes = writer->layout.classes;

	if (writer->layout.no_header)
		return;
	fputs(indent, writer->out);
	for (size_t i = 0; i < classes->nr_classes; i++)
		write_title(writer, classes->classes[i].title);
	fprintf(writer->out, "\n%s", indent);
	for (size_t i = 0; i < classes->nr_classes; i++)
		fputs("  samples|      %|", writer->out);
	fprintf(writer->out, "\n%s", indent);
	for (size_t i = 0; i < classes->nr_classes; i++)
		fputs(RULE, writer->out);
	fputc('\n', writer->out);
}

static void write_count_row(struct opr_writer *writer, const char *indent, const struct opr_count_row *row, const uint64_t *totals)
{
	fputs(indent, writer->out);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++)
		fprintf(writer->out, "%9" PRIu64 " %s ", row->counts[i], format_percent(row->counts[i], totals[i]).text);
	opr_write_escaped(writer->out, show_name(writer, row->name));
	fputc('\n', writer->out);
}

static bool has_count(const struct opr_writer *writer, const struct opr_count_row *row)
{
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++)
		if (row->counts[i])
			return true;
	return false;
}

static void write_application(struct opr_writer *writer, const struct opr_application *application)
{
	const uint64_t *totals = writer->layout.totals;

	write_count_row(writer, "", &application->row, totals);
	if (opr_summary_is_plain(application))
		return;
	write_summary_header(writer, "\t");
	for (size_t i = 0; i < application->nr_images; i++)
		if (has_count(writer, &application->images[i]))
			write_count_row(writer, "\t", &application->images[i],
					writer->layout.global_percent ? totals : application->row.counts);
}

/* ---- symbols ---- */

/* A line of left-justified fields; blanks are written when another field follows. */
struct line {
	FILE *out;
	size_t pending; /* blanks */
};

static void write_field(struct line *line, const struct column *column, const char *text)
{
	size_t length;

	fprintf(line->out, "%*s", (int)line->pending, "");
	length = opr_write_escaped(line->out, text);
	line->pending = column->width > length ? column->width - length : 1;
}

static void write_number(struct line *line, const struct column *column, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	write_field(line, column, text);
}

static void write_vma(struct opr_writer *writer, struct line *line, uint64_t vma)
{
	char text[24];

	if (!writer->layout.show_address)
		return;
	snprintf(text, sizeof(text), "%0*" PRIx64, writer->layout.wide_addresses ? 16 : 8, vma);
	write_field(line, &vma_column, text);
}

static void write_counts(struct opr_writer *writer, struct line *line, const uint64_t *counts, const uint64_t *cumulated,
			 const uint64_t *totals)
{
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		write_number(line, &samples_column, counts[i]);
		if (writer->layout.accumulated)
			write_number(line, &cumulated_column, cumulated[i]);
		write_field(line, &percent_column, format_percent(counts[i], totals[i]).text);
		if (writer->layout.accumulated)
			write_field(line, &cumulated_percent_column, format_percent(cumulated[i], totals[i]).text);
	}
}

static void write_location(struct opr_writer *writer, struct line *line, const char *file, unsigned int line_number)
{
	struct op_text text = { 0 };
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (!writer->layout.debug_info)
		return;
	if (file)
		op_text_printf(&text, "%s:%u", slash && !writer->layout.long_names ? slash + 1 : file, line_number);
	else
		op_text_add(&text, NO_LOCATION);
	write_field(line, &line_column, op_text_get(&text));
	op_text_free(&text);
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	struct line line = { .out = writer->out };

	write_vma(writer, &line, row->vma);
	write_counts(writer, &line, counts, writer->cumulated, writer->layout.totals);
	write_location(writer, &line, row->file, row->line);
	if (writer->layout.image_column)
		write_field(&line, &image_column, show_path(writer, row->image_shown, row->image));
	if (writer->layout.app_column)
		write_field(&line, &app_column, show_path(writer, row->app_shown, row->app));
	write_field(&line, &symbol_column, row->name);
	fputc('\n', writer->out);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	struct line line = { .out = writer->out };
	const char *file = NULL;
	unsigned int line_number = 0;

	fputs("  ", writer->out);
	write_vma(writer, &line, detail->vma);
	write_counts(writer, &line, counts, writer->detail_cumulated,
		     writer->layout.global_percent ? writer->layout.totals : symbol_counts);
	if (writer->layout.debug_info && !opr_symbols_line(row->symbols, detail->vma, &file, &line_number))
		file = NULL;
	write_location(writer, &line, file, line_number);
	fputc('\n', writer->out);
}

static void write_symbol_header(struct opr_writer *writer)
{
	const struct opr_layout *layout = &writer->layout;
	struct line line = { .out = writer->out };
	const struct {
		const struct column *column;
		bool shown;
	} fields[] = { { &line_column, layout->debug_info },
		       { &image_column, layout->image_column },
		       { &app_column, layout->app_column },
		       { &symbol_column, true } };

	if (layout->show_address)
		write_field(&line, &vma_column, vma_column.title);
	for (size_t i = 0; i < layout->classes->nr_classes; i++) {
		write_field(&line, &samples_column, samples_column.title);
		if (layout->accumulated)
			write_field(&line, &cumulated_column, cumulated_column.title);
		write_field(&line, &percent_column, percent_column.title);
		if (layout->accumulated)
			write_field(&line, &cumulated_percent_column, cumulated_percent_column.title);
	}
	for (size_t i = 0; i < op_array_size(fields); i++)
		if (fields[i].shown)
			write_field(&line, fields[i].column, fields[i].column->title);
	fputc('\n', writer->out);
}

/* ---- images ---- */

static void write_image(struct opr_writer *writer, const struct opr_image_row *row, const char *hint)
{
	struct line line = { .out = writer->out };

	write_counts(writer, &line, row->counts, NULL, writer->layout.totals);
	write_field(&line, &build_id_column, row->identity);
	write_field(&line, &symbols_column, opr_symbol_state_word(row->debug.state));
	write_field(&line, &image_column, show_name(writer, row->name));
	write_field(&line, &debug_column, hint);
	fputc('\n', writer->out);
}

static void write_image_header(struct opr_writer *writer)
{
	static const struct column *const columns[] = { &build_id_column, &symbols_column, &image_column, &debug_column };
	struct line line = { .out = writer->out };

	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		write_field(&line, &samples_column, samples_column.title);
		write_field(&line, &percent_column, percent_column.title);
	}
	for (size_t i = 0; i < op_array_size(columns); i++)
		write_field(&line, columns[i], columns[i]->title);
	fputc('\n', writer->out);
}

static void write_begin(struct opr_writer *writer)
{
	if (writer->layout.no_header)
		return;
	write_description(writer);
	if (writer->layout.symbols)
		write_symbol_header(writer);
	else if (writer->layout.images)
		write_image_header(writer);
	else
		write_summary_header(writer, "");
}

static void write_end(struct opr_writer *writer OP_UNUSED)
{
}

const struct opr_writer_ops opr_text_writer = {
	.begin = write_begin,
	.application = write_application,
	.symbol = write_symbol,
	.detail = write_detail,
	.image = write_image,
	.end = write_end,
};
