/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/columns.h"

#include <inttypes.h>
#include <math.h>

#include "tools/profile/container_name.h"
#include "tools/report/inlined.h"
#include "tools/report/quote.h"

#define NO_LOCATION "(no location information)"

/* ---- when a report has a column ---- */

static bool has_accumulated(const struct opr_layout *layout)
{
	return layout->accumulated;
}

static bool has_address(const struct opr_layout *layout)
{
	return layout->show_address;
}

static bool has_app(const struct opr_layout *layout)
{
	return layout->app_column;
}

static bool has_change(const struct opr_layout *layout)
{
	return layout->diff;
}

static bool has_image(const struct opr_layout *layout)
{
	return layout->image_column;
}

static bool has_inclusive(const struct opr_layout *layout)
{
	return layout->nr_stacks;
}

static bool has_inlined(const struct opr_layout *layout)
{
	return layout->inlined;
}

static bool has_location(const struct opr_layout *layout)
{
	return layout->debug_info;
}

static bool has_noise(const struct opr_layout *layout)
{
	return layout->diff && layout->is_ours;
}

/* ---- kind and names ---- */

static void csv_kind(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv(out, cell->kind);
}

static void csv_around(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv(out, cell->around);
}

static void json_member(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\": ", name);
	opr_write_json(out, value);
	fputs(", ", out);
}

static void text_symbol(const struct opr_cell *cell, struct opr_line *line, size_t width OP_UNUSED)
{
	const struct opr_symbol_row *row = cell->row;
	const struct opr_layout *layout = &cell->writer->layout;
	struct op_text name = { 0 };

	if (row->is_self)
		op_text_printf(&name, "%s [self]", row->name);
	else if (row->inlined)
		opr_inlined_add(&name, row, layout->long_names);
	opr_line_add_last(line, layout, name.length ? op_text_get(&name) : row->name);
	op_text_free(&name);
}

static void csv_symbol(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv(out, cell->row->name);
}

static void json_symbol(const struct opr_cell *cell, FILE *out)
{
	json_member(out, "symbol", cell->row->name);
}

static void text_image(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	opr_line_add(line, width, opr_show_path(cell->writer, cell->row->image_shown, cell->row->image));
}

static void csv_image(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv(out, cell->row->image);
}

static void json_image(const struct opr_cell *cell, FILE *out)
{
	json_member(out, "image", cell->row->image);
}

static size_t image_width(const struct opr_layout *layout)
{
	return layout->image_width;
}

static void text_app(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	struct op_text text = { 0 };

	if (cell->writer->layout.short_cgroups)
		opr_container_name_add(&text, cell->row->app);
	opr_line_add(line, width, text.length ? op_text_get(&text) : opr_show_app(cell->writer, cell->row));
	op_text_free(&text);
}

static void csv_app(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv(out, cell->row->app);
}

static void json_app(const struct opr_cell *cell, FILE *out)
{
	json_member(out, "application", cell->row->app);
}

static size_t app_width(const struct opr_layout *layout)
{
	return layout->app_width;
}

static const char *app_title(const struct opr_layout *layout)
{
	return layout->by ? opr_by_word(layout->by) : NULL;
}

/* ---- where it is ---- */

static void text_address(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	char text[24];

	snprintf(text, sizeof(text), "%0*" PRIx64, cell->writer->layout.wide_addresses ? 16 : 8, cell->vma);
	opr_line_add(line, width, text);
}

static void csv_address(const struct opr_cell *cell, FILE *out)
{
	if (cell->writer->layout.no_addresses)
		fputs("\"\"", out);
	else
		fprintf(out, "\"0x%" PRIx64 "\"", cell->vma);
}

static void json_address(const struct opr_cell *cell, FILE *out)
{
	if (!cell->writer->layout.no_addresses)
		fprintf(out, "\"address\": \"0x%" PRIx64 "\", ", cell->vma);
}

static void csv_file(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv(out, cell->file ? cell->file : "");
}

static void json_file(const struct opr_cell *cell, FILE *out)
{
	if (cell->file)
		json_member(out, "file", cell->file);
}

static void csv_line(const struct opr_cell *cell, FILE *out)
{
	if (cell->file)
		fprintf(out, "\"%u\"", cell->line);
	else
		fputs("\"\"", out);
}

static void json_line(const struct opr_cell *cell, FILE *out)
{
	if (cell->file)
		fprintf(out, "\"line\": %u, ", cell->line);
}

static void text_location(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	struct op_text text = { 0 };
	const char *slash = cell->file ? strrchr(cell->file, '/') : NULL;

	if (cell->file)
		op_text_printf(&text, "%s:%u", slash && !cell->writer->layout.long_names ? slash + 1 : cell->file, cell->line);
	else
		op_text_add(&text, NO_LOCATION);
	opr_line_add(line, width, op_text_get(&text));
	op_text_free(&text);
}

