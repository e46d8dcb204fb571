/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The session directory: where things are, and the list of the sample files of one session.
 *
 *   SESSION-DIR/abi                        layout of the sample files, for opimport
 *   SESSION-DIR/daemonrc, daemonrc_new     the setup (libop/control/daemonrc.h)
 *   SESSION-DIR/lock                       pid of the daemon
 *   SESSION-DIR/profiling                  "on" or "off": what opcontrol --start or --stop asked for last
 *   SESSION-DIR/paused                     empty: the next daemon begins paused, once; opcontrol --start-daemon
 *   SESSION-DIR/tmp/                       sample files in the making
 *   SESSION-DIR/samples/<session>/         a session: {root}/ and {kern}/ hold the sample files, stats/ the ledger, dcookies the
 *                                          table of images (libop/session/dcookie.h)
 *   SESSION-DIR/samples/current/           the session that is being written
 *   SESSION-DIR/samples/<session>/ledger   when it was taken, and where its samples went (libop/session/ledger_file.h)
 *   SESSION-DIR/samples/<session>/cgroup/  its samples once more, by cgroup (libop/odb/mangle.h)
 */
#ifndef OP_SESSION_H
#define OP_SESSION_H

#include "libop/base/compiler.h"
#include "libop/odb/mangle.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"

#define OP_SESSION_DIR_DEFAULT OPD_LOCALSTATEDIR "/lib/oprofile"
#define OP_SESSION_CURRENT "samples/current"
#define OP_SESSION_TMP "tmp"
#define OP_SESSION_REMOVED "removed-" /* and its name: a session there that is on its way out */
#define OP_SESSION_CLOSED_COOKIES OP_SESSION_TMP "/dcookies-closed" /* and a number: the table of a session that is being closed, in the making */
#define OP_SESSION_TMP_SAMPLE OP_SESSION_TMP "/sample" /* a sample file, or symbols of JIT code, in the making, and with suffixes what it replaces (libop/odb/odb.h) */
#define OP_STATS_KERNEL_HIDDEN "kernel_hidden" /* below stats/: the addresses of kernel symbols were hidden */
#define OP_SESSION_LOCK "lock"
#define OP_SESSION_UNCLEAN "unclean" /* a stale lock was removed: the next daemon looks at the session all the same */
#define OP_SESSION_PROFILING "profiling"
#define OP_SESSION_PAUSED "paused"

struct op_session_file {
	char *path;		    /* below the session's directory, starts with {root} or {kern} */
	struct op_sample_name name; /* strings lie in storage */
	char *storage;
};

struct op_session_list {
	struct op_session_file *files; /* sorted by path, bytewise */
	size_t nr_files;
};

/*
 * Lists the sample files below the directory dir_fd (samples/<session>): what lies in {root}/ and {kern}/, without *.jo files,
 * links that lead nowhere and empty directories. 0 and a list that op_session_list_free frees; -EBADMSG when a file there has a
 * name that is none of a sample file's; another -errno. After an error *ret_bad_path, when given, is the path it is about, to be freed by the
 * caller, or NULL.
 */
int op_session_list(int dir_fd, struct op_session_list *ret_list, char **ret_bad_path) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/*
 * What lies in {root}/ or {kern}/ and cannot be read: `path` below the session's directory, and why: -EBADMSG: the name is none of a sample file's; -EINVAL: it has one and is no file;
 * -ENOTDIR: a link where a directory is expected; -ELOOP: a link to a directory, or one that leads to itself; -ENOENT: a link that leads nowhere; -EISDIR: a directory that has the name of a sample file;
 * another -errno: the directory cannot be read.
 */
struct op_session_misfits {
	void (*tell)(const char *path, int why, void *arg);
	void *arg;
};

