/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/image_path.h"

#include <errno.h>
#include <fts.h>
#include <linux/magic.h>
#include <search.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/base/text.h"
#include "tools/common/log.h"
#include "tools/elf/module_file.h"

#define MODULES_DIR "/lib/modules/"

/* Names under which opd and oprofile store samples that belong to no file. */
static const char *const pseudo_images[] = {
	"no-vmlinux", "no-xen",     "no-mapping", "no-process",      "guest-kernel",
	"guest-user", "hypervisor", "no-mode",    "too-many-images",
};

static const char *const state_words[] = {
	[OPR_IMAGE_FOUND] = "found",           [OPR_IMAGE_HAS_NO_FILE] = "no-file", [OPR_IMAGE_NOT_FOUND] = "not-found",
	[OPR_IMAGE_UNREADABLE] = "unreadable", [OPR_IMAGE_REPLACED] = "replaced",   [OPR_IMAGE_OTHER_KERNEL] = "other-kernel",
	[OPR_IMAGE_AMBIGUOUS] = "ambiguous",
};

const char *opr_image_state_word(enum opr_image_state state)
{
	return state_words[state];
}

bool opr_is_jit_object(const struct op_image_name *image, const char *name)
{
	return image->kind == OP_IMAGE_ANON && *name == '/';
}

/* True for anonymous regions and pseudo-images. */
static bool has_no_file(const struct op_image_name *image)
{
	if (image->kind == OP_IMAGE_ANON)
		return true;
	for (size_t i = 0; i < op_array_size(pseudo_images); i++)
		if (image->kind == OP_IMAGE_KERNEL && !strcmp(image->name, pseudo_images[i]))
			return true;
	return false;
}

/* ---- the search directories ---- */

static int add_file(struct opr_finder *finder, const char *path)
{
	char *copy, *slash;

	if (!op_grow(&finder->files, &finder->capacity, finder->nr_files + 1))
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	slash = strrchr(copy, '/');
	finder->files[finder->nr_files++] = (struct opr_found_file){ slash ? slash + 1 : copy, copy };
	return 0;
}

/* The file systems of the kernel: they have no images, and /proc shows all others again. */
static const unsigned long kernels_own[] = {
	PROC_SUPER_MAGIC,   SYSFS_MAGIC,	 DEBUGFS_MAGIC, TRACEFS_MAGIC,  SECURITYFS_MAGIC,   CGROUP_SUPER_MAGIC,
	CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC, PSTOREFS_MAGIC, NSFS_MAGIC, DEVPTS_SUPER_MAGIC, EFIVARFS_MAGIC,
};

static bool is_of_kernel(const char *dir)
{
	struct statfs fs;

	if (statfs(dir, &fs) < 0)
		return false;
	for (size_t i = 0; i < op_array_size(kernels_own); i++)
		if ((unsigned long)fs.f_type == kernels_own[i])
			return true;
	return false;
}

/* A directory that was listed. Links and bind mounts lead to it again. */
struct seen_dir {
	dev_t device;
	ino_t inode;
};

static int compare_dirs(const void *left, const void *right)
{
	const struct seen_dir *a = left, *b = right;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->inode < b->inode ? -1 : a->inode > b->inode;
}

/* The directories of one search directory, and the number of its entries. */
struct listing {
	void *seen; /* a tree of tsearch(3) */
	size_t nr_entries;
};

/* 1: the directory was seen before. 0 or -errno. */
static int note_dir(struct listing *listing, const struct stat *st)
{
	struct seen_dir *dir = malloc(sizeof(*dir)), **found;

	if (!dir)
		return -ENOMEM;
	*dir = (struct seen_dir){ st->st_dev, st->st_ino };
	found = tsearch(dir, &listing->seen, compare_dirs);
	if (found && *found == dir)
		return 0;
	free(dir);
	return found ? 1 : -ENOMEM;
}

static int list_entry(struct opr_finder *finder, struct listing *listing, FTS *fts, FTSENT *entry)
{
	int err = 0;

	listing->nr_entries++;
	if (entry->fts_info == FTS_F)
		return add_file(finder, entry->fts_path);
	if (entry->fts_info == FTS_D)
		err = note_dir(listing, entry->fts_statp);
	if (err > 0 || (entry->fts_info == FTS_D && !err && is_of_kernel(entry->fts_path)))
		fts_set(fts, entry, FTS_SKIP);
	return err < 0 ? err : 0;
}

