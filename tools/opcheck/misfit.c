/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/misfit.h"

#include <dirent.h>
#include <errno.h>

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

int opk_misfits_add(struct opk_misfits *list, const char *path, const struct op_odb_header *found, const struct opk_header *header)
{
	struct opk_misfit misfit = { .path = strdup(path), .found = *found, .header = *header };
	const char *name_path = opk_sample_path(path);
	int err = !misfit.path ? -ENOMEM : !name_path ? -EINVAL : op_unmangle(name_path, &misfit.name, &misfit.storage, NULL);

	if (!err && list->nr == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 16;
		struct opk_misfit *misfits = reallocarray(list->misfits, capacity, sizeof(*misfits));

		if (misfits) {
			list->misfits = misfits;
			list->capacity = capacity;
		} else {
			free(misfit.storage);
			err = -ENOMEM;
		}
	}
	if (err)
		free(misfit.path);
	else
		list->misfits[list->nr++] = misfit;
	return err;
}

struct search {
	struct opk_misfits *list;
	const struct op_dcookie_table *images;
};

static struct opk_misfit *find_misfit(const struct opk_misfits *list, const char *path)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->misfits[i].path, path))
			return &list->misfits[i];
	return NULL;
}

/* A file of this name is where the misfit belongs. */
static int note_owner(const struct search *search, struct opk_misfit *misfit, const char *path, struct opk_misfit *there)
{
	if (!misfit->owner) {
		misfit->owner = strdup(path);
		if (!misfit->owner)
			return -ENOMEM;
	}
	if (there && opk_header_belongs(search->images, &misfit->name, &there->found, &there->header)) {
		misfit->partner = there;
		misfit->nr_partners++;
	}
	return 0;
}

static int visit(const char *path, unsigned char type, void *arg)
{
	const struct search *search = arg;
	struct opk_misfit *there = find_misfit(search->list, path);
	const char *name_path = opk_sample_path(path);
	struct op_sample_name name;
	char *storage;
	int err = type == DT_REG && name_path ? op_unmangle(name_path, &name, &storage, NULL) : -EINVAL;

	if (err)
		return err == -EINVAL ? 0 : err;
	for (size_t i = 0; i < search->list->nr && !err; i++) {
		struct opk_misfit *misfit = &search->list->misfits[i];

		if (misfit != there && opk_header_belongs(search->images, &name, &misfit->found, &misfit->header))
			err = note_owner(search, misfit, path, there);
	}
	free(storage);
	return err;
}

int opk_misfits_find(struct opk_misfits *list, const struct op_dcookie_table *images, int dir_fd, const char *const tops[],
		     size_t nr_tops)
{
	struct search search = { .list = list, .images = images };
	int err = 0;

	for (size_t i = 0; i < nr_tops && !err; i++)
		err = op_session_walk(dir_fd, tops[i], visit, &search);
	for (size_t i = 0; i < list->nr; i++)
		if (list->misfits[i].nr_partners != 1)
			list->misfits[i].partner = NULL;
	for (size_t i = 0; i < list->nr; i++)
		if (list->misfits[i].partner && list->misfits[i].partner->partner != &list->misfits[i])
			list->misfits[i].partner = NULL;
	return err;
}

void opk_misfits_free(struct opk_misfits *list)
{
	for (size_t i = 0; i < list->nr; i++) {
		free(list->misfits[i].path);
		free(list->misfits[i].storage);
		free(list->misfits[i].owner);
	}
	free(list->misfits);
	*list = (struct opk_misfits){ 0 };
}
