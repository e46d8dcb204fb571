/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything that a session holds: its size, and its removal. */
#ifndef OP_SESSION_CONTENTS_H
#define OP_SESSION_CONTENTS_H

#include "libop/base/compiler.h"

/*
 * Removes what opd and the genuine tools put into a session: the parts that parts.h lists. dir_fd
 * is samples/<session>; other files stay. Links are removed, never followed. 0, also when nothing
 * is there. Otherwise the rest is removed nevertheless, and the first -errno is returned;
 * *ret_path, when given, is its path below dir_fd, freed by the caller, or NULL.
 */
int op_session_clear(int dir_fd, char **ret_path) OP_MUST_CHECK;

/* Whether a directory has anything that op_session_clear removes: it may be a session. */
bool op_session_has_parts(int dir_fd) OP_MUST_CHECK;

/*
 * Removes a directory below dir_fd with its contents. Links are removed and never followed, also
 * those that are made meanwhile. 0, also when nothing is there; else the rest is removed
 * nevertheless, and the first -errno is returned.
 */
int op_session_remove(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Weighs a directory in steps: the bytes that it and its contents have on the disk. Follows no
 * link. What is renamed or removed meanwhile is weighed or not. A step keeps open one descriptor of
 * the directory and one of the directory below it that it reads.
 */
struct op_weighing {
	uint64_t nr_bytes; /* the result, once op_weighing_go_on returns true */
	int err;           /* the first error but -ENOENT: nr_bytes is too small */
	/* The rest is for contents.c. */
	int top_fd, fd;
	struct op_unweighed *reading, *waiting;
};

/* 0, and op_weighing_end must follow; or -errno. */
int op_weighing_begin(struct op_weighing *weighing, int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Weighs about *nr_entries entries of directories, and subtracts what it weighed. True at the end.
 */
bool op_weighing_go_on(struct op_weighing *weighing, uint64_t *nr_entries) OP_NONNULL;

void op_weighing_end(struct op_weighing *weighing) OP_NONNULL;

/*
 * Bytes on the disk of a directory and its contents, in one step. 0, also when it is missing, or
 * -errno.
 */
int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Number of sample files of a session, with those of its cgroups. dir_fd is its directory. 0 or
 * -errno.
 */
int op_session_count_files(int dir_fd, uint64_t *ret_nr_files) OP_NONNULL OP_MUST_CHECK;

#endif
