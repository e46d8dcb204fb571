/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/unnamed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/odb/mangle.h"
#include "tools/opcheck/misplaced.h"
#include "tools/opcheck/findings.h"

#define ROOT "{root}"

static bool is_component(const char *path, size_t length, const char *wanted)
{
	return strlen(wanted) == length && !memcmp(path, wanted, length);
}

/* Whether what follows is the next image, or, as the last component, the event. */
static bool ends_image(const char *path)
{
	size_t length = strcspn(path, "/");

	return !path[length] || is_component(path, length, "{dep}") || is_component(path, length, "{cg}");
}

/* The path with a name for each image that has none; NULL without memory. */
static char *name_images(const char *path)
{
	struct op_text text = { 0 };

	for (;;) {
		size_t length = strcspn(path, "/");

		op_text_add_bytes(&text, path, length);
		if (!path[length])
			return op_text_steal(&text);
		if (is_component(path, length, ROOT) && ends_image(path + length + 1))
			op_mangle_path("/", &text);
		op_text_add_char(&text, '/');
		path += length + 1;
	}
}

/* 1, 0 or -ENOMEM. */
static int is_sample_name(const char *path)
{
	const char *name_path = opk_sample_path(path);
	struct op_sample_name name;
	char *storage;
	int err = name_path ? op_unmangle(name_path, &name, &storage, NULL) : -EINVAL;

	if (err)
		return err == -EINVAL ? 0 : err;
	free(storage);
	return 1;
}

static int push(struct opk_unnamed *list, const char *path, char *wanted)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	if (!op_grow(&list->files, &list->capacity, list->nr + 1)) {
		free(copy);
		return -ENOMEM;
	}
	list->files[list->nr++] = (struct opk_unnamed_file){ .path = copy, .wanted = wanted };
	return 1;
}

int opk_unnamed_add(struct opk_unnamed *list, int dir_fd, const char *path)
{
	char *wanted = name_images(path);
	int result = wanted ? is_sample_name(wanted) : -ENOMEM;

	if (result > 0 && !faccessat(dir_fd, wanted, F_OK, AT_SYMLINK_NOFOLLOW))
		result = 0;
	if (result > 0)
		result = push(list, path, wanted);
	if (result <= 0)
		free(wanted);
	return result;
}

/* The new directories belong to the owner of the session. */
static int move(int dir_fd, const struct opk_unnamed_file *file)
{
	char *directory = strdup(file->wanted);
	int err = directory ? 0 : -ENOMEM;

	for (char *slash = directory ? strchr(directory, '/') : NULL; slash && !err; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		err = op_file_make_dir_below(dir_fd, directory, 0755);
		err = err == -EEXIST ? 0 : err;
		*slash = '/';
	}
	free(directory);
	return err ? err : op_file_rename_below(dir_fd, file->path, file->wanted);
}

bool opk_unnamed_move(const struct opk_unnamed *list, struct opk_check *check)
{
	bool moved = false;

	for (size_t i = 0; i < list->nr; i++) {
		const struct opk_unnamed_file *file = &list->files[i];
		struct opk_problem problem = { .path = file->path, .fault = "its image has no name", .detail = file->wanted };
		int err = check->repair ? move(check->dir_fd, file) : 0;

		opk_report(check, &problem, err);
		moved |= check->repair && !err;
	}
	return moved;
}

void opk_unnamed_free(struct opk_unnamed *list)
{
	for (size_t i = 0; i < list->nr; i++) {
		free(list->files[i].path);
		free(list->files[i].wanted);
	}
	free(list->files);
	*list = (struct opk_unnamed){ 0 };
}
