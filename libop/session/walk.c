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
#include "libop/base/text.h"
#include "libop/process/threads.h"

#define ENTRIES_BYTES 32768
#define DIR_FLAGS     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
/* directories that stay open, so that those in them are opened by name alone */
#define KEPT_MAX      32
/* directories that wait: with fewer, more threads cost more than they gain */
#define ALONE_MAX     64

const char *const op_walk_sample_dirs[2] = { "{root}", "{kern}" };

/* One thread of a walk. */
struct walker {
	struct op_walk *walk;
	struct op_walk_dir *found; /* in the directory that is being read, the last first */
	struct op_text path;       /* of an entry */
	char entries[ENTRIES_BYTES];
};

void op_walk_note_error(struct op_walk *walk, const char *path, int err)
{
	if (err >= 0 || err == -ENOENT || walk->first_error)
		return;
	walk->first_error = err;
	walk->first_path = strdup(path);
}

/* After an error with a directory: 0 when the walk goes on without it, else the error. */
static int skip_dir(const struct op_walk *walk, const char *path, int err)
{
	if (!walk->bad_paths && err == -ENAMETOOLONG)
		return 0;
	if (!walk->bad_paths || err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return err;
	walk->bad_paths->report(path, err, walk->bad_paths->arg);
	return 0;
}

/* ---- one directory ---- */

static struct op_walk_dir *new_dir(struct op_walk_dir *parent, const char *path)
{
	size_t nr_bytes = strlen(path) + 1;
	struct op_walk_dir *dir = calloc(1, sizeof(*dir) + nr_bytes);

	if (!dir)
		return NULL;
	memcpy(dir->path, path, nr_bytes);
	dir->parent = parent;
	dir->fd = -1;
	return dir;
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

/* True for a directory that the walk visits and does not read. */
static bool ends_at(const struct walker *walker, const char *name)
{
	const struct op_walk *walk = walker->walk;

	return (walk->stops_at_sample_dirs && is_sample_dir(name)) || (walk->visits_too_deep && walker->path.length >= PATH_MAX);
}

/* `dir_length` bytes of walker->path are the directory and a slash. */
static int take_entry(struct walker *walker, struct op_walk_dir *dir, size_t dir_length, int fd, const struct dirent64 *found)
{
	struct op_walk *walk = walker->walk;
	struct op_walk_entry entry = { .name = found->d_name, .parent_fd = fd, .parent = dir };
	struct op_walk_dir *below;

	if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
		return 0;
	entry.type = type_of(fd, found);
	if (entry.type == DT_UNKNOWN)
		return 0;
	op_text_truncate(&walker->path, dir_length);
	op_text_add(&walker->path, found->d_name);
	if (walker->path.failed)
		return -ENOMEM;
	entry.path = walker->path.data;
	if (entry.type != DT_DIR || ends_at(walker, found->d_name))
		return walk->visit(walk, &entry);
	below = new_dir(dir, entry.path);
	if (!below)
		return -ENOMEM;
	below->next = walker->found;
	walker->found = below;
	return 0;
}

static int read_entries(struct walker *walker, struct op_walk_dir *dir, int fd)
{
	size_t dir_length = strlen(dir->path) + 1;
	ssize_t nr_bytes = 0;
	int err = 0;

	op_text_truncate(&walker->path, 0);
	op_text_printf(&walker->path, "%s/", dir->path);
	while (!err && (nr_bytes = op_sys_getdents(fd, walker->entries, ENTRIES_BYTES)) > 0) {
		for (ssize_t at = 0; !err && at < nr_bytes;) {
			const struct dirent64 *entry = (const void *)(walker->entries + at);

			err = take_entry(walker, dir, dir_length, fd, entry);
			at += entry->d_reclen;
		}
	}
	/* A directory that was removed meanwhile has no more entries. */
	return nr_bytes < 0 && nr_bytes != -ENOENT ? skip_dir(walker->walk, dir->path, (int)nr_bytes) : err;
}

/* The descriptor of a directory that stays open no longer, or -1. */
static int take_kept(struct op_walk *walk, struct op_walk_dir *dir)
{
	int fd = dir->fd;

	walk->nr_kept -= fd >= 0;
	dir->fd = -1;
	return fd;
}

static void close_dir(int fd)
{
	if (fd >= 0)
		close(fd);
}

/*
 * By its name in its parent, where that is open. A walk of one thread that has no descriptor left
 * closes all, and opens by path.
 */
static int open_dir(struct op_walk *walk, const struct op_walk_dir *dir)
{
	int fd;

	if (strlen(dir->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (dir->parent && dir->parent->fd >= 0) {
		fd = op_sys_openat(dir->parent->fd, strrchr(dir->path, '/') + 1, DIR_FLAGS, 0);
		if ((fd != -EMFILE && fd != -ENFILE) || walk->nr_threads > 1)
			return fd;
		for (struct op_walk_dir *above = dir->parent; above; above = above->parent)
			close_dir(take_kept(walk, above));
	}
	return op_file_open_below(walk->dir_fd, dir->path, O_RDONLY | O_DIRECTORY, 0);
}

/* *ret_fd is the directory, or -1. */
static int read_dir(struct walker *walker, struct op_walk_dir *dir, int *ret_fd)
{
	struct op_walk *walk = walker->walk;
	const struct op_walk_entry entry = { .path = dir->path, .type = DT_DIR, .parent = dir->parent };
	int err = walk->visits_dirs ? walk->visit(walk, &entry) : 0, fd;

	*ret_fd = -1;
	if (err)
		return err;
	fd = open_dir(walk, dir);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return skip_dir(walk, dir->path, fd);
	*ret_fd = fd;
	return read_entries(walker, dir, fd);
}

/* ---- the tree ---- */

/* New directories go on top of the stack: a walk in depth needs the fewest descriptors. */
static void add_found(struct op_walk *walk, struct op_walk_dir *found)
{
	while (found) {
		struct op_walk_dir *dir = found;

		found = dir->next;
		dir->before = walk->last;
		walk->last = dir;
		dir->next = walk->waiting;
		walk->waiting = dir;
		walk->nr_waiting++;
		if (dir->parent)
			dir->parent->nr_waiting++;
	}
}

/* Of the nearest KEPT_MAX directories above, the topmost that is open; NULL: none. */
static struct op_walk_dir *topmost_open(const struct op_walk_dir *dir)
{
	struct op_walk_dir *found = NULL, *above = dir->parent;

	for (size_t i = 0; above && i < KEPT_MAX; i++, above = above->parent)
		if (above->fd >= 0)
			found = above;
	return found;
}

/*
 * Keeps a directory open. A walk of one thread keeps the deepest ones: they are needed first, and
 * cost most to open by path. Returns the descriptor that is not kept.
 */
static int keep_open(struct op_walk *walk, struct op_walk_dir *dir, int fd)
{
	struct op_walk_dir *other = walk->nr_kept == KEPT_MAX && walk->nr_threads <= 1 ? topmost_open(dir) : NULL;
	int unused = other ? take_kept(walk, other) : -1;

	if (walk->nr_kept == KEPT_MAX)
		return fd;
	dir->fd = fd;
	walk->nr_kept++;
	return unused;
}

/* With the lock held. The caller closes the descriptors in `unused` without it. */
static void end_dir(struct walker *walker, struct op_walk_dir *dir, int err, int unused[2])
{
	struct op_walk *walk = walker->walk;

	op_walk_note_error(walk, dir->path, err);
	if (err && !walk->keeps_going && !walk->err)
		walk->err = err;
	add_found(walk, walker->found);
	if (dir->nr_waiting && unused[0] >= 0)
		unused[0] = keep_open(walk, dir, unused[0]);
	if (dir->parent && !--dir->parent->nr_waiting)
		unused[1] = take_kept(walk, dir->parent);
	walk->nr_busy--;
}

/*
 * The directory to be read next; waits for one while other threads may find some. NULL: there will
 * be none. With the lock held.
 */
static struct op_walk_dir *begin_dir(struct op_walk *walk)
{
	struct op_walk_dir *dir = NULL;

	while (!walk->waiting && walk->nr_busy && !walk->err)
		pthread_cond_wait(&walk->has_changed, &walk->lock);
	if (!walk->err && walk->nr_waiting <= walk->nr_waiting_max)
		dir = walk->waiting;
	if (dir) {
		walk->waiting = dir->next;
		walk->nr_waiting--;
		walk->nr_busy++;
	}
	if (walk->waiting || !walk->nr_busy || walk->err)
		pthread_cond_broadcast(&walk->has_changed);
	return dir;
}

/* Takes the lock once for each directory, because the threads contend for it. */
static void walk_some(void *arg)
{
	struct op_walk *walk = arg;
	struct walker walker = { .walk = walk };
	struct op_walk_dir *dir = NULL;
	int unused[2] = { -1, -1 }, err = 0;

	do {
		pthread_mutex_lock(&walk->lock);
		if (dir)
			end_dir(&walker, dir, err, unused);
		dir = begin_dir(walk);
		pthread_mutex_unlock(&walk->lock);
		close_dir(unused[0]);
		close_dir(unused[1]);
		unused[1] = -1;
		walker.found = NULL;
		err = dir ? read_dir(&walker, dir, &unused[0]) : 0;
	} while (dir);
	op_text_free(&walker.path);
}

int op_walk_tree(struct op_walk *walk, const char *top)
{
	struct op_walk_dir *dir = new_dir(NULL, top);

	if (!dir)
		return -ENOMEM;
	walk->err = 0;
	pthread_mutex_init(&walk->lock, NULL);
	pthread_cond_init(&walk->has_changed, NULL);
	add_found(walk, dir);
	walk->nr_waiting_max = walk->nr_threads > 1 ? ALONE_MAX : SIZE_MAX;
	walk_some(walk);
	walk->nr_waiting_max = SIZE_MAX;
	if (walk->waiting && !walk->err)
		op_run_threads(walk->nr_threads, walk_some, walk);
	pthread_cond_destroy(&walk->has_changed);
	pthread_mutex_destroy(&walk->lock);
	return walk->err;
}

void op_walk_free(struct op_walk *walk)
{
	while (walk->last) {
		struct op_walk_dir *dir = walk->last;

		walk->last = dir->before;
		close_dir(dir->fd);
		free(dir);
	}
	free(walk->first_path);
}

/* ---- walks with a callback ---- */

struct visitor {
	int (*visit)(const char *path, unsigned char type, void *arg);
	void *arg;
};

static int visit_entry(struct op_walk *walk, const struct op_walk_entry *entry)
{
	const struct visitor *visitor = walk->arg;

	return visitor->visit(entry->path, entry->type, visitor->arg);
}

static int walk_once(struct op_walk walk, const char *top)
{
	int err = op_walk_tree(&walk, top);

	op_walk_free(&walk);
	return err;
}

int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
{
	struct visitor visitor = { visit, arg };

	return walk_once((struct op_walk){ .dir_fd = dir_fd, .visit = visit_entry, .arg = &visitor }, top);
}

int op_session_walk_skip_bad(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_bad_paths *bad_paths)
{
	struct visitor visitor = { visit, arg };

	return walk_once((struct op_walk){ .dir_fd = dir_fd, .visit = visit_entry, .arg = &visitor, .bad_paths = bad_paths }, top);
}

int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			const struct op_session_bad_paths *bad_paths)
{
	struct visitor visitor = { visit, arg };
	struct op_walk walk = {
		.dir_fd = dir_fd, .visit = visit_entry, .arg = &visitor, .visits_dirs = true, .bad_paths = bad_paths
	};

	return walk_once(walk, top);
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