static int list_dir(struct opr_finder *finder, const char *dir)
{
	char *real = realpath(dir, NULL);
	char *const roots[] = { real, NULL };
	FTS *fts = real ? fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL) : NULL;
	struct listing listing = { 0 };
	int err = fts ? 0 : -errno;
	FTSENT *entry;

	while (!err && listing.nr_entries < OPR_IMAGE_PATH_ENTRIES_MAX && (entry = fts_read(fts)))
		err = list_entry(finder, &listing, fts, entry);
	if (!err && listing.nr_entries == OPR_IMAGE_PATH_ENTRIES_MAX)
		opr_warn("%s has more than %d files and directories: the rest of it is not searched for images: name a directory "
			 "below it with --image-path",
			 dir, OPR_IMAGE_PATH_ENTRIES_MAX);
	if (fts)
		fts_close(fts);
	tdestroy(listing.seen, free);
	free(real);
	return err;
}

static int compare_files(const void *left, const void *right)
{
	const struct opr_found_file *a = left, *b = right;
	int order = strcmp(a->base, b->base);

	return order ? order : strcmp(a->path, b->path);
}

static void sort_files(struct opr_finder *finder)
{
	if (finder->nr_files)
		qsort(finder->files, finder->nr_files, sizeof(*finder->files), compare_files);
}

int opr_finder_init(struct opr_finder *finder, const char *root, const struct opr_words *search_dirs)
{
	finder->root = root;
	finder->dirs = search_dirs;
	finder->has_dirs = search_dirs->nr_words;
	for (size_t i = 0; i < search_dirs->nr_words; i++) {
		struct stat st;
		int err;

		if (stat(search_dirs->words[i], &st) < 0)
			return opr_error(-errno, "image path %s: %s", search_dirs->words[i], strerror(errno));
		if (!S_ISDIR(st.st_mode))
			return opr_error(-ENOTDIR, "image path %s: %s", search_dirs->words[i], strerror(ENOTDIR));
		err = list_dir(finder, search_dirs->words[i]);
		if (err < 0)
			return opr_error(err, "image path %s: %s", search_dirs->words[i], strerror(-err));
	}
	sort_files(finder);
	return 0;
}

static int list_modules_below(struct opr_finder *finder, const char *root, const char *rest)
{
	struct op_text dir = { 0 };
	int err = 0;

	op_text_printf(&dir, "%s%s", root, rest);
	if (dir.failed)
		err = -ENOMEM;
	else if (!access(dir.data, F_OK))
		err = list_dir(finder, dir.data);
	op_text_free(&dir);
	return err == -ENOMEM ? err : 0;
}

/* Adds the modules of the archive, else of the running kernel; once, when it is needed. */
static int list_modules(struct opr_finder *finder)
{
	char running[sizeof(MODULES_DIR) + sizeof(((struct utsname *)NULL)->release) + sizeof("/kernel")];
	size_t nr_files = finder->nr_files;
	struct utsname name;
	int err = 0;

	finder->modules_listed = true;
	for (const struct opr_archive *archive = finder->archive; archive && !err; archive = archive->next) {
		err = list_modules_below(finder, archive->dir, MODULES_DIR);
		if (!err)
			err = list_modules_below(finder, archive->dir, "/usr" MODULES_DIR);
	}
	if (!err && finder->nr_files == nr_files && !uname(&name)) {
		snprintf(running, sizeof(running), MODULES_DIR "%s/kernel", name.release);
		err = list_modules_below(finder, finder->root ? finder->root : "", running);
	}
	sort_files(finder);
	return err;
}

/* ---- finding ---- */

/* In the name of a module _ may stand for - or a comma. */
static bool is_module_file(const char *base, const char *wanted)
{
	for (; *wanted; wanted++, base++)
		if (*base != *wanted && (*wanted != '_' || (*base != '-' && *base != ',')))
			return false;
	return opr_is_module_suffix(base);
}

static bool is_file_called(const char *base, const char *wanted)
{
	return !strcmp(base, wanted);
}

