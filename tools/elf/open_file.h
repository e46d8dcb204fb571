/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening files that strangers may have put at a path, or in the place of another file. */
#ifndef OPR_OPEN_FILE_H
#define OPR_OPEN_FILE_H

#include <sys/stat.h>

#include "libop/base/compiler.h"

/*
 * Opens a regular file for reading, and nothing else: a FIFO would wait, and some devices do
 * something when they are opened. *ret_st, which may be NULL, is that of the descriptor. A
 * descriptor; -EINVAL: no regular file; another -errno.
 */
int opr_open_regular(const char *path, struct stat *ret_st) OP_NONNULL_ARGS(1) OP_MUST_CHECK;

/* Which file a descriptor led to. All 0: no regular file, or unknown. */
struct opr_file_read {
	uint64_t device, inode, nr_bytes, mtime_ns, ctime_ns;
};
struct opr_file_read opr_file_read_of(const struct stat *st) OP_NONNULL;

/*
 * True when a file that was opened again is the one that was read before, or when that is unknown.
 * Another file may be at the path by now.
 */
bool opr_is_file_read(const struct stat *st, const struct opr_file_read *file) OP_NONNULL;

/*
 * True when a file may speak for another one that names it, as an image names its debug file. Its
 * owner is root, the caller or the owner of the other file: the path may be one where every user
 * can put a file.
 */
bool opr_may_speak_for(const struct stat *file, const struct stat *other) OP_NONNULL;

/* True when only root and the caller may write to the file. */
bool opr_is_safe_file(const struct stat *st) OP_NONNULL;

#endif
