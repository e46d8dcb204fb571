/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/file_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DIR_MODE  0755

/* ---- finding ---- */

static bool leads_up(const char *path)
{
	for (const char *dots = strstr(path, ".."); dots; dots = strstr(dots + 1, ".."))
		if ((dots == path || dots[-1] == '/') && dots[2] == '/')
			return true;
	return false;
}

/*
 * The directory that is deepest on the way, in one call where it is there already. *rest is moved behind it. What is not a missing
 * directory, and a kernel that cannot do it, is left to who goes step by step.
 */
static int open_deepest(int dir_fd, const char **rest, bool may_miss)
{
	char way[PATH_MAX], *slash;
	int fd = -ENOSYS;

	memcpy(way, *rest, strlen(*rest) + 1);
	while ((slash = strrchr(way, '/')) && slash != way) {
		*slash = '\0';
		fd = op_sys_open_dir_below(dir_fd, way);
		if (fd != -ENOENT || !may_miss)
			break;
	}
	if (fd >= 0)
		*rest += strlen(way) + 1;
	return fd;
}

/* The first component of what is left; false: that is the name of the file. */
static bool has_component(const char *rest, size_t *ret_length)
{
	const char *slash = strchr(rest, '/');

	if (!slash)
		return false;
	*ret_length = (size_t)(slash - rest);
	return true;
}

static int copy_component(const char *rest, size_t length, char name[NAME_MAX + 1])
{
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, length ? rest : ".", length + !length);
	name[length + !length] = '\0';
	return strcmp(name, "..") ? 0 : -EINVAL;
}

static void go_to(struct op_file_place *place, int fd, size_t length)
{
	close(place->fd);
	place->fd = fd;
	place->rest += length + 1;
}

/* As far as directories are there. */
static int go_down(struct op_file_place *place)
{
	char name[NAME_MAX + 1];
	size_t length;

	while (has_component(place->rest, &length)) {
		int err = copy_component(place->rest, length, name);
		int fd = err ? err : op_sys_openat(place->fd, name, DIR_FLAGS, 0);

		if (fd < 0)
			return fd;
		go_to(place, fd, length);
	}
	return 0;
}

static int find(int dir_fd, const char *path, bool may_miss, struct op_file_place *ret_place)
{
	struct op_file_place place = { .dir_fd = dir_fd, .path = path, .fd = -ENOSYS, .rest = path };
	int err = 0;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!leads_up(path))
		place.fd = open_deepest(dir_fd, &place.rest, may_miss);
	if (place.fd == -ENOENT && !may_miss)
		return place.fd;
	if (place.fd < 0) {
		place.fd = op_sys_openat(dir_fd, ".", DIR_FLAGS, 0);
		err = place.fd < 0 ? place.fd : go_down(&place);
	}
	if (err && (err != -ENOENT || !may_miss || place.fd < 0)) {
		op_file_place_close(&place);
		return err;
	}
	*ret_place = place;
	return 0;
}

int op_file_place_find(int dir_fd, const char *path, struct op_file_place *ret_place)
{
	return find(dir_fd, path, true, ret_place);
}

int op_file_place_find_whole(int dir_fd, const char *path, struct op_file_place *ret_place)
{
	return find(dir_fd, path, false, ret_place);
}

void op_file_place_close(struct op_file_place *place)
{
	if (place->fd >= 0)
		close(place->fd);
	place->fd = -EBADF;
}

int op_file_place_open(const struct op_file_place *place, int flags, mode_t mode)
{
	if (strchr(place->rest, '/'))
		return -ENOENT;
	return op_sys_openat(place->fd, place->rest, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
}

/* ---- making ---- */

/* What is taken of the disk on the way down: of a directory that was made all that it has, once what lies in it is there. */
struct scale {
	uint64_t before; /* what the directory had that we are in */
	uint64_t made;
};

static uint64_t disk_bytes_of(int fd)
{
	struct stat st;

	return op_sys_fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}

static void weigh(struct scale *scale, int fd)
{
	uint64_t now = disk_bytes_of(fd);

	scale->made += now - op_min_u64(now, scale->before);
}

/* Makes a directory and opens it: what was missing a moment ago is not looked for once more. Somebody else may have made it meanwhile, or a link. */
static int make_component(int dir_fd, const char *name, struct scale *scale)
{
	int err = op_sys_mkdirat(dir_fd, name, DIR_MODE), fd;

	if (err && err != -EEXIST)
		return err;
	fd = op_sys_openat(dir_fd, name, DIR_FLAGS, 0);
	if (fd < 0 || !scale)
		return fd;
	weigh(scale, dir_fd);
	scale->before = err ? disk_bytes_of(fd) : 0;
	return fd;
}

/* `scale` may be NULL. */
static int make_missing(struct op_file_place *place, struct scale *scale)
{
	char name[NAME_MAX + 1];
	size_t length;

	while (has_component(place->rest, &length)) {
		int err = copy_component(place->rest, length, name);
		int fd = err ? err : make_component(place->fd, name, scale);

		if (fd < 0)
			return fd;
		go_to(place, fd, length);
	}
	return 0;
}

/* A directory that somebody removed since it was found has no room for anything: -ENOENT. */
static int find_again(struct op_file_place *place)
{
	op_file_place_close(place);
	return op_file_place_find(place->dir_fd, place->path, place);
}

int op_file_place_make(struct op_file_place *place)
{
	int err = make_missing(place, NULL);

	if (err != -ENOENT)
		return err;
	err = find_again(place);
	return err ? err : make_missing(place, NULL);
}

static int publish(struct op_file_place *place, int from_fd, const char *name, uint64_t *ret_dir_bytes)
{
	struct scale scale = { .before = ret_dir_bytes ? disk_bytes_of(place->fd) : 0 };
	int err = make_missing(place, ret_dir_bytes ? &scale : NULL);

	if (!err)
		err = op_sys_renameat(from_fd, name, place->fd, place->rest);
	if (err || !ret_dir_bytes)
		return err;
	weigh(&scale, place->fd);
	*ret_dir_bytes = scale.made;
	return 0;
}

int op_file_place_publish(struct op_file_place *place, int from_fd, const char *name, uint64_t *ret_dir_bytes)
{
	int err = publish(place, from_fd, name, ret_dir_bytes);

	if (err != -ENOENT)
		return err;
	err = find_again(place);
	return err ? err : publish(place, from_fd, name, ret_dir_bytes);
}
