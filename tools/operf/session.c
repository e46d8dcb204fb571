/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/operf/session.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "libop/process/lock.h"
#include "libop/session/close.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/parts.h"
#include "libop/session/stats_files.h"
#include "libop/session/sum.h"
#include "pipeline/ledger/recover.h"
#include "tools/common/log.h"

#define PREVIOUS "samples/previous"
#define REMOVED  OP_SESSION_TMP "/" OP_SESSION_REMOVED "previous"

/*
 * In a directory of another user, that user could replace what operf writes. In a shared directory,
 * the name itself may be another user's link.
 */
static int check_owner(const char *dir, const struct stat *st)
{
	if (st->st_uid == geteuid())
		return 0;
	return opr_error(-EPERM,
			 "%s belongs to user %u: remove it, run operf as that user, or name another place with --session-dir", dir,
			 st->st_uid);
}

static const char *const directories[] = { OP_SESSION_TMP, "samples", OP_SESSION_CURRENT };

/* A link would lead out of the session directory. NULL: there is nothing but directories. */
static const char *no_directory(const char *dir)
{
	const char *found = NULL;
	struct stat st;

	for (size_t i = 0; i < op_array_size(directories) && !found; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", dir, directories[i]);
		if (!lstat(path, &st) && !S_ISDIR(st.st_mode))
			found = directories[i];
	}
	return found;
}

static int explain_open(const char *dir, int err)
{
	const char *in_the_way = op_session_in_the_way(dir), *no_dir = no_directory(dir);

	if (in_the_way)
		return opr_error(err, "cannot use %s: %s/%s is a directory: remove it", dir, dir, in_the_way);
	if (no_dir)
		return opr_error(err, "cannot use %s: %s/%s is not a directory: remove it", dir, dir, no_dir);
	if (err == -EACCES || err == -EPERM || err == -EROFS)
		return opr_error(err, "cannot write to %s: %s: name a directory of your own with --session-dir", dir,
				 strerror(-err));
	if (err == -ENOSPC || err == -EDQUOT)
		return opr_error(err, "cannot make %s: %s: make room there, or name another place with --session-dir", dir,
				 strerror(-err));
	return opr_error(err, "cannot use %s: %s", dir, strerror(-err));
}

