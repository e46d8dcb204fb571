/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/symbol_rows.h"

#include <errno.h>

#include "libop/base/grow.h"
#include "tools/common/log.h"

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

static bool is_named(const struct opr_words *names, const struct opr_symbol *symbol, const char *image)
{
	if (!names->nr_words || !symbol)
		return opr_words_have(names, image);
	for (const char *name = symbol->name; name; name = opr_symbol_next_name(symbol, name))
		if (opr_words_have(names, name))
			return true;
	return opr_words_have(names, symbol->shown);
}

bool opr_symbol_is_wanted(const struct opr_symbol_choice *choice, const struct opr_symbol *symbol, const char *image)
{
	if (choice->include->nr_words && !is_named(choice->include, symbol, image))
		return false;
	return !is_named(choice->exclude, symbol, image);
}

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

void opr_symbol_report_top(struct opr_symbol_report *report, size_t nr_rows)
{
	if (report->nr_rows > nr_rows)
		report->nr_rows = nr_rows;
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

static int find_line(struct opr_symbol_row *row)
{
	const char *file;
	unsigned int line;

	if (row->file || !opr_symbols_line(row->symbols, row->vma, &file, &line))
		return 0;
	row->file = strdup(file);
	row->line = line;
	return row->file ? 0 : opr_no_memory();
}

/*
 * Collects the addresses of all rows and details of one image. Returns their number; vmas NULL:
 * only that.
 */
static size_t collect_vmas(const struct opr_symbol_report *report, const struct opr_symbols *symbols, uint64_t *vmas)
{
	size_t nr_vmas = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		if (row->symbols != symbols)
			continue;
		for (size_t j = 0; vmas && j < row->nr_details; j++)
			vmas[nr_vmas + j] = report->details[row->first_detail + j].vma;
		nr_vmas += row->nr_details;
		if (vmas)
			vmas[nr_vmas] = row->vma;
		nr_vmas++;
	}
	return nr_vmas;
}

static int find_lines_of(struct opr_symbol_report *report, struct opr_image_cache *cache, const struct opr_symbol_row *row)
{
	struct opr_image *image = opr_image_cache_find(cache, row->image);
	size_t nr_vmas;
	uint64_t *vmas;
	int err;

	if (!image)
		return -ENOMEM;
	if (image->has_lines)
		return 0;
	nr_vmas = collect_vmas(report, &image->symbols, NULL);
	vmas = calloc(nr_vmas + 1, sizeof(*vmas));
	if (!vmas)
		return opr_no_memory();
	collect_vmas(report, &image->symbols, vmas);
	err = opr_image_find_lines(cache, image, vmas, nr_vmas);
	free(vmas);
	return err;
}

int opr_symbol_report_find_lines(struct opr_symbol_report *report, struct opr_image_cache *cache)
{
	int err = 0;

	for (size_t i = 0; i < cache->nr_images; i++)
		cache->images[i].has_lines = false;
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = find_lines_of(report, cache, &report->rows[i]);
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = find_line(&report->rows[i]);
	return err;
}
