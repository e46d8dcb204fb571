/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/report/image_rows.h"

#include <errno.h>

#include "tools/common/log.h"
#include "tools/common/packages.h"
#include "tools/profile/image_name.h"

#define UNKNOWN		"-"
#define DEBUGINFOD_URLS "DEBUGINFOD_URLS"
#define DEBUG_SUFFIX	"-dbgsym"

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

static bool is_wanted(const struct opr_image_report *report, const struct opr_profile *profile, const struct opr_image_row *row)
{
	const char **only = report->only;

	while (only && *only && strcmp(*only, profile->files[row->first_file].image))
		only++;
	return !only || *only;
}

/* Drops images below the threshold and images without samples, whose sample files are empty. */
static void keep_large(struct opr_image_report *report, const struct opr_profile *profile, size_t nr_classes, double percent)
{
	size_t nr_kept = 0;

	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_image_row *row = &report->rows[i];
		uint64_t sum = 0;

		for (size_t j = 0; j < nr_classes; j++)
			sum += row->counts[j];
		if (sum && (double)row->counts[0] * 100 >= percent * (double)report->totals[0] && is_wanted(report, profile, row))
			report->rows[nr_kept++] = *row;
		else
			free_row(row);
	}
	report->nr_rows = nr_kept;
}

/* ---- symbols and debug files ---- */

static int look(struct opr_image_row *row, const struct opr_profile *profile, struct opr_finder *finder, uint32_t sources)
{
	const struct opr_file *file = &profile->files[row->first_file];
	const struct op_image_name *image = &file->name->image;
	const struct op_dcookie_row *known = opr_session_row(&profile->sessions[file->session], image);
	int err = opr_debug_look(&row->debug, finder, image, file->image, known, sources);

	/* Without a table of images the file that was found gives the build-id. */
	if (!err && !strcmp(row->identity, UNKNOWN) && *row->debug.build_id) {
		free(row->identity);
		row->identity = strdup(row->debug.build_id);
		if (!row->identity)
			err = opr_no_memory();
	}
	return err;
}

/* The path to search a package by: of the file, or of one that is gone. NULL: no hint names it. */
static const char *packaged_path(const struct opr_image_row *row)
{
	if (!row->debug.debug_file || !opr_debug_would_help(&row->debug))
		return NULL;
	if (row->debug.path && !opr_living_is_copy(row->debug.path))
		return row->debug.path;
	return *row->name == '/' && row->debug.state != OPR_SYMBOLS_NO_FILE ? row->name : NULL;
}

/* The package in the facts of the archive that has the image; of a missing image in any. */
static const char *package_fact(const struct opr_archive *archives, const char *path)
{
	const struct opr_archive *owner = opr_archive_of(archives, path);
	const char *package = NULL;

	for (; archives && !package; archives = archives->next)
		if (!owner || owner == archives)
			package = opr_archive_fact(&archives->packages, opr_archive_strip(owner, path));
	return package;
}

