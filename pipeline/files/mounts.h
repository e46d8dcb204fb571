/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The mounts of a namespace, from its mountinfo (proc_pid_mountinfo(5)): the file system that a
 * path lies in, and the directories of an overlay. A mount hides what it is mounted over, so the
 * deepest and youngest mount counts.
 *
 * Any thread; one owner.
 */
#ifndef OPD_MOUNTS_H
#define OPD_MOUNTS_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

struct opd_mount {
	uint64_t id;         /* stx_mnt_id of statx(2) of the files in it */
	uint64_t device;     /* of the file system, makedev(); its files may have others */
	const char *root;    /* the mounted directory of the file system, "/" for all of it */
	const char *point;   /* mount point, from the root of the process */
	const char *type;    /* of the file system; NULL: the line ends before it */
	const char *options; /* of the file system, still escaped; NULL: none */
};

struct opd_mounts {
	struct opd_mount *rows; /* in the order of mountinfo: later mounts last */
	size_t nr_rows;
	char *text;      /* has the strings of the rows */
	size_t nr_bytes; /* bytes of rows and text */
};

#define OPD_MOUNTS_MAX_BYTES (4u * 1024 * 1024) /* a longer mountinfo is refused */

/* Reads a mountinfo file. Skips malformed lines. 0, -ENOMEM, or -errno of reading. */
int opd_mounts_read(const char *path, struct opd_mounts *ret_mounts) OP_NONNULL OP_MUST_CHECK;

/* Leaves an empty list. */
void opd_mounts_free(struct opd_mounts *mounts) OP_NONNULL;

/* The mount that an absolute path lies in; NULL: none. */
const struct opd_mount *opd_mounts_of(const struct opd_mounts *mounts, const char *path) OP_NONNULL;

/* The mount with an id; NULL: none. */
const struct opd_mount *opd_mounts_by_id(const struct opd_mounts *mounts, uint64_t id) OP_NONNULL;

/* Appends the path within the mounted file system. */
void opd_mount_inner_path(const struct opd_mount *mount, const char *path, struct op_text *inner) OP_NONNULL;

/*
 * Appends the path of the same file under another mount of the file system. False, and nothing is
 * appended, when the file is not below the mount's root.
 */
bool opd_mount_outer_path(const struct opd_mount *mount, const char *inner, struct op_text *path) OP_NONNULL;

static inline bool opd_mount_is_overlay(const struct opd_mount *mount)
{
	return mount->options && !strcmp(mount->type, "overlay");
}

/* A program of some user may say what is in it: file, owner, inode number and all. */
static inline bool opd_mount_is_fuse(const struct opd_mount *mount)
{
	return !mount->type || !strncmp(mount->type, "fuse", strlen("fuse"));
}

/*
 * Appends the directory of an overlay's layer. Layer 0 is the upper directory (nothing when there
 * is none), then the lower ones from the top. False: there is no such layer.
 */
bool opd_mount_layer(const struct opd_mount *mount, size_t index, struct op_text *directory) OP_NONNULL;

/* What follows the directory in a path that is equal to it or below it: "" or "/...". Else NULL. */
const char *opd_path_below(const char *directory, const char *path) OP_NONNULL;

#endif
