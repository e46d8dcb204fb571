/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/image_rows.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/packages.h"
#include "tools/profile/image_name.h"

#define UNKNOWN		"-"
#define DEBUGINFOD_URLS "DEBUGINFOD_URLS"

#define IDENTITY_BYTES	64

/* A sample file and the image that it is of. */
struct item {
	size_t file;
	const char *name;
	const struct op_dcookie_row *row; /* NULL: it is in no table of images */
	char identity[IDENTITY_BYTES];
};

/* ---- which files are of one image ---- */

/*
 * Sets the identity: the build-id, else the suffix of a file that is counted apart, "inode 12".
 * Other images have a name only.
 */
static void identify(struct item *item)
{
	const struct op_dcookie_row *row = item->row;
	const char *bracket = row && opr_identity_of(row->name).kind != OPR_IDENTITY_NONE ? strrchr(row->name, '(') : NULL;

	static_assert(IDENTITY_BYTES > 2 * OP_BUILD_ID_BYTES_MAX, "room for a build-id");
	if (row && row->id.build_id_bytes)
		op_build_id_format(row->id.build_id, row->id.build_id_bytes, item->identity);
	else if (bracket)
		snprintf(item->identity, sizeof(item->identity), "%.*s", (int)strcspn(bracket + 1, ")"), bracket + 1);
	else
		snprintf(item->identity, sizeof(item->identity), UNKNOWN);
}

static struct item item_of(const struct opr_profile *profile, size_t index)
{
	const struct opr_file *file = &profile->files[index];
	const struct op_image_name *image = &file->name->image;
	struct item item = { .file = index, .name = file->image, .row = opr_session_row(&profile->sessions[file->session], image) };

	if (item.row && image->kind == OP_IMAGE_FILE && item.row->id.name.name[strspn(item.row->id.name.name, "/")])
		item.name = item.row->id.name.name;
	identify(&item);
	return item;
}

static int compare_items(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	if (!order)
		order = strcmp(a->identity, b->identity);
	return order ? order : a->file < b->file ? -1 : a->file > b->file;
}

/* ---- rows ---- */

static int add_item(struct opr_image_report *report, const struct opr_profile *profile, const struct item *item,
		    const struct item *previous, size_t nr_classes)
{
	struct opr_image_row *row;

	if (!previous || strcmp(previous->name, item->name) || strcmp(previous->identity, item->identity)) {
		row = &report->rows[report->nr_rows];
		*row = (struct opr_image_row){ .name = item->name,
					       .identity = strdup(item->identity),
					       .counts = report->counts + report->nr_rows * nr_classes,
					       .first_file = item->file };
		report->nr_rows++;
		if (!row->identity)
			return opr_no_memory();
	}
	row = &report->rows[report->nr_rows - 1];
	/* Callgraph files have calls, not samples. */
	if (!profile->files[item->file].callee)
		row->counts[profile->files[item->file].class_index] += profile->files[item->file].total;
	return 0;
}

static int add_items(struct opr_image_report *report, const struct opr_profile *profile, size_t nr_classes)
{
	struct item *items = calloc(profile->nr_files, sizeof(*items));
	int err = 0;

	if (!items)
		return opr_no_memory();
	for (size_t i = 0; i < profile->nr_files; i++)
		items[i] = item_of(profile, i);
	qsort(items, profile->nr_files, sizeof(*items), compare_items);
	for (size_t i = 0; i < profile->nr_files && !err; i++)
		err = add_item(report, profile, &items[i], i ? &items[i - 1] : NULL, nr_classes);
	free(items);
	return err;
}

static int compare_rows(const void *left, const void *right, void *reverse)
{
	const struct opr_image_row *a = left, *b = right;
	int order;

	if (a->counts[0] != b->counts[0])
		return (a->counts[0] > b->counts[0]) != *(const bool *)reverse ? -1 : 1;
	order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->identity, b->identity);
}

static void free_row(struct opr_image_row *row)
{
	free(row->identity);
	free(row->package);
	opr_debug_free(&row->debug);
}

/* Drops images below the threshold and images without samples, whose sample files are empty. */
static void keep_large(struct opr_image_report *report, size_t nr_classes, double percent)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_image_row *row = &report->rows[i];
		uint64_t sum = 0;

		for (size_t j = 0; j < nr_classes; j++)
			sum += row->counts[j];
		if (sum && (double)row->counts[0] * 100 >= percent * (double)report->totals[0])
			report->rows[nr_kept++] = *row;
		else
			free_row(row);
	}
	report->nr_rows = nr_kept;
}

/* ---- symbols and debug files ---- */

