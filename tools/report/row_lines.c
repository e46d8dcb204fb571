/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/row_lines.h"

#include <errno.h>

#include "tools/common/log.h"

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
