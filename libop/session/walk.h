/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Walks over a directory tree. A walk follows no link and uses few descriptors however deep the
 * tree is. Any thread.
 */
#ifndef OP_SESSION_WALK_H
#define OP_SESSION_WALK_H

#include <pthread.h>

#include "libop/base/compiler.h"

/*
 * Called for what cannot be read: `path` below the session's directory, and why. -EBADMSG: a
 * file has no name of a sample file; -EINVAL: it has one and is no regular file; -ENOTDIR: a link
 * in the place of a directory; -ELOOP: a link to a directory or to itself; -ENOENT: a link that
 * leads nowhere; -EISDIR: a directory without files has the name of a sample file; -EUCLEAN: a
 * damaged pack (libop/session/pack.h); another -errno: a directory cannot be read.
 */
struct op_session_bad_paths {
	void (*report)(const char *path, int why, void *arg);
	void *arg;
};

/*
 * Calls `visit` for each entry at any depth below dir_fd/top that is no directory, with its path
 * below dir_fd and its type (DT_*). A directory whose path is longer than a path may be is left
 * out: nothing there is opd's. 0, also when `top` is missing; the first error of `visit`, which
 * ends the walk; or -errno.
 */
int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* The same, but a directory that cannot be read is skipped and reported. */
int op_session_walk_skip_bad(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_bad_paths *bad_paths) OP_NONNULL_ARGS(2, 3, 5) OP_MUST_CHECK;

/* The same that visits directories, too, `top` among them, each before it is read. */
int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			const struct op_session_bad_paths *bad_paths) OP_NONNULL_ARGS(2, 3, 5) OP_MUST_CHECK;

/*
 * Calls `visit` for each entry of one directory but . and .. . 0, also when it is missing; the
 * first error of `visit`, which ends it; or -errno.
 */
int op_session_visit_dir(int dir_fd, const char *path, int (*visit)(const char *name, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* ---- the walk itself, for libop/session/ only ---- */

/* A directory that a walk has found. */
struct op_walk_dir {
	struct op_walk_dir *parent; /* NULL: the top */
	struct op_walk_dir *before; /* found before this one; never one of its own directories */
	struct op_walk_dir *next;   /* that waits to be read */
	int fd;                     /* open while directories in it wait, or -1 */
	size_t nr_waiting;          /* those directories */
	bool has_files;             /* for the visitor */
	char path[];                /* below the dir_fd of the walk */
};

struct op_walk_entry {
	const char *path;     /* below the dir_fd of the walk; valid during the visit */
	const char *name;     /* its last component, below parent_fd */
	int parent_fd;
	unsigned char type;   /* DT_*, may be DT_LNK */
	struct op_walk_dir *parent;
};

struct op_walk {
	int dir_fd;
	size_t nr_threads; /* call `visit` and bad_paths->report at once; 0 is 1 */
	/* 0 or -errno, which ends the walk */
	int (*visit)(struct op_walk *walk, const struct op_walk_entry *entry);
	void *arg;                                                             /* for `visit` */
	bool visits_dirs;          /* before they are read; name and parent_fd are not set */
	bool stops_at_sample_dirs; /* {root} and {kern} are visited and not read */
	bool visits_too_deep;      /* a directory whose path is too long is visited and not read */
	bool keeps_going;          /* an error is noted and does not end the walk */
	/* when given, directories that cannot be read are reported and skipped */
	const struct op_session_bad_paths *bad_paths;

	struct op_walk_dir *last; /* of all that were found */
	int first_error;
	char *first_path; /* where it was */

	/* The rest is walk.c's. The lock protects the directories and it. */
	pthread_mutex_t lock;
	pthread_cond_t has_changed;
	struct op_walk_dir *waiting; /* the one to be read next */
	size_t nr_waiting, nr_waiting_max;
	size_t nr_busy; /* directories that are being read */
	size_t nr_kept; /* directories that stay open */
	int err;        /* that ends the walk */
};

/* Where the samples of a session, and of a cgroup of it, lie. */
extern const char *const op_walk_sample_dirs[2];

/*
 * Walks over a directory; a missing one is no error. 0 or the first -errno. May be called again for
 * another one.
 */
int op_walk_tree(struct op_walk *walk, const char *top) OP_NONNULL OP_MUST_CHECK;

/* Keeps the first error but -ENOENT, and its path. For walks of one thread. */
void op_walk_note_error(struct op_walk *walk, const char *path, int err) OP_NONNULL;

void op_walk_free(struct op_walk *walk) OP_NONNULL;

#endif
