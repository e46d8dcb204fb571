/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of the sample files of a session, and of its cgroups. */
#ifndef OP_SESSION_LIST_H
#define OP_SESSION_LIST_H

#include "libop/base/compiler.h"
#include "libop/odb/mangle.h"
#include "libop/session/walk.h"

struct op_session_file {
	/* below the session's directory, starts with {root} or {kern} */
	char *path;
	struct op_sample_name name; /* strings lie in storage */
	char *storage;
	bool is_packed; /* it is in the pack of the session (libop/session/pack.h) and no file */
};

struct op_session_list {
	struct op_session_file *files; /* sorted by path, bytewise */
	size_t nr_files;
};

/*
 * Lists the sample files of a session, dir_fd being samples/<session>: the files in {root}/ and
 * {kern}/ without *.jo files, links that lead nowhere and empty directories, and those of the pack.
 * op_session_read_samples reads them. 0 and a list for op_session_list_free; -EBADMSG: a file has
 * no name of a sample file, or the pack is damaged; another -errno. After an error *ret_bad_path,
 * when given, is the path of the error, freed by the caller, or NULL.
 */
int op_session_list(int dir_fd, struct op_session_list *ret_list, char **ret_bad_path) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/*
 * The same, but what cannot be read is skipped and reported: at the end, sorted by path, from the
 * caller's thread. Uses as many threads as the process has CPUs. 0, or -errno: no memory, no
 * descriptors.
 */
int op_session_list_skip_bad(int dir_fd, struct op_session_list *ret_list,
			  const struct op_session_bad_paths *bad_paths) OP_NONNULL OP_MUST_CHECK;

/* Frees a list; NULL is allowed. */
void op_session_list_free(struct op_session_list *list);

/* Whether a path is that of symbols of JIT code, which lie beside sample files. */
bool op_session_is_jit_object(const char *path) OP_NONNULL;

/* A cgroup with samples of its own. op_session_list lists its directory as it lists a session. */
struct op_session_cgroup {
	char *directory; /* below the session's: "cgroup/system.slice/cron.service" */
	char *path;	 /* "/system.slice/cron.service" */
};

struct op_session_cgroups {
	struct op_session_cgroup *cgroups; /* sorted by path, bytewise */
	size_t nr_cgroups;
};

/*
 * Lists the cgroups of a session; none when it was not separated by them. 0 and a list for
 * op_session_cgroups_free, or -errno.
 */
int op_session_list_cgroups(int dir_fd, struct op_session_cgroups *ret_list) OP_NONNULL OP_MUST_CHECK;

/* The same, but a directory that cannot be read is skipped and reported. */
int op_session_list_cgroups_skip_bad(int dir_fd, struct op_session_cgroups *ret_list,
				  const struct op_session_bad_paths *bad_paths) OP_NONNULL OP_MUST_CHECK;

/* Frees a list; NULL is allowed. */
void op_session_cgroups_free(struct op_session_cgroups *list);

#endif