/* op_session_list, but what cannot be read is told and passed over. By as many threads as the process has CPUs; it is told by the caller's, when the walk is over. 0, or -errno: no memory or no descriptors. */
int op_session_list_sound(int dir_fd, struct op_session_list *ret_list,
			  const struct op_session_misfits *misfits) OP_NONNULL OP_MUST_CHECK;

/* A directory that a walk came to, as it was before it was read; one that was not there has a stamp of zeros. */
struct op_session_dir {
	struct op_sys_stamp stamp;
	uint64_t path; /* in the paths of the trace */
};

/* Where a walk has been. All zeros at first. */
struct op_session_trace {
	struct op_session_dir *dirs; /* in no order */
	size_t nr_dirs, capacity;
	struct op_text paths; /* below the session's directory, each with its NUL */
	bool is_partial;      /* the list hangs on more than these directories: something was told, or is a link */
};

/* op_session_list_sound, and the directories that it hangs on are added to *trace, which is to be freed in any case: as long as they are what they were the list is. */
int op_session_list_traced(int dir_fd, struct op_session_list *ret_list, const struct op_session_misfits *misfits,
			   struct op_session_trace *trace) OP_NONNULL OP_MUST_CHECK;

void op_session_trace_free(struct op_session_trace *trace) OP_NONNULL;

/* Adds a sample file to a list that is being made, of nr_files at the most, by its path. 0; -EINVAL: the path is none of a sample file; -ENOMEM. */
int op_session_list_add(struct op_session_list *list, size_t nr_files, const char *path) OP_NONNULL OP_MUST_CHECK;

/* Whether a path is that of symbols of JIT code, which lie beside sample files and are none. */
bool op_session_is_jit_object(const char *path) OP_NONNULL;

/* Frees what op_session_list gave; NULL is allowed. */
void op_session_list_free(struct op_session_list *list);

/* A cgroup with samples of its own. The directory is below the session's and is listed by op_session_list as a session is. */
struct op_session_cgroup {
	char *directory; /* "cgroup/system.slice/cron.service" */
	char *path;	 /* "/system.slice/cron.service" */
};

struct op_session_cgroups {
	struct op_session_cgroup *cgroups; /* sorted by path, bytewise */
	size_t nr_cgroups;
};

/* Lists the cgroups of a session, none when it was not separated by them. 0 and a list that op_session_cgroups_free frees, or -errno. */
int op_session_list_cgroups(int dir_fd, struct op_session_cgroups *ret_list) OP_NONNULL OP_MUST_CHECK;

/* The same, but a directory that cannot be read is told and passed over. */
int op_session_list_cgroups_sound(int dir_fd, struct op_session_cgroups *ret_list,
				  const struct op_session_misfits *misfits) OP_NONNULL OP_MUST_CHECK;

/* Frees what op_session_list_cgroups gave; NULL is allowed. */
void op_session_cgroups_free(struct op_session_cgroups *list);

/*
 * Removes what a session holds, {root}, {kern}, stats, ledger, cgroup, dcookies and closing, below dir_fd (samples/<session>); what else lies there stays. Symbolic links are
 * removed, never followed. 0, also when there is nothing; the first -errno otherwise, after having tried the rest, and *ret_path, when given, is where that was, below dir_fd, to be freed; NULL
 * without memory.
 */
int op_session_clear(int dir_fd, char **ret_path) OP_MUST_CHECK;

/* The directory of the current session; a link is not followed. A descriptor or -errno. */
int op_session_open_current(int session_fd) OP_MUST_CHECK;

/* Whether a directory holds anything of what op_session_clear removes: it may be a session. */
bool op_session_has_parts(int dir_fd) OP_MUST_CHECK;

/*
 * Removes a directory below dir_fd with all that is in it. Symbolic links are removed, never followed, wherever in a path and whenever somebody puts one there. 0, also when there is none; the first -errno otherwise,
 * after having tried the rest.
 */
