/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file_path.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"

#define BYTE_ORDER_MARK  "\xef\xbb\xbf"
#define NUMBER_BYTES_MAX 64

static int read_all(int fd, size_t max_bytes, struct op_text *text)
{
	char buffer[4096];

	for (;;) {
		ssize_t nr = op_sys_read(fd, buffer, sizeof(buffer));

		if (nr == -EINTR)
			continue;
		if (nr < 0)
			return (int)nr;
		if (!nr)
			break;
		if ((size_t)nr > max_bytes - text->length)
			return -EFBIG;
		if (memchr(buffer, '\0', (size_t)nr))
			return -EINVAL;
		op_text_add_bytes(text, buffer, (size_t)nr);
		if (text->failed)
			break;
	}
	return text->failed ? -ENOMEM : 0;
}

int op_file_read_at(int fd, void *bytes, size_t nr_bytes, off_t offset, size_t *ret_nr_read)
{
	size_t done = 0;

	while (done < nr_bytes) {
		ssize_t nr = op_sys_pread(fd, (char *)bytes + done, nr_bytes - done, offset + (off_t)done);

		if (nr == -EINTR)
			continue;
		if (nr < 0)
			return (int)nr;
		if (!nr)
			break;
		done += (size_t)nr;
	}
	*ret_nr_read = done;
	return 0;
}

/* Writing back what was read gives a hole its blocks. */
static int write_back(int fd, off_t offset, off_t nr_bytes)
{
	char block[65536];
	off_t end = offset + nr_bytes;
	int err = 0;

	for (off_t at = offset; !err && at < end; at += (off_t)sizeof(block)) {
		size_t wanted = op_min_u64(sizeof(block), (uint64_t)(end - at)), nr_read = 0;

		err = op_file_read_at(fd, block, wanted, at, &nr_read);
		memset(block + nr_read, 0, sizeof(block) - nr_read);
		if (!err)
			err = op_sys_pwrite_all(fd, block, wanted, at);
	}
	return err;
}

int op_file_allocate(int fd, off_t offset, off_t nr_bytes)
{
	int err = op_sys_fallocate(fd, 0, offset, nr_bytes);

	return err == -EOPNOTSUPP || err == -ENOSYS ? write_back(fd, offset, nr_bytes) : err;
}

/* A FIFO is refused: its owner would decide how long we wait. */
static int check_file(int dir_fd, int fd, uid_t *ret_owner)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	if (S_ISFIFO(st.st_mode))
		return -ENOTSUP;
	if (!ret_owner)
		return 0;
	if (!st.st_uid && fstatat(dir_fd, "", &st, AT_EMPTY_PATH) < 0)
		return -errno;
	*ret_owner = st.st_uid;
	return 0;
}

static int read_file(int dir_fd, const char *path, int flags, size_t max_bytes, char **ret_text, uid_t *ret_owner)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0), err;
	struct op_text text = { 0 };
	uid_t owner = 0;
	char *data;

	if (fd < 0)
		return fd;
	err = check_file(dir_fd, fd, ret_owner ? &owner : NULL);
	if (!err)
		err = read_all(fd, max_bytes, &text);
	close(fd);
	if (err < 0) {
		op_text_free(&text);
		return err;
	}
	data = op_text_steal(&text);
	if (!data)
		return -ENOMEM;
	*ret_text = data;
	if (ret_owner)
		*ret_owner = owner;
	return 0;
}

char *op_file_skip_bom(char *text)
{
	return text + (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) ? 0 : strlen(BYTE_ORDER_MARK));
}

int op_file_read(int dir_fd, const char *path, size_t max_bytes, char **ret_text)
{
	return read_file(dir_fd, path, 0, max_bytes, ret_text, NULL);
}

int op_file_read_own(int dir_fd, const char *name, size_t max_bytes, char **ret_text, uid_t *ret_owner)
{
	return read_file(dir_fd, name, O_NOFOLLOW, max_bytes, ret_text, ret_owner);
}

int op_file_read_u64(const char *path, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	char *text;
	int err = op_file_read(AT_FDCWD, path, NUMBER_BYTES_MAX, &text);

	if (err < 0)
		return err;
	text[strcspn(text, "\n")] = '\0';
	err = op_parse_u64(text, min, max, ret_value);
	free(text);
	return err;
}