/* ---- calls ---- */

static void json_self(const struct opr_cell *cell, FILE *out)
{
	if (cell->row->is_self)
		fputs("\"self\": true, ", out);
}

static void csv_inlined(const struct opr_cell *cell, FILE *out)
{
	opr_write_csv_inliners(out, cell->row);
}

static void json_inlined(const struct opr_cell *cell, FILE *out)
{
	if (cell->row->inlined)
		opr_write_json_inliners(out, cell->row);
}

static void text_inclusive(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	opr_line_add(line, width, opr_format_percent(cell->row->inclusive, cell->writer->layout.nr_stacks).text);
}

static void csv_inclusive(const struct opr_cell *cell, FILE *out)
{
	uint64_t inclusive = cell->row->inclusive;

	fprintf(out, "%" PRIu64 ",%.6g", inclusive, opr_percent(inclusive, cell->writer->layout.nr_stacks));
}

static void json_inclusive(const struct opr_cell *cell, FILE *out)
{
	uint64_t inclusive = cell->row->inclusive;

	fprintf(out, "\"inclusive\": %" PRIu64 ", \"inclusive-percent\": %.6g, ", inclusive,
		opr_percent(inclusive, cell->writer->layout.nr_stacks));
}

/* ---- counts of a class ---- */

static void add_number(struct opr_line *line, size_t width, uint64_t number)
{
	char text[24], *digit = &text[sizeof(text) - 1];

	*digit = '\0';
	do
		*--digit = (char)('0' + number % 10);
	while (number /= 10);
	opr_line_add(line, width, digit);
}

/* Remembers the last text: neighbours in a sorted report often have the same percentage. */
static const char *percent_text(struct opr_known_percent *known, uint64_t count, uint64_t total)
{
	if (!known->is_known || known->count != count || known->total != total)
		*known = (struct opr_known_percent){ true, count, total, opr_format_percent(count, total) };
	return known->text.text;
}

static void text_samples(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	add_number(line, width, cell->counts[cell->index]);
}

static void write_samples(const struct opr_cell *cell, FILE *out)
{
	fprintf(out, "%" PRIu64, cell->counts[cell->index]);
}

static void text_accumulated(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	add_number(line, width, cell->cumulated[cell->index]);
}

static void write_accumulated(const struct opr_cell *cell, FILE *out)
{
	if (cell->cumulated)
		fprintf(out, "%" PRIu64, cell->cumulated[cell->index]);
}

static void text_percent(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	uint64_t count = cell->counts[cell->index], total = cell->totals[cell->index];
	bool gone = opr_is_gone(cell->changes, cell->index);

	line->colour = gone ? NULL : opr_colour_of(&cell->writer->layout, count, total);
	opr_line_add(line, width, gone ? "---" : percent_text(&cell->writer->percents[cell->index], count, total));
}

static void write_percent(const struct opr_cell *cell, FILE *out)
{
	fprintf(out, "%.6g", opr_percent(cell->counts[cell->index], cell->totals[cell->index]));
}

static void text_accumulated_percent(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	opr_line_add(line, width, opr_format_percent(cell->cumulated[cell->index], cell->totals[cell->index]).text);
}

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

		snprintf(text.text + length, sizeof(text.text) - length, OPR_NOISE_MARK);
	}
	return text;
}

static void text_change(const struct opr_cell *cell, struct opr_line *line, size_t width)
{
	opr_line_add(line, width, format_change(&cell->changes[cell->index], cell->writer->layout.is_ours).text);
}

static void csv_change(const struct opr_cell *cell, FILE *out)
{
	double percent = cell->changes[cell->index].percent;

	if (isinf(percent))
		fputs(percent > 0 ? "new" : "gone", out);
	else
		fprintf(out, "%.6g", percent);
}

static void json_change(const struct opr_cell *cell, FILE *out)
{
	double percent = cell->changes[cell->index].percent;

	if (isinf(percent))
		fputs(percent > 0 ? "\"new\"" : "\"gone\"", out);
	else
		fprintf(out, "%.6g", percent);
}

static void csv_noise(const struct opr_cell *cell, FILE *out)
{
	fputs(cell->changes[cell->index].is_noise ? "yes" : "no", out);
}

static void json_noise(const struct opr_cell *cell, FILE *out)
{
	fputs(cell->changes[cell->index].is_noise ? "true" : "false", out);
}