static size_t count_matches(const struct opr_finder *finder, const char *wanted, bool (*match)(const char *, const char *),
			    const struct opr_found_file **ret_found)
{
	size_t nr_matches = 0;

	for (size_t i = 0; i < finder->nr_files; i++) {
		if (!match(finder->files[i].base, wanted))
			continue;
		*ret_found = &finder->files[i];
		nr_matches++;
	}
	return nr_matches;
}

static size_t search(const struct opr_finder *finder, const char *name, const struct opr_found_file **ret_found)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	size_t nr_matches = count_matches(finder, base, is_file_called, ret_found);

	return nr_matches ? nr_matches : count_matches(finder, base, is_module_file, ret_found);
}

/* The path of nr_bytes below the root. NULL: no memory. */
static char *add_root(const struct opr_finder *finder, const char *path, size_t nr_bytes)
{
	char *rooted = NULL;

	return asprintf(&rooted, "%s%.*s", finder->root ? finder->root : "", (int)nr_bytes, path) < 0 ? NULL : rooted;
}

static int find_in_dirs(struct opr_finder *finder, const struct op_image_name *image, const char *name, enum opr_image_state *state,
			char **ret_path)
{
	const struct opr_found_file *found = NULL;
	size_t nr_matches = search(finder, name, &found);

	if (!nr_matches && image->kind == OP_IMAGE_KERNEL && !finder->modules_listed) {
		if (list_modules(finder) < 0)
			return -ENOMEM;
		nr_matches = search(finder, name, &found);
	}
	*state = !nr_matches ? OPR_IMAGE_NOT_FOUND : nr_matches > 1 ? OPR_IMAGE_AMBIGUOUS : OPR_IMAGE_FOUND;
	if (nr_matches != 1)
		return 0;
	if (access(found->path, R_OK) < 0) {
		*state = OPR_IMAGE_UNREADABLE;
		return 0;
	}
	*ret_path = strdup(found->path);
	return *ret_path ? 0 : -ENOMEM;
}

static int copy_found(const char *found, enum opr_image_state *state, char **ret_path)
{
	*state = OPR_IMAGE_FOUND;
	*ret_path = strdup(found);
	return *ret_path ? 0 : -ENOMEM;
}

/*
 * In a build-id cache, which perf makes in ~/.debug. Older versions of perf have the file itself in
 * the place of the directory. True, or *ret_err is -ENOMEM.
 */
static bool find_in_cache(const struct opr_finder *finder, const struct opr_identity *identity, enum opr_image_state *state,
			  char **ret_path, int *ret_err)
{
	static const char *const forms[][2] = { { "/.build-id", "/elf" }, { "/.build-id", "" }, { "", "/elf" } };
	const char *digits = identity->build_id;

	for (size_t i = 0; finder->has_dirs && strlen(digits) > 2 && i < finder->dirs->nr_words * op_array_size(forms);
	     i++) {
		const char *const *form = forms[i % op_array_size(forms)];
		struct stat st;
		char *path;

		if (asprintf(&path, "%s%s/%.2s/%s%s", finder->dirs->words[i / op_array_size(forms)], form[0], digits, digits + 2,
			     form[1]) < 0) {
			*ret_err = -ENOMEM;
			return false;
		}
		if (!stat(path, &st) && S_ISREG(st.st_mode) && opr_identity_agrees(identity, NULL, path)) {
			*state = OPR_IMAGE_FOUND;
			*ret_path = path;
			return true;
		}
		free(path);
	}
	return false;
}

/* All files with this build-id are copies; the first is as good as any. */
static int find_by_build_id(const struct opr_finder *finder, const struct opr_identity *identity, const char *wanted,
			    enum opr_image_state *state, char **ret_path)
{
	const char *slash = strrchr(wanted, '/'), *base = slash ? slash + 1 : wanted;
	int err = 0;

	if (find_in_cache(finder, identity, state, ret_path, &err) || err)
		return err;
	for (size_t i = 0; i < finder->nr_files; i++)
		if (is_file_called(finder->files[i].base, base) && opr_identity_agrees(identity, NULL, finder->files[i].path))
			return copy_found(finder->files[i].path, state, ret_path);
	return 0;
}

