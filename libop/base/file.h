/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small text files: read whole, and written so that a reader sees the old or the new file, never a part. Any thread. */
#ifndef OP_FILE_H
#define OP_FILE_H

#include <sys/types.h>

#include "libop/base/compiler.h"

#define OP_FILE_MAX_BYTES (4u * 1024 * 1024)

/*
 * Reads a file, also one of /proc or /sys, into a NUL-terminated string that the caller frees. 0; -EFBIG when it is longer
 * than max_bytes; -EINVAL when it holds a NUL byte; -ENOTSUP for a FIFO, which is not waited for; another -errno.
 */
int op_file_read(int dir_fd, const char *path, size_t max_bytes, char **ret_text) OP_NONNULL OP_MUST_CHECK;

/* What a text that was read begins with for who reads its lines: behind the mark (U+FEFF) that some editors put before it. */
char *op_file_text(char *text) OP_NONNULL;

/*
 * The same for a file of a directory that may be another user's: a link is -ELOOP, so that nobody has somebody read what he may not. *ret_owner, when given: who answers for what
 * it says, the owner of the file, or where that is root the owner of the directory, who may have put it there.
 */
int op_file_read_own(int dir_fd, const char *name, size_t max_bytes, char **ret_text, uid_t *ret_owner) OP_NONNULL_ARGS(2, 4) OP_MUST_CHECK;

/* Reads as many bytes as there are from `offset` on, at most nr_bytes; *ret_nr_read says how many. Signals do not disturb. 0 or -errno. */
int op_file_read_at(int fd, void *bytes, size_t nr_bytes, off_t offset, size_t *ret_nr_read) OP_NONNULL OP_MUST_CHECK;

/*
 * Gives nr_bytes of a file from `offset` on their blocks; their end becomes its length when it is shorter, and what is in it stays. Where the file system cannot do that by itself they
 * are written, so nobody else may write to them meanwhile. 0, or -ENOSPC, another -errno, and the length may be anything between.
 */
int op_file_allocate(int fd, off_t offset, off_t nr_bytes) OP_MUST_CHECK;

#define OP_FILE_TEMPORARY_SUFFIX ".tmp" /* of the temporary file */

/*
 * Writes the text to `name` below dir_fd: to a temporary file beside it, synced, then renamed; the directory is synced too.
 * The file is as op_file_give_alike has it. 0 or -errno, and then the temporary file is gone, and `name` as it was unless it was the directory that could not be synced.
 */
int op_file_publish(int dir_fd, const char *name, const char *text, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * A file that is open, new and nobody else's: root gives it to the owner of dir_fd, as op_file_make_dir_alike does a directory. 0, also when there is nothing to do, or
 * -errno.
 */
int op_file_give_alike(int dir_fd, int fd) OP_MUST_CHECK;

/*
 * Makes a directory below dir_fd, where no link leads to it. Root makes it for the owner of dir_fd: what opcontrol makes is not to be in the way of a daemon that runs as
 * another user. 0 or -errno.
 */
int op_file_make_dir_alike(int dir_fd, const char *path, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes a directory and what is missing above it, mode 0755 less the umask; root gives each to the owner of the directory around it. 0, also when it is there;
 * -errno.
 */
int op_file_make_dirs(const char *path) OP_NONNULL OP_MUST_CHECK;

/* Root gives a directory that was just made to the owner of the one around it. 0, also when there is nothing to do, or -errno. */
int op_file_give_dir_alike(const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the directory that leads to `path` below dir_fd, component by component, so that what the caller does there with the last one,
 * *ret_name, which points into path, stays below dir_fd: a symbolic link on the way is -ENOTDIR, ".." -EINVAL. `make`: missing
 * directories are made, mode 0755 less the umask. An O_PATH descriptor that the caller closes, or -errno; -ENAMETOOLONG where others could
 * not name the file in one call.
 */
int op_file_open_parent(int dir_fd, const char *path, bool make, const char **ret_name) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens a file below dir_fd, whose path has no symbolic link, at its end neither; with O_CREAT, directories are made. A descriptor, -ENOTDIR
 * or -ELOOP for a link, another -errno.
 */
int op_file_open_below(int dir_fd, const char *path, int flags, mode_t mode) OP_NONNULL OP_MUST_CHECK;

/* Renames below dir_fd, as above. 0 or -errno. */
int op_file_rename_below(int dir_fd, const char *path, const char *new_path) OP_NONNULL OP_MUST_CHECK;

/* The same, and directories that lead to new_path are made. *ret_dir_bytes: what these took of the disk, with what the ones that were there have grown by. */
int op_file_publish_below(int dir_fd, const char *path, const char *new_path, uint64_t *ret_dir_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Makes tmp_path with the same bytes as a file below dir_fd, as above. All of it is to be written to the disk, whatever became of the other one. 0; -EBADMSG: that is no regular
 * file, or cannot be read; another -errno. After an error there is no tmp_path.
 */
int op_file_copy_below(int dir_fd, const char *path, const char *tmp_path) OP_NONNULL OP_MUST_CHECK;

/* Removes a file below dir_fd, as above, or with AT_REMOVEDIR an empty directory. 0 or -errno. */
int op_file_remove_below(int dir_fd, const char *path, int flags) OP_NONNULL OP_MUST_CHECK;

/* Removes a file below dir_fd, as above. Any error leaves it where it is. */
void op_file_unlink_below(int dir_fd, const char *path) OP_NONNULL;

#endif