/* Files are renamed from tmp/ to samples/. */
static int check_directories(const struct opf_session *session)
{
	dev_t device = 0;
	struct stat st;

	for (size_t i = 0; i < op_array_size(directories); i++) {
		if (fstatat(session->fd, directories[i], &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			return explain_open(session->dir, -ENOTDIR);
		if (i && st.st_dev != device)
			return opr_error(-EXDEV,
					 "%s/%s is on another file system than %s/" OP_SESSION_TMP
					 ": name another place with --session-dir",
					 session->dir, directories[i], session->dir);
		device = st.st_dev;
	}
	return 0;
}

static int lock(struct opf_session *session)
{
	bool was_there;
	int fd = op_session_take_lock(session->fd, &was_there), err;

	if (fd == -EBUSY)
		return opr_error(fd,
				 "another operf or opd (pid %d) writes to %s: wait for its end, or name another place with "
				 "--session-dir",
				 (int)op_lock_owner(session->fd, OP_SESSION_LOCK), session->dir);
	if (fd == -ELOOP || fd == -EISDIR)
		return opr_error(fd, "%s/" OP_SESSION_LOCK " is not a lock file: remove it", session->dir);
	if (fd < 0)
		return opr_error(fd, "cannot make %s/" OP_SESSION_LOCK ": %s", session->dir, strerror(-fd));
	err = op_lock_write_pid(fd);
	if (err) {
		op_sys_unlinkat(session->fd, OP_SESSION_LOCK, 0);
		close(fd);
		return err == -EINVAL ? opr_error(err,
						  "%s/" OP_SESSION_LOCK " was not a lock file and was removed: run operf "
						  "again",
						  session->dir)
				      : explain_open(session->dir, err);
	}
	session->lock_fd = fd;
	session->was_unclean = was_there || !faccessat(session->fd, OP_SESSION_UNCLEAN, F_OK, AT_SYMLINK_NOFOLLOW);
	opd_recover(session->fd, session->was_unclean);
	op_sys_unlinkat(session->fd, OP_SESSION_UNCLEAN, 0);
	return 0;
}

static bool has_samples(const struct opf_session *session)
{
	int fd = op_session_open_current(session->fd);
	bool has = fd >= 0 && op_session_has_parts(fd);

	if (fd >= 0)
		close(fd);
	return has;
}

/* After a kill the samples are in the files, and the ledger is older. */
static int close_ledger(int dir_fd, bool was_unclean)
{
	struct op_session_ledger ledger;
	int err = op_session_ledger_read(dir_fd, &ledger, NULL);

	if (err)
		return err;
	ledger.ended = OP_SESSION_saved;
	err = was_unclean ? op_session_ledger_recount(&ledger, dir_fd) : 0;
	if (!err)
		err = op_session_ledger_publish(&ledger, dir_fd);
	if (!err)
		err = op_stats_raise(dir_fd, &ledger);
	op_session_ledger_free(&ledger);
	return err;
}

/*
 * The files of the last run are complete: they need no room to grow, and many become a pack. After
 * a kill opd_recover has repaired them.
 */
static void finish_previous(const struct opf_session *session)
{
	int fd = op_sys_openat(session->fd, PREVIOUS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err;

	if (fd < 0)
		return;
	err = close_ledger(fd, session->was_unclean);
	if (err && err != -ENOENT)
		opr_warn("the ledger of session:previous is not complete: %s", strerror(-err));
	op_session_compact(fd);
	op_session_mark_whole(fd);
	close(fd);
}

/* A kill leaves the samples of the last run under one of the two names. */
static int begin_anew(const struct opf_session *session)
{
	int err;

	if (!has_samples(session))
		return 0;
	err = op_session_remove(session->fd, REMOVED);
	if (!err)
		err = op_sys_renameat(session->fd, PREVIOUS, session->fd, REMOVED);
	if (!err || err == -ENOENT)
		err = op_session_close(session->fd, strrchr(PREVIOUS, '/') + 1);
	if (err)
		return opr_error(err, "cannot rename %s/" OP_SESSION_CURRENT " to " PREVIOUS ": %s%s%s", session->dir,
				 strerror(-err), err == -ENOTDIR ? ": remove what is not a directory in " : "",
				 err == -ENOTDIR ? OP_SESSION_TMP : "");
	finish_previous(session);
	err = op_session_remove(session->fd, REMOVED);
	if (err)
		opr_warn("cannot remove %s/" REMOVED ", the run before the previous one: %s", session->dir, strerror(-err));
	return 0;
}

/* The directory behind an entry that is open with O_PATH: itself, or what the link leads to. */
static int open_behind(int parent_fd, int entry_fd, const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t length;

	if (!S_ISLNK(st->st_mode))
		return op_sys_openat(entry_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	length = op_sys_readlinkat(entry_fd, "", target, sizeof(target) - 1);
	if (length < 0)
		return (int)length;
	target[length] = '\0';
	return op_sys_openat(parent_fd, target, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Nothing is made in a directory before its owner is known. */
static int open_entry(struct opf_session *session, int parent_fd, const char *name)
{
	const char *dir = session->dir;
	struct stat st = { 0 };
	int fd, err = op_sys_mkdirat(parent_fd, name, 0755);

	fd = err && err != -EEXIST ? err : op_sys_openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	err = fd < 0 ? fd : op_sys_fstat(fd, &st);
	if (err) {
		err = explain_open(dir, err);
	} else {
		err = check_owner(dir, &st);
		if (!err && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode))
			err = opr_error(-ENOTDIR, "%s is not a directory: remove it, or name another place with --session-dir",
					dir);
	}
	if (!err) {
		session->fd = open_behind(parent_fd, fd, &st);
		err = session->fd < 0 ? session->fd : op_sys_fstat(session->fd, &st);
		err = err ? explain_open(dir, err) : check_owner(dir, &st);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* The caller's umask holds for the directory, whose mode op_session_prepare adopts. */
static int open_dir(struct opf_session *session)
{
	char *dir = strdup(session->dir), *name = strdup(session->dir);
	int parent_fd = dir && name ? op_sys_openat(AT_FDCWD, dirname(dir), O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -ENOMEM;
	int err = parent_fd < 0 ? explain_open(session->dir, parent_fd) : open_entry(session, parent_fd, basename(name));

	if (parent_fd >= 0)
		close(parent_fd);
	free(dir);
	free(name);
	if (err)
		return err;
	err = op_session_prepare(session->fd);
	return err ? explain_open(session->dir, err) : 0;
}

int opf_session_open(struct opf_session *session, const char *dir, bool append)
{
	int err;

	*session = (struct opf_session){ .dir = dir, .fd = -1, .lock_fd = -1 };
	err = open_dir(session);
	if (err)
		goto fail;
	err = check_directories(session);
	if (err)
		goto fail;
	err = lock(session);
	if (!err && !append)
		err = begin_anew(session);
	if (err)
		goto fail;
	return 0;

fail:
	opf_session_close(session, true);
	return err;
}

void opf_session_close(struct opf_session *session, bool complete)
{
	if (session->lock_fd >= 0 && complete)
		op_session_unlock(session->fd, session->lock_fd);
	else if (session->lock_fd >= 0)
		close(session->lock_fd);
	if (session->fd >= 0)
		close(session->fd);
	session->fd = session->lock_fd = -1;
}
