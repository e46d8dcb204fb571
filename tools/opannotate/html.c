/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One page without other files: for each source file its lines on the left, and on the right the
 * code of the symbols that begin in it.
 */
#include <errno.h>
#include <inttypes.h>

#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/opannotate/forms.h"
#include "tools/opannotate/page.h"
#include "tools/report/xml_elements.h"
#include "tools/profile/image_name.h"

#define HOTTEST_LINES 40
#define CONTEXT_LINES 20 /* around lines with samples or symbols */
#define CONTEXT_CODE  8  /* instructions around those with samples, of an image without symbols */
#define NO_SOURCE     SIZE_MAX

/* A row of the list at the top: a source line, or an instruction of code without source. */
struct hot_line {
	size_t source;
	/* NULL: an instruction, line `index` in the code of `row` */
	const struct opr_source_line *line;
	size_t row, index;
	uint64_t count;
};

/* Where the code of a row is. */
struct row_code {
	const struct opr_image_code *listing;
	const struct opr_code *code;
};

struct page {
	const struct opr_annotate *annotate;
	FILE *out;
	struct opr_image_code *listings; /* one for each image of the cache */
	struct row_code *codes;       /* one for each row of the report */
	struct opr_source_cache sources;
	uint64_t *counts;
	bool *written; /* for each row of the report: it is on the page */
};

/* ---- small pieces ---- */

static const uint64_t *values_of(const struct page *page, size_t counts)
{
	return &page->annotate->annotation->counts.values[counts];
}

/* The colour of a line: 0 to 9, by its share of all samples of the first class. */
static unsigned int heat_of(const struct page *page, const uint64_t *counts)
{
	static const double percents[] = { 0.1, 0.25, 0.5, 1, 2, 4, 8, 16 };
	double percent = opr_percent(counts[0], page->annotate->report->totals[0]);
	unsigned int heat = percent > 0;

	for (size_t i = 0; i < op_array_size(percents); i++)
		heat += percent >= percents[i];
	return heat;
}

static void write_cells(const struct page *page, const uint64_t *counts)
{
	const struct opr_symbol_report *report = page->annotate->report;

	for (size_t i = 0; i < report->nr_classes; i++) {
		if (counts && counts[i])
			fprintf(page->out, "<td class=n>%" PRIu64 "<td class=n>%s", counts[i],
				opr_format_percent(counts[i], report->totals[i]).text);
		else
			fputs("<td class=n><td class=n>", page->out);
	}
}

/* Writes escaped text with its tabs, and a note behind it. */
static void write_text(FILE *out, const char *text, const char *note)
{
	char piece[256];

	fputs("<td><pre>", out);
	while (*text) {
		size_t length = op_min_u64(strcspn(text, "\t"), sizeof(piece) - 1);

		memcpy(piece, text, length);
		piece[length] = '\0';
		opr_html_text(out, piece);
		text += length;
		if (*text == '\t') {
			fputc('\t', out);
			text++;
		}
	}
	if (*note) {
		fputs("<span class=t>", out);
		opr_html_text(out, note);
		fputs("</span>", out);
	}
	fputs("</pre>\n", out);
}

static void write_heading(const struct page *page, const char *tag, const char *name, const char *where, const uint64_t *counts)
{
	const struct opr_symbol_report *report = page->annotate->report;

	fprintf(page->out, "<%s>", tag);
	opr_html_text(page->out, name);
	fputs(*where ? " <span class=t>" : "", page->out);
	opr_html_text(page->out, where);
	fputs(*where ? "</span>" : "", page->out);
	for (size_t i = 0; i < report->nr_classes; i++)
		fprintf(page->out, " <span class=t>%" PRIu64 " %s%%</span>", counts[i],
			opr_format_percent(counts[i], report->totals[i]).text);
	fprintf(page->out, "</%s>\n", tag);
}

static size_t index_of_source(const struct page *page, const char *name)
{
	const struct opr_annotation *annotation = page->annotate->annotation;

	for (size_t i = 0; name && i < annotation->nr_sources; i++)
		if (!strcmp(annotation->sources[i].name, name))
			return i;
	return NO_SOURCE;
}

static const char *text_of_line(const struct opr_source_file *file, unsigned int line)
{
	return line && line <= file->nr_lines ? file->lines[line - 1] : "";
}

