/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/odb/mangle.h"
#include "libop/session/list.h"

#define ENTRIES_BYTES 32768

const char *const op_walk_sample_dirs[2] = { "{root}", "{kern}" };

void op_walk_forget(struct op_walk *walk)
{
	while (walk->nr_dirs)
		free(walk->dirs[--walk->nr_dirs]);
}

void op_walk_free(struct op_walk *walk)
{
	op_walk_forget(walk);
	free(walk->dirs);
	free(walk->entries);
	free(walk->bad_path);
	free(walk->first_path);
}

/* Takes `path` over, also when it fails. */
static int push_dir(struct op_walk *walk, char *path)
{
	if (walk->nr_dirs == walk->capacity) {
		size_t capacity = walk->capacity ? 2 * walk->capacity : 64;
		char **dirs = reallocarray(walk->dirs, capacity, sizeof(*dirs));

		if (!dirs) {
			free(path);
			return -ENOMEM;
		}
		walk->dirs = dirs;
		walk->capacity = capacity;
	}
	walk->dirs[walk->nr_dirs++] = path;
	return 0;
}

static unsigned char type_of(int dir_fd, const struct dirent64 *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : S_ISLNK(st.st_mode) ? DT_LNK : DT_FIFO;
}

static bool is_sample_dir(const char *name)
{
	for (size_t i = 0; i < op_array_size(op_walk_sample_dirs); i++)
		if (!strcmp(name, op_walk_sample_dirs[i]))
			return true;
	return false;
}

static char *join(const char *dir, const char *name)
{
	size_t dir_length = strlen(dir), name_bytes = strlen(name) + 1;
	char *path = malloc(dir_length + 1 + name_bytes);

	if (!path)
		return NULL;
	memcpy(path, dir, dir_length);
	path[dir_length] = '/';
	memcpy(path + dir_length + 1, name, name_bytes);
	return path;
}

static int visit_entry(struct op_walk *walk, const char *dir, const struct dirent64 *entry)
{
	unsigned char type;
	char *string;
	int err;

	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return 0;
	type = type_of(walk->here, entry);
	if (type == DT_UNKNOWN)
		return 0;
	string = join(dir, entry->d_name);
	if (!string)
		return -ENOMEM;
	if (type == DT_DIR && !(walk->cgroups && is_sample_dir(entry->d_name)))
		return push_dir(walk, string);
	err = walk->visit(walk, string, type);
	free(string);
	return err;
}

static void let_go(struct op_walk *walk, unsigned int depth)
{
	if (!walk->held[depth % OP_WALK_HELD_DIRS].depth)
		return;
	close(walk->held[depth % OP_WALK_HELD_DIRS].fd);
	walk->held[depth % OP_WALK_HELD_DIRS].depth = 0;
}

