/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/file_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DIR_MODE  0755

/*
 * The disk space that a publish adds to directories. A new directory counts whole, once the entry
 * below it exists.
 */
struct growth {
	uint64_t before; /* disk space of the current directory when we came to it */
	uint64_t nr_bytes;
};

static uint64_t disk_bytes_of(int fd)
{
	struct stat st;

	return op_sys_fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

static void add_growth(struct growth *growth, int fd)
{
	uint64_t now = disk_bytes_of(fd);

	growth->nr_bytes += now - op_min_u64(now, growth->before);
}

/* Creates a directory and opens it. Another process may have created it in the meantime. */
static int make_component(int dir_fd, const char *name, struct growth *growth)
{
	int err = op_sys_mkdirat(dir_fd, name, DIR_MODE), fd;

	if (err && err != -EEXIST)
		return err;
	fd = op_sys_openat(dir_fd, name, DIR_FLAGS, 0);
	if (fd < 0 || !growth)
		return fd;
	add_growth(growth, dir_fd);
	growth->before = err ? disk_bytes_of(fd) : 0;
	return fd;
}

/* Walks to the last directory, component by component. `growth` may be NULL. */
static int descend(struct op_file_path *path, bool make, struct growth *growth)
{
	const char *slash;

	while ((slash = strchr(path->rest, '/'))) {
		size_t length = (size_t)(slash - path->rest);
		char name[NAME_MAX + 1] = ".";
		int fd;

		if (length > NAME_MAX)
			return -ENAMETOOLONG;
		if (length) {
			memcpy(name, path->rest, length);
			name[length] = '\0';
		}
		if (!strcmp(name, ".."))
			return -EINVAL;
		fd = make ? make_component(path->fd, name, growth) : op_sys_openat(path->fd, name, DIR_FLAGS, 0);
		if (fd < 0)
			return fd;
		close(path->fd);
		path->fd = fd;
		path->rest = slash + 1;
	}
	return 0;
}

static bool has_dot_dot(const char *path)
{
	for (const char *dots = strstr(path, ".."); dots; dots = strstr(dots + 1, ".."))
		if ((dots == path || dots[-1] == '/') && dots[2] == '/')
			return true;
	return false;
}

/*
 * Opens the deepest directory that exists, with one call in the usual case, and moves *rest behind
 * it. An error other than a missing directory is left to descend().
 */
static int open_deepest(int dir_fd, const char **rest, bool may_miss)
{
	char dir[PATH_MAX], *slash;
	int fd = -ENOSYS;

	memcpy(dir, *rest, strlen(*rest) + 1);
	while ((slash = strrchr(dir, '/')) && slash != dir) {
		*slash = '\0';
		fd = op_sys_open_dir_below(dir_fd, dir);
		if (fd != -ENOENT || !may_miss)
			break;
	}
	if (fd >= 0)
		*rest += strlen(dir) + 1;
	return fd;
}

static int find(int dir_fd, const char *name, bool may_miss, struct op_file_path *ret_path)
{
	struct op_file_path path = { .dir_fd = dir_fd, .path = name, .fd = -ENOSYS, .rest = name };
	int err = 0;

	if (strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!has_dot_dot(name))
		path.fd = open_deepest(dir_fd, &path.rest, may_miss);
	if (path.fd == -ENOENT && !may_miss)
		return path.fd;
	if (path.fd < 0) {
		path.fd = op_sys_openat(dir_fd, ".", DIR_FLAGS, 0);
		err = path.fd < 0 ? path.fd : descend(&path, false, NULL);
	}
	if (err && (err != -ENOENT || !may_miss || path.fd < 0)) {
		op_file_path_close(&path);
		return err;
	}
	*ret_path = path;
	return 0;
}

int op_file_path_find(int dir_fd, const char *path, struct op_file_path *ret_path)
{
	return find(dir_fd, path, true, ret_path);
}

int op_file_path_find_whole(int dir_fd, const char *path, struct op_file_path *ret_path)
{
	return find(dir_fd, path, false, ret_path);
}

void op_file_path_close(struct op_file_path *path)
{
	if (path->fd >= 0)
		close(path->fd);
	path->fd = -EBADF;
}

int op_file_path_open(const struct op_file_path *path, int flags, mode_t mode)
{
	if (strchr(path->rest, '/'))
		return -ENOENT;
	return op_sys_openat(path->fd, path->rest, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
}

/*
 * A directory that was removed after it was found takes no entries (-ENOENT): the path is resolved
 * again.
 */
static int find_again(struct op_file_path *path)
{
	op_file_path_close(path);
	return op_file_path_find(path->dir_fd, path->path, path);
}

int op_file_path_make_dirs(struct op_file_path *path)
{
	int err = descend(path, true, NULL);

	if (err != -ENOENT)
		return err;
	err = find_again(path);
	return err ? err : descend(path, true, NULL);
}

static int publish(struct op_file_path *path, int from_fd, const char *name, uint64_t *ret_dir_bytes)
{
	struct growth growth = { .before = ret_dir_bytes ? disk_bytes_of(path->fd) : 0 };
	int err = descend(path, true, ret_dir_bytes ? &growth : NULL);

	if (!err)
		err = op_sys_renameat(from_fd, name, path->fd, path->rest);
	if (err || !ret_dir_bytes)
		return err;
	add_growth(&growth, path->fd);
	*ret_dir_bytes = growth.nr_bytes;
	return 0;
}

int op_file_path_publish(struct op_file_path *path, int from_fd, const char *name, uint64_t *ret_dir_bytes)
{
	int err = publish(path, from_fd, name, ret_dir_bytes);

	if (err != -ENOENT)
		return err;
	err = find_again(path);
	return err ? err : publish(path, from_fd, name, ret_dir_bytes);
}
