/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/forms.h"

#include <errno.h>
#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"

#define CONTEXT_LINES 5 /* of the source before the first line that is shown */

struct listing {
	const struct opr_annotate *annotate;
	FILE *out;
	const struct opr_symbol_row *rows; /* of one image, most samples first */
	size_t nr_rows;
	struct opr_image_code codes;    /* of them */
	const struct opr_code *code; /* of the row that is written */
	struct opr_source_cache sources;
	uint64_t *counts; /* of a line */
	bool shown;       /* the line belongs to a symbol of the report */
	bool headed;      /* the heading above symbols without code is written */
	int columns;      /* of an address */
	const char *inlined; /* opr_code_inlined of the last instruction */
};

static void write_plain(const struct listing *listing, const char *text)
{
	opr_annotate_counts(listing->annotate, listing->out, NULL);
	opr_write_escaped_line(listing->out, text);
	fputc('\n', listing->out);
}

/* ---- source lines between the instructions ---- */

static void write_source_lines(const struct listing *listing, struct opr_source_file *file, unsigned int line)
{
	unsigned int first = line > CONTEXT_LINES ? line - CONTEXT_LINES : 1;

	if (file->shown >= first)
		first = file->shown < line ? file->shown + 1 : line;
	for (unsigned int i = first; i <= line && i <= file->nr_lines; i++)
		write_plain(listing, file->lines[i - 1]);
	if (file->shown < line)
		file->shown = line;
	file->last = line;
}

static int write_source(struct listing *listing, const struct opr_code_line *line)
{
	const char *name = opr_code_file(listing->code, line);
	struct opr_source_file *file;

	if (!name || !listing->annotate->options->source)
		return 0;
	file = opr_source_cache_find(&listing->sources, name);
	if (!file)
		return opr_no_memory();
	if (file->path && line->line != file->last)
		write_source_lines(listing, file, line->line);
	return 0;
}

/* ---- lines of code ---- */

static const struct opr_symbol_row *find_row(const struct listing *listing, uint64_t vma)
{
	for (size_t i = 0; i < listing->nr_rows; i++)
		if (listing->rows[i].symbol && listing->rows[i].vma == vma)
			return &listing->rows[i];
	return NULL;
}

/* True for a label within a function: the code behind it is the function's. */
static bool is_within(const struct opr_symbol_row *range, uint64_t vma)
{
	return !range->symbol || opr_symbols_find(range->symbols, vma - range->symbol->vma + range->symbol->start) == range->symbol;
}

static void write_label(struct listing *listing, const struct opr_symbol_row *range, uint64_t vma, const char *name)
{
	const struct opr_symbol_row *row = find_row(listing, vma);

	if (listing->shown)
		write_plain(listing, "");
	listing->shown = row || is_within(range, vma);
	if (!listing->shown)
		return;
	fprintf(listing->out, "%0*" PRIx64 " <", (int)listing->codes.digits, vma);
	opr_write_escaped(listing->out, name);
	fputs(">:", listing->out);
	if (row) {
		const struct opr_source_symbol symbol = { .row = row };

		fputc(' ', listing->out);
		opr_annotate_symbols(listing->annotate, listing->out, &symbol, 1);
	}
	fputc('\n', listing->out);
}

static void write_instruction(struct listing *listing, const struct opr_code_line *line, const uint64_t *counts)
{
	opr_annotate_counts(listing->annotate, listing->out, counts);
	fprintf(listing->out, "%*" PRIx64 ":\t", listing->columns, line->vma);
	opr_write_escaped_line(listing->out, opr_code_text(listing->code, line));
	fputc('\n', listing->out);
}

/* A line for bytes that are left out; they may have samples. */
static void write_omission(struct listing *listing, const struct opr_code_line *line, const uint64_t *counts)
{
	const char *text = opr_code_text(listing->code, line);

	opr_annotate_counts(listing->annotate, listing->out, counts);
	fputs(line->kind == OPR_CODE_GAP ? "\t[" : "\t", listing->out);
	opr_write_escaped(listing->out, text);
	fputs(line->kind == OPR_CODE_GAP ? "]\n" : "\n", listing->out);
}

/* Writes in which functions the code from here on is, unless the code before was in the same. */
static void write_inlined(struct listing *listing, const struct opr_symbol_row *row, const struct opr_code_line *line)
{
	const char *inlined = opr_code_inlined(listing->code, line);

	if (inlined == listing->inlined)
		return;
	opr_annotate_counts(listing->annotate, listing->out, NULL);
	fputc('[', listing->out);
	opr_write_escaped(listing->out, inlined ? inlined : row->name);
	fputs("]\n", listing->out);
	listing->inlined = inlined;
}

static int write_bytes(struct listing *listing, const struct opr_symbol_row *row, size_t index, size_t *detail)
{
	const struct opr_code_line *line = &listing->code->lines[index];
	bool any = opr_image_code_sum(&listing->codes, row, listing->code, index, detail, listing->counts);
	int err = 0;

	if (line->kind == OPR_CODE_INSTRUCTION) {
		write_inlined(listing, row, line);
		err = write_source(listing, line);
	}

	if (line->kind == OPR_CODE_INSTRUCTION)
		write_instruction(listing, line, any ? listing->counts : NULL);
	else
		write_omission(listing, line, any ? listing->counts : NULL);
	return err;
}

