/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/missing_symbols.h"

#include "tools/report/image_rows.h"
#include "tools/common/log.h"

#define MIN_PERCENT 1.0 /* as doc/opreport.1 says */

/* Whether a row is an image without symbols that matters. */
static bool lacks_symbols(const struct opr_symbol_report *report, const struct opr_symbol_row *row)
{
	double count = (double)report->counts.values[row->counts], total = (double)report->totals[0];

	return !row->symbol && row->symbols && total > 0 && 100.0 * count / total >= MIN_PERCENT;
}

/* The row of an image without symbols; `image` NULL: of any image. NULL: there is none. */
static const struct opr_symbol_row *find_lacking(const struct opr_symbol_report *report, const char *image)
{
	for (size_t i = 0; i < report->nr_rows; i++)
		if (lacks_symbols(report, &report->rows[i]) && (!image || !strcmp(report->rows[i].image, image)))
			return &report->rows[i];
	return NULL;
}

/* Whether the file of an image is gone or is another one, and its build-id is known. */
static bool is_gone(const struct opr_debug *debug)
{
	return (debug->state == OPR_SYMBOLS_NOT_FOUND || debug->state == OPR_SYMBOLS_REPLACED ||
		debug->state == OPR_SYMBOLS_UNREADABLE) &&
	       *debug->build_id;
}

/* Names the build-id of the image itself: without the image its debug file is no help. */
static void warn_gone(const struct opr_image_row *row, const char *hint)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	bool can_ask = urls && *urls;

	opr_warn("%s that ran has build-id %s, debug file %s%s%s. A copy of the image is looked for in the directories of "
		 "--image-path.",
		 row->name, row->debug.build_id, hint, can_ask ? ", debuginfod-find executable " : "",
		 can_ask ? row->debug.build_id : "");
}

static int warn(const struct opr_image_row *row, const struct opr_symbol_row *lacking)
{
	char *hint = opr_image_row_hint(row);

	if (!hint)
		return opr_no_memory();
	if (lacking->symbols->code_path)
		opr_warn("%s has no symbols%s: its samples are one line. Its build-id is %s, its debug file %s.", row->name,
			 row->debug.state == OPR_SYMBOLS_EXPORTED ? " but exported ones, which are not used" : "",
			 *row->debug.build_id ? row->debug.build_id : "not known", row->debug.debug_file ? hint : "not known");
	else if (is_gone(&row->debug))
		warn_gone(row, hint);
	free(hint);
	return 0;
}

int opr_missing_symbols_warn(const struct opr_profile *profile, const struct opr_classes *classes, struct opr_finder *finder,
			     const struct opr_symbol_report *report)
{
	struct opr_image_report images = { 0 };
	int err = 0;

	if (!find_lacking(report, NULL))
		return 0;
	err = opr_image_report_make(&images, profile, classes->nr_classes, finder, MIN_PERCENT);
	for (size_t i = 0; i < images.nr_rows && !err; i++) {
		const struct opr_symbol_row *lacking = find_lacking(report, profile->files[images.rows[i].first_file].image);

		if (lacking)
			err = warn(&images.rows[i], lacking);
	}
	opr_image_report_free(&images);
	return err;
}
