/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Replaces a file by a new one without waiting for the disk. The old file is kept until the new one
 * is on the disk: a dump may have reported the old one as written, so a power cut must not lose it.
 * doc/format.md, "Growth", says why sample files are replaced and not extended.
 */
#ifndef OP_ODB_REPLACE_H
#define OP_ODB_REPLACE_H

#include "libop/base/compiler.h"

/* A file that replaced another and is not on the disk yet. The old one is kept below tmp_path. */
struct op_odb_pending {
	struct op_odb_pending *next;
	uint64_t session; /* the caller's */
	uint64_t inode;   /* of the new file */
	bool is_open;
	int fd;           /* where is_open: the file, or -1 when there was none */
	char *tmp_path;
	char path[];
};

/*
 * Renames tmp_path, with the inode new_inode, to `path` and keeps what was there. 0 and
 * *ret_pending; or -errno, tmp_path is removed and `path` unchanged.
 */
int op_odb_replace(int dir_fd, const char *tmp_path, const char *path, uint64_t new_inode,
		   struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

/*
 * Renames tmp_path, a sealed file (libop/base/seal.h) such as the symbols of JIT code, to `path`.
 * Where a file is there already, this is op_odb_replace. Else *ret_pending is NULL, since no dump
 * has promised anything; directories are made, and *ret_dir_bytes is as in op_file_publish_below.
 * 0; or -errno, tmp_path is removed and `path` unchanged.
 */
int op_odb_publish_sealed(int dir_fd, const char *tmp_path, const char *path, uint64_t *ret_dir_bytes,
			  struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads a sealed file: 0; -EBADMSG: the seal is missing or wrong, or it is no regular file;
 * another -errno.
 */
int op_odb_check_seal(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the new file, so that op_odb_sync_pending finds it after its directories are renamed.
 * top_fd is the directory that was `top` below dir_fd at the replacement, "" for dir_fd itself. 0,
 * also when the file is gone, or -errno. Does not wait.
 */
int op_odb_open_pending(struct op_odb_pending *pending, int top_fd, const char *top) OP_NONNULL OP_MUST_CHECK;

/*
 * Writes the new file to the disk, removes the old one and frees `pending`. Waits for the disk:
 * never call it in the thread that counts. 0; or -errno, the old file is kept for op_odb_recover
 * and `pending` is still the caller's. Write the file anew before the next try: the kernel reports
 * a write error only once.
 */
int op_odb_sync_pending(int dir_fd, struct op_odb_pending *pending) OP_NONNULL OP_MUST_CHECK;

/* Appends a list, which may be NULL, to another. */
void op_odb_append_pending(struct op_odb_pending **first, struct op_odb_pending *more) OP_NONNULL_ARGS(1);

/* Frees a list, which may be NULL. The old files stay: op_odb_recover decides at the next start. */
void op_odb_free_pending(struct op_odb_pending *pending);

/*
 * Opens the regular file at a path. 0 and a descriptor with its inode; 0, -1 and inode 0 where
 * none is; or -errno.
 */
int op_odb_open_if_there(int dir_fd, const char *path, int *ret_fd, uint64_t *ret_inode) OP_NONNULL OP_MUST_CHECK;

/* The inode of the regular file at a path; 0 where none is. 0 or -errno. */
int op_odb_find_inode(int dir_fd, const char *path, uint64_t *ret_inode) OP_NONNULL OP_MUST_CHECK;

#endif
