/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/run.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/log.h"
#include "tools/common/packages.h"
#include "tools/common/session_dir.h"
#include "tools/elf/debug_path.h"
#include "tools/oparchive/kernel.h"
#include "tools/symbols/object_look.h"
#include "tools/symbols/symbol_sources.h"

#define DEBUG_SUBDIR ".debug"

static int add_file(struct opa_run *run, const char *path, const char *name)
{
	return opa_warn_left_out(run, opr_archive_add(&run->writer, path, name), path);
}

/* ---- one image ---- */

/*
 * In the two places where gdb(1) looks: at its own path, and beside the image; then the files that
 * it refers to. A downloaded file is archived at the path that it has in a package.
 */
static int add_debug_file(struct opa_run *run, const struct opr_object *object, const char *image, const char *name)
{
	const char *root = run->options->query.naming.root ? run->options->query.naming.root : "", *slash = strrchr(name, '/');
	const char *names[] = { NULL, NULL, NULL };
	const struct opr_debug_search search = { .path = "", .name = "", .build_id = object->build_id };
	const char *path = object->debug_file, *link = object->debug_link;
	size_t skipped = strncmp(path, root, strlen(root)) ? 0 : strlen(root);
	struct op_text by_build_id = { 0 };
	char *beside = NULL;
	int err;

	if (opr_debug_is_downloaded(path, object->build_id) && opr_debug_path(&search, OPR_DEBUG_BY_BUILD_ID, &by_build_id))
		names[0] = by_build_id.data;
	else
		names[0] = path + skipped;
	if (link && *link && !strchr(link, '/') && slash &&
	    asprintf(&beside, "%.*s/" DEBUG_SUBDIR "/%s", (int)(slash - name), name, link) < 0) {
		op_text_free(&by_build_id);
		return opr_no_memory();
	}
	names[1] = beside;
	err = opa_add_seen(run, object->debug_device, object->debug_inode, path, names[0]);
	if (!err && beside)
		err = opa_add_seen(run, object->debug_device, object->debug_inode, path, beside);
	if (!err)
		err = opa_add_debug_files(run, image, name, run->options->query.naming.root, names);
	op_text_free(&by_build_id);
	free(beside);
	return err;
}

/* Notes the path of the debug file on its own machine. */
static void note_debug_file(struct opa_run *run, const char *path, const char *name, const char *debug_file)
{
	const char *root = run->options->query.naming.root ? run->options->query.naming.root : "";
	const struct opr_archive *archive = run->report.selection.finder.archive;
	const char *home = archive ? opr_archive_fact(&archive->debug, opr_archive_strip(archive, path)) : NULL;

	if (!home)
		home = opr_archive_strip(archive, strncmp(debug_file, root, strlen(root)) ? debug_file : debug_file + strlen(root));
	opr_archive_note_image(&run->writer, "debug", name, home);
}

static int add_debug_file_of(struct opa_run *run, const char *path, const char *name)
{
	struct opr_object object = { 0 };
	int err = opr_object_look(&object, path, name, run->options->query.naming.root, OPR_FROM_ALL, false);

	if (err)
		opr_error(err, "%s: %s", path, strerror(-err));
	if (!err && object.symbols == OPR_OBJECT_DEBUG)
		err = opa_add_debug_files(run, path, name, run->options->query.naming.root, (const char *[]){ name, NULL });
	if (!err && object.debug_file) {
		note_debug_file(run, path, name, object.debug_file);
		err = add_debug_file(run, &object, path, name);
	}
	opr_object_free(&object);
	return err;
}

static void note_inode(struct opa_run *run, const char *name)
{
	uint64_t inode = opr_archive_copied_inode(&run->writer, name);
	char *value = NULL;

	if (inode && asprintf(&value, "%" PRIu64 " %s", inode, name) >= 0)
		opr_archive_note(&run->writer, "inode", value);
	free(value);
}

/* The name in the archive: the path of a file; of a module, the path at which it was found. */
static char *archived_name(const struct opa_run *run, const struct opr_image *image)
{
	const char *root = run->options->query.naming.root ? run->options->query.naming.root : "";

	if (image->image_name->kind == OP_IMAGE_KERNEL)
		return strdup(strncmp(image->path, root, strlen(root)) ? image->path : image->path + strlen(root));
	return strndup(image->identity.path,
		       image->identity.kind == OPR_IDENTITY_NONE ? strlen(image->name) : image->identity.path_length);
}