/* ---- the hottest lines ---- */

static int compare_hot(const void *left, const void *right)
{
	const struct hot_line *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->line && b->line)
		return a->line->line < b->line->line ? -1 : a->line->line > b->line->line;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* True when a row that begins in no source line is on the page. */
static bool is_rest(const struct page *page, size_t row)
{
	const struct opr_symbol_report *report = page->annotate->report;
	uint64_t count = report->counts.values[report->rows[row].counts];

	return !report->rows[row].file && opr_percent(count, report->totals[0]) >= page->annotate->options->query.threshold;
}

/* Sets page->counts to the samples of an instruction. False: it has none. */
static bool sum_instruction(struct page *page, size_t row, size_t index, size_t *detail)
{
	const struct row_code *code = &page->codes[row];

	return opr_image_code_sum(code->listing, &page->annotate->report->rows[row], code->code, index, detail, page->counts);
}

static size_t nr_lines_of(const struct page *page, size_t row)
{
	return page->codes[row].code ? page->codes[row].code->nr_lines : 0;
}

static size_t collect_hot_code(struct page *page, struct hot_line *hot, size_t nr_hot)
{
	for (size_t i = 0; i < page->annotate->report->nr_rows; i++) {
		size_t detail = 0;

		for (size_t j = 0; is_rest(page, i) && j < nr_lines_of(page, i); j++)
			if (page->codes[i].code->lines[j].kind == OPR_CODE_INSTRUCTION && sum_instruction(page, i, j, &detail))
				hot[nr_hot++] =
					(struct hot_line){ .source = NO_SOURCE, .row = i, .index = j, .count = page->counts[0] };
	}
	return nr_hot;
}

static size_t collect_hot(struct page *page, struct hot_line *hot)
{
	const struct opr_annotation *annotation = page->annotate->annotation;
	size_t nr_hot = 0;

	for (size_t i = 0; i < annotation->nr_sources; i++) {
		const struct opr_source *source = &annotation->sources[i];

		if (!opr_annotate_wants(page->annotate, source))
			continue;
		for (size_t j = 0; j < source->nr_lines; j++)
			hot[nr_hot++] = (struct hot_line){ .source = i,
							   .line = &source->lines[j],
							   .count = values_of(page, source->lines[j].counts)[0] };
	}
	nr_hot = collect_hot_code(page, hot, nr_hot);
	if (nr_hot)
		qsort(hot, nr_hot, sizeof(*hot), compare_hot);
	return nr_hot < HOTTEST_LINES ? nr_hot : HOTTEST_LINES;
}

static void write_hot_code(struct page *page, const struct hot_line *hot)
{
	const struct opr_symbol_row *row = &page->annotate->report->rows[hot->row];
	const struct opr_code *code = page->codes[hot->row].code;
	const struct opr_code_line *line = &code->lines[hot->index];
	size_t detail = 0;

	sum_instruction(page, hot->row, hot->index, &detail);
	fprintf(page->out, "<tr class=h%u>", heat_of(page, page->counts));
	write_cells(page, page->counts);
	fprintf(page->out, "<td><a href=\"#c%zu-%" PRIx64 "\">", hot->row, line->vma);
	opr_html_text(page->out, opr_base_name(row->name));
	fprintf(page->out, ":%" PRIx64 "</a>", line->vma);
	write_text(page->out, opr_code_text(code, line), "");
}

static int write_hot(struct page *page, const struct hot_line *hot)
{
	const struct opr_source *source = &page->annotate->annotation->sources[hot->source];
	const struct opr_source_file *file = opr_source_cache_find(&page->sources, source->name);
	const uint64_t *counts = values_of(page, hot->line->counts);

	if (!file)
		return opr_no_memory();
	fprintf(page->out, "<tr class=h%u>", heat_of(page, counts));
	write_cells(page, counts);
	fprintf(page->out, "<td><a href=\"#s%zu-%u\">", hot->source, hot->line->line);
	opr_html_text(page->out, opr_base_name(source->name));
	fprintf(page->out, ":%u</a>", hot->line->line);
	write_text(page->out, text_of_line(file, hot->line->line), "");
	return 0;
}

