/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Everything that a session holds: its size, and its removal. */
#ifndef OP_SESSION_CONTENTS_H
#define OP_SESSION_CONTENTS_H

#include "libop/base/compiler.h"

/*
 * Removes what opd and the genuine tools put into a session: {root}, {kern}, stats, ledger, cgroup,
 * mem, dcookies and closing. dir_fd is samples/<session>; other files stay. Links are removed,
 * never followed. 0, also when nothing is there. Otherwise the rest is removed nevertheless, and
 * the first -errno is returned; *ret_path, when given, is its path below dir_fd, freed by the
 * caller, or NULL.
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

/* Bytes on the disk of a directory and its contents. 0 or -errno. */
int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Number of sample files of a session, with those of its cgroups. dir_fd is its directory. 0 or
 * -errno.
 */
int op_session_count_files(int dir_fd, uint64_t *ret_nr_files) OP_NONNULL OP_MUST_CHECK;

#endif