/* The kernel's list of symbols. That of an earlier session stays when it is of the same kernel. */
static int add_symbols(struct opa_run *run, const char *path, const char *name)
{
	char *there = NULL;
	bool same = false;
	int err;

	if (!opr_earlier_has(&run->writer.earlier, name)) {
		err = add_file(run, path, name);
		if (!err)
			note_inode(run, name);
		return err ? err : opr_archive_add_kernel(&run->writer, path);
	}
	if (asprintf(&there, "%s%s", run->options->output_dir, name) < 0)
		return opr_no_memory();
	err = opr_archive_compare_kernels(there, path, &same);
	if (!err && !same)
		opa_warn_other(run, path, "the symbols of another kernel are already");
	free(there);
	return err;
}

/* A list without addresses is of no use to a report. */
static int add_kernel(struct opa_run *run, const char *path, const char *name)
{
	struct opr_symbols symbols = { 0 };
	int err = opr_symbols_read_kallsyms(&symbols, path, OPR_DEMANGLE_NONE);

	opr_symbols_free(&symbols);
	if (err == -ENOMEM)
		return opr_no_memory();
	if (err == -EPERM) {
		opr_warn("%s hides the kernel's addresses (kernel.kptr_restrict), also in the archive: reports from it have no "
			 "kernel symbols%s",
			 path, geteuid() ? "; run oparchive as root" : "");
		opa_note_left_out(run, path);
	}
	return add_symbols(run, path, name);
}

static int add_object(struct opa_run *run, const struct opr_image *image, const char *name)
{
	uint64_t inode = image->identity.kind == OPR_IDENTITY_INODE ? opr_earlier_inode(&run->writer.earlier, name) : 0;
	bool is_other = inode && inode != image->identity.inode;
	int err = is_other ? -EEXIST : opr_archive_add(&run->writer, image->path, name);

	is_other = err == -EEXIST;
	err = opa_warn_left_out(run, err, opr_finder_shown(&run->report.selection.finder, image->path));
	if (err || is_other)
		return err;
	if (!opr_living_is_copy(image->path))
		note_inode(run, name);
	return add_debug_file_of(run, image->path, name);
}

static int add_image(struct opa_run *run, const struct opr_image *image)
{
	char *name = archived_name(run, image);
	int err = 0;

	if (!name)
		return opr_no_memory();
	if (opr_earlier_has_line(&run->writer.earlier, "absent", image->name))
		opa_warn_other(run, opr_finder_shown(&run->report.selection.finder, image->path), "this file is listed as absent");
	else if (opr_identity_is_kallsyms(&image->identity))
		err = add_kernel(run, image->path, name);
	else
		err = add_object(run, image, name);
	free(name);
	return err;
}

/*
 * Whether an earlier run has archived an image or noted that it is absent: it has noted its
 * package, too.
 */
static bool is_of_earlier(const struct opa_run *run, const struct opr_image *image, const char *name)
{
	return opr_earlier_has(&run->writer.earlier, name) || opr_earlier_has_line(&run->writer.earlier, "absent", image->name);
}

/* ---- packages ---- */

/*
 * Finds the packages of all images but missing modules. For images in an archive, the archive knows
 * them.
 */
static int find_packages(const struct opa_run *run, char **names, const char **paths, char **packages)
{
	const struct opr_image_cache *images = &run->report.images;
	const struct opr_archive *archive = run->report.selection.finder.archive;

	for (size_t i = 0; i < images->nr_images; i++) {
		const struct opr_image *image = &images->images[i];
		const char *fact;

		if (image->state == OPR_IMAGE_HAS_NO_FILE || (image->image_name->kind == OP_IMAGE_KERNEL && !image->path))
			continue;
		names[i] = archived_name(run, image);
		if (!names[i])
			return -ENOMEM;
		if (!archive && !run->options->query.naming.root)
			paths[i] = image->path && !opr_living_is_copy(image->path) ? image->path : names[i];
		fact = archive ? opr_archive_fact(&archive->packages, names[i]) : NULL;
		packages[i] = fact ? strdup(fact) : NULL;
		if (fact && !packages[i])
			return -ENOMEM;
	}
	return archive ? 0 : opr_packages_find(OPR_PACKAGES_LISTS, paths, images->nr_images, packages);
}

