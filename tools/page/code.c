/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/page/code.h"

#include <errno.h>
#include <inttypes.h>

#include "libop/base/grow.h"
#include "tools/code/image_code.h"
#include "tools/code/source_file.h"
#include "tools/common/log.h"
#include "tools/page/pack.h"
#include "tools/profile/image_name.h"
#include "tools/report/symbol_sort.h"
#include "tools/stacks/runtime_rows.h"
#include "tools/stacks/short_images.h"

#define FUNCTIONS_MAX 20u
#define RUNTIME_FUNCTIONS_MAX 12u
#define FLAT_MAX      500u
#define LINES_MAX     80u /* of a function */
#define LINE_BYTES    160u
#define TAB_COLUMNS   8u
#define AROUND        5u /* lines beside one with samples and beside the first one */

/* A line of a source file or an instruction. */
struct line {
	const char *file; /* as the debugging information has it */
	uint64_t number;  /* in the file, or the address */
	uint64_t count;
	bool is_begin; /* of the function */
	const char *text;
};

struct lines {
	struct line *lines;
	size_t nr_lines, capacity;
};

struct listing {
	struct op_text *json;
	struct opr_run run; /* of flat samples */
	const struct opr_symbol_report *report; /* of the run, or of runtimes */
	const char *event;                      /* of its first class */
	bool is_compared, is_of_runtimes;
	struct opr_source_cache sources;
	size_t nr_left; /* lines that the function may have on the page */
	const struct opr_short_names *names; /* NULL: full ones */
	bool any; /* function is there */
};

/* The samples of the event of the first class, whatever else classes differ in. */
static uint64_t count_of(const struct listing *listing, const uint64_t *counts)
{
	const struct opr_classes *classes = &listing->run.selection.classes;
	uint64_t sum = 0;

	if (listing->is_of_runtimes) /* each class is an event */
		return counts[0];
	for (size_t i = 0; i < classes->nr_classes; i++)
		if (!strcmp(classes->classes[i].event, classes->classes[0].event))
			sum += counts[i];
	return sum;
}

static int add_line(struct lines *lines, const struct line *line)
{
	if (!op_grow(&lines->lines, &lines->capacity, lines->nr_lines + 1))
		return opr_no_memory();
	lines->lines[lines->nr_lines++] = *line;
	return 0;
}

/* ---- as JSON ---- */

/* Text of a line: tabs become blanks, and what a terminal would obey is escaped. */
static void add_text(struct op_text *json, const char *line)
{
	struct op_text text = { 0 };
	size_t nr_bytes;

	for (const char *c = line; *c && text.length < LINE_BYTES; c += nr_bytes) {
		char escaped[OP_ESCAPED_BYTES];

		nr_bytes = 1;
		if (*c == '\t')
			op_text_printf(&text, "%*s", (int)(TAB_COLUMNS - text.length % TAB_COLUMNS), "");
		else if (*c == '\\')
			op_text_add_char(&text, *c);
		else {
			nr_bytes = op_escape(c, escaped);
			op_text_add(&text, escaped);
		}
		if (c[nr_bytes] && text.length >= LINE_BYTES)
			op_text_add(&text, " …");
	}
	opr_page_add_text(json, op_text_get(&text));
	json->failed |= text.failed;
	op_text_free(&text);
}

static bool is_near(const struct lines *lines, size_t index)
{
	size_t first = index > AROUND ? index - AROUND : 0, last = (size_t)op_min_u64(index + AROUND, lines->nr_lines - 1);

	for (size_t i = first; i <= last; i++)
		if (lines->lines[i].count || lines->lines[i].is_begin)
			return true;
	return false;
}

/* Adds the lines with samples and those around them; a `0` stands for lines left out. */
static void add_block(struct listing *listing, const char *title, const struct lines *lines, bool is_code)
{
	bool any = false, is_gap = false;

	op_text_add(listing->json, "{\"file\":");
	opr_page_add_string(listing->json, title);
	op_text_printf(listing->json, ",\"code\":%s,\"lines\":[", is_code ? "true" : "false");
	for (size_t i = 0; i < lines->nr_lines; i++) {
		const struct line *line = &lines->lines[i];

		if (!listing->nr_left || !is_near(lines, i)) {
			is_gap = any;
			continue;
		}
		op_text_add(listing->json, is_gap ? ",0," : any ? "," : "");
		op_text_printf(listing->json, is_code ? "[\"%" PRIx64 "\",%" PRIu64 "," : "[%" PRIu64 ",%" PRIu64 ",", line->number,
			       line->count);
		add_text(listing->json, line->text);
		op_text_add_char(listing->json, ']');
		listing->nr_left--;
		any = true;
		is_gap = false;
	}
	op_text_add(listing->json, "]}");
}

