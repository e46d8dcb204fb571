/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Small text files, read whole and replaced in one step, and files below a directory that is not
 * trusted. Any thread.
 */
#ifndef OP_FILE_H
#define OP_FILE_H

#include <sys/types.h>

#include "libop/base/compiler.h"

#define OP_FILE_MAX_BYTES (4u * 1024 * 1024)

/*
 * Reads a file, also one of /proc or /sys, into a NUL-terminated string that the caller frees. 0;
 * -EFBIG: longer than max_bytes; -EINVAL: it has a NUL byte; -ENOTSUP: a FIFO; another -errno.
 */
int op_file_read(int dir_fd, const char *path, size_t max_bytes, char **ret_text) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads a file of /proc or /sys that has one number and a newline. 0; -EINVAL; -ERANGE; another
 * -errno.
 */
int op_file_read_u64(const char *path, uint64_t min, uint64_t max, uint64_t *ret_value) OP_NONNULL OP_MUST_CHECK;

/* Skips the byte order mark (U+FEFF) that some editors put at the start of a text. */
char *op_file_skip_bom(char *text) OP_NONNULL;

/*
 * Reads a file of a directory that may belong to another user. A symbolic link is -ELOOP: it could
 * lead to a file that this user must not read. *ret_owner, which may be NULL: the user who is
 * responsible for the contents. That is the owner of the file or, when root owns the file, the
 * owner of the directory, who may have put it there.
 */
int op_file_read_own(int dir_fd, const char *name, size_t max_bytes, char **ret_text, uid_t *ret_owner)
	OP_NONNULL_ARGS(2, 4) OP_MUST_CHECK;

/* Reads up to nr_bytes from `offset` on, less only at the end of the file. 0 or -errno. */
int op_file_read_at(int fd, void *bytes, size_t nr_bytes, off_t offset, size_t *ret_nr_read) OP_NONNULL OP_MUST_CHECK;

/*
 * Allocates the disk blocks of a range; the contents stay, and a shorter file grows to the end of
 * the range. Where the file system has no fallocate(2) the range is written: no other program may
 * write to it meanwhile. 0, -ENOSPC or another -errno, and then the length may be anything in
 * between.
 */
int op_file_allocate(int fd, off_t offset, off_t nr_bytes) OP_MUST_CHECK;

#define OP_FILE_TEMPORARY_SUFFIX ".tmp" /* of the temporary file of op_file_publish */

/*
 * Replaces `name` below dir_fd: writes and syncs a temporary file beside it, renames that, and
 * syncs the directory. The owner is as op_file_inherit_owner says. 0 or -errno. After an error the
 * temporary file is gone, and `name` is unchanged unless only the last sync failed.
 */
int op_file_publish(int dir_fd, const char *name, const char *text, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * What root creates for another user belongs to that user, so that a daemon that runs as that user
 * can use what opcontrol made. These functions do nothing for other users than root. 0 or -errno.
 */

/* Gives a new file, open as fd, to the owner of dir_fd. */
int op_file_inherit_owner(int dir_fd, int fd) OP_MUST_CHECK;

/* Gives a new directory, open as fd, to the owner of the directory above it. */
int op_file_inherit_parent_owner(int fd) OP_MUST_CHECK;

/*
 * Makes a directory below dir_fd, through no symbolic link; root gives it to the owner of dir_fd. 0
 * or -errno.
 */
int op_file_make_dir_below(int dir_fd, const char *path, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a directory and the missing ones above it, mode 0755 less the umask; root gives each to the
 * owner of the directory above it. 0, also when it exists already; -errno.
 */
int op_file_make_dirs(const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Files below dir_fd. The functions open a path component by component, so the file is really below
 * dir_fd: a symbolic link in the path is -ENOTDIR or -ELOOP, ".." is -EINVAL, and a path too long
 * for one system call is -ENAMETOOLONG.
 */

/*
 * Opens the directory of `path`; *ret_name points to the last component, in `path`. `make` creates
 * missing directories, mode 0755 less the umask. An O_PATH descriptor that the caller closes;
 * -errno.
 */
int op_file_open_parent(int dir_fd, const char *path, bool make, const char **ret_name) OP_NONNULL OP_MUST_CHECK;

/* Opens a file; O_CREAT creates missing directories too. A descriptor or -errno. */
int op_file_open_below(int dir_fd, const char *path, int flags, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a file in the making, open for reading and writing. One that is there is removed and not
 * written to: it may be a link to another user's file. A descriptor or -errno.
 */
int op_file_create_below(int dir_fd, const char *path, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/* Sets the mode of a directory that was made below dir_fd. 0 or -errno. */
int op_file_set_dir_mode(int dir_fd, const char *path, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/* 0 or -errno. */
int op_file_rename_below(int dir_fd, const char *path, const char *new_path) OP_NONNULL OP_MUST_CHECK;

/*
 * Renames a file and creates the missing directories of new_path. *ret_dir_bytes: see
 * op_file_path_publish.
 */
int op_file_publish_below(int dir_fd, const char *path, const char *new_path, uint64_t *ret_dir_bytes) OP_NONNULL OP_MUST_CHECK;

/* The same from one directory to another of the file system. 0 or -errno. */
int op_file_move_below(int dir_fd, const char *path, int new_dir_fd, const char *new_path) OP_NONNULL OP_MUST_CHECK;

/*
 * Copies a file to tmp_path. All blocks of the copy are new, so it can be written to the disk even
 * when the blocks of the original cannot. 0; -EBADMSG: not a regular file, or it cannot be read;
 * another -errno. After an error there is no tmp_path.
 */
int op_file_copy_below(int dir_fd, const char *path, const char *tmp_path) OP_NONNULL OP_MUST_CHECK;

/* Removes a file or, with AT_REMOVEDIR, an empty directory. 0 or -errno. */
int op_file_remove_below(int dir_fd, const char *path, int flags) OP_NONNULL OP_MUST_CHECK;

/* Removes a file; ignores errors. */
void op_file_unlink_below(int dir_fd, const char *path) OP_NONNULL;

#endif