int op_session_remove(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Calls `visit` for everything in a directory below dir_fd, at any depth, that is no directory itself: its path below dir_fd, and its type (DT_*). 0, also when there
 * is no such directory; the first error of `visit`, which ends it, or -errno.
 */
int op_session_walk(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* The same, but a directory below `top` that cannot be read is told and passed over. */
int op_session_walk_sound(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg,
			  const struct op_session_misfits *misfits) OP_NONNULL_ARGS(2, 3, 5) OP_MUST_CHECK;

/* op_session_walk, and `visit` is called for the directories, too, `top` among them: for each before it is read, and before anything in it. */
int op_session_walk_all(int dir_fd, const char *top, int (*visit)(const char *path, unsigned char type, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* Calls `visit` for every entry of a directory but . and ..; 0, also when there is none, the first error of `visit`, which ends it, or -errno. */
int op_session_visit_dir(int dir_fd, const char *path, int (*visit)(const char *name, void *arg), void *arg)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* Bytes on the disk of a directory and all that is in it. 0 or -errno. */
int op_session_disk_bytes(int dir_fd, const char *path, uint64_t *ret_bytes) OP_NONNULL OP_MUST_CHECK;

/* How many sample files a session has, those of its cgroups included; dir_fd is its directory. 0 or -errno. */
int op_session_count_files(int dir_fd, uint64_t *ret_nr_files) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether a daemon works in that session directory. Who may not look at the lock of one takes it for that of a daemon that is there. The lock is held for a moment, so that
 * whoever only looks keeps nobody out.
 */
bool op_session_is_locked(const char *session_dir) OP_NONNULL;
bool op_session_is_locked_at(int session_fd);

/*
 * Takes the lock, which is nobody's but the owner's to open. *ret_was_there: there was one that nobody held, of a daemon that did not end in order. A descriptor; -EBUSY: a
 * daemon has it; another -errno.
 */
int op_session_take_lock(int session_fd, bool *ret_was_there) OP_NONNULL OP_MUST_CHECK;

/*
 * Keeps daemons out of the session directory, for a tool that works in it. A lock that is there and nobody holds is of a daemon that did not end in order: what it says to
 * the next one is left as OP_SESSION_UNCLEAN. A descriptor for op_session_unlock; -EBUSY: a daemon is there; another -errno.
 */
int op_session_lock(int session_fd) OP_MUST_CHECK;

/* Removes the lock and closes its descriptor. */
void op_session_unlock(int session_fd, int lock_fd);

/* Whether the last daemon did not end in order, for whoever knows that none is there. */
bool op_session_is_unclean_at(int session_fd) OP_MUST_CHECK;

/* Has the next daemon look at the session as after a kill. 0 or -errno. */
int op_session_leave_unclean(int session_fd) OP_MUST_CHECK;

/* What was asked for last; `preset` when nothing was, or the file cannot be read. */
bool op_session_wants_profiling(int session_fd, bool preset) OP_MUST_CHECK;

/* Keeps it for the next daemon. 0 or -errno. */
int op_session_want_profiling(int session_fd, bool on) OP_MUST_CHECK;

/* Has the next daemon, and no other one, begin paused, whatever is wanted. 0 or -errno. */
int op_session_pause_once(int session_fd) OP_MUST_CHECK;

/* Takes that back, or the daemon's own turn: whether it was there. 0, -ENOENT when it was not, or another -errno, and then it is there still. */
int op_session_take_pause(int session_fd);

/*
 * Opens SESSION-DIR for the daemon: makes it, as op_file_make_dirs does, and what belongs in it, mode 0755, and writes the abi file. A descriptor or
 * -errno.
 */
int op_session_open(const char *session_dir) OP_NONNULL OP_MUST_CHECK;

/* After op_session_open has failed: the name below SESSION-DIR at which a directory stands where it writes a file; NULL: that is not why. */
const char *op_session_in_the_way(const char *session_dir) OP_NONNULL OP_MUST_CHECK;

#endif