static int take_packages(struct opr_image_report *report, const struct opr_archive *archives)
{
	for (size_t i = 0; i < report->nr_rows; i++) {
		struct opr_image_row *row = &report->rows[i];
		const char *path = packaged_path(row);
		const char *package = path ? package_fact(archives, path) : NULL;

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
		err = opr_packages_find(OPR_PACKAGES_LISTS, paths, report->nr_rows, packages);
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

void opr_image_row_note_archive(const struct opr_image_row *row, const struct opr_finder *finder)
{
	const char *dash = row->package ? strrchr(row->package, '-') : NULL;
	char *archive = NULL;

	if (dash && !strcmp(dash, DEBUG_SUFFIX) && !finder->archive && opr_debug_would_help(&row->debug))
		archive = opr_packages_debug_archive();
	if (archive)
		opr_note("packages NAME" DEBUG_SUFFIX " are in an archive of their own: %s", archive);
	free(archive);
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
	keep_large(report, profile, nr_classes, percent);
	qsort_r(report->rows, report->nr_rows, sizeof(*report->rows), compare_rows, &reverse);
	for (size_t i = 0; i < report->nr_rows && !err; i++)
		err = look(&report->rows[i], profile, finder, report->sources);
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

/* The samples of an image that are in no function with a name. */
struct nameless {
	const struct opr_symbol_row *row; /* one of them */
	uint64_t count;
};

static bool is_nameless(const struct opr_symbol_row *row)
{
	return row->symbols && !row->is_rest && (!row->symbol || row->symbol->is_unnamed);
}

static int compare_images(const void *left, const void *right)
{
	const struct nameless *a = left, *b = right;

	return strcmp(a->row->image, b->row->image);
}

/* Adds up the rows of each image. Returns the number of images. */
static size_t add_up(struct nameless *all, size_t nr_rows)
{
	size_t nr_images = 0;

	if (nr_rows)
		qsort(all, nr_rows, sizeof(*all), compare_images);
	for (size_t i = 0; i < nr_rows; i++) {
		if (nr_images && !compare_images(&all[nr_images - 1], &all[i]))
			all[nr_images - 1].count += all[i].count;
		else
			all[nr_images++] = all[i];
	}
	return nr_images;
}

static bool matters(const struct opr_symbol_report *report, uint64_t count)
{
	return report->totals[0] && 100.0 * (double)count / (double)report->totals[0] >= MIN_PERCENT;
}

/* The images for which this matters, by name. The caller frees *ret_all. 0 or -ENOMEM. */
static int find_nameless(const struct opr_symbol_report *report, struct nameless **ret_all, size_t *ret_nr_images)
{
	struct nameless *all = calloc(report->nr_rows + 1, sizeof(*all));
	size_t nr_rows = 0, nr_images, nr_kept = 0;
	uint64_t total = 0;

	if (!all)
		return opr_no_memory();
	for (size_t i = 0; i < report->nr_rows; i++) {
		const struct opr_symbol_row *row = &report->rows[i];

		if (!is_nameless(row))
			continue;
		all[nr_rows] = (struct nameless){ row, report->counts.values[row->counts] };
		total += all[nr_rows++].count;
	}
	nr_images = matters(report, total) ? add_up(all, nr_rows) : 0;
	for (size_t i = 0; i < nr_images; i++)
		if (matters(report, all[i].count))
			all[nr_kept++] = all[i];
	*ret_all = all;
	*ret_nr_images = nr_kept;
	return 0;
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

/* `nameless`: the samples of this image that are in functions without a name. */
static int warn(const struct opr_image_row *row, const struct nameless *nameless, double total)
{
	char *hint = opr_image_row_hint(row);
	const char *build_id = *row->debug.build_id ? row->debug.build_id : "not known";
	const char *file = row->debug.debug_file ? hint : "not known";

	if (!hint)
		return opr_no_memory();
	if (!nameless->row->symbols->code_path) {
		if (is_gone(&row->debug))
			warn_gone(row, hint);
	} else if (row->debug.state == OPR_SYMBOLS_NONE) {
		opr_warn("%s has no symbols: its samples are one line. Its build-id is %s, its debug file %s.", row->name, build_id,
			 file);
	} else if (opr_debug_lacks_names(&row->debug)) {
		opr_warn("%s has no names for functions with %.1f %% of the samples. Its build-id is %s, its debug file %s.",
			 row->name, 100.0 * (double)nameless->count / total, build_id, file);
	}
	free(hint);
	return 0;
}

/* The names of the images up to a NULL. The caller frees the array. */
static const char **names_of(const struct nameless *all, size_t nr)
{
	const char **names = calloc(nr + 1, sizeof(*names));

	for (size_t i = 0; names && i < nr; i++)
		names[i] = all[i].row->image;
	return names;
}

/* Other images are left alone: their debugging information takes longer than the report. */
int opr_missing_symbols_warn(const struct opr_profile *profile, const struct opr_classes *classes, struct opr_finder *finder,
			     const struct opr_symbol_report *report, uint32_t sources)
{
	struct opr_image_report images = { .sources = sources };
	struct nameless *all = NULL;
	size_t nr_all = 0;
	int err = find_nameless(report, &all, &nr_all);

	if (!err && nr_all) {
		images.only = names_of(all, nr_all);
		err = images.only ? opr_image_report_make(&images, profile, classes->nr_classes, finder, MIN_PERCENT, false)
				  : opr_no_memory();
	}
	for (size_t i = 0; i < images.nr_rows && !err; i++) {
		const struct opr_symbol_row named = { .image = profile->files[images.rows[i].first_file].image };
		const struct nameless key = { .row = &named };
		const struct nameless *found = bsearch(&key, all, nr_all, sizeof(*all), compare_images);

		if (found)
			err = warn(&images.rows[i], found, (double)report->totals[0]);
		if (found && !err)
			opr_image_row_note_archive(&images.rows[i], finder);
	}
	free(images.only);
	opr_image_report_free(&images);
	free(all);
	return err;
}
