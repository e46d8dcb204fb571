/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/symbol_rows.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "libop/base/nearest.h"
#include "tools/common/log.h"
#include "tools/elf/demangle.h"
#include "tools/elf/line_table.h"
#include "tools/report/function_name.h"

bool opr_counts_add(struct opr_counts *counts, size_t nr_classes, size_t *ret_index)
{
	if (!op_grow(&counts->values, &counts->capacity, counts->nr_values + nr_classes))
		return false;
	*ret_index = counts->nr_values;
	memset(counts->values + counts->nr_values, 0, nr_classes * sizeof(*counts->values));
	counts->nr_values += nr_classes;
	return true;
}

int opr_symbol_report_add(struct opr_symbol_report *report, const struct opr_symbol_row *row, size_t *ret_index)
{
	struct opr_symbol_row *added;
	size_t counts;

	if (!op_grow(&report->rows, &report->rows_capacity, report->nr_rows + 1))
		return opr_no_memory();
	if (!opr_counts_add(&report->counts, report->nr_classes, &counts))
		return opr_no_memory();
	*ret_index = report->nr_rows;
	added = &report->rows[report->nr_rows++];
	report->nr_made = report->nr_rows;
	*added = *row;
	added->counts = counts;
	added->first_detail = report->nr_details;
	added->order = *ret_index;
	return 0;
}

static bool has_base_of(const struct opr_words *names, const struct opr_words *bases, const char *shown)
{
	for (size_t i = 0; bases && bases->nr_words && i < names->nr_words; i++)
		if (opr_words_have(bases, names->words[i]) && opr_function_has_base(shown, names->words[i]))
			return true;
	return false;
}

/* A name from --wide or JSON has all arguments; the report may show its smart form. */
static bool has_simple(const struct opr_words *names, const char *shown)
{
	for (size_t i = 0; i < names->nr_words; i++) {
		char *simple = strchr(names->words[i], '<') ? opr_demangle_simplify(names->words[i]) : NULL;
		bool is_same = simple && !strcmp(simple, shown);

		free(simple);
		if (is_same)
			return true;
	}
	return false;
}

bool opr_symbol_is_named(const struct opr_words *names, const struct opr_words *bases, const struct opr_symbol *symbol,
			 const char *image)
{
	if (!names->nr_words || !symbol)
		return opr_words_have(names, image);
	for (const char *name = symbol->name; name; name = opr_symbol_next_name(symbol, name))
		if (opr_words_have(names, name))
			return true;
	return opr_words_have(names, symbol->shown) || has_simple(names, symbol->shown) || has_base_of(names, bases, symbol->shown);
}

bool opr_frame_is_named(const struct opr_words *names, const struct opr_words *bases, const struct opr_frame *frame)
{
	for (; frame; frame = frame->outer)
		if (opr_words_have(names, frame->name) || opr_words_have(names, frame->shown) || has_simple(names, frame->shown) ||
		    has_base_of(names, bases, frame->shown))
			return true;
	return false;
}

static bool is_in_cache(const struct opr_image_cache *cache, const struct opr_words *one)
{
	for (size_t i = 0; i < cache->nr_images; i++)
		for (size_t j = 0; j < cache->images[i].symbols.nr_symbols; j++)
			if (opr_symbol_is_named(one, NULL, &cache->images[i].symbols.symbols[j], ""))
				return true;
	return false;
}

int opr_symbol_names_find_bases(const struct opr_words *names, struct opr_image_cache *cache, struct opr_words *bases)
{
	int err = 0;

	for (size_t i = 0; names->nr_words && i < cache->nr_images && !err; i++) {
		struct opr_image *image = opr_image_cache_find(cache, cache->images[i].name);

		err = image ? opr_image_load(cache, image) : -ENOMEM;
	}
	for (size_t i = 0; i < names->nr_words && !err; i++) {
		const struct opr_words one = { .words = &names->words[i], .nr_words = 1 };

		if (!is_in_cache(cache, &one) && opr_words_add(bases, names->words[i]) < 0)
			err = opr_no_memory();
	}
	return err;
}

bool opr_symbol_is_wanted(const struct opr_query *query, const struct opr_words *bases, const struct opr_symbol *symbol,
			  const char *image)
{
	if (query->include_symbols.nr_words && !opr_symbol_is_named(&query->include_symbols, bases, symbol, image))
		return false;
	return !opr_symbol_is_named(&query->exclude_symbols, bases, symbol, image);
}

/* ---- names that no row has ---- */

