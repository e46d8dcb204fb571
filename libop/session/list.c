/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/grow.h"
#include "libop/process/threads.h"
#include "libop/session/pack.h"

struct bad_path {
	char *path;
	int why;
};

/*
 * A list that is being made. The lock of the walk protects it from the visits of several threads.
 */
struct listing {
	struct op_walk walk;
	struct op_session_bad_paths noted; /* what the walk is told, for skips_bad_paths */
	struct op_session_list list;
	size_t capacity;
	bool skips_bad_paths;
	struct bad_path *bad_paths;
	size_t nr_bad_paths, bad_path_capacity;
	bool failed; /* to note a bad path: no memory */
};

bool op_session_is_jit_object(const char *path)
{
	size_t length = strlen(path);

	return length > 3 && !strcmp(path + length - 3, ".jo");
}

static void add_bad_path(struct listing *listing, const char *path, int why)
{
	char *copy = strdup(path);

	if (copy && op_grow(&listing->bad_paths, &listing->bad_path_capacity, listing->nr_bad_paths + 1)) {
		listing->bad_paths[listing->nr_bad_paths++] = (struct bad_path){ copy, why };
	} else {
		listing->failed = true;
		free(copy);
	}
}

static void note_bad_path(const char *path, int why, void *arg)
{
	struct listing *listing = arg;

	pthread_mutex_lock(&listing->walk.lock);
	add_bad_path(listing, path, why);
	pthread_mutex_unlock(&listing->walk.lock);
}

static int add_file(struct listing *listing, const struct op_walk_entry *entry)
{
	struct op_session_list *list = &listing->list;
	struct op_session_file file = { 0 };
	int err = op_unmangle(entry->path, &file.name, &file.storage, NULL);

	if (err)
		return err == -EINVAL ? -EBADMSG : err;
	file.path = strdup(entry->path);
	pthread_mutex_lock(&listing->walk.lock);
	entry->parent->has_files = true;
	if (!file.path || !op_grow(&list->files, &listing->capacity, list->nr_files + 1))
		err = -ENOMEM;
	else
		list->files[list->nr_files++] = file;
	pthread_mutex_unlock(&listing->walk.lock);
	if (err) {
		free(file.path);
		free(file.storage);
	}
	return err;
}

