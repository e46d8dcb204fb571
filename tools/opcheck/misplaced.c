/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/misplaced.h"

#include <dirent.h>
#include <errno.h>

#include "libop/base/grow.h"
#include "libop/session/parts.h"
#include "libop/session/walk.h"

const char *opk_sample_path(const char *path)
{
	const char *root = strstr(path, "/{root}/"), *kern = strstr(path, "/{kern}/");

	if (*path == '{')
		return path;
	if (!root || (kern && kern < root))
		root = kern;
	return root ? root + 1 : NULL;
}

int opk_misplaced_add(struct opk_misplaced_list *list, const char *path, const struct op_odb_header *found,
		      const struct opk_header *header)
{
	struct opk_misplaced file = { .path = strdup(path), .found = *found, .header = *header };
	const char *name_path = opk_sample_path(path);
	int err = !file.path ? -ENOMEM : !name_path ? -EINVAL : op_unmangle(name_path, &file.name, &file.storage, NULL);

	if (!err && !op_grow(&list->files, &list->capacity, list->nr + 1)) {
		free(file.storage);
		err = -ENOMEM;
	}
	if (err)
		free(file.path);
	else
		list->files[list->nr++] = file;
	return err;
}

struct search {
	struct opk_misplaced_list *list;
	const struct op_dcookie_table *images;
};

static struct opk_misplaced *find_file(const struct opk_misplaced_list *list, const char *path)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->files[i].path, path))
			return &list->files[i];
	return NULL;
}

/* `file` belongs at this path; `there` is the misplaced file that stands there, or NULL. */
static int note_owner(const struct search *search, struct opk_misplaced *file, const char *path, struct opk_misplaced *there)
{
	if (!file->owner) {
		file->owner = strdup(path);
		if (!file->owner)
			return -ENOMEM;
	}
	if (there && opk_header_belongs(search->images, &file->name, &there->found, &there->header)) {
		file->partner = there;
		file->nr_partners++;
	}
	return 0;
}

static int visit(const char *path, unsigned char type, void *arg)
{
	const struct search *search = arg;
	struct opk_misplaced *there = find_file(search->list, path);
	const char *name_path = opk_sample_path(path);
	struct op_sample_name name;
	char *storage;
	int err = type == DT_REG && name_path ? op_unmangle(name_path, &name, &storage, NULL) : -EINVAL;

	if (err)
		return err == -EINVAL ? 0 : err;
	for (size_t i = 0; i < search->list->nr && !err; i++) {
		struct opk_misplaced *file = &search->list->files[i];

		if (file != there && opk_header_belongs(search->images, &name, &file->found, &file->header))
			err = note_owner(search, file, path, there);
	}
	free(storage);
	return err;
}

int opk_misplaced_find(struct opk_misplaced_list *list, const struct op_dcookie_table *images, int dir_fd)
{
	struct search search = { .list = list, .images = images };
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && !err; part++)
		if (part->kind == OP_PART_SAMPLES)
			err = op_session_walk(dir_fd, part->name, visit, &search);
	for (size_t i = 0; i < list->nr; i++)
		if (list->files[i].nr_partners != 1)
			list->files[i].partner = NULL;
	for (size_t i = 0; i < list->nr; i++)
		if (list->files[i].partner && list->files[i].partner->partner != &list->files[i])
			list->files[i].partner = NULL;
	return err;
}

void opk_misplaced_free(struct opk_misplaced_list *list)
{
	for (size_t i = 0; i < list->nr; i++) {
		free(list->files[i].path);
		free(list->files[i].storage);
		free(list->files[i].owner);
	}
	free(list->files);
	*list = (struct opk_misplaced_list){ 0 };
}
