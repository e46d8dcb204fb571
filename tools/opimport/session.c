/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <unistd.h>

#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/leftovers.h"
#include "libop/base/sys.h"
#include "tools/opimport/opimport.h"
#include "tools/common/log.h"

#define OPEN_AT_ONCE 16

static int check_name(const char *name)
{
	if (*name && *name != '.' && *name != '-' && !strchr(name, '/'))
		return 0;
	return opr_error(-EINVAL, "'%s' cannot be the name of a session: it has no slash and does not begin with a dot or a dash",
			 name);
}

static bool has_something(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return errno != ENOENT;
	while (!found && (entry = readdir(dir)))
		found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return found;
}

static int explain_taken(const struct opi_session *session)
{
	return opr_error(-EEXIST, "%s has samples already: name another session with --output, or remove it", session->target);
}

static int check_free(const struct opi_session *session)
{
	if (session->is_current && op_session_is_locked(session->dir))
		return opr_error(-EBUSY,
				 "a daemon samples into %s: name another session with --output, or another directory with "
				 "--session-dir",
				 session->target);
	return has_something(session->target) ? explain_taken(session) : 0;
}

/* Makes the session directory if needed, and removes what other imports left. */
static int make_dirs(const struct opi_session *session)
{
	int fd = op_session_open(session->dir);
	uint64_t nr_left;

	if (fd < 0)
		return opr_error(fd, "cannot use the session directory %s: %s", session->dir, strerror(-fd));
	nr_left = op_session_import_sweep(fd);
	if (nr_left)
		opr_warn("removed from %s/" OP_SESSION_TMP " the files of %llu opimport that did not end in order", session->dir,
			 (unsigned long long)nr_left);
	close(fd);
	return 0;
}

static int open_work(struct opi_session *session)
{
	session->lock_fd = op_session_import_begin(session->dir, &session->work_dir);
	if (session->lock_fd < 0) {
		opr_error(session->lock_fd, "cannot make %s: %s", session->work_dir ? session->work_dir : session->dir,
			  strerror(-session->lock_fd));
		free(session->work_dir);
		session->work_dir = NULL;
		return session->lock_fd;
	}
	session->work_fd = op_session_open(session->work_dir);
	return session->work_fd < 0
		       ? opr_error(session->work_fd, "cannot use %s: %s", session->work_dir, strerror(-session->work_fd))
		       : 0;
}

int opi_session_begin(struct opi_session *session, const char *dir, const char *name)
{
	int err = check_name(name);

	*session = (struct opi_session){ .work_fd = -1,
					 .lock_fd = -1,
					 .is_current = !strcmp(name, strrchr(OP_SESSION_CURRENT, '/') + 1) };
	if (err)
		return err;
	session->dir = strdup(dir);
	if (!session->dir || asprintf(&session->target, "%s/samples/%s", dir, name) < 0)
		return opr_no_memory();
	err = make_dirs(session);
	if (!err)
		err = check_free(session);
	return err ? err : open_work(session);
}

/* rename(2) replaces only an empty directory, so a session that appeared meanwhile stays. */
int opi_session_publish(struct opi_session *session)
{
	int err = session->is_current && op_session_is_locked(session->dir) ? check_free(session) : 0;

	if (err)
		return err;
	err = op_sys_renameat(session->work_fd, OP_SESSION_CURRENT, AT_FDCWD, session->target);
	if (err == -EEXIST || err == -ENOTEMPTY)
		return explain_taken(session);
	return err ? opr_error(err, "cannot make %s: %s", session->target, strerror(-err)) : 0;
}

static int remove_entry(const char *path, const struct stat *st OP_UNUSED, int type OP_UNUSED, struct FTW *ftw OP_UNUSED)
{
	return remove(path);
}

void opi_session_end(struct opi_session *session)
{
	if (session->work_fd >= 0)
		close(session->work_fd);
	if (session->work_dir)
		nftw(session->work_dir, remove_entry, OPEN_AT_ONCE, FTW_DEPTH | FTW_PHYS);
	if (session->lock_fd >= 0)
		close(session->lock_fd);
	free(session->dir);
	free(session->work_dir);
	free(session->target);
	*session = (struct opi_session){ .work_fd = -1, .lock_fd = -1 };
}
