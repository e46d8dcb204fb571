/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text, in the layout of oprofile to the column. */
#include <inttypes.h>
#include <math.h>

#include "tools/common/formatting.h"
#include "tools/report/inlined.h"
#include "tools/report/writer.h"

#define SAMPLES_WIDTH    9 /* of a column of counts */
#define PERCENT_COLUMN_WIDTH 9
#define TITLE_WIDTH      17
#define RULE             "------------------"
#define BLOCK_RULE_WIDTH 79
#define NO_LOCATION      "(no location information)"
#define NOISE_MARK       "~"

struct column {
	const char *title;
	size_t width;
};

static const struct column vma_column = { "vma", 9 };
static const struct column samples_column = { "samples", SAMPLES_WIDTH };
static const struct column cumulated_column = { "cum. samples", 14 };
static const struct column percent_column = { "%", PERCENT_COLUMN_WIDTH };
static const struct column cumulated_percent_column = { "cum. %", 11 };
static const struct column inclusive_column = { "incl. %", 11 };
static const struct column change_column = { "diff %", 10 };
static const struct column line_column = { "linenr info", 28 };
static const struct column image_column = { "image name", 25 };
static const struct column app_column = { "app name", 25 };
static const struct column symbol_column = { "symbol name", 0 };
static const struct column build_id_column = { "build-id", 42 };
static const struct column symbols_column = { "symbols", 12 };
static const struct column debug_column = { "debug file", 0 };

/* A change has a sign; "new" and "gone" have none. A change within noise has a mark. */
static struct opr_percent_text format_change(const struct opr_change *change, bool is_marked)
{
	double percent = change->percent;
	struct opr_percent_text text;

	if (isinf(percent))
		snprintf(text.text, sizeof(text.text), percent > 0 ? "+++" : "---");
	else if (!(fabs(percent) > 0))
		snprintf(text.text, sizeof(text.text), "%*s", OPR_PERCENT_WIDTH, "+0");
	else if (fabs(percent) > 0.001)
		snprintf(text.text, OPR_PERCENT_WIDTH + 2, "%+*.4f", OPR_PERCENT_WIDTH, percent);
	else
		snprintf(text.text, sizeof(text.text), "%+*.1e", OPR_PERCENT_WIDTH, percent);
	if (is_marked && change->is_noise) {
		size_t length = strlen(text.text);

		snprintf(text.text + length, sizeof(text.text) - length, NOISE_MARK);
	}
	return text;
}

/* ---- colour ---- */

#define COLOUR_HOT   "\033[31m"
#define COLOUR_WARM  "\033[32m"
#define COLOUR_NONE  "\033[m"
#define HOT_PERCENT  5.0
#define WARM_PERCENT 0.5

static const char *colour_of(const struct opr_writer *writer, uint64_t count, uint64_t total)
{
	double percent = opr_percent(count, total);

	if (!writer->layout.colour || percent < WARM_PERCENT)
		return "";
	return percent < HOT_PERCENT ? COLOUR_WARM : COLOUR_HOT;
}

static const char *colour_end(const char *colour)
{
	return *colour ? COLOUR_NONE : "";
}

/* Where, when and how much; nothing for sessions without a ledger. */
static void write_origin(struct opr_writer *writer, const struct opr_origin *origin, const char *title)
{
	struct op_text text = { 0 };

	if (!origin->profile || !origin->recorded->nr_sessions)
		return;
	op_text_add(&text, title);
	opr_recorded_describe(origin->recorded, &text);
	opr_samples_describe(origin->profile, origin->classes, origin->totals, &text);
	if (origin->stacks)
		op_text_add(&text, origin->stacks);
	else
		opr_ledger_stacks_describe(origin->profile, &text);
	fputs(op_text_get(&text), writer->out);
	op_text_free(&text);
}

static void write_described(FILE *out, const char *line)
{
	opr_write_escaped(out, line);
	fputc('\n', out);
}

static void write_description(struct opr_writer *writer)
{
	const struct opr_classes *classes = writer->layout.classes;
	const struct opr_layout *layout = &writer->layout;

	write_described(writer->out, classes->cpu_line);
	if (classes->event_line)
		write_described(writer->out, classes->event_line);
	for (size_t i = 0; i < classes->nr_classes; i++)
		write_described(writer->out, classes->classes[i].description);
	write_origin(writer, &layout->before, "First profile:\n");
	write_origin(writer, &layout->origin, layout->before.profile ? "Second profile:\n" : "");
	if (layout->nr_stacks) {
		fprintf(writer->out, "incl. %%: with what it calls, in %" PRIu64 " stacks of ", layout->nr_stacks);
		opr_write_escaped(writer->out, layout->stack_event);
		fputc('\n', writer->out);
	}
	if (layout->diff && layout->is_ours)
		fputs(NOISE_MARK ": the change is within counting noise (two standard errors)\n", writer->out);
}

