/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A path below a directory, resolved once and then used to open or to publish the file. No symbolic
 * link is followed. Any thread.
 */
#ifndef OP_FILE_PATH_H
#define OP_FILE_PATH_H

#include <sys/types.h>

#include "libop/base/compiler.h"

struct op_file_path {
	int dir_fd; /* the caller's, as is `path` */
	const char *path;
	/* O_PATH: the deepest directory of the path that exists; negative: none */
	int fd;
	const char *rest; /* of the path, below fd: a plain name when no directory is missing */
};

/*
 * Resolves `path` below dir_fd and creates nothing; op_file_path_close ends the use. 0, also when
 * directories are missing, or -errno: -ENOTDIR for a symbolic link in the path, -EINVAL for "..",
 * -ENAMETOOLONG for a path that is too long for one system call.
 */
int op_file_path_find(int dir_fd, const char *path, struct op_file_path *ret_path) OP_NONNULL OP_MUST_CHECK;

/* The same, but -ENOENT when a directory is missing. */
int op_file_path_find_whole(int dir_fd, const char *path, struct op_file_path *ret_path) OP_NONNULL OP_MUST_CHECK;

void op_file_path_close(struct op_file_path *path) OP_NONNULL;

/* Creates the missing directories, mode 0755 less the umask. 0 or -errno. */
int op_file_path_make_dirs(struct op_file_path *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the file. A descriptor; -ENOENT, also for a missing directory; -ELOOP for a symbolic link;
 * another -errno.
 */
int op_file_path_open(const struct op_file_path *path, int flags, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * Renames `name` in from_fd to the path and creates missing directories. 0, or -errno and the file
 * stays where it is. *ret_dir_bytes, which may be NULL: the disk space of the new directories and
 * the growth of the one above them.
 */
int op_file_path_publish(struct op_file_path *path, int from_fd, const char *name, uint64_t *ret_dir_bytes)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

#endif
