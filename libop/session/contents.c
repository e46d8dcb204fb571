/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/contents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "libop/session/list.h"
#include "libop/session/parts.h"
#include "libop/session/walk.h"

#define ENTRIES_BYTES    8192
#define DISK_BLOCK_BYTES 512 /* unit of st_blocks */

/* ---- remove ---- */

/* A walk that removes what it finds, and the directories behind it. */
struct removal {
	struct op_walk walk;
	const char *top; /* of the tree that is being removed */
	/* directories whose paths were too long: they are now called DEEP_FORMAT, in `top` */
	uint64_t nr_deep;
};

#define DEEP_FORMAT "too-deep-%llu"

/* No sample file is in a directory whose path is too long, so it may have another place. */
static int move_up(struct removal *removal, const struct op_walk_entry *entry)
{
	int top_fd = op_file_open_below(removal->walk.dir_fd, removal->top, O_RDONLY | O_DIRECTORY, 0), err;
	char name[40];

	if (top_fd < 0)
		return top_fd;
	do {
		snprintf(name, sizeof(name), DEEP_FORMAT, (unsigned long long)removal->nr_deep++);
		err = op_sys_rename_new(entry->parent_fd, entry->name, top_fd, name);
	} while (err == -EEXIST);
	close(top_fd);
	return err;
}

/* By name in the open directory: no link can lead this elsewhere. */
static int remove_entry(struct op_walk *walk, const struct op_walk_entry *entry)
{
	int err = op_sys_unlinkat(entry->parent_fd, entry->name, entry->type == DT_DIR ? AT_REMOVEDIR : 0);

	if (entry->type == DT_DIR && err)
		err = move_up(walk->arg, entry);
	op_walk_note_error(walk, entry->path, err);
	return 0;
}

static int walk_deep(struct removal *removal, uint64_t number)
{
	struct op_text path = { 0 };
	int err;

	op_text_printf(&path, "%s/" DEEP_FORMAT, removal->top, (unsigned long long)number);
	err = path.failed ? -ENOMEM : op_walk_tree(&removal->walk, path.data);
	op_text_free(&path);
	return err;
}

/* Removes a file, or a tree as far as its directories. */
static void remove_tree(struct removal *removal, const char *path)
{
	struct op_walk *walk = &removal->walk;
	int err = op_file_remove_below(walk->dir_fd, path, 0);

	removal->top = path;
	removal->nr_deep = 0;
	walk->arg = removal;
	if (err == -EISDIR || err == -EPERM)
		err = op_walk_tree(walk, path);
	for (uint64_t i = 0; !err && i < removal->nr_deep; i++)
		err = walk_deep(removal, i);
	op_walk_note_error(walk, path, err);
}

/* The directories that the walk found, the deepest first. */
static void remove_dirs(struct op_walk *walk)
{
	for (const struct op_walk_dir *dir = walk->last; dir; dir = dir->before)
		op_walk_note_error(walk, dir->path, op_file_remove_below(walk->dir_fd, dir->path, AT_REMOVEDIR));
}

static struct removal begin_removal(int dir_fd)
{
	return (struct removal){
		.walk = { .dir_fd = dir_fd, .visit = remove_entry, .keeps_going = true, .visits_too_deep = true }
	};
}

int op_session_remove(int dir_fd, const char *path)
{
	struct removal removal = begin_removal(dir_fd);
	int err;

	remove_tree(&removal, path);
	remove_dirs(&removal.walk);
	err = removal.walk.first_error;
	op_walk_free(&removal.walk);
	return err;
}

int op_session_clear(int dir_fd, char **ret_path)
{
	struct removal removal = begin_removal(dir_fd);
	int err;

	for (const struct op_session_part *part = op_session_parts; part->name; part++)
		remove_tree(&removal, part->name);
	remove_dirs(&removal.walk);
	err = removal.walk.first_error;
	if (err && ret_path) {
		*ret_path = removal.walk.first_path;
		removal.walk.first_path = NULL;
	}
	op_walk_free(&removal.walk);
	return err;
}

bool op_session_has_parts(int dir_fd)
{
	for (const struct op_session_part *part = op_session_parts; part->name; part++)
		if (!faccessat(dir_fd, part->name, F_OK, AT_SYMLINK_NOFOLLOW))
			return true;
	return false;
}

/* ---- size ---- */

/* A directory that waits to be weighed, or the one that is read. */
struct op_unweighed {
	struct op_unweighed *next;
	char path[]; /* below the top; "": the top itself */
};

static int add_unweighed(struct op_weighing *weighing, const char *parent, const char *name)
{
	size_t nr_bytes = strlen(parent) + strlen(name) + 2;
	struct op_unweighed *dir = malloc(sizeof(*dir) + nr_bytes);

	if (!dir)
		return -ENOMEM;
	snprintf(dir->path, nr_bytes, "%s%s%s", parent, *parent ? "/" : "", name);
	dir->next = weighing->waiting;
	weighing->waiting = dir;
	return 0;
}