/* The first file with the name and, with `by_build_id`, the build-id of a module. */
static const struct opr_found_file *module_file(const struct opr_finder *finder, const struct opr_identity *identity,
						bool by_build_id)
{
	for (size_t i = 0; i < finder->nr_files; i++) {
		const struct opr_found_file *file = &finder->files[i];

		if ((is_file_called(file->base, identity->path) || is_module_file(file->base, identity->path)) &&
		    (!by_build_id || opr_identity_agrees(identity, NULL, file->path)))
			return file;
	}
	return NULL;
}

static int find_module(struct opr_finder *finder, const struct opr_identity *identity, enum opr_image_state *state, char **ret_path)
{
	const struct opr_found_file *found = module_file(finder, identity, true);
	int err = 0;

	if (!found && (find_in_cache(finder, identity, state, ret_path, &err) || err))
		return err;
	if (!found && !finder->modules_listed) {
		if (list_modules(finder) < 0)
			return -ENOMEM;
		found = module_file(finder, identity, true);
	}
	if (found)
		return copy_found(found->path, state, ret_path);
	*state = module_file(finder, identity, false) ? OPR_IMAGE_OTHER_KERNEL : OPR_IMAGE_NOT_FOUND;
	return 0;
}

/* Finds the very file that the identity describes. */
static int find_told_apart(const struct opr_finder *finder, const struct opr_identity *identity, enum opr_image_state *state,
			   char **ret_path)
{
	char *plain = strndup(identity->path, identity->path_length);
	char *path = plain ? add_root(finder, plain, identity->path_length) : NULL;
	int err = 0;

	if (!path)
		err = -ENOMEM;
	else if (access(path, R_OK) < 0)
		*state = errno == EACCES ? OPR_IMAGE_UNREADABLE : OPR_IMAGE_NOT_FOUND;
	else if (identity->kind == OPR_IDENTITY_UNKNOWN || opr_identity_agrees(identity, NULL, path))
		err = copy_found(path, state, ret_path);
	else
		*state = identity->is_kernel ? OPR_IMAGE_OTHER_KERNEL : OPR_IMAGE_REPLACED;
	if (!err && *state != OPR_IMAGE_FOUND && identity->kind == OPR_IDENTITY_BUILD_ID)
		err = find_by_build_id(finder, identity, plain, state, ret_path);
	free(path);
	free(plain);
	return err;
}

static int find_file(struct opr_finder *finder, const struct op_image_name *image, const char *name,
		     const struct opr_identity *identity, enum opr_image_state *state, char **ret_path)
{
	char *path = image->kind == OP_IMAGE_ANON ? opr_archive_from_home(finder->archive, name) :
							add_root(finder, name, strlen(name));

	if (!path)
		return -ENOMEM;
	if (!access(path, R_OK)) {
		*state = OPR_IMAGE_FOUND;
		*ret_path = path;
		return 0;
	}
	*state = errno == EACCES ? OPR_IMAGE_UNREADABLE : OPR_IMAGE_NOT_FOUND;
	free(path);
	if (*state == OPR_IMAGE_NOT_FOUND && identity->kind != OPR_IDENTITY_NONE)
		return find_told_apart(finder, identity, state, ret_path);
	return *state == OPR_IMAGE_NOT_FOUND ? find_in_dirs(finder, image, name, state, ret_path) : 0;
}

/* ---- archives ---- */

/*
 * Why the archive does not have an image: a word for the state, and maybe the other kernel. NULL:
 * not known.
 */
static const char *absence(const struct opr_finder *finder, const struct opr_archive *archive, const char *name)
{
	return archive && !finder->has_dirs ? opr_archive_fact(&archive->absent, name) : NULL;
}

static bool was_absent(const struct opr_finder *finder, const struct opr_archive *archive, const char *name,
		       enum opr_image_state *ret_state)
{
	const char *fact = absence(finder, archive, name);
	size_t length = fact ? strcspn(fact, " ") : 0;

	for (enum opr_image_state state = OPR_IMAGE_NOT_FOUND; fact && state <= OPR_IMAGE_AMBIGUOUS; state++) {
		if (strlen(state_words[state]) != length || strncmp(fact, state_words[state], length))
			continue;
		*ret_state = state;
		return true;
	}
	return false;
}

/*
 * The copy in an archive, at the whole path of the file. It must agree with a known identity. The
 * identity that a name seems to have may be part of a file name. *ret_path stays NULL where there
 * is none.
 */