static bool is_in_rows(const struct opr_symbol_report *report, const struct opr_words *one, const struct opr_words *bases)
{
	for (size_t i = 0; i < op_max_u64(report->nr_made, report->nr_rows); i++)
		if (opr_symbol_is_named(one, bases, report->rows[i].symbol, report->rows[i].image) ||
		    opr_frame_is_named(one, bases, report->rows[i].inlined))
			return true;
	return false;
}

/* Compares the name of a function without its parameters, and its base name. */
static void try_symbol(struct op_nearest *nearest, const struct opr_symbol *symbol)
{
	size_t length = strcspn(symbol->shown, "(");
	char name[OP_NEAREST_BYTES];

	if (length && length < sizeof(name)) {
		memcpy(name, symbol->shown, length);
		name[length] = '\0';
		op_nearest_try(nearest, name);
	}
	opr_function_base(symbol->shown, name, sizeof(name));
	if (*name)
		op_nearest_try(nearest, name);
}

/* Why no row has the name: it has no samples, or it is none, and which comes near. */
static void explain_name(const struct opr_image_cache *cache, const struct opr_words *one, const struct opr_words *bases,
			 struct op_text *text)
{
	const char *name = one->words[0];
	struct op_nearest nearest;
	char base[OP_NEAREST_BYTES];

	/* of a signature, which may have many faults, the name is compared */
	opr_function_base(name, base, sizeof(base));
	op_nearest_init(&nearest, strchr(name, '(') && *base ? base : name);
	for (size_t i = 0; i < cache->nr_images; i++) {
		const struct opr_symbols *symbols = &cache->images[i].symbols;

		for (size_t j = 0; j < symbols->nr_symbols; j++) {
			if (opr_symbol_is_named(one, bases, &symbols->symbols[j], "")) {
				op_text_printf(text, "%s has no samples: it is a symbol of %s", name, cache->images[i].name);
				return;
			}
			try_symbol(&nearest, &symbols->symbols[j]);
		}
	}
	op_text_printf(text, "there is no symbol %s in these images", name);
	op_nearest_add_hint(&nearest, "", text);
}

int opr_symbol_report_check_names(const struct opr_symbol_report *report, const struct opr_image_cache *cache,
				  const struct opr_words *include, const struct opr_words *bases)
{
	size_t nr_missing = 0;

	for (size_t i = 0; i < include->nr_words; i++) {
		const struct opr_words one = { .words = &include->words[i], .nr_words = 1 };
		struct op_text text = { 0 };

		if (is_in_rows(report, &one, bases))
			continue;
		explain_name(cache, &one, bases, &text);
		if (++nr_missing == include->nr_words)
			opr_error(-ENOENT, "%s", op_text_get(&text));
		else
			opr_warn("%s", op_text_get(&text));
		op_text_free(&text);
	}
	return include->nr_words && nr_missing == include->nr_words ? -ENOENT : 0;
}

/* ---- limits ---- */

static bool reaches(const struct opr_symbol_report *report, const struct opr_symbol_row *row, double percent)
{
	for (size_t i = 0; i < report->nr_limits; i++) {
		double count = (double)report->counts.values[row->counts + i], total = (double)report->totals[i];

		if ((total > 0 ? 100.0 * count / total : 0) >= percent)
			return true;
	}
	return false;
}

void opr_symbol_report_limit(struct opr_symbol_report *report, double percent)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_symbol_row row;

		if (report->rows[i].hidden || !reaches(report, &report->rows[i], percent))
			continue;
		if (i != nr_kept) {
			row = report->rows[i];
			report->rows[i] = report->rows[nr_kept];
			report->rows[nr_kept] = row;
		}
		nr_kept++;
	}
	report->nr_rows = nr_kept;
}

static uint64_t sum_of(const struct opr_symbol_report *report, const struct opr_detail *detail)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < report->nr_classes; i++)
		sum += report->detail_counts.values[detail->counts + i];
	return sum;
}

static int compare_falling(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a > *b ? -1 : *a < *b;
}

/* Keeps the details of a row with most samples, in the order of their addresses. */
static int keep_top_details(struct opr_symbol_report *report, struct opr_symbol_row *row, size_t top)
{
	struct opr_detail *details = &report->details[row->first_detail];
	uint64_t *sums = calloc(row->nr_details, sizeof(*sums)), limit;
	size_t nr_kept = 0, nr_at_limit = 0;

	if (!sums)
		return opr_no_memory();
	for (size_t i = 0; i < row->nr_details; i++)
		sums[i] = sum_of(report, &details[i]);
	qsort(sums, row->nr_details, sizeof(*sums), compare_falling);
	limit = sums[top - 1];
	for (size_t i = 0; i < top; i++)
		nr_at_limit += sums[i] == limit;
	for (size_t i = 0; i < row->nr_details; i++) {
		uint64_t sum = sum_of(report, &details[i]);

		if (sum < limit || (sum == limit && !nr_at_limit))
			continue;
		nr_at_limit -= sum == limit;
		details[nr_kept++] = details[i];
	}
	row->nr_details = (uint32_t)nr_kept;
	free(sums);
	return 0;
}

