/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The names under which tmp/ keeps a file that another one has replaced. INODE, in hexadecimal, is
 * that of the new file:
 *
 *   tmp/sample.old-INODE     a hard link to the old file
 *   tmp/sample.for-INODE     a symbolic link whose text is the path of both
 *   tmp/sample.for-INODE.N   where the file system has no room for such a text (XFS: 1,024 bytes):
 *                            parts 1, 2 ... of the path; the link above is "/" and their number
 *
 * A file may be replaced again before it is on the disk; then there are several of these pairs.
 * Only replace.c and recover.c use this.
 */
#ifndef OP_ODB_KEEP_H
#define OP_ODB_KEEP_H

#include <limits.h>

#include "libop/base/compiler.h"

#define OP_ODB_OLD	  "old"
#define OP_ODB_FOR	  "for"
#define OP_ODB_KEPT_BYTES 128

/* The directory tmp/ and the name of a file in the making there. */
struct op_odb_tmp {
	int fd;
	const char *name;
};

/* The name of a link of a kind, OP_ODB_OLD or OP_ODB_FOR, in `buffer`. */
const char *op_odb_kept_name(const struct op_odb_tmp *tmp, const char *kind, uint64_t inode,
			     char buffer[OP_ODB_KEPT_BYTES]) OP_NONNULL;

/*
 * The inode in the name of such a link, or of a part of a path (*ret_is_part); false: it is
 * another file.
 */
bool op_odb_kept_parse(const char *name, const char *tmp_name, const char *kind, uint64_t *ret_inode,
		       bool *ret_is_part) OP_NONNULL OP_MUST_CHECK;

/*
 * Keeps `name` in parent_fd, which is `path` below the session directory, before the file with
 * new_inode replaces it. 0, or -errno, and links may be left.
 */
int op_odb_keep(const struct op_odb_tmp *tmp, int parent_fd, const char *name, const char *path,
		uint64_t new_inode) OP_NONNULL OP_MUST_CHECK;

/* The path of the links for an inode. 0 or -errno. */
int op_odb_kept_path(const struct op_odb_tmp *tmp, uint64_t inode, char path[PATH_MAX]) OP_NONNULL OP_MUST_CHECK;

/* Removes all links for an inode. */
void op_odb_kept_remove(const struct op_odb_tmp *tmp, uint64_t inode) OP_NONNULL;

#endif
