/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/seal.h"
#include "libop/base/sys.h"
#include "libop/odb/file_image.h"
#include "libop/odb/keep.h"

static struct op_odb_pending *new_pending(const char *tmp_path, const char *path, uint64_t inode)
{
	size_t path_bytes = strlen(path) + 1, tmp_bytes = strlen(tmp_path) + 1;
	struct op_odb_pending *pending = malloc(sizeof(*pending) + path_bytes + tmp_bytes);

	if (!pending)
		return NULL;
	*pending = (struct op_odb_pending){ .inode = inode, .fd = -1, .tmp_path = pending->path + path_bytes };
	memcpy(pending->path, path, path_bytes);
	memcpy(pending->tmp_path, tmp_path, tmp_bytes);
	return pending;
}

static void free_one(struct op_odb_pending *pending)
{
	if (pending->fd >= 0)
		close(pending->fd);
	free(pending);
}

void op_odb_free_pending(struct op_odb_pending *pending)
{
	while (pending) {
		struct op_odb_pending *next = pending->next;

		free_one(pending);
		pending = next;
	}
}

void op_odb_append_pending(struct op_odb_pending **first, struct op_odb_pending *more)
{
	while (*first)
		first = &(*first)->next;
	*first = more;
}

static int keep_and_rename(const struct op_odb_tmp *tmp, int dir_fd, const char *path, uint64_t new_inode)
{
	const char *name;
	int parent_fd = op_file_open_parent(dir_fd, path, false, &name), err;

	if (parent_fd < 0)
		return parent_fd;
	err = op_odb_keep(tmp, parent_fd, name, path, new_inode);
	if (!err)
		err = op_sys_renameat(tmp->fd, tmp->name, parent_fd, name);
	if (err)
		op_odb_kept_remove(tmp, new_inode);
	close(parent_fd);
	return err;
}

int op_odb_replace(int dir_fd, const char *tmp_path, const char *path, uint64_t new_inode, struct op_odb_pending **ret_pending)
{
	struct op_odb_pending *pending = new_pending(tmp_path, path, new_inode);
	struct op_odb_tmp tmp;
	int err;

	if (!pending)
		return -ENOMEM;
	tmp.fd = op_file_open_parent(dir_fd, tmp_path, false, &tmp.name);
	err = tmp.fd < 0 ? tmp.fd : keep_and_rename(&tmp, dir_fd, path, new_inode);
	if (err && tmp.fd >= 0)
		op_sys_unlinkat(tmp.fd, tmp.name, 0);
	if (tmp.fd >= 0)
		close(tmp.fd);
	if (err)
		free(pending);
	else
		*ret_pending = pending;
	return err;
}

int op_odb_open_if_there(int dir_fd, const char *path, int *ret_fd, uint64_t *ret_inode)
{
	struct stat st = { 0 };
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st);

	if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP && fd != -EBADMSG)
		return fd;
	*ret_fd = fd < 0 ? -1 : fd;
	*ret_inode = fd < 0 ? 0 : st.st_ino;
	return 0;
}

int op_odb_find_inode(int dir_fd, const char *path, uint64_t *ret_inode)
{
	int fd = -1, err = op_odb_open_if_there(dir_fd, path, &fd, ret_inode);

	if (fd >= 0)
		close(fd);
	return err;
}

int op_odb_publish_sealed(int dir_fd, const char *tmp_path, const char *path, uint64_t *ret_dir_bytes,
			  struct op_odb_pending **ret_pending)
{
	struct op_odb_pending *pending = NULL;
	uint64_t old_inode = 0, new_inode = 0, dir_bytes = 0;
	int err = op_odb_find_inode(dir_fd, path, &old_inode);

	if (!err)
		err = op_odb_find_inode(dir_fd, tmp_path, &new_inode);
	if (!err)
		err = old_inode ? op_odb_replace(dir_fd, tmp_path, path, new_inode, &pending)
				: op_file_publish_below(dir_fd, tmp_path, path, &dir_bytes);
	if (err) {
		op_file_unlink_below(dir_fd, tmp_path);
		return err;
	}
	*ret_dir_bytes = dir_bytes;
	*ret_pending = pending;
	return 0;
}

int op_odb_check_seal(int dir_fd, const char *path)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st), err;

	if (fd < 0)
		return fd;
	err = op_seal_check(fd);
	close(fd);
	return err;
}

/* ---- onto the disk ---- */

int op_odb_open_pending(struct op_odb_pending *pending, int top_fd, const char *top)
{
	size_t length = strlen(top);
	const char *path = pending->path;
	uint64_t inode;
	int err;

	if (pending->is_open)
		return 0;
	if (length && (strncmp(path, top, length) || path[length] != '/'))
		return -EINVAL;
	/* Whatever stands there now has all counts of this one. */
	err = op_odb_open_if_there(top_fd, length ? path + length + 1 : path, &pending->fd, &inode);
	pending->is_open = !err;
	return err;
}

/* The links may be those of a later file with this inode. */
static void remove_links(int dir_fd, const struct op_odb_pending *pending)
{
	char path[PATH_MAX];
	struct op_odb_tmp tmp;

	tmp.fd = op_file_open_parent(dir_fd, pending->tmp_path, false, &tmp.name);
	if (tmp.fd < 0)
		return;
	if (!op_odb_kept_path(&tmp, pending->inode, path) && !strcmp(path, pending->path))
		op_odb_kept_remove(&tmp, pending->inode);
	close(tmp.fd);
}

int op_odb_sync_pending(int dir_fd, struct op_odb_pending *pending)
{
	int err = op_odb_open_pending(pending, dir_fd, "");

	if (!err && pending->fd >= 0)
		err = op_sys_fsync(pending->fd);
	if (err)
		return err;
	remove_links(dir_fd, pending);
	free_one(pending);
	return 0;
}