static int find_copy(const struct opr_archive *archive, const char *name, const struct opr_identity *identity, char **ret_path)
{
	bool has_identity = identity->kind != OPR_IDENTITY_NONE;
	char *path = NULL;

	if (!identity->is_known || !has_identity) {
		if (asprintf(&path, "%s%s", archive->dir, name) < 0)
			return -ENOMEM;
		if (!access(path, R_OK)) {
			*ret_path = path;
			return 0;
		}
		free(path);
	}
	if (!has_identity)
		return 0;
	if (asprintf(&path, "%s%.*s", archive->dir, (int)identity->path_length, identity->path) < 0)
		return -ENOMEM;
	if (!access(path, R_OK) && opr_identity_agrees(identity, archive, path))
		*ret_path = path;
	else
		free(path);
	return 0;
}

static bool have_equal_bytes(FILE *a, FILE *b)
{
	int x, y;

	do {
		x = getc_unlocked(a);
		y = getc_unlocked(b);
	} while (x == y && x != EOF);
	return x == y && !ferror(a) && !ferror(b);
}

/* Whether two files are one image: by their build-ids, without one by their bytes. */
static bool are_equal(const char *a, const char *b)
{
	char digits[2][OP_BUILD_ID_DIGITS];
	FILE *first, *second;
	bool equal;

	opr_build_id_at(a, digits[0]);
	opr_build_id_at(b, digits[1]);
	if (digits[0][0] || digits[1][0])
		return !strcmp(digits[0], digits[1]);
	first = fopen(a, "re");
	second = fopen(b, "re");
	equal = first && second && have_equal_bytes(first, second);
	if (first)
		fclose(first);
	if (second)
		fclose(second);
	return equal;
}

/*
 * True: *ret_state is what the archives say. Several archives may have different files at a path;
 * where nothing tells which of them ran, none is used.
 */
static bool find_in_archives(const struct opr_finder *finder, const struct op_image_name *image, const char *name,
			     const struct opr_identity *identity, enum opr_image_state *ret_state, char **ret_path, int *ret_err)
{
	bool is_absent = false;

	for (const struct opr_archive *archive = finder->archive; archive && !*ret_err; archive = archive->next) {
		char *path = NULL;

		if (was_absent(finder, archive, name, ret_state)) {
			is_absent = true;
			continue;
		}
		if (image->kind == OP_IMAGE_FILE)
			*ret_err = find_copy(archive, name, identity, &path);
		if (path && *ret_path && identity->kind == OPR_IDENTITY_NONE && !are_equal(path, *ret_path)) {
			free(path);
			free(*ret_path);
			*ret_path = NULL;
			*ret_state = OPR_IMAGE_AMBIGUOUS;
			return true;
		}
		if (*ret_path)
			free(path);
		else
			*ret_path = path;
	}
	if (*ret_path)
		*ret_state = OPR_IMAGE_FOUND;
	return !*ret_err && (is_absent || *ret_path);
}

static int find_on_disk(struct opr_finder *finder, const struct op_image_name *image, const char *name,
			const struct opr_identity *identity, enum opr_image_state *ret_state, char **ret_path)
{
	int err = 0;

	if (find_in_archives(finder, image, name, identity, ret_state, ret_path, &err) || err)
		return err;
	if (image->kind == OP_IMAGE_KERNEL && identity->is_kernel)
		return find_module(finder, identity, ret_state, ret_path);
	if (image->kind == OP_IMAGE_KERNEL)
		return find_in_dirs(finder, image, name, ret_state, ret_path);
	/* An identity that is only guessed may be part of a file name. */
	if (identity->is_known && identity->kind != OPR_IDENTITY_NONE)
		return find_told_apart(finder, identity, ret_state, ret_path);
	return find_file(finder, image, name, identity, ret_state, ret_path);
}

static bool is_identified(const char *path, const void *arg)
{
	return opr_identity_agrees(arg, NULL, path);
}

/*
 * Looks for a file that is not on the disk in the processes of this host. Only a build-id is proof:
 * inodes of a container say nothing.
 */
