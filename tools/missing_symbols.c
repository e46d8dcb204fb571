/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/missing_symbols.h"

#include "tools/image_report.h"
#include "tools/report_log.h"

#define MIN_PERCENT 1.0

/* An image as a whole, though its file was read. */
static bool lacks_symbols(const struct opr_symbol_report *report, const struct opr_symbol_row *row)
{
	double count = (double)report->counts.values[row->counts], total = (double)report->totals[0];

	return !row->symbol && row->symbols && row->symbols->code_path && total > 0 && 100.0 * count / total >= MIN_PERCENT;
}

/* True when the image of that name, or, without a name, any image that is shown has none. */
static bool any_lacks_symbols(const struct opr_symbol_report *report, const char *image)
{
	for (size_t i = 0; i < report->nr_rows; i++)
		if (lacks_symbols(report, &report->rows[i]) && (!image || !strcmp(report->rows[i].image, image)))
			return true;
	return false;
}

static int tell(const struct opr_image_row *row)
{
	char *hint = opr_image_row_hint(row);

	if (!hint)
		return opr_no_memory();
	opr_warn("%s has no symbols: its samples are one line. Its build-id is %s, its debug file %s.", row->name,
		 *row->debug.build_id ? row->debug.build_id : "not known", row->debug.debug_file ? hint : "not known");
	free(hint);
	return 0;
}

int opr_missing_symbols_tell(const struct opr_profile *profile, const struct opr_classes *classes, struct opr_finder *finder,
			     const struct opr_symbol_report *report)
{
	struct opr_image_report images = { 0 };
	int err = 0;

	if (!any_lacks_symbols(report, NULL))
		return 0;
	err = opr_image_report_make(&images, profile, classes->nr_classes, finder, MIN_PERCENT);
	for (size_t i = 0; i < images.nr_rows && !err; i++)
		if (any_lacks_symbols(report, images.rows[i].name))
			err = tell(&images.rows[i]);
	opr_image_report_free(&images);
	return err;
}
