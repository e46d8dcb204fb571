/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A walk over a tree below a session's directory, for libop/session*.c only. The number of descriptors is bounded however deep the tree is. Each directory is read to its end before what lies in it is
 * gone into, and stands in the list before that. A walk is one thread's; walks of their own may run beside each other.
 */
#ifndef OP_SESSION_WALK_H
#define OP_SESSION_WALK_H

#include "libop/base/compiler.h"

struct op_session_list;
struct op_session_cgroups;

/*
 * Who hears of what cannot be read: `path` below the session's directory, and why. -EBADMSG: a file has
 * no name of a sample file; -EINVAL: it has one and is no regular file; -ENOTDIR: a link instead of a
 * directory; -ELOOP: a link to a directory or to itself; -ENOENT: a link that leads nowhere; -EISDIR: a
 * directory without files has the name of a sample file; another -errno: a directory cannot be read.
 */
struct op_session_misfits {
	void (*tell)(const char *path, int why, void *arg);
	void *arg;
};

/*
 * Calls `visit` for each entry at any depth below dir_fd/top that is no directory, with its path below
 * dir_fd and its type (DT_*). 0, also when `top` is missing; the first error of `visit`, which ends the
 * walk; or -errno.
 */
int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* The same, but a directory that cannot be read is skipped and reported. */
int op_session_walk_sound(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_misfits *misfits) OP_NONNULL_ARGS(2, 3, 5) OP_MUST_CHECK;

/* op_session_walk that visits directories, too, `top` among them, each before it is read. */
int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/*
 * Calls `visit` for each entry of one directory but . and .. . 0, also when it is missing; the first
 * error of `visit`, which ends it; or -errno.
 */
int op_session_visit_dir(int dir_fd, const char *path, int (*visit)(const char *name, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

#define OP_WALK_HELD_DIRS 3 /* the last on the way down stay open, so that what lies in them is opened by its name alone */

struct op_walk {
	int dir_fd;
	char **dirs;
	size_t nr_dirs, capacity;
	/* One entry that is no directory; type is of DT_*, and may be DT_LNK. 0 or -errno, which ends the walk. */
	int (*visit)(struct op_walk *walk, const char *path, unsigned char type);
	struct op_session_list *list;
	struct op_session_cgroups *cgroups; /* when given, sample directories are visited and not gone into */
	size_t list_capacity;
	char *entries; /* of the directory that is being read */
	char *bad_path;
	uint64_t disk_bytes, nr_files;
	int here;       /* the directory that is being read */
	int parent_fd1; /* 1 + what the top lies in, where that is open, 0: it is not */
	struct {
		unsigned int depth; /* the top has 1; 0: nothing is held */
		int fd;
	} held[OP_WALK_HELD_DIRS]; /* by depth, modulo the number */
	int (*tell)(const char *path, unsigned char type, void *arg);
	void *tell_arg;
	bool tells_dirs; /* `visit` is called for directories, too, before they are read */
	bool keep_going; /* an error is noted in first_error and does not end the walk */
	int first_error;
	char *first_path;                         /* where that was */
	const struct op_session_misfits *misfits; /* when given, what cannot be read is told and does not end the walk */
};

/* Where the samples of a session, and of a cgroup of it, lie. */
extern const char *const op_walk_sample_dirs[2];

/* Walks over a directory and all that lies in it; none is no error. 0 or the first -errno. */
int op_walk_tree(struct op_walk *walk, const char *top) OP_NONNULL OP_MUST_CHECK;

/* Reads one directory, and goes into none: those in it are the last of the list. *ret_fd: its descriptor, to be closed; -1: there is none. 0 or -errno. */
int op_walk_one(struct op_walk *walk, const char *path, int *ret_fd) OP_NONNULL OP_MUST_CHECK;

/* After an error with what is at `path`: 0 when the walk goes on without it, else the error. */
int op_walk_pass_over(const struct op_walk *walk, const char *path, int err) OP_NONNULL OP_MUST_CHECK;

/* Tells of a directory that has the name of a sample file: there is none in it. */
void op_walk_tell_of_directory(const struct op_session_misfits *misfits, const char *path) OP_NONNULL;

/* Keeps the first error but -ENOENT, and where it was. */
void op_walk_note_error(struct op_walk *walk, const char *path, int err) OP_NONNULL;

/* Forgets the directories of a walk that is over, so that another one can begin. */
void op_walk_forget(struct op_walk *walk) OP_NONNULL;

void op_walk_free(struct op_walk *walk) OP_NONNULL;

/* The `visit` that makes a list of sample files (op_session_list), and the end of it. */
int op_walk_list_entry(struct op_walk *walk, const char *path, unsigned char type) OP_NONNULL OP_MUST_CHECK;
void op_session_list_sort(struct op_session_list *list) OP_NONNULL;

#endif
