/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text, in the layout of oprofile to the column. */
#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/profile/container_name.h"
#include "tools/report/columns.h"

#define TITLE_WIDTH      17
#define RULE             "------------------"
#define BLOCK_RULE_WIDTH 79

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

/* ---- the short header: three lines at most ---- */

#define SHORT_LINES 3u

/* "Samples: A" and "Samples: B" become "Samples: A; B". */
static void add_one_line(struct op_text *text, const struct op_text *lines)
{
	const char *first = op_text_get(lines), *line = first;
	size_t title = strcspn(first, " ");

	while (*line) {
		size_t length = strcspn(line, "\n"), known = 0;

		if (line != first)
			op_text_add(text, "; ");
		if (line != first && title < length && !strncmp(line, first, title + 1))
			known = title + 1;
		op_text_add_bytes(text, line + known, length - known);
		line += length + (line[length] != '\0');
	}
	op_text_add(text, text->length ? "\n" : "");
}

static void add_samples(struct op_text *text, const struct opr_origin *origin)
{
	struct op_text lines = { 0 };

	opr_samples_describe(origin->profile, origin->classes, origin->totals, &lines);
	add_one_line(text, &lines);
	op_text_free(&lines);
}

static void add_stacks(struct op_text *text, const struct opr_layout *layout)
{
	const struct opr_origin *origin = &layout->origin;
	struct op_text lines = { 0 }, line = { 0 };

	if (layout->nr_stacks) {
		op_text_printf(&lines, "incl. %%: with what it calls, in %" PRIu64 " stacks of ", layout->nr_stacks);
		op_text_add_escaped(&lines, layout->stack_event);
	} else if (origin->stacks) {
		op_text_add(&lines, origin->stacks);
	} else {
		opr_ledger_stacks_describe(origin->profile, &lines);
	}
	add_one_line(&line, &lines);
	op_text_add(text, op_text_get(&line));
	op_text_free(&lines);
	op_text_free(&line);
}

static void write_short(struct opr_writer *writer)
{
	const struct opr_layout *layout = &writer->layout;
	struct op_text text = { 0 };

	if (layout->before.profile) {
		op_text_add(&text, "First profile: ");
		add_samples(&text, &layout->before);
		op_text_add(&text, "Second profile: ");
		add_samples(&text, &layout->origin);
		if (layout->diff && layout->is_ours)
			op_text_add(&text, OPR_NOISE_MARK ": the change is within counting noise (two standard errors)\n");
	} else {
		opr_recorded_time_describe(layout->origin.recorded, &text);
		add_samples(&text, &layout->origin);
		add_stacks(&text, layout);
	}
	fputs(op_text_get(&text), writer->out);
	op_text_free(&text);
}

/* Sessions without a ledger have no more than these lines; opd's have what people ask for first. */
static bool is_short(const struct opr_layout *layout)
{
	const struct opr_classes *classes = layout->classes;

	if (opr_log_shows(OPR_TOPIC_details))
		return false;
	return layout->origin.recorded->nr_sessions ||
	       1 + (classes->event_line != NULL) + classes->nr_classes > SHORT_LINES;
}

