/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/elf/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"

/* The path leads to the file once. What is checked through O_PATH is what is opened. */
int opr_open_regular(const char *path, struct stat *ret_st)
{
	int path_fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0), fd;
	char same[sizeof("/proc/self/fd/") + 10];
	struct stat st;

	if (path_fd < 0)
		return path_fd;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", path_fd);
	fd = op_sys_fstat(path_fd, &st);
	if (!fd)
		fd = S_ISREG(st.st_mode) ? op_sys_openat(AT_FDCWD, same, O_RDONLY | O_CLOEXEC, 0) : -EINVAL;
	close(path_fd);
	if (fd >= 0 && ret_st)
		*ret_st = st;
	return fd;
}

struct opr_file_read opr_file_read_of(const struct stat *st)
{
	return (struct opr_file_read){
		.device = st->st_dev,
		.inode = st->st_ino,
		.nr_bytes = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * OP_NS_PER_S + (uint64_t)st->st_mtim.tv_nsec,
		.ctime_ns = (uint64_t)st->st_ctim.tv_sec * OP_NS_PER_S + (uint64_t)st->st_ctim.tv_nsec,
	};
}

bool opr_is_file_read(const struct stat *st, const struct opr_file_read *file)
{
	const struct opr_file_read now = opr_file_read_of(st);

	return !file->inode || !memcmp(&now, file, sizeof(now));
}

bool opr_may_speak_for(const struct stat *file, const struct stat *other)
{
	return !file->st_uid || file->st_uid == geteuid() || file->st_uid == other->st_uid;
}

bool opr_is_safe_file(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}
