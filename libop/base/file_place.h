/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a file is below a directory, or will be: found once, then opened and put there. No symbolic link is followed. Any thread. */
#ifndef OP_FILE_PLACE_H
#define OP_FILE_PLACE_H

#include <sys/types.h>

#include "libop/base/compiler.h"

struct op_file_place {
	int dir_fd; /* the caller's, as is the path below it */
	const char *path;
	int fd;           /* O_PATH, of the directory on the way that is deepest of those that are there; negative: none */
	const char *rest; /* of the path, from there on: a name, where no directory is missing */
};

/*
 * Finds the place of `path` below dir_fd, which op_file_place_close closes. Nothing is made. 0, also when directories are missing, or -errno: -ENOTDIR for a
 * symbolic link on the way, -EINVAL for "..", -ENAMETOOLONG where others could not name the file in one call.
 */
int op_file_place_find(int dir_fd, const char *path, struct op_file_place *ret_place) OP_NONNULL OP_MUST_CHECK;

/* The same, but -ENOENT where a directory is missing. */
int op_file_place_find_whole(int dir_fd, const char *path, struct op_file_place *ret_place) OP_NONNULL OP_MUST_CHECK;

void op_file_place_close(struct op_file_place *place) OP_NONNULL;

/* Makes the directories that are missing, mode 0755 less the umask, those too that somebody removed since. 0, or -errno. */
int op_file_place_make(struct op_file_place *place) OP_NONNULL OP_MUST_CHECK;

/* Opens the file. A descriptor; -ENOENT, also where a directory was missing; -ELOOP for a symbolic link, another -errno. */
int op_file_place_open(const struct op_file_place *place, int flags, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * Renames `name` in from_fd to the place, where a directory is made that is missing. 0, or -errno and it stays where it is. *ret_dir_bytes, where it is given: what the directories
 * that were made take of the disk, with what the one that was there has grown by.
 */
int op_file_place_publish(struct op_file_place *place, int from_fd, const char *name, uint64_t *ret_dir_bytes)
	OP_NONNULL_ARGS(1, 3) OP_MUST_CHECK;

#endif