/* A column has several rows where the formats want it at different places. */
const struct opr_column opr_columns[] = {
	{ .csv_titles = { "kind" }, .csv = csv_kind },
	{ .place = OPR_PLACE_NAME, .title = "symbol name", .text = text_symbol, .csv_titles = { "symbol" }, .csv = csv_symbol,
	  .json = json_symbol },
	{ .place = OPR_PLACE_IMAGE, .title = "image name", .width = 25, .width_of = image_width, .is_in_text = has_image,
	  .text = text_image, .csv_titles = { "image" }, .csv = csv_image, .json = json_image },
	{ .place = OPR_PLACE_IMAGE, .title = "app name", .title_of = app_title, .width = 25, .width_of = app_width,
	  .is_in_text = has_app, .text = text_app, .csv_titles = { "application" }, .csv = csv_app, .json = json_app },
	{ .place = OPR_PLACE_ADDRESS, .title = "vma", .width = 9, .is_of_detail = true, .is_in_text = has_address,
	  .text = text_address, .csv_titles = { "address" }, .csv = csv_address, .json = json_address },
	{ .is_of_detail = true, .csv_titles = { "file" }, .csv = csv_file, .json = json_file },
	{ .is_of_detail = true, .csv_titles = { "line" }, .csv = csv_line, .json = json_line },
	{ .csv_titles = { "around" }, .csv = csv_around },
	{ .json = json_self },
	{ .csv_titles = { "inlined by", "call file", "call line", "inliners" }, .is_in_csv = has_inlined, .csv = csv_inlined,
	  .json = json_inlined },
	{ .place = OPR_PLACE_ROW, .title = "incl. %", .width = 11, .is_in_text = has_inclusive, .text = text_inclusive,
	  .is_unquoted = true, .csv_titles = { "inclusive", "inclusive %" }, .is_in_csv = has_inclusive, .csv = csv_inclusive,
	  .is_in_json = has_inclusive, .json = json_inclusive },
	{ .place = OPR_PLACE_ROW, .title = "linenr info", .width = 28, .is_of_detail = true, .is_in_text = has_location,
	  .text = text_location },

	/* of each class */
	{ .is_of_class = true, .place = OPR_PLACE_CLASS, .title = "samples", .width = 9, .text = text_samples,
	  .csv_titles = { "samples" }, .csv = write_samples, .json_name = "samples", .json = write_samples },
	{ .is_of_class = true, .place = OPR_PLACE_CLASS, .title = "cum. samples", .width = 14, .is_in_text = has_accumulated,
	  .text = text_accumulated },
	{ .is_of_class = true, .place = OPR_PLACE_CLASS, .title = "%", .width = 9, .text = text_percent, .csv_titles = { "%" },
	  .csv = write_percent, .json_name = "percent", .json = write_percent },
	{ .is_of_class = true, .place = OPR_PLACE_CLASS, .title = "cum. %", .width = 11, .is_in_text = has_accumulated,
	  .text = text_accumulated_percent, .csv_titles = { "accumulated samples" }, .is_in_csv = has_accumulated,
	  .csv = write_accumulated },
	{ .is_of_class = true, .is_of_change = true, .place = OPR_PLACE_CLASS, .title = "diff %", .width = 10,
	  .is_in_text = has_change, .text = text_change, .csv_titles = { "change %" }, .is_in_csv = has_change,
	  .csv = csv_change, .json_name = "change", .json = json_change },
	{ .is_of_class = true, .is_of_change = true, .csv_titles = { "noise" }, .is_in_csv = has_noise, .csv = csv_noise,
	  .json_name = "noise", .is_in_json = has_noise, .json = json_noise },
	{ .is_of_class = true, .is_accumulated = true, .json_name = "accumulated", .is_in_json = has_accumulated,
	  .json = write_accumulated },
	{ 0 },
};

bool opr_column_is_in_text(const struct opr_column *column, const struct opr_layout *layout)
{
	return column->text && (!column->is_in_text || column->is_in_text(layout));
}

bool opr_column_is_in_csv(const struct opr_column *column, const struct opr_layout *layout)
{
	return column->csv && (!column->is_in_csv || column->is_in_csv(layout));
}

bool opr_column_is_in_json(const struct opr_column *column, const struct opr_layout *layout)
{
	return column->json && (!column->is_in_json || column->is_in_json(layout));
}

const char *opr_column_title(const struct opr_column *column, const struct opr_layout *layout)
{
	const char *title = column->title_of ? column->title_of(layout) : NULL;

	return title ? title : column->title;
}

size_t opr_column_width(const struct opr_column *column, const struct opr_layout *layout)
{
	size_t width = column->width_of ? column->width_of(layout) : 0;

	return width ? width : column->width;
}