/* ---- summary ---- */

static void cut_title(const char *title, size_t nr_bytes, char *ret_title)
{
	if (strlen(title) >= nr_bytes)
		snprintf(ret_title, nr_bytes, "%.*s...", (int)nr_bytes - 4, title);
	else
		snprintf(ret_title, nr_bytes, "%s", title);
}

static void write_title(struct opr_writer *writer, const char *title)
{
	char cut[TITLE_WIDTH + 1], shown[TITLE_WIDTH + 1];

	cut_title(title, sizeof(cut), cut);
	snprintf(shown, sizeof(shown), "%*s", TITLE_WIDTH, cut);
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
		fprintf(writer->out, "%9s|      %%|", classes->classes[i].unit);
	fprintf(writer->out, "\n%s", indent);
	for (size_t i = 0; i < classes->nr_classes; i++)
		fputs(RULE, writer->out);
	fputc('\n', writer->out);
}

static void write_count_row(struct opr_writer *writer, const char *indent, const struct opr_count_row *row, const uint64_t *totals)
{
	fputs(indent, writer->out);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		const char *colour = colour_of(writer, row->counts[i], totals[i]);

		fprintf(writer->out, "%9" PRIu64 " %s%s%s ", row->counts[i], colour,
			opr_format_percent(row->counts[i], totals[i]).text, colour_end(colour));
	}
	opr_write_escaped(writer->out, opr_show_name(writer, row->name));
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
	if (application->nr_images == 1 && !strcmp(application->images[0].name, application->row.name))
		return; /* the only image is the application itself */
	write_summary_header(writer, "\t");
	for (size_t i = 0; i < application->nr_shown; i++)
		if (has_count(writer, &application->images[i]))
			write_count_row(writer, "\t", &application->images[i],
					writer->layout.global_percent ? totals : application->row.counts);
}

/* ---- symbols ---- */

/*
 * A line of left-justified fields. Blanks after a field are written only when another field
 * follows.
 */
struct line {
	FILE *out;
	size_t pending;     /* blanks before the next field */
	size_t written;     /* columns so far */
	const char *colour; /* of the next field; "" or NULL: none */
};

static void write_blanks(FILE *out, size_t nr_blanks)
{
	static const char blanks[] = "                                ";
	size_t nr_written;

	for (; nr_blanks; nr_blanks -= nr_written) {
		nr_written = op_min_u64(nr_blanks, sizeof(blanks) - 1);
		fwrite(blanks, 1, nr_written, out);
	}
}

static void write_field(struct line *line, const struct column *column, const char *text)
{
	size_t length;

	write_blanks(line->out, line->pending);
	line->written += line->pending;
	if (line->colour)
		fputs(line->colour, line->out);
	length = opr_write_escaped(line->out, text);
	if (line->colour)
		fputs(colour_end(line->colour), line->out);
	line->colour = NULL;
	line->written += length;
	line->pending = column->width > length ? column->width - length : 1;
}

#define MIN_NAME_COLUMNS 20 /* a name is never shorter */

/* Writes the last field of a line, which is cut at the right edge of a terminal. */
static void write_name(struct opr_writer *writer, struct line *line, const char *name)
{
	size_t used = line->written + line->pending, nr_columns = writer->layout.nr_columns;
	size_t room = nr_columns > used + MIN_NAME_COLUMNS ? nr_columns - used : MIN_NAME_COLUMNS;
	struct op_text text = { 0 };

	if (nr_columns && strlen(name) > room) {
		op_text_add_bytes(&text, name, room - 3);
		op_text_add(&text, "...");
	}
	write_field(line, &symbol_column, text.length ? op_text_get(&text) : name);
	op_text_free(&text);
}

/* A column of names; on a terminal it is as wide as its names. */
static struct column fitted(const struct column *column, size_t width)
{
	return (struct column){ column->title, width ? width : column->width };
}

static void write_number(struct line *line, const struct column *column, uint64_t number)
{
	char text[24], *digit = &text[sizeof(text) - 1];

	*digit = '\0';
	do
		*--digit = (char)('0' + number % 10);
	while (number /= 10);
	write_field(line, column, digit);
}