static int write_hottest(struct page *page)
{
	const struct opr_annotation *annotation = page->annotate->annotation;
	struct hot_line *hot;
	size_t nr_lines = 0;
	int err = 0;

	for (size_t i = 0; i < annotation->nr_sources; i++)
		nr_lines += annotation->sources[i].nr_lines;
	/* an instruction with samples has at least one */
	nr_lines += page->annotate->report->nr_details;
	hot = calloc(nr_lines + 1, sizeof(*hot));
	if (!hot)
		return opr_no_memory();
	nr_lines = collect_hot(page, hot);
	fputs("<h2>Hottest lines</h2>\n<table class=hot>\n", page->out);
	for (size_t i = 0; i < nr_lines && !err; i++) {
		if (hot[i].line)
			err = write_hot(page, &hot[i]);
		else
			write_hot_code(page, &hot[i]);
	}
	fputs("</table>\n", page->out);
	free(hot);
	return err;
}

/* ---- code ---- */

/* Lists the code of all rows of one image; `rows` is scratch memory. */
static int list_image(struct page *page, size_t index, const struct opr_symbol_row **rows)
{
	const struct opr_symbol_report *report = page->annotate->report;
	const char *name = page->annotate->images->images[index].name;
	const struct opr_code_query query = opr_annotate_code(page->annotate);
	struct opr_image_code *listing = &page->listings[index];
	size_t nr_rows = 0;
	int err;

	for (size_t i = 0; i < report->nr_rows; i++)
		if (!strcmp(report->rows[i].image, name))
			rows[nr_rows++] = &report->rows[i];
	if (!nr_rows)
		return 0;
	err = opr_image_code_list(listing, &query, rows, nr_rows);
	for (size_t i = 0; i < nr_rows && !err; i++)
		page->codes[rows[i] - report->rows] = (struct row_code){ listing, &listing->codes[i] };
	return err;
}

static int list_images(struct page *page)
{
	const struct opr_symbol_row **rows = calloc(page->annotate->report->nr_rows + 1, sizeof(*rows));
	int err = rows ? 0 : opr_no_memory();

	for (size_t i = 0; i < page->annotate->images->nr_images && !err; i++)
		err = list_image(page, i, rows);
	free(rows);
	return err;
}

/* Writes in which functions the code from here on is; *last is what was written before. */
static void write_inlined(const struct page *page, size_t row, const struct opr_code_line *line, const char **last)
{
	const char *inlined = opr_code_inlined(page->codes[row].code, line);

	if (inlined == *last)
		return;
	fputs("<tr class=gap><td colspan=99>[", page->out);
	opr_html_text(page->out, inlined ? inlined : page->annotate->report->rows[row].name);
	fputs("]\n", page->out);
	*last = inlined;
}

/* A click marks the line with its source. Code without source has an id for links. */
static void write_instruction(struct page *page, size_t row, size_t index, size_t *detail)
{
	const struct opr_code *code = page->codes[row].code;
	const struct opr_code_line *line = &code->lines[index];
	bool any = sum_instruction(page, row, index, detail);
	size_t source = index_of_source(page, opr_code_file(code, line));

	fprintf(page->out, "<tr class=h%u", any ? heat_of(page, page->counts) : 0);
	if (source != NO_SOURCE)
		fprintf(page->out, " data-l=%zu-%u", source, line->line);
	if (any && !page->annotate->report->rows[row].file)
		fprintf(page->out, " id=c%zu-%" PRIx64, row, line->vma);
	fputc('>', page->out);
	write_cells(page, any ? page->counts : NULL);
	fprintf(page->out, "<td class=a>%" PRIx64, line->vma);
	write_text(page->out, opr_code_text(code, line), "");
}

/* For each line of a row's code: it is near an instruction with samples. NULL: no memory. */
static bool *find_near(struct page *page, size_t row)
{
	size_t nr_lines = nr_lines_of(page, row), detail = 0;
	bool *near = calloc(nr_lines + 1, sizeof(*near));

	for (size_t i = 0; near && i < nr_lines; i++) {
		if (page->codes[row].code->lines[i].kind != OPR_CODE_INSTRUCTION || !sum_instruction(page, row, i, &detail))
			continue;
		for (size_t j = i > CONTEXT_CODE ? i - CONTEXT_CODE : 0; j < nr_lines && j <= i + CONTEXT_CODE; j++)
			near[j] = true;
	}
	return near;
}