/* What a link leads to: DT_REG, DT_DIR, DT_FIFO for the rest; -errno: it leads nowhere. */
static int type_behind(const struct op_walk_entry *entry)
{
	struct stat st;

	if (fstatat(entry->parent_fd, entry->name, &st, 0) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_FIFO;
}

static int list_entry(struct op_walk *walk, const struct op_walk_entry *entry)
{
	struct listing *listing = walk->arg;
	int type = entry->type == DT_LNK ? type_behind(entry) : entry->type, err;

	if (op_session_is_jit_object(entry->path))
		return 0;
	if (type == DT_REG)
		err = add_file(listing, entry);
	else if (listing->skips_bad_paths)
		err = type == DT_DIR ? -ELOOP : type < 0 ? type : -EINVAL;
	else
		err = type == DT_DIR || type < 0 ? 0 : -EBADMSG;
	if (err && err != -ENOMEM && listing->skips_bad_paths) {
		note_bad_path(entry->path, err, listing);
		return 0;
	}
	if (!listing->skips_bad_paths)
		op_walk_note_error(walk, entry->path, err);
	return err;
}

/*
 * A parent comes after the directories in it. An image may be called like a sample file; its
 * directory has files.
 */
static void find_empty_dirs(struct listing *listing)
{
	for (struct op_walk_dir *dir = listing->walk.last; dir; dir = dir->before) {
		struct op_sample_name name;
		char *storage;

		if (dir->has_files && dir->parent) {
			dir->parent->has_files = true;
		} else if (!dir->has_files && !op_unmangle(dir->path, &name, &storage, NULL)) {
			free(storage);
			add_bad_path(listing, dir->path, -EISDIR);
		}
	}
}

/* A file comes before what the pack has at its path. */
static int compare_files(const void *a, const void *b)
{
	const struct op_session_file *left = a, *right = b;
	int order = strcmp(left->path, right->path);

	return order ? order : left->is_packed - right->is_packed;
}

static int compare_bad_paths(const void *a, const void *b)
{
	const struct bad_path *left = a, *right = b;
	int order = strcmp(left->path, right->path);

	return order ? order : left->why - right->why;
}

/* ---- the pack ---- */

static int add_packed(struct listing *listing, const char *path)
{
	struct op_session_list *list = &listing->list;
	struct op_session_file file = { .path = strdup(path), .is_packed = true };
	int err = file.path ? op_unmangle(path, &file.name, &file.storage, NULL) : -ENOMEM;

	if (!err && !op_grow(&list->files, &listing->capacity, list->nr_files + 1))
		err = -ENOMEM;
	if (!err) {
		list->files[list->nr_files++] = file;
		return 0;
	}
	free(file.path);
	free(file.storage);
	return err == -EINVAL ? -EBADMSG : err;
}

static int add_all_packed(struct listing *listing, const struct op_pack *pack)
{
	char path[PATH_MAX];
	int err = op_pack_check(pack);

	for (uint32_t i = 0; i < pack->nr_files && !err; i++) {
		err = op_pack_path(pack, i, path);
		if (!err)
			err = add_packed(listing, path);
	}
	return err;
}

/*
 * After the walk: what is packed meanwhile is in the pack before its file is gone. -EAGAIN: the
 * pack is gone that was there before the walk, and the walk may lack files that were made of it.
 */
static int list_pack(struct listing *listing, int dir_fd, bool was_there)
{
	struct op_pack pack;
	int err = op_pack_open(dir_fd, OP_SESSION_PACKED, &pack);

	if (!err) {
		err = add_all_packed(listing, &pack);
		op_pack_close(&pack);
	}
	if (err == -ENOENT)
		return was_there ? -EAGAIN : 0;
	if (err && err != -ENOMEM && listing->skips_bad_paths) {
		add_bad_path(listing, OP_SESSION_PACKED, err == -EBADMSG ? -EUCLEAN : err);
		return 0;
	}
	if (!listing->skips_bad_paths)
		op_walk_note_error(&listing->walk, OP_SESSION_PACKED, err);
	return err;
}

/* ---- both ---- */

static int list_once(struct listing *listing, int dir_fd, size_t nr_threads)
{
	bool has_pack = !faccessat(dir_fd, OP_SESSION_PACKED, F_OK, AT_SYMLINK_NOFOLLOW);
	int err = 0;

	listing->walk = (struct op_walk){ .dir_fd = dir_fd, .nr_threads = nr_threads, .visit = list_entry, .arg = listing };
	listing->noted = (struct op_session_bad_paths){ note_bad_path, listing };
	if (listing->skips_bad_paths)
		listing->walk.bad_paths = &listing->noted;
	for (size_t i = 0; i < op_array_size(op_walk_sample_dirs) && !err; i++)
		err = op_walk_tree(&listing->walk, op_walk_sample_dirs[i]);
	if (!err && listing->skips_bad_paths)
		find_empty_dirs(listing);
	if (!err)
		err = list_pack(listing, dir_fd, has_pack);
	return err ? err : listing->failed ? -ENOMEM : 0;
}

static void free_listing(struct listing *listing)
{
	for (size_t i = 0; i < listing->nr_bad_paths; i++)
		free(listing->bad_paths[i].path);
	free(listing->bad_paths);
	op_session_list_free(&listing->list);
	op_walk_free(&listing->walk);
}

static int list_files(struct listing *listing, int dir_fd, size_t nr_threads)
{
	bool skips_bad_paths = listing->skips_bad_paths;
	int err;

	while ((err = list_once(listing, dir_fd, nr_threads)) == -EAGAIN) {
		free_listing(listing);
		*listing = (struct listing){ .skips_bad_paths = skips_bad_paths };
	}
	return err;
}

/* A file hides what the pack has at its path. */
static void give_list(struct listing *listing, struct op_session_list *ret_list)
{
	struct op_session_file *files = listing->list.files;
	size_t nr_kept = 0;

	if (listing->list.nr_files)
		qsort(files, listing->list.nr_files, sizeof(*files), compare_files);
	for (size_t i = 0; i < listing->list.nr_files; i++) {
		if (nr_kept && files[i].is_packed && !strcmp(files[nr_kept - 1].path, files[i].path)) {
			free(files[i].path);
			free(files[i].storage);
		} else {
			files[nr_kept++] = files[i];
		}
	}
	listing->list.nr_files = nr_kept;
	*ret_list = listing->list;
	listing->list = (struct op_session_list){ 0 };
}

int op_session_list(int dir_fd, struct op_session_list *ret_list, char **ret_bad_path)
{
	struct listing listing = { 0 };
	int err = list_files(&listing, dir_fd, 1);

	if (!err)
		give_list(&listing, ret_list);
	if (err && ret_bad_path) {
		*ret_bad_path = listing.walk.first_path;
		listing.walk.first_path = NULL;
	}
	free_listing(&listing);
	return err;
}

int op_session_list_skip_bad(int dir_fd, struct op_session_list *ret_list, const struct op_session_bad_paths *bad_paths)
{
	struct listing listing = { .skips_bad_paths = true };
	int err = list_files(&listing, dir_fd, op_nr_cpus());

	/* One thread needs fewer descriptors. */
	if (err == -EMFILE || err == -ENFILE) {
		free_listing(&listing);
		listing = (struct listing){ .skips_bad_paths = true };
		err = list_files(&listing, dir_fd, 1);
	}
	if (!err && listing.nr_bad_paths)
		qsort(listing.bad_paths, listing.nr_bad_paths, sizeof(*listing.bad_paths), compare_bad_paths);
	for (size_t i = 0; i < listing.nr_bad_paths && !err; i++)
		bad_paths->report(listing.bad_paths[i].path, listing.bad_paths[i].why, bad_paths->arg);
	if (!err)
		give_list(&listing, ret_list);
	free_listing(&listing);
	return err;
}

void op_session_list_free(struct op_session_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->nr_files; i++) {
		free(list->files[i].path);
		free(list->files[i].storage);
	}
	free(list->files);
	*list = (struct op_session_list){ 0 };
}