static int look(struct opr_image_row *row, const struct opr_profile *profile, struct opr_finder *finder)
{
	const struct opr_file *file = &profile->files[row->first_file];
	const struct op_image_name *image = &file->name->image;
	const struct op_dcookie_row *known = opr_session_row(&profile->sessions[file->session], image);
	int err = opr_debug_look(&row->debug, finder, image, file->image, known);

	/* Without a table of images the file that was found gives the build-id. */
	if (!err && !strcmp(row->identity, UNKNOWN) && *row->debug.build_id) {
		free(row->identity);
		row->identity = strdup(row->debug.build_id);
		if (!row->identity)
			err = opr_no_memory();
	}
	return err;
}

/* The path to search a package by: of the file, or of a file that is gone. NULL: none. */
static const char *packaged_path(const struct opr_image_row *row)
{
	if (!opr_debug_would_help(&row->debug))
		return NULL;
	return row->debug.path ? row->debug.path : *row->name == '/' && row->debug.state != OPR_SYMBOLS_NO_FILE ? row->name : NULL;
}

static int take_packages(struct opr_image_report *report, const struct opr_archive *archive)
{
	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_image_row *row = &report->rows[i];
		const char *path = packaged_path(row);
		const char *package = path ? opr_archive_fact(&archive->packages, opr_archive_strip(archive, path)) : NULL;

		row->package = package ? strdup(package) : NULL;
		if (package && !row->package)
			return opr_no_memory();
	}
	return 0;
}

/*
 * Finds the packages of this machine; not for images below another root. An archive has the
 * packages of its host.
 */
static int find_packages(struct opr_image_report *report, const struct opr_finder *finder)
{
	const char **paths;
	char **packages;
	int err;

	if (finder->archive)
		return take_packages(report, finder->archive);
	paths = calloc(report->nr_rows + 1, sizeof(*paths));
	packages = calloc(report->nr_rows + 1, sizeof(*packages));
	err = paths && packages ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < report->nr_rows && !finder->root; i++)
		paths[i] = packaged_path(&report->rows[i]);
	if (!err)
		err = opr_packages_find(paths, report->nr_rows, packages);
	for (size_t i = 0; packages && i < report->nr_rows; i++)
		report->rows[i].package = packages[i];
	free(paths);
	free(packages);
	return err ? opr_no_memory() : 0;
}

char *opr_image_row_hint(const struct opr_image_row *row)
{
	const struct opr_debug *debug = &row->debug;
	const char *urls = getenv(DEBUGINFOD_URLS);
	struct op_text text = { 0 };

	op_text_add(&text, debug->debug_file ? debug->debug_file : UNKNOWN);
	if (!debug->debug_file || !opr_debug_would_help(debug))
		return op_text_steal(&text);
	op_text_add(&text, " (missing");
	if (row->package)
		op_text_printf(&text, "; package %s", row->package);
	if (urls && *urls)
		op_text_printf(&text, "; debuginfod-find debuginfo %s", debug->build_id);
	op_text_add_char(&text, ')');
	return op_text_steal(&text);
}

/* ---- the report ---- */

int opr_image_report_make(struct opr_image_report *report, const struct opr_profile *profile, size_t nr_classes,
			  struct opr_finder *finder, double percent, bool reverse)
{
	int err;

	report->rows = calloc(profile->nr_files, sizeof(*report->rows));
	report->totals = calloc(nr_classes, sizeof(*report->totals));
	report->counts = calloc(profile->nr_files, nr_classes * sizeof(*report->counts));
	if (!report->rows || !report->totals || !report->counts)
		return opr_no_memory();
	err = add_items(report, profile, nr_classes);
	for (size_t i = 0; i < report->nr_rows; i++)
		for (size_t j = 0; j < nr_classes; j++)
			report->totals[j] += report->rows[i].counts[j];
	if (err)
		return err;
	keep_large(report, nr_classes, percent);
	qsort_r(report->rows, report->nr_rows, sizeof(*report->rows), compare_rows, &reverse);
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = look(&report->rows[i], profile, finder);
	return err ? err : find_packages(report, finder);
}

void opr_image_report_free(struct opr_image_report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->nr_rows; i++)
		free_row(&report->rows[i]);
	free(report->rows);
	free(report->totals);
	free(report->counts);
	*report = (struct opr_image_report){ 0 };
}

/* ---- hints for images without symbols ---- */

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
	err = opr_image_report_make(&images, profile, classes->nr_classes, finder, MIN_PERCENT, false);
	for (size_t i = 0; i < images.nr_rows && !err; i++) {
		const struct opr_symbol_row *lacking = find_lacking(report, profile->files[images.rows[i].first_file].image);

		if (lacking)
			err = warn(&images.rows[i], lacking);
	}
	opr_image_report_free(&images);
	return err;
}