/* True when we are root and another user owns the directory: then that user gets what we create. */
static bool find_owner(int dir_fd, struct stat *ret_st)
{
	return !geteuid() && !op_sys_fstat(dir_fd, ret_st) && ret_st->st_uid;
}

int op_file_inherit_owner(int dir_fd, int fd)
{
	struct stat st;

	if (!find_owner(dir_fd, &st))
		return 0;
	return fchown(fd, st.st_uid, st.st_gid) < 0 ? -errno : 0;
}

/* An existing file may be a link to another user's file: it is removed, not written to. */
static int write_new(int dir_fd, const char *name, const char *text, mode_t mode)
{
	int fd, err;

	op_sys_unlinkat(dir_fd, name, 0);
	fd = op_sys_openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return fd;
	err = op_file_inherit_owner(dir_fd, fd);
	if (!err)
		err = op_sys_write_all(fd, text, strlen(text));
	if (!err)
		err = op_sys_fsync(fd);
	close(fd);
	return err;
}

static int sync_dir(int dir_fd)
{
	int fd = op_sys_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

int op_file_publish(int dir_fd, const char *name, const char *text, mode_t mode)
{
	char *path;
	int err;

	if (asprintf(&path, "%s" OP_FILE_TEMPORARY_SUFFIX, name) < 0)
		return -ENOMEM;
	err = write_new(dir_fd, path, text, mode);
	if (!err)
		err = op_sys_renameat(dir_fd, path, dir_fd, name);
	if (err)
		op_sys_unlinkat(dir_fd, path, 0);
	else
		err = sync_dir(dir_fd);
	free(path);
	return err;
}

/* ".." is the directory above, whatever the links in its path point to now. */
int op_file_inherit_parent_owner(int fd)
{
	int parent, err;

	if (geteuid())
		return 0;
	parent = op_sys_openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	err = parent < 0 ? parent : op_file_inherit_owner(parent, fd);
	if (parent >= 0)
		close(parent);
	return err;
}

int op_file_set_dir_mode(int dir_fd, const char *path, mode_t mode)
{
	int fd = op_file_open_below(dir_fd, path, O_RDONLY | O_DIRECTORY, 0), err;

	if (fd < 0)
		return fd;
	err = fchmod(fd, mode) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int inherit_new(const char *path)
{
	int fd = geteuid() ? -1 : op_sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err;

	if (geteuid() || fd < 0)
		return geteuid() ? 0 : fd;
	err = op_file_inherit_parent_owner(fd);
	close(fd);
	return err;
}

int op_file_make_dirs(const char *path)
{
	char *copy = strdup(path);
	int err = 0;

	if (!copy)
		return -ENOMEM;
	for (char *slash = copy; slash && (!err || err == -EEXIST);) {
		slash = strchr(slash + strspn(slash, "/"), '/');
		if (slash)
			*slash = '\0';
		if (*copy)
			err = op_sys_mkdirat(AT_FDCWD, copy, 0755);
		if (*copy && !err)
			err = inherit_new(copy);
		if (slash)
			*slash = '/';
	}
	free(copy);
	if (err == -EEXIST) {
		struct stat st;

		err = stat(path, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	}
	return err;
}

int op_file_open_parent(int dir_fd, const char *path, bool make, const char **ret_name)
{
	struct op_file_path found;
	int err = make ? op_file_path_find(dir_fd, path, &found) : op_file_path_find_whole(dir_fd, path, &found);

	if (err < 0)
		return err;
	err = make ? op_file_path_make_dirs(&found) : 0;
	if (err < 0) {
		op_file_path_close(&found);
		return err;
	}
	*ret_name = found.rest;
	return found.fd;
}

static int make_dir(int dir_fd, int parent, const char *name, mode_t mode)
{
	struct stat st;
	int err = op_sys_mkdirat(parent, name, mode);

	if (err || !find_owner(dir_fd, &st))
		return err;
	err = fchownat(parent, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	if (err)
		op_sys_unlinkat(parent, name, AT_REMOVEDIR);
	return err;
}

int op_file_make_dir_below(int dir_fd, const char *path, mode_t mode)
{
	const char *name;
	int parent = op_file_open_parent(dir_fd, path, false, &name), err;

	if (parent < 0)
		return parent;
	err = make_dir(dir_fd, parent, name, mode);
	close(parent);
	return err;
}

int op_file_open_below(int dir_fd, const char *path, int flags, mode_t mode)
{
	const char *name = path;
	int parent = dir_fd, fd;

	if (strchr(path, '/')) {
		parent = op_file_open_parent(dir_fd, path, flags & O_CREAT, &name);
		if (parent < 0)
			return parent;
	}
	fd = op_sys_openat(parent, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
	if (parent != dir_fd)
		close(parent);
	return fd;
}

int op_file_create_below(int dir_fd, const char *path, mode_t mode)
{
	int fd = op_file_open_below(dir_fd, path, O_RDWR | O_CREAT | O_EXCL, mode), err;

	if (fd != -EEXIST)
		return fd;
	err = op_file_remove_below(dir_fd, path, 0);
	return err && err != -ENOENT ? err : op_file_open_below(dir_fd, path, O_RDWR | O_CREAT | O_EXCL, mode);
}

int op_file_rename_below(int dir_fd, const char *path, const char *new_path)
{
	const char *name, *new_name;
	int new_parent, parent = op_file_open_parent(dir_fd, path, false, &name), err;

	if (parent < 0)
		return parent;
	new_parent = op_file_open_parent(dir_fd, new_path, false, &new_name);
	err = new_parent < 0 ? new_parent : op_sys_renameat(parent, name, new_parent, new_name);
	if (new_parent >= 0)
		close(new_parent);
	close(parent);
	return err;
}

static int publish_into(int dir_fd, const char *path, int new_dir_fd, const char *new_path, uint64_t *ret_dir_bytes)
{
	struct op_file_path target;
	const char *name;
	int parent = op_file_open_parent(dir_fd, path, false, &name), err;

	if (parent < 0)
		return parent;
	err = op_file_path_find(new_dir_fd, new_path, &target);
	if (!err) {
		err = op_file_path_publish(&target, parent, name, ret_dir_bytes);
		op_file_path_close(&target);
	}
	close(parent);
	return err;
}

int op_file_publish_below(int dir_fd, const char *path, const char *new_path, uint64_t *ret_dir_bytes)
{
	return publish_into(dir_fd, path, dir_fd, new_path, ret_dir_bytes);
}

int op_file_move_below(int dir_fd, const char *path, int new_dir_fd, const char *new_path)
{
	uint64_t dir_bytes;

	return publish_into(dir_fd, path, new_dir_fd, new_path, &dir_bytes);
}

static int copy_all(int from_fd, int to_fd)
{
	char block[65536];
	size_t nr_read = 0;
	off_t at = 0;
	int err = 0;

	do {
		if (op_file_read_at(from_fd, block, sizeof(block), at, &nr_read))
			return -EBADMSG;
		err = op_sys_write_all(to_fd, block, nr_read);
		at += (off_t)nr_read;
	} while (!err && nr_read == sizeof(block));
	return err;
}

int op_file_copy_below(int dir_fd, const char *path, const char *tmp_path)
{
	int from_fd = op_file_open_below(dir_fd, path, O_RDONLY, 0), to_fd = -1, err;
	struct stat st;

	if (from_fd < 0)
		return from_fd;
	err = op_sys_fstat(from_fd, &st);
	if (!err && !S_ISREG(st.st_mode))
		err = -EBADMSG;
	if (!err)
		err = to_fd = op_file_create_below(dir_fd, tmp_path, st.st_mode & 0777);
	if (err >= 0)
		err = copy_all(from_fd, to_fd);
	if (to_fd >= 0)
		close(to_fd);
	close(from_fd);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	return err;
}

int op_file_remove_below(int dir_fd, const char *path, int flags)
{
	const char *name;
	int parent = op_file_open_parent(dir_fd, path, false, &name), err;

	if (parent < 0)
		return parent;
	err = op_sys_unlinkat(parent, name, flags);
	close(parent);
	return err;
}

void op_file_unlink_below(int dir_fd, const char *path)
{
	int err = op_file_remove_below(dir_fd, path, 0);

	(void)err;
}
