/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The names under which tmp/ keeps a file that another one has replaced (file_image.h):
 *
 *   tmp/sample.old-INODE     a hard link to it
 *   tmp/sample.for-INODE     a symbolic link whose text is the path; INODE, in hexadecimal, is that of the new file
 *   tmp/sample.for-INODE.N   where the file system takes no text of that length, as XFS none of 1024 bytes: parts 1, 2 ... of the path; the text of the link above is
 *                            "/" and how many there are
 *
 * Between the files of odb*.c.
 */
#ifndef OP_ODB_KEEP_H
#define OP_ODB_KEEP_H

#include <limits.h>

#include "libop/base/compiler.h"

#define OP_ODB_OLD        "old"
#define OP_ODB_FOR        "for"
#define OP_ODB_KEPT_BYTES 128

/* The two directories of a replacement and the names in them. */
struct op_odb_places {
	int parent, tmp_parent;
	const char *name, *tmp_name;
};

/* The name of a link of a kind, in `buffer`. */
const char *op_odb_kept_name(const struct op_odb_places *places, const char *kind, uint64_t inode,
			     char buffer[OP_ODB_KEPT_BYTES]) OP_NONNULL;

/* The inode in the name of a link of this kind; false: it is none. *ret_is_part: it is not the link itself, but holds a part of its path. */
bool op_odb_kept_parse(const char *name, const char *tmp_name, const char *kind, uint64_t *ret_inode,
		       bool *ret_is_part) OP_NONNULL OP_MUST_CHECK;

/* Keeps what is at `path` before it is replaced by the file with new_inode. 0 or -errno, and then links may be left. */
int op_odb_keep(const struct op_odb_places *places, const char *path, uint64_t new_inode) OP_NONNULL OP_MUST_CHECK;

/* The path that links are for. 0 or -errno. */
int op_odb_kept_path(const struct op_odb_places *places, uint64_t inode, char path[PATH_MAX]) OP_NONNULL OP_MUST_CHECK;

/* Removes all that there is for an inode. */
void op_odb_kept_remove(const struct op_odb_places *places, uint64_t inode) OP_NONNULL;

#endif