static void write_description(struct opr_writer *writer)
{
	const struct opr_classes *classes = writer->layout.classes;
	const struct opr_layout *layout = &writer->layout;

	if (is_short(layout)) {
		write_short(writer);
		return;
	}
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
		fputs(OPR_NOISE_MARK ": the change is within counting noise (two standard errors)\n", writer->out);
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

/* A group is shown whole, but for the long identifiers of containers. */
static void write_shown(struct opr_writer *writer, const char *name, bool is_application)
{
	struct op_text text = { 0 };

	if (is_application && writer->layout.short_cgroups)
		opr_container_name_add(&text, name);
	opr_write_escaped(writer->out, text.length ? op_text_get(&text) : opr_show_name(writer, name));
	op_text_free(&text);
}

static void write_count_row(struct opr_writer *writer, const char *indent, const struct opr_count_row *row, const uint64_t *totals)
{
	fputs(indent, writer->out);
	for (size_t i = 0; i < writer->layout.classes->nr_classes; i++) {
		const char *colour = opr_colour_of(&writer->layout, row->counts[i], totals[i]);

		fprintf(writer->out, "%9" PRIu64 " %s%s%s ", row->counts[i], colour,
			opr_format_percent(row->counts[i], totals[i]).text, opr_colour_end(colour));
	}
	write_shown(writer, row->name, !*indent);
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

/* The columns of one place; of a detail those that details have. */
static void write_cells(struct opr_cell *cell, struct opr_line *line, enum opr_place place, bool is_detail)
{
	const struct opr_layout *layout = &cell->writer->layout;

	for OPR_EACH_COLUMN(column)
		if (column->place == place && (!is_detail || column->is_of_detail) && (!column->is_of_change || cell->changes) &&
		    opr_column_is_in_text(column, layout))
			column->text(cell, line, opr_column_width(column, layout));
}

static void write_counts(struct opr_cell *cell, struct opr_line *line)
{
	for (cell->index = 0; cell->index < cell->writer->layout.classes->nr_classes; cell->index++)
		write_cells(cell, line, OPR_PLACE_CLASS, false);
}

static void write_line(struct opr_cell *cell, struct opr_line *line, bool is_detail)
{
	for (enum opr_place place = OPR_PLACE_ADDRESS; place < OPR_NR_PLACES; place++) {
		if (place == OPR_PLACE_CLASS)
			write_counts(cell, line);
		else
			write_cells(cell, line, place, is_detail);
	}
	fputc('\n', line->out);
}

static void write_row(struct opr_writer *writer, struct opr_line *line, const struct opr_symbol_row *row, const uint64_t *counts,
		      const uint64_t *cumulated, const uint64_t *totals)
{
	struct opr_cell cell = { .writer = writer, .row = row, .vma = row->vma, .file = row->file, .line = row->line,
				 .counts = counts, .totals = totals, .cumulated = cumulated, .changes = row->changes };

	write_line(&cell, line, false);
}

static void write_symbol(struct opr_writer *writer, const struct opr_symbol_row *row, const uint64_t *counts)
{
	struct opr_line line = { .out = writer->out };

	write_row(writer, &line, row, counts, writer->cumulated, writer->layout.totals);
}

static void write_detail(struct opr_writer *writer, const struct opr_symbol_row *row, const struct opr_detail *detail,
			 const uint64_t *symbol_counts, const uint64_t *counts)
{
	struct opr_line line = { .out = writer->out };
	struct opr_cell cell = { .writer = writer, .row = row, .vma = detail->vma, .counts = counts,
				 .totals = writer->layout.global_percent ? writer->layout.totals : symbol_counts,
				 .cumulated = writer->detail_cumulated };

	cell.file = opr_detail_line(writer, row, detail, &cell.line);
	fputs("  ", writer->out);
	write_line(&cell, &line, true);
}

/* Replaces "samples" in a title by the unit of the class. */
static void write_class_title(struct opr_line *line, const struct opr_column *column, const char *unit)
{
	const char *samples = strstr(column->title, "samples");
	char title[64];

	if (samples)
		snprintf(title, sizeof(title), "%.*s%s", (int)(samples - column->title), column->title, unit);
	opr_line_add(line, column->width, samples ? title : column->title);
}

static void write_titles(struct opr_writer *writer, struct opr_line *line, enum opr_place place)
{
	const struct opr_layout *layout = &writer->layout;

	for OPR_EACH_COLUMN(column)
		if (column->place == place && opr_column_is_in_text(column, layout))
			opr_line_add(line, opr_column_width(column, layout), opr_column_title(column, layout));
}

static void write_class_titles(struct opr_writer *writer, struct opr_line *line)
{
	const struct opr_layout *layout = &writer->layout;

	for (size_t i = 0; i < layout->classes->nr_classes; i++)
		for OPR_EACH_COLUMN(column)
			if (column->place == OPR_PLACE_CLASS && opr_column_is_in_text(column, layout))
				write_class_title(line, column, layout->classes->classes[i].unit);
}

/* The names of the classes above their columns, when there are several. */
static void write_class_names(struct opr_writer *writer)
{
	const struct opr_layout *layout = &writer->layout;
	struct opr_line line = { .out = writer->out };
	size_t width = 0;

	if (layout->classes->nr_classes == 1)
		return;
	for OPR_EACH_COLUMN(column) {
		if (!opr_column_is_in_text(column, layout))
			continue;
		width += column->place == OPR_PLACE_CLASS ? column->width : 0;
		if (column->place == OPR_PLACE_ADDRESS)
			opr_line_add(&line, column->width, "");
	}
	for (size_t i = 0; i < layout->classes->nr_classes; i++) {
		char title[64];

		cut_title(layout->classes->classes[i].title, op_min_u64(width, sizeof(title)), title);
		opr_line_add(&line, width, title);
	}
	fputc('\n', writer->out);
}

static void write_symbol_header(struct opr_writer *writer)
{
	struct opr_line line = { .out = writer->out };

	if (writer->layout.is_ours)
		write_class_names(writer);
	for (enum opr_place place = OPR_PLACE_ADDRESS; place < OPR_NR_PLACES; place++) {
		if (place == OPR_PLACE_CLASS)
			write_class_titles(writer, &line);
		else
			write_titles(writer, &line, place);
	}
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
		struct opr_line line = { .out = writer->out, .written = 2 };
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

#define BUILD_ID_WIDTH 42
#define SYMBOLS_WIDTH  12
#define IMAGE_WIDTH    25

static void write_image(struct opr_writer *writer, const struct opr_image_row *row, const char *hint)
{
	struct opr_line line = { .out = writer->out };
	struct opr_cell cell = { .writer = writer, .counts = row->counts, .totals = writer->layout.totals };

	write_counts(&cell, &line);
	opr_line_add(&line, BUILD_ID_WIDTH, row->identity);
	opr_line_add(&line, SYMBOLS_WIDTH, opr_symbol_state_word(row->debug.state));
	opr_line_add(&line, IMAGE_WIDTH, opr_show_name(writer, row->name));
	opr_line_add_last(&line, &writer->layout, hint);
	fputc('\n', writer->out);
}

static void write_image_header(struct opr_writer *writer)
{
	struct opr_line line = { .out = writer->out };

	write_class_names(writer);
	write_class_titles(writer, &line);
	opr_line_add(&line, BUILD_ID_WIDTH, "build-id");
	opr_line_add(&line, SYMBOLS_WIDTH, "symbols");
	opr_line_add(&line, IMAGE_WIDTH, "image name");
	opr_line_add(&line, 0, "debug file");
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
