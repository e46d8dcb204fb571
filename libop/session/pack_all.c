/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/pack_all.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/pack.h"

static int write_new(int dir_fd, char *const *paths, size_t nr_paths)
{
	int fd = op_file_create_below(dir_fd, OP_SESSION_PACK_NEW, 0644), err;

	if (fd < 0)
		return fd;
	err = op_file_inherit_owner(dir_fd, fd);
	if (!err)
		err = op_session_write_pack(dir_fd, paths, nr_paths, fd);
	close(fd);
	if (err)
		goto fail;
	err = op_sys_renameat(dir_fd, OP_SESSION_PACK_NEW, dir_fd, OP_SESSION_PACKED);
	if (err)
		goto fail;
	err = op_sys_fsync(dir_fd);
	if (err)
		goto fail;
	return 0;

fail:
	op_file_unlink_below(dir_fd, OP_SESSION_PACK_NEW);
	return err;
}

/* A file that the pack does not have stays. Goes on after an error, and returns the first one. */
static int remove_packed(int dir_fd, char *const *paths, size_t nr_paths)
{
	struct op_pack pack;
	uint32_t index;
	int first_err = op_pack_open(dir_fd, OP_SESSION_PACKED, &pack);

	if (first_err)
		return first_err;
	for (size_t i = 0; i < nr_paths; i++) {
		int err = op_pack_find(&pack, paths[i], &index);

		if (!err)
			err = op_session_remove_file(dir_fd, paths[i]);
		if (err != -ENOENT && !first_err)
			first_err = err;
	}
	op_pack_close(&pack);
	return first_err;
}

/*
 * The files are on the disk first: after a power cut, one whose removal was not there yet must not
 * come back torn and hide what the pack has.
 */
int op_session_pack(int dir_fd)
{
	struct op_session_list list;
	char **paths;
	size_t nr = 0;
	int err = op_session_list(dir_fd, &list, NULL);

	if (err)
		return err;
	paths = calloc(list.nr_files + 1, sizeof(*paths));
	if (!paths) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < list.nr_files; i++)
		if (!list.files[i].is_packed)
			paths[nr++] = list.files[i].path;
	if (!nr || list.nr_files < OP_SESSION_PACK_MIN)
		goto out;
	err = op_sys_syncfs(dir_fd);
	if (!err)
		err = write_new(dir_fd, paths, nr);
	if (!err)
		err = remove_packed(dir_fd, paths, nr);
out:
	free(paths);
	op_session_list_free(&list);
	return err;
}

/* ---- sample files again ---- */

/* Files that are there have more than the pack. */
static int unpack_all(int dir_fd, const struct op_pack *pack)
{
	struct op_session_list list;
	int err = op_session_list(dir_fd, &list, NULL);

	if (err)
		return err;
	for (size_t i = 0; i < list.nr_files && !err; i++)
		if (list.files[i].is_packed)
			err = op_session_unpack_file(dir_fd, pack, list.files[i].path);
	op_session_list_free(&list);
	return err ? err : op_sys_syncfs(dir_fd);
}

static int unpack_locked(int dir_fd)
{
	struct op_pack pack;
	int err;

	/* The process that closes the session may pack it. No other one packs it later. */
	if (!faccessat(dir_fd, OP_SESSION_CLOSING, F_OK, AT_SYMLINK_NOFOLLOW))
		return -EBUSY;
	err = op_pack_open(dir_fd, OP_SESSION_PACKED, &pack);
	if (err)
		return err;
	err = unpack_all(dir_fd, &pack);
	op_pack_close(&pack);
	return err ? err : op_file_remove_below(dir_fd, OP_SESSION_PACKED, 0);
}

int op_session_unpack(int top_fd, const char *directory)
{
	int dir_fd = op_file_open_below(top_fd, directory, O_RDONLY | O_DIRECTORY, 0), err;

	if (dir_fd < 0)
		return dir_fd;
	err = flock(dir_fd, LOCK_EX | LOCK_NB) < 0 ? -errno : unpack_locked(dir_fd);
	close(dir_fd);
	return err == -EWOULDBLOCK ? -EBUSY : err;
}