static int find_living(struct opr_finder *finder, const struct opr_identity *identity, enum opr_image_state *state, char **ret_path)
{
	const struct opr_living_wanted wanted = { .path = identity->path,
						  .path_length = identity->path_length,
						  .device = identity->device,
						  .inode = identity->inode,
						  .is_it = is_identified,
						  .arg = identity };
	const char *path;
	int err;

	if (finder->root || finder->archive || identity->is_kernel || identity->kind != OPR_IDENTITY_BUILD_ID)
		return 0;
	err = opr_living_find(&finder->living, &wanted, &path);
	return err ? err == -ENOMEM ? err : 0 : copy_found(path, state, ret_path);
}

int opr_finder_find(struct opr_finder *finder, const struct op_image_name *image, const char *name,
		    const struct opr_identity *identity, enum opr_image_state *ret_state, char **ret_path)
{
	int err;

	if (has_no_file(image) && !opr_is_jit_object(image, name)) {
		*ret_state = OPR_IMAGE_HAS_NO_FILE;
		return 0;
	}
	err = find_on_disk(finder, image, name, identity, ret_state, ret_path);
	if (!err && *ret_state != OPR_IMAGE_FOUND && image->kind == OP_IMAGE_FILE)
		err = find_living(finder, identity, ret_state, ret_path);
	return err;
}

const char *opr_finder_shown(const struct opr_finder *finder, const char *path)
{
	return opr_living_origin(&finder->living, opr_archive_strip(finder->archive, path));
}

char *opr_finder_other_kernel(const struct opr_finder *finder, const char *name, const struct opr_identity *identity)
{
	bool is_module = identity->path[0] != '/', is_running = opr_identity_is_kallsyms(identity) && !finder->root;
	const struct opr_found_file *file = is_module ? module_file(finder, identity, false) : NULL;
	const char *fact = absence(finder, finder->archive, name), *blank = fact ? strchr(fact, ' ') : NULL;
	char digits[OP_BUILD_ID_DIGITS] = "", *path = NULL, *text = NULL;

	if (blank)
		return strdup(blank + 1);
	if (!is_module)
		path = add_root(finder, identity->path, identity->path_length);
	else if (file)
		path = strdup(file->path);
	if (path)
		opr_build_id_at(path, digits);
	if (asprintf(&text, "%s %s",
		     is_running ? "the running one"
		     : path     ? path
				: "the file",
		     *digits ? digits : "none that can be read") < 0)
		text = NULL;
	free(path);
	return text;
}

static void warn_of_another(const char *name, const struct opr_identity *identity)
{
	if (identity->kind == OPR_IDENTITY_BUILD_ID)
		opr_warn("%s could not be found: another file is at that path. The file that ran has build-id %s. "
			 "Its samples are one symbol. A copy in a directory of --image-path is used.",
			 name, identity->build_id);
	else
		opr_warn("%s could not be found: another file is at that path. Its samples are one symbol.", name);
}

void opr_finder_warn(const struct opr_finder *finder, enum opr_image_state state, const char *name,
		     const struct opr_identity *identity)
{
	char *other;

	switch (state) {
	case OPR_IMAGE_FOUND:
	case OPR_IMAGE_HAS_NO_FILE:
		break;
	case OPR_IMAGE_NOT_FOUND:
		opr_warn("%s could not be found.", name);
		break;
	case OPR_IMAGE_UNREADABLE:
		opr_warn("%s could not be read.", name);
		break;
	case OPR_IMAGE_REPLACED:
		warn_of_another(name, identity);
		break;
	case OPR_IMAGE_OTHER_KERNEL:
		other = opr_finder_other_kernel(finder, name, identity);
		opr_warn("the %s of the session has build-id %s, %s: the samples of %s are one symbol.",
			 identity->path[0] != '/' ? "module" : "kernel", identity->build_id,
			 other ? other : "another one is there", name);
		free(other);
		break;
	case OPR_IMAGE_AMBIGUOUS:
		opr_warn("%s matches more than one file: no symbols of it are shown", name);
		break;
	}
}

void opr_finder_free(struct opr_finder *finder)
{
	if (!finder)
		return;
	for (size_t i = 0; i < finder->nr_files; i++)
		free(finder->files[i].path);
	free(finder->files);
	opr_living_free(&finder->living);
	*finder = (struct opr_finder){ 0 };
}