int opr_symbol_report_top(struct opr_symbol_report *report, size_t nr_rows)
{
	int err = 0;

	report->nr_rows = op_min_u64(report->nr_rows, nr_rows);
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		if (report->rows[i].nr_details > nr_rows)
			err = keep_top_details(report, &report->rows[i], nr_rows);
	return err;
}

void opr_symbol_report_free(struct opr_symbol_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->nr_made; i++)
		free(report->rows[i].file);
	free(report->rows);
	free(report->details);
	free(report->counts.values);
	free(report->detail_counts.values);
	free(report->totals);
	*report = (struct opr_symbol_report){ 0 };
}

/* ---- source lines ---- */

/* The first line with samples of an inlined function. False: it is not known. */
static bool first_line(const struct opr_symbol_report *report, const struct opr_symbol_row *row, const char **ret_file,
		       unsigned int *ret_line)
{
	const char *first = NULL, *file;
	unsigned int line;

	for (size_t i = 0; i < row->nr_details; i++) {
		if (!opr_symbols_line(row->symbols, report->details[row->first_detail + i].vma, &file, &line) ||
		    (first && (strcmp(file, first) || line >= *ret_line)))
			continue;
		*ret_file = first = file;
		*ret_line = line;
	}
	return first;
}

/* The line where a symbol begins, also when code of an inlined function is there. */
static bool line_of_symbol(const struct opr_symbol_row *row, const char **ret_file, unsigned int *ret_line)
{
	const struct opr_frame *frame = opr_symbols_frame(row->symbols, row->vma);

	while (frame && frame->outer)
		frame = frame->outer;
	if (!frame || !*frame->file || !frame->line)
		return opr_symbols_line(row->symbols, row->vma, ret_file, ret_line);
	*ret_file = frame->file;
	*ret_line = frame->line;
	return true;
}

static int find_line(const struct opr_symbol_report *report, struct opr_symbol_row *row)
{
	const char *file = NULL;
	unsigned int line = 0;

	if (row->file || !(row->inlined ? first_line(report, row, &file, &line) : line_of_symbol(row, &file, &line)))
		return 0;
	row->file = strdup(file);
	row->line = line;
	return row->file ? 0 : opr_no_memory();
}

/* Adds the addresses of a row and its details to those of its image. */
static int add_vmas(const struct opr_symbol_report *report, const struct opr_symbol_row *row, struct opr_image_lines *lines,
		    size_t *capacity)
{
	if (!op_grow(&lines->vmas, capacity, lines->nr_vmas + row->nr_details + 1))
		return opr_no_memory();
	for (size_t i = 0; i < row->nr_details; i++)
		lines->vmas[lines->nr_vmas++] = report->details[row->first_detail + i].vma;
	lines->vmas[lines->nr_vmas++] = row->vma;
	return 0;
}

int opr_symbol_report_find_lines(struct opr_symbol_report *report, struct opr_image_cache *cache, bool with_frames)
{
	struct opr_image_lines *list = calloc(cache->nr_images + 1, sizeof(*list));
	size_t *capacities = calloc(cache->nr_images + 1, sizeof(*capacities));
	int err = list && capacities ? 0 : opr_no_memory();

	for (size_t i = 0; i < cache->nr_images && !err; i++) {
		cache->images[i].has_lines = false;
		list[i].image = &cache->images[i];
	}
	for (size_t i = 0; i < report->nr_rows && !err; i++) {
		const struct opr_image *image = opr_image_cache_find(cache, report->rows[i].image);
		size_t index = image ? (size_t)(image - cache->images) : 0;

		if (!image)
			err = -ENOMEM;
		else if (report->rows[i].symbols == &image->symbols)
			err = add_vmas(report, &report->rows[i], &list[index], &capacities[index]);
	}
	if (!err)
		err = opr_images_find_lines(cache, list, cache->nr_images, with_frames);
	for (size_t i = 0; list && i < cache->nr_images; i++)
		free(list[i].vmas);
	free(list);
	free(capacities);
	return err;
}

int opr_symbol_report_set_lines(struct opr_symbol_report *report)
{
	int err = 0;

	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = find_line(report, &report->rows[i]);
	return err;
}