int opa_note_packages(struct opa_run *run)
{
	size_t nr_images = run->report.images.nr_images;
	char **names = calloc(nr_images + 1, sizeof(*names)), **packages = calloc(nr_images + 1, sizeof(*packages));
	const char **paths = calloc(nr_images + 1, sizeof(*paths));
	int err = names && packages && paths ? find_packages(run, names, paths, packages) : -ENOMEM;

	for (size_t i = 0; names && packages && i < nr_images; i++) {
		if (!err && names[i] && packages[i] && !is_of_earlier(run, &run->report.images.images[i], names[i]))
			opr_archive_note_image(&run->writer, "package", names[i], packages[i]);
		free(names[i]);
		free(packages[i]);
	}
	free(names);
	free(packages);
	free(paths);
	return err ? opr_no_memory() : 0;
}

/* ---- what is absent ---- */

/* With an archive as input, files of this machine say nothing about the image. */
static int warn_absent(struct opa_run *run, const struct opr_image *image)
{
	bool unreadable = image->state == OPR_IMAGE_UNREADABLE;
	char *path = NULL;
	int err;

	if (!unreadable || run->report.selection.finder.archive) {
		opr_finder_warn(&run->report.selection.finder, image->state, image->name, &image->identity);
		if (unreadable)
			opa_note_left_out(run, image->name);
		return 0;
	}
	if (asprintf(&path, "%s%.*s", run->options->query.naming.root ? run->options->query.naming.root : "",
		     (int)image->identity.path_length, image->identity.path) < 0)
		return opr_no_memory();
	err = opa_warn_left_out(run, -EACCES, path);
	free(path);
	return err;
}

/* The row table of opd has the names of its functions. */
static int add_table(struct opa_run *run, const struct opr_image *image)
{
	const char *build_id = image->identity.build_id;
	char *dir = NULL, *name = NULL;
	int fd, err;

	if (image->identity.kind != OPR_IDENTITY_BUILD_ID || image->identity.is_kernel ||
	    opr_table_dir(run->report.selection.finder.archive, &dir) < 0)
		return 0;
	fd = opr_table_open(dir, build_id);
	err = fd >= 0 && asprintf(&name, "/" OPR_ARCHIVE_TABLES "/%.2s/%s", build_id, build_id) < 0 ? opr_no_memory() : 0;
	if (fd >= 0 && !err)
		err = opr_archive_add_open(&run->writer, fd, image->name, name);
	else if (fd >= 0)
		close(fd);
	free(name);
	free(dir);
	return err == -EEXIST ? 0 : opa_warn_left_out(run, err, image->name);
}

static int note_absent(struct opa_run *run, const struct opr_image *image)
{
	const char *word = opr_image_state_word(image->state);
	char *other = NULL, *value = NULL;

	if (opr_earlier_has(&run->writer.earlier, image->name))
		return warn_absent(run, image);
	if (image->state == OPR_IMAGE_OTHER_KERNEL)
		other = opr_finder_other_kernel(&run->report.selection.finder, image->name, &image->identity);
	if (asprintf(&value, "%s%s%s", word, other ? " " : "", other ? other : "") >= 0)
		opr_archive_note_image(&run->writer, "absent", image->name, value);
	free(value);
	free(other);
	return add_table(run, image) ?: warn_absent(run, image);
}

int opa_add_images(struct opa_run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->report.images.nr_images && !err; i++) {
		struct opr_image *image = opr_image_cache_find(&run->report.images, run->report.images.images[i].name);

		if (!image)
			return -ENOMEM;
		if (image->path && !opr_is_jit_object(image->image_name, image->name))
			err = add_image(run, image);
		else if (!image->path && image->state != OPR_IMAGE_HAS_NO_FILE)
			err = note_absent(run, image);
	}
	return err;
}
