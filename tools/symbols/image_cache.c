/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/image_cache.h"

#include <errno.h>
#include <sys/stat.h>

#include "libop/base/clock.h"
#include "libop/process/threads.h"
#include "tools/common/child.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/common/session_dir.h"
#include "tools/elf/bfd_file.h"
#include "tools/elf/line_table.h"
#include "tools/elf/lines.h"
#include "tools/fetch/debuginfod.h"
#include "tools/symbols/parallel_read.h"
#include "tools/symbols/symbol_sources.h"

/* ---- image files that took the place of another one ---- */

static bool has_other_files(const struct opr_image_cache *cache, const char *image)
{
	for (size_t i = 0; i < cache->nr_other_files; i++)
		if (!strcmp(cache->other_files[i].image, image))
			return true;
	return false;
}

/* Whether the file at `path` is counted apart from the samples in sample_file. */
static bool is_counted_apart(const struct opr_image_cache *cache, const char *sample_file, const char *path)
{
	for (size_t i = 0; i < cache->nr_other_files; i++)
		if (!strcmp(cache->other_files[i].sample_file, sample_file) &&
		    opr_identity_agrees(&cache->other_files[i].identity, cache->finder->archive, path))
			return true;
	return false;
}

/* ---- the cache ---- */

static int compare_images(const void *left, const void *right)
{
	const struct opr_image *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static struct opr_image *find_image(const struct opr_image_cache *cache, const char *name)
{
	const struct opr_image key = { .name = name };

	return bsearch(&key, cache->images, cache->nr_images, sizeof(key), compare_images);
}

static const char *shown_path(const struct opr_image_cache *cache, const struct opr_image *image)
{
	return opr_finder_shown(cache->finder, image->path);
}

struct opr_image *opr_image_cache_find(struct opr_image_cache *cache, const char *name)
{
	struct opr_image *image = find_image(cache, name);

	if (!image) {
		opr_error(-ENOENT, "image %s is not in the list of the report", name);
		return NULL;
	}
	if (image->searched)
		return image;
	if (opr_finder_find(cache->finder, image->image_name, name, &image->identity, &image->state, &image->path) < 0) {
		opr_no_memory();
		return NULL;
	}
	image->searched = true;
	opr_verbose(OPR_TOPIC_debug, "image %s: %s", name, image->path ? shown_path(cache, image) : "no file");
	if (!image->identity.is_known && image->path && opr_identity_of(image->path).told_apart)
		image->identity = (struct opr_identity){ .path = name, .path_length = strlen(name) };
	image->shown = name;
	if (image->path && !image->identity.told_apart && !opr_is_jit_object(image->image_name, name) &&
	    !opr_living_is_copy(image->path))
		image->shown = opr_archive_strip(cache->finder->archive, image->path);
	return image;
}

static bool is_kallsyms(const struct opr_image *image)
{
	return image->image_name->kind == OP_IMAGE_FILE && opr_identity_is_kallsyms(&image->identity);
}

struct opr_symbol_options opr_image_options(const struct opr_image_cache *cache, const struct opr_image *image)
{
	const struct opr_archive *archive = opr_archive_of(cache->finder->archive, image->path);

	return (struct opr_symbol_options){ .demangle = cache->naming->demangle,
					    .sources = cache->naming->sources,
					    .root = archive ? archive->dir : cache->naming->root,
					    .by_address = opr_is_jit_object(image->image_name, image->name),
					    .is_kallsyms = is_kallsyms(image) };
}

/* Whether the symbols of the last report can be used again. */
static bool take_kept(const struct opr_image_cache *cache, struct opr_image *image)
{
	if (!cache->naming->kept || !opr_kept_take(cache->naming->kept, image->path, &image->symbols, &image->file_state))
		return false;
	image->is_read = true;
	return true;
}

/*
 * Reads the symbols of images by several processes. Warnings come when each image is loaded. 0 or
 * -errno.
 */
static int read_files(const struct opr_image_cache *cache, struct opr_image *const *images, size_t nr_images)
{
	struct opr_symbol_job *jobs = calloc(nr_images + 1, sizeof(*jobs));
	struct opr_image **read = calloc(nr_images + 1, sizeof(*read));
	size_t nr_jobs = 0;
	int err = jobs && read ? 0 : opr_no_memory();

	for (size_t i = 0; i < nr_images && !err; i++) {
		struct opr_image *image = images[i];

		if (image->is_read || image->loaded || !image->path || take_kept(cache, image))
			continue;
		image->is_read = true;
		read[nr_jobs] = image;
		jobs[nr_jobs++] = (struct opr_symbol_job){ .path = image->path,
							   .name = image->name,
							   .options = opr_image_options(cache, image),
							   .symbols = &image->symbols };
	}
	if (err)
		goto out;
	if (nr_jobs) {
		opr_verbose(OPR_TOPIC_level1, "reading the symbols of %zu images", nr_jobs);
		opr_progress("reading the symbols of %zu images", nr_jobs);
	}
	err = opr_symbol_jobs_run(jobs, nr_jobs);
	if (err)
		opr_error(err, "cannot read symbols: %s", strerror(-err));
	for (size_t i = 0; i < nr_jobs && !err; i++)
		read[i]->read_err = jobs[i].err;
out:
	free(read);
	free(jobs);
	return err;
}

/* ---- debug files that are downloaded ---- */

/* Whether a debug file would add what the report shows and what no file on this host has. */
static bool lacks_debug_file(const struct opr_image_cache *cache, const struct opr_image *image)
{
	const struct opr_symbols *symbols = &image->symbols;

	if (image->is_asked_for || !image->is_read || image->read_err || !symbols->build_id || symbols->has_debug_info ||
	    symbols->debug_path || (symbols->has_table && !cache->naming->fetch_lines))
		return false;
	return (double)image->nr_samples * 100 >= cache->naming->fetch_percent * (double)cache->nr_samples;
}

static int compare_samples(const void *left, const void *right)
{
	const struct opr_image *a = *(struct opr_image *const *)left, *b = *(struct opr_image *const *)right;

	if (a->nr_samples != b->nr_samples)
		return a->nr_samples > b->nr_samples ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Downloads debug files, and leaves in `images` those whose symbols are to be read again. */
static int fetch_debug_files(struct opr_image **images, size_t *nr_images)
{
	struct opr_wanted_debug *wanted = calloc(*nr_images + 1, sizeof(*wanted));
	size_t nr_came = 0;
	int err = wanted ? 0 : opr_no_memory();

	for (size_t i = 0; i < *nr_images && !err; i++) {
		images[i]->is_asked_for = true;
		wanted[i] = (struct opr_wanted_debug){ .name = images[i]->name, .build_id = images[i]->symbols.build_id };
	}
	if (!err)
		err = opr_debuginfod_fetch(wanted, *nr_images, opr_bfd_is_of_build_id);
	for (size_t i = 0; i < *nr_images && !err; i++)
		if (wanted[i].came)
			images[nr_came++] = images[i];
	*nr_images = nr_came;
	free(wanted);
	return err;
}

static int read_downloaded(const struct opr_image_cache *cache, struct opr_image *const *images, size_t nr_images)
{
	struct opr_image **lacking = calloc(nr_images + 1, sizeof(struct opr_image *));
	size_t nr_lacking = 0;
	int err = lacking ? 0 : opr_no_memory();

	for (size_t i = 0; i < nr_images && !err; i++)
		if (lacks_debug_file(cache, images[i]))
			lacking[nr_lacking++] = images[i];
	if (nr_lacking) {
		qsort(lacking, nr_lacking, sizeof(*lacking), compare_samples);
		err = fetch_debug_files(lacking, &nr_lacking);
	}
	for (size_t i = 0; i < nr_lacking && !err; i++) {
		opr_symbols_free(&lacking[i]->symbols);
		lacking[i]->is_read = false;
	}
	if (!err && nr_lacking)
		err = read_files(cache, lacking, nr_lacking);
	free(lacking);
	return err;
}

static int read_images(const struct opr_image_cache *cache, struct opr_image *const *images, size_t nr_images)
{
	int err = read_files(cache, images, nr_images);

	return err || !opr_debuginfod_dir() ? err : read_downloaded(cache, images, nr_images);
}

/*
 * The first ones are read in any case, so that each report has more names. More are read at a time
 * as long as there is time: the last ones may take as long as all before.
 */
static int read_until_end(struct opr_image_cache *cache, struct opr_image **images, size_t nr_images)
{
	size_t nr_open = 0, nr_at_once = op_nr_cpus(), i = 0;
	int err = 0;

	for (; i < nr_images; i++)
		if (images[i]->path && !images[i]->is_read && !take_kept(cache, images[i]))
			images[nr_open++] = images[i];
	if (nr_open)
		qsort(images, nr_open, sizeof(struct opr_image *), compare_samples);
	for (i = 0; i < nr_open && !err && (!i || op_now_ns() < cache->names_end_ns); i += nr_at_once, nr_at_once *= 2)
		err = read_images(cache, images + i, op_min_u64(nr_at_once, nr_open - i));
	for (; i < nr_open; i++) {
		cache->nr_put_off += !images[i]->is_read && !images[i]->is_put_off;
		images[i]->is_put_off = !images[i]->is_read;
	}
	return err;
}

int opr_image_cache_read(struct opr_image_cache *cache)
{
	struct opr_image **images = calloc(cache->nr_images + 1, sizeof(*images));
	size_t nr_images = 0;
	int err = images ? 0 : opr_no_memory();

	for (size_t i = 0; i < cache->nr_images && !err; i++) {
		if (!cache->images[i].is_wanted)
			continue;
		images[nr_images] = opr_image_cache_find(cache, cache->images[i].name);
		err = images[nr_images++] ? 0 : -ENOMEM;
	}
	if (!err)
		err = cache->names_end_ns ? read_until_end(cache, images, nr_images) : read_images(cache, images, nr_images);
	free(images);
	return err;
}

int opr_images_find_lines(struct opr_image_cache *cache, struct opr_image_lines *list, size_t nr_list, bool with_frames)
{
	struct opr_line_job *jobs = calloc(nr_list + 1, sizeof(*jobs));
	struct opr_image **images = calloc(nr_list + 1, sizeof(struct opr_image *));
	size_t nr_jobs = 0;
	int err = jobs && images ? 0 : opr_no_memory();

	for (size_t i = 0; i < nr_list && !err; i++) {
		struct opr_image *image = list[i].image;

		if (!image->is_object || !list[i].nr_vmas || image->has_lines)
			continue;
		image->has_lines = true;
		opr_line_table_free(image->symbols.table);
		image->symbols.table = NULL;
		images[nr_jobs] = image;
		jobs[nr_jobs++] = (struct opr_line_job){ .search = { .path = image->path,
								     .name = image->name,
								     .root = opr_image_options(cache, image).root,
								     .file = &image->symbols.file,
								     .with_frames = with_frames,
								     .demangle = cache->naming->demangle },
							 .vmas = list[i].vmas,
							 .nr_vmas = list[i].nr_vmas };
	}
	if (!err) {
		if (nr_jobs == 1)
			opr_progress("reading the source lines of %s", shown_path(cache, images[0]));
		else if (nr_jobs)
			opr_progress("reading the source lines of %zu images", nr_jobs);
		err = opr_line_tables_make(jobs, nr_jobs);
	}
	if (err && err != -ENOMEM) {
		opr_warn("the source lines of images cannot be read: %s", opr_child_reason(err));
		nr_jobs = 0;
		err = 0;
	}
	for (size_t i = 0; i < nr_jobs && !err; i++) {
		images[i]->symbols.table = jobs[i].table;
		if (jobs[i].err)
			opr_warn("the source lines of %s cannot be read: %s", shown_path(cache, images[i]),
				 opr_child_reason(jobs[i].err));
		else if (jobs[i].table->damage)
			opr_lines_warn_damage(opr_finder_shown(cache->finder, jobs[i].table->damaged), jobs[i].table->damage);
	}
	free(images);
	free(jobs);
	return err;
}

int opr_image_find_lines(struct opr_image_cache *cache, struct opr_image *image, uint64_t *vmas, size_t nr_vmas, bool with_frames)
{
	struct opr_image_lines one = { image, vmas, nr_vmas };

	return opr_images_find_lines(cache, &one, 1, with_frames);
}

static int load_object(const struct opr_image_cache *cache, struct opr_image *image)
{
	int err = read_images(cache, &image, 1);

	if (err)
		return err;
	err = image->read_err;
	if (err == -EPERM && is_kallsyms(image))
		opr_warn("%s hides the kernel's addresses (kernel.kptr_restrict): no kernel symbols are shown. Run as root to "
			 "see them.",
			 shown_path(cache, image));
	else if (err == -ENOEXEC)
		opr_warn("%s is not in a usable binary format.", shown_path(cache, image));
	else if (err)
		opr_warn("the symbols of %s cannot be read: %s", shown_path(cache, image), opr_child_reason(err));
	else if (image->symbols.is_damaged)
		opr_warn("the symbol table of %s is damaged: symbols are missing, or have no names.", shown_path(cache, image));
	image->is_object = !err && !is_kallsyms(image);
	return 0;
}

static bool read_table(const struct opr_image_cache *cache, const struct opr_archive *archive, struct opr_image *image)
{
	char *dir;
	int err;

	if (opr_table_dir(archive, &dir) < 0)
		return false;
	err = opr_symbols_read_table(&image->symbols, dir, image->identity.build_id, cache->naming->demangle);
	opr_verbose(OPR_TOPIC_debug, "the row table of %s: %s", image->name, err ? strerror(-err) : dir);
	free(dir);
	if (err)
		opr_symbols_free(&image->symbols);
	return !err;
}

/* opd walked stacks through the image while it ran. */
static bool load_table(const struct opr_image_cache *cache, struct opr_image *image)
{
	const struct opr_archive *archive = cache->finder->archive;
	bool is_read;

	if (image->identity.kind != OPR_IDENTITY_BUILD_ID || image->identity.is_kernel ||
	    !(cache->naming->sources & OPR_FROM_TABLE))
		return false;
	is_read = read_table(cache, archive, image);
	while (!is_read && archive && archive->next) {
		archive = archive->next;
		is_read = read_table(cache, archive, image);
	}
	return is_read;
}

/* A file without symbols, as one without section headers, has the functions that opd kept. */
static void load_kept(const struct opr_image_cache *cache, struct opr_image *image)
{
	struct opr_symbols own = image->symbols;

	if (!image->is_object || own.nr_symbols)
		return;
	image->symbols = (struct opr_symbols){ 0 };
	if (load_table(cache, image) && image->symbols.nr_symbols) {
		opr_symbols_free(&own);
		return;
	}
	opr_symbols_free(&image->symbols);
	image->symbols = own;
}

/*
 * The file was found by its build-id or inode. Between that and the reading of its symbols another
 * one may have taken its place, as when a package is upgraded during a long report.
 */
static bool is_the_one_found(const struct opr_image_cache *cache, const struct opr_image *image)
{
	const struct opr_identity *identity = &image->identity;
	const struct opr_symbols *symbols = &image->symbols;

	if (!image->is_object || !image->is_read)
		return true;
	if (identity->kind == OPR_IDENTITY_BUILD_ID)
		return symbols->build_id && !strncmp(symbols->build_id, identity->build_id, strlen(identity->build_id));
	/* An archive says which inode its copy had. */
	return identity->kind != OPR_IDENTITY_INODE || opr_archive_of(cache->finder->archive, image->path) ||
	       !symbols->file.inode || symbols->file.inode == identity->inode;
}

/* The modification time of the file that was read, in seconds. */
static uint64_t mtime_of(const struct opr_image *image)
{
	struct stat st;

	if (image->symbols.file.inode)
		return image->symbols.file.mtime_ns / OP_NS_PER_S;
	return stat(image->path, &st) < 0 ? 0 : (uint64_t)st.st_mtime;
}

/* It is not given back to those that are kept: the next report looks at the path again. */
static void forget_symbols(struct opr_image *image)
{
	opr_symbols_free(&image->symbols);
	image->is_object = image->is_read = false;
}

static void warn_gone(const struct opr_image_cache *cache, const struct opr_image *image)
{
	if (image->is_table)
		opr_warn("%s is not there any more: its functions are those that opd kept.", image->name);
	else
		opr_finder_warn(cache->finder, image->state, image->name, &image->identity);
}

/* A host with many short-lived programs has dozens of them. */
static void tell_gone(const struct opr_image_cache *cache)
{
	const struct opr_image *most = NULL;
	size_t nr_gone = 0, nr_kept = 0, nr_replaced = 0;

	for (size_t i = 0; i < cache->nr_images; i++) {
		const struct opr_image *image = &cache->images[i];

		if (!image->is_gone)
			continue;
		nr_gone++;
		nr_kept += image->is_table;
		nr_replaced += image->state == OPR_IMAGE_REPLACED;
		if (!most || image->nr_samples > most->nr_samples)
			most = image;
	}
	if (!most || opr_log_shows(OPR_TOPIC_details))
		return;
	if (nr_gone == 1)
		warn_gone(cache, most);
	else
		opr_warn("%zu images could not be found, above all %s: %zu have the functions that opd kept, %zu are one "
			 "symbol each; at the paths of %zu are other files. --verbose lists them.",
			 nr_gone, most->name, nr_kept, nr_gone - nr_kept, nr_replaced);
}

/* Code of BPF programs never had a file: the kernel gives it a name alone. */
static bool is_bpf_code(const char *name)
{
	name += *name == '/';
	return !strncmp(name, "bpf_prog_", strlen("bpf_prog_")) && !strchr(name, '/');
}

int opr_image_load(struct opr_image_cache *cache, struct opr_image *image)
{
	int err;

	if (image->loaded || image->is_put_off)
		return 0;
	image->loaded = true;
	if (!image->path && is_bpf_code(image->name))
		return 0;
	image->is_table = !image->path && load_table(cache, image);
	image->is_gone = image->is_table || image->state == OPR_IMAGE_NOT_FOUND || image->state == OPR_IMAGE_REPLACED;
	if (!image->is_gone)
		opr_finder_warn(cache->finder, image->state, image->name, &image->identity);
	else if (opr_log_shows(OPR_TOPIC_details))
		warn_gone(cache, image);
	if (!image->path)
		return 0;
	image->has_other_files = has_other_files(cache, image->name);
	err = load_object(cache, image);
	if (err)
		return err;
	image->mtime = mtime_of(image);
	if (is_the_one_found(cache, image)) {
		load_kept(cache, image);
		return 0;
	}
	forget_symbols(image);
	image->state = image->identity.is_kernel ? OPR_IMAGE_OTHER_KERNEL : OPR_IMAGE_REPLACED;
	image->is_table = load_table(cache, image);
	image->is_gone = image->state == OPR_IMAGE_REPLACED;
	if (!image->is_gone || opr_log_shows(OPR_TOPIC_details))
		opr_finder_warn(cache->finder, image->state, image->name, &image->identity);
	return 0;
}

static void warn_of_changes(struct opr_image_cache *cache, struct opr_image *image, const struct op_odb_header *header)
{
	if (image->mtime_checked)
		return;
	image->mtime_checked = true;
	if (!header->mtime) {
		opr_warn("could not check that the binary file %s has not been modified since the profile was taken. "
			 "Results may be inaccurate.",
			 shown_path(cache, image));
		return;
	}
	if (image->mtime == header->mtime)
		return;
	opr_warn("%s was modified after the profile was taken, or is another file than the one that ran.",
		 shown_path(cache, image));
	if (!cache->hint_given)
		opr_warn("symbols of such a file may be wrong.");
	cache->hint_given = true;
}

static bool is_sampled_file(const struct opr_image_cache *cache, const struct opr_image *image, const char *sample_file,
			    const struct op_odb_header *header)
{
	bool same_time = header->mtime && header->mtime == image->mtime;

	switch (image->identity.kind) {
	case OPR_IDENTITY_BUILD_ID:
		return true;
	case OPR_IDENTITY_INODE:
	case OPR_IDENTITY_UNKNOWN:
		return same_time;
	case OPR_IDENTITY_NONE:
		break;
	}
	return !image->has_other_files || (same_time && !is_counted_apart(cache, sample_file, image->path));
}

bool opr_image_check(struct opr_image_cache *cache, struct opr_image *image, const char *sample_file,
		     const struct op_odb_header *header)
{
	if (!image->is_object || opr_is_jit_object(image->image_name, image->name))
		return true;
	if (is_sampled_file(cache, image, sample_file, header)) {
		if (image->identity.kind != OPR_IDENTITY_BUILD_ID)
			warn_of_changes(cache, image, header);
		return true;
	}
	if (!image->foreign_warned)
		opr_warn("the samples of %s are not of the file that is now at %s: another file took its place. They are shown "
			 "as one symbol.",
			 image->name, shown_path(cache, image));
	image->foreign_warned = true;
	return false;
}

static void free_image(const struct opr_image_cache *cache, struct opr_image *image)
{
	if (cache->naming->kept && image->is_read && !image->read_err)
		opr_kept_give(cache->naming->kept, image->path, &image->symbols, &image->file_state);
	else
		opr_symbols_free(&image->symbols);
	free(image->path);
}

void opr_image_cache_free(struct opr_image_cache *cache)
{
	if (!cache)
		return;
	tell_gone(cache);
	for (size_t i = 0; i < cache->nr_images; i++)
		free_image(cache, &cache->images[i]);
	free(cache->images);
	for (size_t i = 0; i < cache->nr_other_files; i++) {
		free(cache->other_files[i].image);
		free(cache->other_files[i].sample_file);
	}
	free(cache->other_files);
	*cache = (struct opr_image_cache){ 0 };
}