static int open_in(int dir_fd, const char *path)
{
	return op_sys_openat(dir_fd, strrchr(path, '/') + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
}

/* By its name in its parent while that is held; without descriptors nothing is. */
static int open_dir(struct op_walk *walk, const char *path, unsigned int depth)
{
	int fd;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (depth == 1 && walk->parent_fd1)
		return open_in(walk->parent_fd1 - 1, path);
	if (depth > 1 && walk->held[(depth - 1) % OP_WALK_HELD_DIRS].depth == depth - 1) {
		fd = open_in(walk->held[(depth - 1) % OP_WALK_HELD_DIRS].fd, path);
		if (fd != -EMFILE && fd != -ENFILE)
			return fd;
		for (unsigned int i = 0; i < OP_WALK_HELD_DIRS; i++)
			let_go(walk, i);
	}
	return op_file_open_below(walk->dir_fd, path, O_RDONLY | O_DIRECTORY, 0);
}

int op_walk_pass_over(const struct op_walk *walk, const char *path, int err)
{
	if (!walk->misfits || err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	walk->misfits->tell(path, err, walk->misfits->arg);
	return 0;
}

static int read_dir(struct op_walk *walk, const char *path, int fd)
{
	ssize_t nr_bytes;
	int err = 0;

	if (!walk->entries)
		walk->entries = malloc(ENTRIES_BYTES);
	if (!walk->entries)
		return -ENOMEM;
	walk->here = fd;
	while (!err && (nr_bytes = op_sys_getdents(fd, walk->entries, ENTRIES_BYTES))) {
		if (nr_bytes < 0)
			return op_walk_pass_over(walk, path, (int)nr_bytes);
		for (ssize_t at = 0; !err && at < nr_bytes;) {
			const struct dirent64 *entry = (const void *)(walk->entries + at);

			err = visit_entry(walk, path, entry);
			at += entry->d_reclen;
		}
	}
	return err;
}

void op_walk_note_error(struct op_walk *walk, const char *path, int err)
{
	if (err >= 0 || err == -ENOENT || walk->first_error)
		return;
	walk->first_error = err;
	walk->first_path = strdup(path);
}

/* Opens a directory of the list, reads it and holds it; one that is gone is none. */
static int walk_dir(struct op_walk *walk, const char *path, unsigned int depth)
{
	int err = walk->tells_dirs ? walk->visit(walk, path, DT_DIR) : 0, fd;

	if (err < 0)
		return err;
	fd = open_dir(walk, path, depth);
	if (fd < 0)
		return fd == -ENOENT ? 0 : op_walk_pass_over(walk, path, fd);
	let_go(walk, depth);
	walk->held[depth % OP_WALK_HELD_DIRS].depth = depth;
	walk->held[depth % OP_WALK_HELD_DIRS].fd = fd;
	return read_dir(walk, path, fd);
}

/* An image may have the name of a sample file, and then so has a directory; but there is one in it. */
void op_walk_tell_of_directory(const struct op_session_misfits *misfits, const char *path)
{
	struct op_sample_name name;
	char *storage;

	if (op_unmangle(path, &name, &storage, NULL) < 0)
		return;
	free(storage);
	misfits->tell(path, -EISDIR, misfits->arg);
}

int op_walk_one(struct op_walk *walk, const char *path, int *ret_fd)
{
	int err = walk_dir(walk, path, 1);

	*ret_fd = walk->held[1].depth ? walk->held[1].fd : -1;
	walk->held[1].depth = 0;
	return err;
}

/* A path has no more than PATH_MAX bytes, which is the end of going deeper. */
static int walk_below(struct op_walk *walk, size_t index, unsigned int depth)
{
	const char *path = walk->dirs[index];
	size_t next = walk->nr_dirs, end, nr_before = walk->list ? walk->list->nr_files : 0;
	int err = walk_dir(walk, path, depth);

	if (err < 0 && !walk->bad_path)
		walk->bad_path = strdup(path);
	if (walk->keep_going) {
		op_walk_note_error(walk, path, err);
		err = 0;
	}
	for (end = walk->nr_dirs; !err && next < end; next++)
		err = walk_below(walk, next, depth + 1);
	if (!err && walk->misfits && walk->list && walk->list->nr_files == nr_before)
		op_walk_tell_of_directory(walk->misfits, walk->dirs[index]);
	if (walk->held[depth % OP_WALK_HELD_DIRS].depth == depth)
		let_go(walk, depth);
	return err;
}

int op_walk_tree(struct op_walk *walk, const char *top)
{
	char *path = strdup(top);
	int err = path ? push_dir(walk, path) : -ENOMEM;

	return err ? err : walk_below(walk, walk->nr_dirs - 1, 1);
}

/* ---- visits ---- */

static int tell_entry(struct op_walk *walk, const char *path, unsigned char type)
{
	return walk->tell(path, type, walk->tell_arg);
}

int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg };
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_walk_sound(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_misfits *misfits)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg, .misfits = misfits };
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct op_walk walk = { .dir_fd = dir_fd, .visit = tell_entry, .tell = visit, .tell_arg = arg, .tells_dirs = true };
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_visit_dir(int dir_fd, const char *path, int (*visit)(const char *name, void *arg), void *arg)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err = 0;
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!err && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			err = visit(entry->d_name, arg);
	closedir(dir);
	return err;
}