static void write_gap(const struct page *page)
{
	fputs("<tr class=gap><td>\xe2\x80\xa6\n", page->out);
}

/* Writes the lines for which `near` is true; NULL: all lines. */
static void write_lines(struct page *page, size_t row, const bool *near)
{
	const struct opr_code *code = page->codes[row].code;
	const char *inlined = NULL;
	bool gap = near;
	size_t detail = 0;

	fputs("<table class=code>\n", page->out);
	for (size_t i = 0; i < code->nr_lines; i++) {
		if ((near && !near[i]) || code->lines[i].kind == OPR_CODE_GAP) {
			if (!gap)
				write_gap(page);
			gap = true;
		} else if (code->lines[i].kind == OPR_CODE_INSTRUCTION) {
			write_inlined(page, row, &code->lines[i], &inlined);
			write_instruction(page, row, i, &detail);
			gap = false;
		}
	}
	fputs("</table>\n", page->out);
}

/* Of an image without symbols only the code near its samples is written. */
static int write_code(struct page *page, const struct opr_symbol_row *row)
{
	size_t index = (size_t)(row - page->annotate->report->rows);
	bool *near = NULL;

	page->written[index] = true;
	write_heading(page, "h3", row->name, row->symbol ? opr_base_name(row->image) : "",
		      &page->annotate->report->counts.values[row->counts]);
	if (!nr_lines_of(page, index))
		return 0;
	if (!row->symbol) {
		near = find_near(page, index);
		if (!near)
			return opr_no_memory();
	}
	write_lines(page, index, near);
	free(near);
	return 0;
}

/* ---- a source ---- */

/* True near a line with samples or symbols. *next: the first line with samples that may be near. */
static bool is_near(const struct opr_source *source, unsigned int line, size_t *next)
{
	const struct opr_source_symbol *symbol = opr_source_find_symbol(source, line > CONTEXT_LINES ? line - CONTEXT_LINES : 0);

	while (*next < source->nr_lines && source->lines[*next].line + CONTEXT_LINES < line)
		++*next;
	if (*next < source->nr_lines && source->lines[*next].line <= line + CONTEXT_LINES)
		return true;
	return symbol < source->symbols + source->nr_symbols && symbol->line <= line + CONTEXT_LINES;
}

static void write_source_line(struct page *page, size_t index, const struct opr_source_file *file, unsigned int line)
{
	const struct opr_source_line *found = opr_source_find_line(&page->annotate->annotation->sources[index], line);
	const uint64_t *counts = found ? values_of(page, found->counts) : NULL;
	struct op_text inlines = { 0 };

	fprintf(page->out, "<tr class=h%u id=s%zu-%u data-l=%zu-%u>", counts ? heat_of(page, counts) : 0, index, line, index, line);
	write_cells(page, counts);
	fprintf(page->out, "<td class=a>%u", line);
	opr_inlines_describe(&inlines, page->annotate->inlines, page->annotate->annotation->sources[index].name, line);
	write_text(page->out, text_of_line(file, line), op_text_get(&inlines));
	op_text_free(&inlines);
}

/* Of a source that is missing: the lines with samples. Their numbers may be anything. */
static void write_known_lines(struct page *page, size_t index, const struct opr_source_file *file)
{
	const struct opr_source *source = &page->annotate->annotation->sources[index];

	for (size_t i = 0; i < source->nr_lines; i++) {
		if (source->lines[i].line != (i ? source->lines[i - 1].line + 1 : 1))
			write_gap(page);
		write_source_line(page, index, file, source->lines[i].line);
	}
}

static void write_source_lines(struct page *page, size_t index, const struct opr_source_file *file)
{
	const struct opr_source *source = &page->annotate->annotation->sources[index];
	bool gap = false;
	size_t next = 0;

	for (unsigned int line = 1; line <= file->nr_lines; line++) {
		bool shown = is_near(source, line, &next);

		if (shown)
			write_source_line(page, index, file, line);
		else if (!gap)
			write_gap(page);
		gap = !shown;
	}
}

