/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The mounts of a namespace, as its mountinfo tells them (proc_pid_mountinfo(5)): in which file system a path lies and where, and of
 * which directories an overlay is made. What is mounted over something else hides it, so the deepest and youngest mount counts.
 *
 * Any thread; one owner.
 */
#ifndef OPD_MOUNTS_H
#define OPD_MOUNTS_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

struct opd_mount {
	uint64_t device;     /* makedev() */
	const char *root;    /* the directory of the file system that is mounted, "/" for all of it */
	const char *point;   /* where, seen from the root of the process whose mountinfo it is */
	const char *overlay; /* options of an overlay, still escaped; NULL for other file systems */
};

struct opd_mounts {
	struct opd_mount *rows; /* in the order of mountinfo: what is mounted later stands later */
	size_t nr_rows;
	char *text; /* the strings of the rows lie here */
	size_t nr_bytes; /* of rows and text */
};

#define OPD_MOUNTS_MAX_BYTES (4u * 1024 * 1024) /* of a mountinfo; a longer one is refused */

/*
 * Reads a mountinfo file, or takes its text apart (which is taken over, also on failure). Lines that are none are left out.
 * 0, -ENOMEM or another -errno of reading.
 */
int opd_mounts_read(const char *path, struct opd_mounts *ret_mounts) OP_NONNULL OP_MUST_CHECK;
int opd_mounts_parse(char *text, struct opd_mounts *ret_mounts) OP_NONNULL OP_MUST_CHECK;

/* Frees what the two gave and leaves an empty list. */
void opd_mounts_free(struct opd_mounts *mounts) OP_NONNULL;

/* The mount that an absolute path lies in; NULL when there is none. */
const struct opd_mount *opd_mounts_of(const struct opd_mounts *mounts, const char *path) OP_NONNULL;

/* Appends the place of a path in the file system of its mount (root of the mount and what follows the mount point). */
void opd_mount_inner_path(const struct opd_mount *mount, const char *path, struct op_text *inner) OP_NONNULL;

/* Appends where that place is seen under another mount of the same file system. False, and nothing, when it is not below its root. */
bool opd_mount_outer_path(const struct opd_mount *mount, const char *inner, struct op_text *path) OP_NONNULL;

/*
 * Appends the nth directory that an overlay is made of, 0 the upper one (nothing when it has none), then the lower ones from
 * the top. False when there is no such.
 */
bool opd_mount_layer(const struct opd_mount *mount, size_t index, struct op_text *directory) OP_NONNULL;

/* What follows the directory in a path that is it or lies below it ("" or "/..."); NULL when it does not. */
const char *opd_path_below(const char *directory, const char *path) OP_NONNULL;

#endif