/* Remembers the last text: neighbours in a sorted report often have the same percentage. */
static const char *percent_text(struct opr_known_percent *known, uint64_t count, uint64_t total)
{
	if (!known->is_known || known->count != count || known->total != total)
		*known = (struct opr_known_percent){ true, count, total, opr_format_percent(count, total) };
	return known->text.text;
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
			 const uint64_t *totals, const struct opr_change *changes)
{
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		bool gone = opr_is_gone(changes, i);

		write_number(line, &samples_column, counts[i]);
		if (writer->layout.accumulated)
			write_number(line, &cumulated_column, cumulated[i]);
		line->colour = gone ? NULL : colour_of(writer, counts[i], totals[i]);
		write_field(line, &percent_column, gone ? "---" : percent_text(&writer->percents[i], counts[i], totals[i]));
		if (writer->layout.accumulated)
			write_field(line, &cumulated_percent_column, opr_format_percent(cumulated[i], totals[i]).text);
		if (changes)
			write_field(line, &change_column, format_change(&changes[i], writer->layout.is_ours).text);
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

static void write_row(struct opr_writer *writer, struct line *line, const struct opr_symbol_row *row, const uint64_t *counts,
		      const uint64_t *cumulated, const uint64_t *totals)
{
	struct column image = fitted(&image_column, writer->layout.image_width);
	struct column app = fitted(&app_column, writer->layout.app_width);
	struct op_text name = { 0 };

	write_vma(writer, line, row->vma);
	write_counts(writer, line, counts, cumulated, totals, row->changes);
	if (writer->layout.nr_stacks)
		write_field(line, &inclusive_column, opr_format_percent(row->inclusive, writer->layout.nr_stacks).text);
	write_location(writer, line, row->file, row->line);
	if (writer->layout.image_column)
		write_field(line, &image, opr_show_path(writer, row->image_shown, row->image));
	if (writer->layout.app_column)
		write_field(line, &app, opr_show_app(writer, row));
	if (row->is_self)
		op_text_printf(&name, "%s [self]", row->name);
	else if (row->inlined)
		opr_inlined_add(&name, row, writer->layout.long_names);
	write_name(writer, line, name.length ? op_text_get(&name) : row->name);
	op_text_free(&name);
	fputc('\n', writer->out);
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	struct line line = { .out = writer->out };

	write_row(writer, &line, row, counts, writer->cumulated, writer->layout.totals);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	struct line line = { .out = writer->out };
	unsigned int line_number;
	const char *file = opr_detail_line(writer, row, detail, &line_number);

	fputs("  ", writer->out);
	write_vma(writer, &line, detail->vma);
	write_counts(writer, &line, counts, writer->detail_cumulated,
		     writer->layout.global_percent ? writer->layout.totals : symbol_counts, NULL);
	write_location(writer, &line, file, line_number);
	fputc('\n', writer->out);
}

/* Replaces "samples" in a title by the unit of the class. */
static void write_class_title(struct line *line, const struct column *column, const char *unit)
{
	const char *samples = strstr(column->title, "samples");
	char title[64];

	if (samples)
		snprintf(title, sizeof(title), "%.*s%s", (int)(samples - column->title), column->title, unit);
	write_field(line, column, samples ? title : column->title);
}

static void write_class_titles(struct opr_writer *writer, struct line *line)
{
	const struct opr_layout *layout = &writer->layout;
	const struct {
		const struct column *column;
		bool shown;
	} fields[] = { { &samples_column, true },
		       { &cumulated_column, layout->accumulated },
		       { &percent_column, true },
		       { &cumulated_percent_column, layout->accumulated },
		       { &change_column, layout->diff } };

	for (size_t i = 0; i < layout->classes->nr_classes; i++)
		for (size_t j = 0; j < op_array_size(fields); j++)
			if (fields[j].shown)
				write_class_title(line, fields[j].column, layout->classes->classes[i].unit);
}

/* The names of the classes above their columns, when there are several. */
static void write_class_names(struct opr_writer *writer)
{
	const struct opr_layout *layout = &writer->layout;
	size_t cumulated_width = cumulated_column.width + cumulated_percent_column.width;
	const struct column group = { "", samples_column.width + percent_column.width +
						  (layout->accumulated ? cumulated_width : 0) +
						  (layout->diff ? change_column.width : 0) };
	struct line line = { .out = writer->out };

	if (layout->classes->nr_classes == 1)
		return;
	if (layout->show_address)
		write_field(&line, &vma_column, "");
	for (size_t i = 0; i < layout->classes->nr_classes; i++) {
		char title[64];

		cut_title(layout->classes->classes[i].title, op_min_u64(group.width, sizeof(title)), title);
		write_field(&line, &group, title);
	}
	fputc('\n', writer->out);
}

static void write_symbol_header(struct opr_writer *writer)
{
	const struct opr_layout *layout = &writer->layout;
	const struct column image = fitted(&image_column, layout->image_width);
	struct column app = fitted(&app_column, layout->app_width);
	struct line line = { .out = writer->out };
	const struct {
		const struct column *column;
		bool shown;
	} fields[] = { { &inclusive_column, layout->nr_stacks },
		       { &line_column, layout->debug_info },
		       { &image, layout->image_column },
		       { &app, layout->app_column },
		       { &symbol_column, true } };

	if (layout->is_ours)
		write_class_names(writer);
	if (layout->by)
		app.title = opr_by_word(layout->by);
	if (layout->show_address)
		write_field(&line, &vma_column, vma_column.title);
	write_class_titles(writer, &line);
	for (size_t i = 0; i < op_array_size(fields); i++)
		if (fields[i].shown)
			write_field(&line, fields[i].column, fields[i].column->title);
	fputc('\n', writer->out);
}

/* ---- callgraph ---- */

static void write_rule(struct opr_writer *writer)
{
	for (size_t i = 0; i < BLOCK_RULE_WIDTH; i++)
		fputc('-', writer->out);
	fputc('\n', writer->out);
}

static void write_calls(struct opr_writer *writer, const struct opr_symbol_row *rows, size_t nr_rows, const uint64_t *totals,
			 const struct opr_symbol_report *report)
{
	memset(writer->detail_cumulated, 0, report->nr_classes * sizeof(*writer->detail_cumulated));
	for (size_t i = 0; i < nr_rows; i++) {
		struct line line = { .out = writer->out, .written = 2 };
		const uint64_t *counts = &report->counts.values[rows[i].counts];

		for (size_t j = 0; j < report->nr_classes; j++)
			writer->detail_cumulated[j] += counts[j];
		fputs("  ", writer->out);
		write_row(writer, &line, &rows[i], counts, writer->detail_cumulated,
			  writer->layout.global_percent ? writer->layout.totals : totals);
	}
}

static void write_block(struct opr_writer *writer, const struct opr_block *block, const struct opr_symbol_report *report)
{
	const uint64_t *counts = &report->counts.values[block->row->counts];

	for (size_t i = 0; i < report->nr_classes; i++)
		writer->cumulated[i] += counts[i];
	write_calls(writer, block->callers, block->nr_callers, block->caller_totals, report);
	write_symbol(writer, block->row, counts);
	write_calls(writer, block->callees, block->nr_callees, block->callee_totals, report);
	write_rule(writer);
}

/* ---- images ---- */

static void write_image(struct opr_writer *writer, const struct opr_image_row *row, const char *hint)
{
	struct line line = { .out = writer->out };

	write_counts(writer, &line, row->counts, NULL, writer->layout.totals, NULL);
	write_field(&line, &build_id_column, row->identity);
	write_field(&line, &symbols_column, opr_symbol_state_word(row->debug.state));
	write_field(&line, &image_column, opr_show_name(writer, row->name));
	write_name(writer, &line, hint);
	fputc('\n', writer->out);
}

static void write_image_header(struct opr_writer *writer)
{
	static const struct column *const columns[] = { &build_id_column, &symbols_column, &image_column, &debug_column };
	struct line line = { .out = writer->out };

	write_class_names(writer);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		write_class_title(&line, &samples_column, writer->layout.classes->classes[i].unit);
		write_field(&line, &percent_column, percent_column.title);
	}
	for (size_t i = 0; i < op_array_size(columns); i++)
		write_field(&line, columns[i], columns[i]->title);
	fputc('\n', writer->out);
}

static void write_header(struct opr_writer *writer)
{
	write_description(writer);
	if (writer->layout.symbols)
		write_symbol_header(writer);
	else if (writer->layout.images)
		write_image_header(writer);
	else
		write_summary_header(writer, "");
}

static void write_begin(struct opr_writer *writer)
{
	if (!writer->layout.no_header)
		write_header(writer);
	if (writer->layout.callgraph)
		write_rule(writer);
}

const struct opr_writer_ops opr_text_writer = {
	.begin = write_begin,
	.application = write_application,
	.symbol = write_symbol,
	.detail = write_detail,
	.block = write_block,
	.image = write_image,
};
