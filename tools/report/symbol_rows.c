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

static bool is_named(const struct opr_words *names, const struct opr_symbol *symbol, const char *image, bool demangled)
{
	if (!symbol)
		return opr_words_have(names, image);
	return opr_words_have(names, symbol->name) || (demangled && opr_words_have(names, symbol->shown));
}

bool opr_symbol_is_wanted(const struct opr_symbol_choice *choice, const struct opr_symbol *symbol, const char *image)
{
	if (choice->include->nr_words && !is_named(choice->include, symbol, image, choice->demangled))
		return false;
	return !is_named(choice->exclude, symbol, image, choice->demangled);
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