/* ---- source ---- */

static int compare_lines(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	int order = a->file == b->file ? 0 : strcmp(a->file, b->file);

	return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* The source lines with samples of a row, sorted, and the one where it begins. */
static int find_lines(const struct listing *listing, const struct opr_symbol_row *row, struct lines *found)
{
	const struct opr_symbol_report *report = listing->report;
	size_t nr = 0;
	int err = row->file ? add_line(found, &(struct line){ .file = row->file, .number = row->line, .is_begin = true }) : 0;

	for (size_t i = 0; i < row->nr_details && !err; i++) {
		const struct opr_detail *detail = &report->details[row->first_detail + i];
		struct line line = { .file = row->file, .count = count_of(listing, &report->detail_counts.values[detail->counts]) };
		unsigned int number = (unsigned int)detail->vma; /* of a runtime it is the line */

		if (row->symbols && !opr_symbols_line(row->symbols, detail->vma, &line.file, &number))
			continue;
		line.number = number;
		err = add_line(found, &line);
	}
	if (found->nr_lines)
		qsort(found->lines, found->nr_lines, sizeof(*found->lines), compare_lines);
	for (size_t i = 0; i < found->nr_lines; i++) {
		if (!nr || compare_lines(&found->lines[nr - 1], &found->lines[i])) {
			found->lines[nr++] = found->lines[i];
			continue;
		}
		found->lines[nr - 1].count += found->lines[i].count;
		found->lines[nr - 1].is_begin |= found->lines[i].is_begin;
	}
	found->nr_lines = nr;
	return err;
}

/* Adds the lines of one file, from the first that was found to the last. *any: it has samples. */
static int add_file(struct listing *listing, const struct line *found, size_t nr_found, bool *any)
{
	struct opr_source_file *file = opr_source_cache_find(&listing->sources, found->file);
	uint64_t first = op_max_u64(found->number, 1), last = found[nr_found - 1].number;
	struct lines lines = { 0 };
	bool has_samples = false;
	int err = 0;

	if (!file)
		return opr_no_memory();
	last = op_min_u64(last + AROUND, file->nr_lines);
	for (uint64_t number = first > AROUND ? first - AROUND : 1; number <= last && !err; number++) {
		struct line line = { .number = number };

		for (; nr_found && found->number < number; nr_found--)
			found++;
		if (nr_found && found->number == number)
			line = (struct line){ .number = number, .count = found->count, .is_begin = found->is_begin };
		line.text = file->lines[number - 1];
		has_samples |= line.count;
		err = add_line(&lines, &line);
	}
	if (!err && has_samples) {
		op_text_add(listing->json, *any ? "," : "");
		add_block(listing, file->path, &lines, false);
		*any = true;
	}
	free(lines.lines);
	return err;
}

static int add_source(struct listing *listing, const struct opr_symbol_row *row, bool *any)
{
	struct lines found = { 0 };
	int err = find_lines(listing, row, &found);

	for (size_t i = 0, next; i < found.nr_lines && !err; i = next) {
		for (next = i + 1; next < found.nr_lines && !strcmp(found.lines[next].file, found.lines[i].file);)
			next++;
		err = add_file(listing, &found.lines[i], next - i, any);
	}
	free(found.lines);
	return err;
}

/* ---- machine code ---- */

static int add_code(struct listing *listing, const struct opr_symbol_row *row, bool *any)
{
	const struct opr_code_style style = { 0 };
	const struct opr_code_query query = { &listing->run.images, &listing->run.rows, &style, false, true };
	uint64_t *counts = calloc(listing->run.rows.nr_classes, sizeof(*counts));
	struct opr_image_code image_code = { 0 };
	struct lines lines = { 0 };
	size_t detail = 0;
	int err = counts ? opr_image_code_list(&image_code, &query, &row, 1) : opr_no_memory();

	for (size_t i = 0; !err && i < image_code.codes[0].nr_lines; i++) {
		const struct opr_code *code = &image_code.codes[0];
		struct line line = { .number = code->lines[i].vma, .text = opr_code_text(code, &code->lines[i]) };

		if (code->lines[i].kind != OPR_CODE_INSTRUCTION)
			continue;
		if (opr_image_code_sum(&image_code, row, code, i, &detail, counts))
			line.count = count_of(listing, counts);
		err = add_line(&lines, &line);
	}
	*any = lines.nr_lines;
	if (!err && *any)
		add_block(listing, "", &lines, true);
	opr_image_code_free(&image_code);
	free(lines.lines);
	free(counts);
	return err;
}

/* ---- all ---- */

static const char *image_of(const struct listing *listing, const struct opr_symbol_row *row)
{
	return listing->names ? opr_short_image(listing->names, row->image) : row->image;
}

static void add_flat(const struct listing *listing, struct op_text *json)
{
	const struct opr_classes *classes = &listing->run.selection.classes;
	const struct opr_symbol_report *report = listing->report;
	bool is_about;

	if (opr_seconds_of_sample(classes, &classes->classes[0], &is_about) <= 0)
		return;
	op_text_add(json, "{\"event\":");
	opr_page_add_string(json, classes->classes[0].event);
	op_text_printf(json, ",\"total\":%" PRIu64 ",\"whole\":%s,\"rows\":[", count_of(listing, report->totals),
		       report->nr_rows <= FLAT_MAX ? "true" : "false");
	for (size_t i = 0; i < report->nr_rows && i < FLAT_MAX; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		op_text_add(json, i ? "," : "");
		/* as stacks name it */
		opr_page_add_string(json, row->symbol ? row->name : "(no symbols)");
		op_text_add_char(json, ',');
		opr_page_add_string(json, image_of(listing, row));
		op_text_printf(json, ",%" PRIu64, count_of(listing, &report->counts.values[row->counts]));
	}
	op_text_add(json, "]}");
}

/* Reads the samples and makes the rows, the hottest first. `flat`: NULL, not wanted. */
static int read_rows(struct listing *listing, struct op_text *flat)
{
	struct opr_symbol_report *rows = &listing->run.rows;
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err = opr_run_to(&listing->run, OPR_STEP_ROWS);

	if (err)
		return err;
	err = opr_sort_order_make(&order, &(struct opr_words){ 0 }, &bad_key);
	if (err)
		return err;
	err = opr_symbol_sort(rows, &order);
	if (err)
		return err;
	if (flat)
		add_flat(listing, flat);
	/* Lines are searched for what is shown only. */
	rows->nr_rows = (size_t)op_min_u64(rows->nr_rows, FUNCTIONS_MAX);
	err = opr_symbol_report_find_lines(rows, &listing->run.images, false);
	return err ? err : opr_symbol_report_set_lines(rows);
}

/* As the graph has it: in a comparison the name of a function of a runtime has no line. */
static void add_name(const struct listing *listing, struct op_text *json, const struct opr_symbol_row *row)
{
	struct op_text name = { 0 };
	char line[16];

	op_text_add(&name, row->name);
	snprintf(line, sizeof(line), ":%u)", (unsigned int)row->line);
	if (listing->is_compared && listing->is_of_runtimes && name.length > strlen(line) &&
	    !strcmp(name.data + name.length - strlen(line), line)) {
		op_text_truncate(&name, name.length - strlen(line));
		op_text_add_char(&name, ')');
	}
	opr_page_add_string(json, op_text_get(&name));
	json->failed |= name.failed;
	op_text_free(&name);
}

/* Adds nothing when neither source nor code is found. */
static int add_function(struct listing *listing, const struct opr_symbol_row *row)
{
	struct op_text *json = listing->json;
	size_t start = json->length;
	bool any = false;
	int err;

	listing->nr_left = LINES_MAX;
	op_text_add(json, listing->any ? ",{\"name\":" : "{\"name\":");
	add_name(listing, json, row);
	op_text_add(json, ",\"image\":");
	opr_page_add_string(json, image_of(listing, row));
	op_text_add(json, ",\"event\":");
	opr_page_add_string(json, listing->event);
	op_text_printf(json, ",\"line\":%u,\"samples\":%" PRIu64 ",\"blocks\":[", (unsigned int)row->line,
		       count_of(listing, &listing->report->counts.values[row->counts]));
	err = add_source(listing, row, &any);
	if (!err && !any && row->symbols)
		err = add_code(listing, row, &any);
	op_text_add(json, "]}");
	listing->any |= any;
	if (!any)
		op_text_truncate(json, start);
	return err;
}

/* The same samples as those of the stacks, but flat, and of all processes and CPUs together. */
static struct opr_query flat_query(const struct opr_run *of_stacks)
{
	struct opr_query query = *of_stacks->query;

	query.session_dir = of_stacks->selection.session_dir; /* the user was told which */
	query.sessions_only = query.totals_only = query.lines = query.inlined = 0;
	query.optional = query.details = 1;
	query.merge.merge = (struct opr_merge){ .lib = true };
	query.naming.fetch_lines = 1;
	query.naming.fetch_percent = 1;
	return query;
}

static bool has_runtimes(const struct opr_call_tree *tree)
{
	for (const struct opr_call_node *node = tree->made_last; node; node = node->made_before)
		if (node->function->kind == OPR_CALL_RUNTIME)
			return true;
	return false;
}

/* Adds the hottest functions of runtimes, with the samples of stacks. */
static int add_runtimes(struct listing *listing, const struct opr_page_side *side, size_t max_bytes)
{
	struct opr_query query = *side->run->query;
	struct opr_runtime_rows rows = { 0 };
	struct opr_sort_order order = { 0 };
	const char *bad_key;
	int err;

	query.threshold = 0;
	err = opr_runtime_rows_read(&rows, &side->run->selection, &query);
	if (!err)
		err = opr_sort_order_make(&order, &(struct opr_words){ 0 }, &bad_key);
	if (!err)
		err = opr_symbol_sort(&rows.report, &order);
	listing->report = &rows.report;
	listing->event = rows.sums.events.nr_words ? rows.sums.events.words[0] : "";
	listing->is_of_runtimes = true;
	for (size_t i = 0; i < rows.report.nr_rows && i < RUNTIME_FUNCTIONS_MAX && !err; i++)
		if (listing->json->length < max_bytes && rows.report.counts.values[rows.report.rows[i].counts])
			err = add_function(listing, &rows.report.rows[i]);
	listing->is_of_runtimes = false;
	listing->report = &listing->run.rows;
	listing->event = "";
	opr_runtime_rows_free(&rows);
	return err;
}

int opr_page_add_code(struct opr_page_side *side, bool is_compared, const struct opr_short_names *names, size_t max_bytes)
{
	const struct opr_words none = { 0 };
	const struct opr_source_dirs dirs = { &none, &none };
	const struct opr_query query = flat_query(side->run);
	struct op_text *json = &side->code;
	struct listing listing = {
		.json = json, .run = { .query = &query, .words = side->run->words }, .sources = { .dirs = &dirs }, .names = names,
		.is_compared = is_compared, .report = &listing.run.rows,
	};
	struct opr_symbol_report *rows = &listing.run.rows;
	bool has_flat = is_compared && !side->run->query->inlined;
	int err = opr_run_to(&listing.run, OPR_STEP_SELECT);

	op_text_add_char(json, '[');
	if (!err && has_runtimes(&side->tree))
		err = add_runtimes(&listing, side, max_bytes / 2);
	if (!err && listing.run.selection.profile.nr_files)
		err = read_rows(&listing, has_flat ? &side->flat : NULL);
	listing.event = listing.run.selection.classes.nr_classes ? listing.run.selection.classes.classes[0].event : "";
	for (size_t i = 0; i < rows->nr_rows && !err && json->length < max_bytes; i++)
		if (rows->rows[i].symbol && count_of(&listing, &rows->counts.values[rows->rows[i].counts]))
			err = add_function(&listing, &rows->rows[i]);
	op_text_add_char(json, ']');
	opr_source_cache_free(&listing.sources);
	opr_run_free(&listing.run);
	return err;
}
