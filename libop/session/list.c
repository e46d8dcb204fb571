/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/list.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "libop/base/grow.h"
#include "libop/session/walk.h"

/* ---- the list of sample files ---- */

bool op_session_is_jit_object(const char *path)
{
	size_t length = strlen(path);

	return length > 3 && !strcmp(path + length - 3, ".jo");
}

static int add_file(struct op_walk *walk, const char *path)
{
	struct op_session_list *list = walk->list;
	struct op_session_file file = { 0 };
	int err;

	if (!op_grow(&list->files, &walk->list_capacity, list->nr_files + 1))
		return -ENOMEM;
	err = op_unmangle(path, &file.name, &file.storage, NULL);
	if (err < 0)
		return err;
	file.path = strdup(path);
	if (!file.path) {
		free(file.storage);
		return -ENOMEM;
	}
	list->files[list->nr_files++] = file;
	return 0;
}

/* What a link leads to: DT_REG, DT_DIR, DT_FIFO for what is neither; -errno: nothing that can be seen. */
static int type_behind(int dir_fd, const char *path)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, 0) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_FIFO;
}

int op_walk_list_entry(struct op_walk *walk, const char *path, unsigned char type)
{
	int err, found = type;

	if (op_session_is_jit_object(path))
		return 0;
	if (type == DT_LNK)
		found = type_behind(walk->dir_fd, path);
	if (found < 0 || found == DT_DIR)
		return walk->misfits ? op_walk_pass_over(walk, path, found < 0 ? found : -ELOOP) : 0;
	err = found == DT_REG ? add_file(walk, path) : -EINVAL;
	if (err && walk->misfits)
		return op_walk_pass_over(walk, path, err == -EINVAL && found == DT_REG ? -EBADMSG : err);
	if (err != -EINVAL)
		return err;
	walk->bad_path = strdup(path);
	return walk->bad_path ? -EBADMSG : -ENOMEM;
}

static int compare_files(const void *a, const void *b)
{
	const struct op_session_file *left = a, *right = b;

	return strcmp(left->path, right->path);
}

void op_session_list_sort(struct op_session_list *list)
{
	if (list->nr_files)
		qsort(list->files, list->nr_files, sizeof(*list->files), compare_files);
}

int op_session_list(int dir_fd, struct op_session_list *ret_list, char **ret_bad_path)
{
	struct op_session_list list = { 0 };
	struct op_walk walk = { .dir_fd = dir_fd, .visit = op_walk_list_entry, .list = &list };
	int err = 0;

	for (size_t i = 0; i < op_array_size(op_walk_sample_dirs) && !err; i++)
		err = op_walk_tree(&walk, op_walk_sample_dirs[i]);
	if (err < 0 && ret_bad_path) {
		*ret_bad_path = walk.bad_path;
		walk.bad_path = NULL;
	}
	op_walk_free(&walk);
	if (err < 0) {
		op_session_list_free(&list);
		return err;
	}
	op_session_list_sort(&list);
	*ret_list = list;
	return 0;
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

/* `path` is that of a sample directory; a cgroup may have two of them. */
static int add_cgroup(struct op_walk *walk, const char *path, unsigned char type)
{
	struct op_session_cgroups *list = walk->cgroups;
	struct op_session_cgroup cgroup, *cgroups;
	size_t length = (size_t)(strrchr(path, '/') - path);
	size_t capacity = walk->list_capacity ? 2 * walk->list_capacity : 16;

	if (type != DT_DIR)
		return 0;
	if (list->nr_cgroups && strlen(list->cgroups[list->nr_cgroups - 1].directory) == length &&
	    !memcmp(list->cgroups[list->nr_cgroups - 1].directory, path, length))
		return 0;
	if (list->nr_cgroups == walk->list_capacity) {
		cgroups = reallocarray(list->cgroups, capacity, sizeof(*cgroups));
		if (!cgroups)
			return -ENOMEM;
		list->cgroups = cgroups;
		walk->list_capacity = capacity;
	}
	cgroup.directory = strndup(path, length);
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

static int list_cgroups(struct op_walk *walk, struct op_session_cgroups *ret_list)
{
	struct op_session_cgroups *list = walk->cgroups;
	int err = op_walk_tree(walk, OP_CGROUP_DIR);

	op_walk_free(walk);
	if (err < 0) {
		op_session_cgroups_free(list);
		return err;
	}
	if (list->nr_cgroups)
		qsort(list->cgroups, list->nr_cgroups, sizeof(*list->cgroups), compare_cgroups);
	*ret_list = *list;
	return 0;
}

int op_session_list_cgroups(int dir_fd, struct op_session_cgroups *ret_list)
{
	struct op_session_cgroups list = { 0 };
	struct op_walk walk = { .dir_fd = dir_fd, .visit = add_cgroup, .cgroups = &list };

	return list_cgroups(&walk, ret_list);
}

int op_session_list_cgroups_sound(int dir_fd, struct op_session_cgroups *ret_list, const struct op_session_misfits *misfits)
{
	struct op_session_cgroups list = { 0 };
	struct op_walk walk = { .dir_fd = dir_fd, .visit = add_cgroup, .cgroups = &list, .misfits = misfits };

	return list_cgroups(&walk, ret_list);
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