static void note_error(struct op_weighing *weighing, int err)
{
	if (err != -ENOENT && !weighing->err)
		weighing->err = err;
}

static int open_next(struct op_weighing *weighing)
{
	struct op_unweighed *dir = weighing->waiting;
	struct stat st;
	int fd = -ENAMETOOLONG, err;

	weighing->waiting = dir->next;
	weighing->reading = dir;
	if (strlen(dir->path) < PATH_MAX)
		fd = op_file_open_below(weighing->top_fd, *dir->path ? dir->path : ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	weighing->fd = fd;
	err = op_sys_fstat(fd, &st);
	if (!err)
		weighing->nr_bytes += (uint64_t)st.st_blocks * DISK_BLOCK_BYTES;
	return err;
}

static void end_dir(struct op_weighing *weighing)
{
	if (weighing->fd >= 0)
		close(weighing->fd);
	weighing->fd = -1;
	free(weighing->reading);
	weighing->reading = NULL;
}

static int weigh_entry(struct op_weighing *weighing, const struct dirent64 *entry)
{
	struct stat st = { 0 };

	if (entry->d_type != DT_DIR && fstatat(weighing->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (entry->d_type == DT_DIR || S_ISDIR(st.st_mode))
		return add_unweighed(weighing, weighing->reading->path, entry->d_name);
	weighing->nr_bytes += (uint64_t)st.st_blocks * DISK_BLOCK_BYTES;
	return 0;
}

/* Reads as many entries as one call returns. Returns their number, 0 at the end, or -errno. */
static ssize_t weigh_some(struct op_weighing *weighing)
{
	_Alignas(struct dirent64) char entries[ENTRIES_BYTES];
	ssize_t nr_bytes = op_sys_getdents(weighing->fd, entries, sizeof(entries)), nr = 0;

	for (ssize_t at = 0; at < nr_bytes; nr++) {
		const struct dirent64 *entry = (const void *)(entries + at);

		at += entry->d_reclen;
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			note_error(weighing, weigh_entry(weighing, entry));
	}
	return nr_bytes < 0 ? nr_bytes : nr;
}

int op_weighing_begin(struct op_weighing *weighing, int dir_fd, const char *path)
{
	int fd = op_file_open_below(dir_fd, path, O_RDONLY | O_DIRECTORY, 0), err;

	if (fd < 0)
		return fd;
	*weighing = (struct op_weighing){ .top_fd = fd, .fd = -1 };
	err = add_unweighed(weighing, "", "");
	if (err)
		close(fd);
	return err;
}

bool op_weighing_go_on(struct op_weighing *weighing, uint64_t *nr_entries)
{
	while (*nr_entries && (weighing->reading || weighing->waiting)) {
		ssize_t nr = weighing->reading ? 0 : open_next(weighing);

		if (!nr)
			nr = weigh_some(weighing);
		if (nr < 0)
			note_error(weighing, (int)nr);
		if (nr <= 0)
			end_dir(weighing);
		else
			*nr_entries -= op_min_u64(*nr_entries, (uint64_t)nr);
	}
	return !weighing->reading && !weighing->waiting;
}

void op_weighing_end(struct op_weighing *weighing)
{
	do {
		end_dir(weighing);
		weighing->reading = weighing->waiting;
		if (weighing->waiting)
			weighing->waiting = weighing->waiting->next;
	} while (weighing->reading);
	close(weighing->top_fd);
}

int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes)
{
	uint64_t no_limit = UINT64_MAX;
	struct op_weighing weighing;
	int err = op_weighing_begin(&weighing, dir_fd, path);

	if (err == -ENOENT)
		*ret_bytes = 0;
	if (err)
		return err == -ENOENT ? 0 : err;
	op_weighing_go_on(&weighing, &no_limit);
	err = weighing.err;
	if (!err)
		*ret_bytes = weighing.nr_bytes;
	op_weighing_end(&weighing);
	return err;
}

static int count_file(const char *path, unsigned char type, void *arg)
{
	*(uint64_t *)arg += type == DT_REG && !op_session_is_jit_object(path);
	return 0;
}

int op_session_count_files(int dir_fd, uint64_t *ret_nr_files)
{
	uint64_t nr_files = 0;
	int err = 0;

	for (const struct op_session_part *part = op_session_parts; part->name && !err; part++)
		if (part->kind == OP_PART_SAMPLES)
			err = op_session_walk(dir_fd, part->name, count_file, &nr_files);
	if (!err)
		*ret_nr_files = nr_files;
	return err;
}