static int write_source(struct page *page, size_t index)
{
	const struct opr_source *source = &page->annotate->annotation->sources[index];
	const struct opr_source_file *file = opr_source_cache_find(&page->sources, source->name);
	int err = 0;

	if (!file)
		return opr_no_memory();
	if (!file->path)
		opr_annotate_warn_of_missing(source, file);
	write_heading(page, "h2", source->name, "", values_of(page, source->counts));
	fputs("<div class=pair><div class=left>\n", page->out);
	fputs("<table class=source>\n", page->out);
	if (file->path)
		write_source_lines(page, index, file);
	else
		write_known_lines(page, index, file);
	fputs("</table>\n</div><div class=right>\n", page->out);
	for (size_t i = 0; i < source->nr_symbols && !err; i++)
		err = write_code(page, source->symbols[i].row);
	fputs("</div></div>\n", page->out);
	return err;
}

/* ---- the page ---- */

static void write_top(const struct page *page)
{
	const struct opr_classes *classes = page->annotate->classes;

	opr_annotate_page_begin(page->out);
	fputs("<h1>", page->out);
	opr_html_text(page->out, page->annotate->options->command_line);
	fputs("</h1>\n<p>", page->out);
	opr_html_text(page->out, classes->cpu_line);
	if (classes->event_line) {
		fputs("<br>", page->out);
		opr_html_text(page->out, classes->event_line);
	}
	for (size_t i = 0; i < classes->nr_classes; i++) {
		fputs("<br>", page->out);
		opr_html_text(page->out,
			      classes->classes[i].description ? classes->classes[i].description : classes->classes[i].title);
	}
	fputs("</p>\n", page->out);
}

static int write_sources(struct page *page)
{
	const struct opr_annotation *annotation = page->annotate->annotation;
	int err = 0;

	for (size_t i = 0; i < annotation->nr_sources && !err; i++)
		if (opr_annotate_wants(page->annotate, &annotation->sources[i]))
			err = write_source(page, i);
	return err;
}

/* Symbols that begin in no source line, and images without symbols. */
static int write_rest(struct page *page)
{
	bool headed = false;
	int err = 0;

	for (size_t i = 0; i < page->annotate->report->nr_rows && !err; i++) {
		if (!is_rest(page, i))
			continue;
		if (!headed)
			fputs("<h2>Without source</h2>\n", page->out);
		headed = true;
		err = write_code(page, &page->annotate->report->rows[i]);
	}
	return err;
}

/* The samples of all rows that are not on the page. */
static void write_missing(struct page *page)
{
	const struct opr_symbol_report *report = page->annotate->report;
	uint64_t missing = 0;

	memset(page->counts, 0, report->nr_classes * sizeof(*page->counts));
	for (size_t i = 0; i < report->nr_rows; i++)
		for (size_t j = 0; j < report->nr_classes && !page->written[i]; j++) {
			page->counts[j] += report->counts.values[report->rows[i].counts + j];
			missing += report->counts.values[report->rows[i].counts + j];
		}
	if (missing)
		write_heading(page, "h2", "Not on this page", "", page->counts);
}

static int write_page(struct page *page)
{
	int err = list_images(page);

	if (err)
		return err;
	write_top(page);
	err = write_hottest(page);
	if (!err)
		err = write_sources(page);
	if (!err)
		err = write_rest(page);
	write_missing(page);
	opr_annotate_page_end(page->out);
	return err;
}

int opr_annotate_html(const struct opr_annotate *annotate, FILE *out)
{
	size_t nr_images = annotate->images->nr_images;
	struct page page = { .annotate = annotate, .out = out, .sources = { .dirs = &annotate->dirs } };
	int err;

	page.listings = calloc(nr_images + 1, sizeof(*page.listings));
	page.codes = calloc(annotate->report->nr_rows + 1, sizeof(*page.codes));
	page.counts = calloc(annotate->report->nr_classes, sizeof(*page.counts));
	page.written = calloc(annotate->report->nr_rows + 1, sizeof(*page.written));
	err = page.listings && page.codes && page.counts && page.written ? write_page(&page) : opr_no_memory();
	for (size_t i = 0; i < nr_images && page.listings; i++)
		opr_image_code_free(&page.listings[i]);
	free(page.listings);
	free(page.codes);
	free(page.counts);
	free(page.written);
	opr_source_cache_free(&page.sources);
	return err;
}