/* ---- cgroups ---- */

struct cgroup_listing {
	struct op_session_cgroups list;
	size_t capacity;
};

static int add_cgroup(struct op_walk *walk, const struct op_walk_entry *entry)
{
	struct cgroup_listing *listing = walk->arg;
	struct op_session_cgroups *list = &listing->list;
	struct op_session_cgroup cgroup;

	if (entry->type != DT_DIR)
		return 0;
	/* A cgroup may have both sample directories. */
	if (list->nr_cgroups && !strcmp(list->cgroups[list->nr_cgroups - 1].directory, entry->parent->path))
		return 0;
	if (!op_grow(&list->cgroups, &listing->capacity, list->nr_cgroups + 1))
		return -ENOMEM;
	cgroup.directory = strdup(entry->parent->path);
	cgroup.path = cgroup.directory ? op_unmangle_cgroup(cgroup.directory + strlen(OP_CGROUP_DIR)) : NULL;
	if (!cgroup.path) {
		free(cgroup.directory);
		return -ENOMEM;
	}
	list->cgroups[list->nr_cgroups++] = cgroup;
	return 0;
}

static int compare_cgroups(const void *a, const void *b)
{
	const struct op_session_cgroup *left = a, *right = b;

	return strcmp(left->path, right->path);
}

static int list_cgroups(int dir_fd, const struct op_session_bad_paths *bad_paths, struct op_session_cgroups *ret_list)
{
	struct cgroup_listing listing = { 0 };
	struct op_walk walk = {
		.dir_fd = dir_fd, .visit = add_cgroup, .arg = &listing, .stops_at_sample_dirs = true, .bad_paths = bad_paths
	};
	int err = op_walk_tree(&walk, OP_CGROUP_DIR);

	op_walk_free(&walk);
	if (err) {
		op_session_cgroups_free(&listing.list);
		return err;
	}
	if (listing.list.nr_cgroups)
		qsort(listing.list.cgroups, listing.list.nr_cgroups, sizeof(*listing.list.cgroups), compare_cgroups);
	*ret_list = listing.list;
	return 0;
}

int op_session_list_cgroups(int dir_fd, struct op_session_cgroups *ret_list)
{
	return list_cgroups(dir_fd, NULL, ret_list);
}

int op_session_list_cgroups_skip_bad(int dir_fd, struct op_session_cgroups *ret_list, const struct op_session_bad_paths *bad_paths)
{
	return list_cgroups(dir_fd, bad_paths, ret_list);
}

void op_session_cgroups_free(struct op_session_cgroups *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->nr_cgroups; i++) {
		free(list->cgroups[i].directory);
		free(list->cgroups[i].path);
	}
	free(list->cgroups);
	*list = (struct op_session_cgroups){ 0 };
}