static int write_line(struct listing *listing, const struct opr_symbol_row *row, size_t index, size_t *detail)
{
	const struct opr_code_line *line = &listing->code->lines[index];
	int err = 0;

	switch (line->kind) {
	case OPR_CODE_SECTION:
		listing->columns = (int)line->line;
		if (!listing->shown)
			break;
		write_plain(listing, "");
		opr_annotate_counts(listing->annotate, listing->out, NULL);
		fputs("Disassembly of section ", listing->out);
		opr_write_escaped(listing->out, opr_code_text(listing->code, line));
		fputs(":\n", listing->out);
		if (row->symbol && row->symbol->is_unnamed) /* the file has no label for it */
			write_label(listing, row, row->vma, row->name);
		break;
	case OPR_CODE_LABEL:
		write_label(listing, row, line->vma, opr_code_text(listing->code, line));
		break;
	case OPR_CODE_ZEROS:
	case OPR_CODE_GAP:
	case OPR_CODE_INSTRUCTION:
		if (listing->shown)
			err = write_bytes(listing, row, index, detail);
		break;
	}
	return err;
}

static void write_image_heading(const struct listing *listing, const struct opr_symbol_row *row, const char *kind,
				const char *format)
{
	write_plain(listing, "");
	opr_annotate_counts(listing->annotate, listing->out, NULL);
	opr_write_escaped(listing->out, row->image_shown);
	fprintf(listing->out, ":     %s%s\n", kind, format);
	write_plain(listing, "");
}

/* Names the symbol with its samples, as source_list.c does for a source that is missing. */
static void write_without_code(struct listing *listing, const struct opr_symbol_row *row)
{
	const struct opr_source_symbol symbol = { .row = row };

	if (!listing->headed)
		write_image_heading(listing, row, "no code", "");
	listing->headed = true;
	opr_annotate_counts(listing->annotate, listing->out, &listing->annotate->report->counts.values[row->counts]);
	opr_annotate_symbols(listing->annotate, listing->out, &symbol, 1);
	fputc('\n', listing->out);
}

static int write_symbol(struct listing *listing, const struct opr_symbol_row *row)
{
	size_t detail = 0;
	int err = 0;

	if (!listing->code->nr_lines) {
		write_without_code(listing, row);
		return 0;
	}
	write_image_heading(listing, row, "file format ", listing->codes.format);
	listing->headed = false;
	listing->shown = true;
	listing->inlined = NULL;
	listing->columns = (int)listing->codes.digits;
	opr_source_cache_rewind(&listing->sources);
	for (size_t i = 0; i < listing->code->nr_lines && !err; i++)
		err = write_line(listing, row, i, &detail);
	return err;
}

static int write_image(struct listing *listing)
{
	const struct opr_symbol_row **rows = calloc(listing->nr_rows + 1, sizeof(*rows));
	const struct opr_code_query query = opr_annotate_code(listing->annotate);
	int err = rows ? 0 : opr_no_memory();

	listing->headed = false;
	for (size_t i = 0; i < listing->nr_rows && !err; i++)
		rows[i] = &listing->rows[i];
	if (!err)
		err = opr_image_code_list(&listing->codes, &query, rows, listing->nr_rows);
	for (size_t i = 0; i < listing->nr_rows && !err; i++) {
		listing->code = &listing->codes.codes[i];
		err = write_symbol(listing, &listing->rows[i]);
	}
	opr_image_code_free(&listing->codes);
	free(rows);
	return err;
}

/* ---- the report ---- */

static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct opr_symbol_row *a = left, *b = right;
	const struct opr_symbol_report *report = arg;
	uint64_t a_count = report->counts.values[a->counts], b_count = report->counts.values[b->counts];
	int order = strcmp(a->image, b->image);

	if (order)
		return order;
	if (a_count != b_count)
		return a_count > b_count ? -1 : 1;
	return a->vma < b->vma ? -1 : a->vma > b->vma;
}

int opr_annotate_assembly(const struct opr_annotate *annotate, FILE *out)
{
	struct opr_symbol_report *report = annotate->report;
	struct listing listing = { .annotate = annotate, .out = out, .sources = { .dirs = &annotate->dirs } };
	size_t next;
	int err = 0;

	listing.counts = calloc(report->nr_classes, sizeof(*listing.counts));
	if (!listing.counts)
		return opr_no_memory();
	opr_symbol_report_limit(report, annotate->options->query.threshold);
	if (report->nr_rows)
		qsort_r(report->rows, report->nr_rows, sizeof(*report->rows), compare_rows, report);
	opr_annotate_description(annotate, out);
	for (size_t i = 0; i < report->nr_rows && !err; i = next) {
		for (next = i + 1; next < report->nr_rows && !strcmp(report->rows[next].image, report->rows[i].image);)
			next++;
		listing.rows = &report->rows[i];
		listing.nr_rows = next - i;
		err = write_image(&listing);
	}
	opr_source_cache_free(&listing.sources);
	free(listing.counts);
	return err;
}
