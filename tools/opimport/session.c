/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/session/contents.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/leftovers.h"
#include "libop/base/sys.h"
#include "tools/opimport/opimport.h"
#include "tools/common/log.h"

static int check_name(const char *name)
{
	if (*name && *name != '.' && *name != '-' && !strchr(name, '/'))
		return 0;
	return opr_error(-EINVAL,
			 "'%s' is not a valid name of a session: a name has no slash and does not begin with a dot or "
			 "a dash",
			 name);
}

/* The place of the session in the session directory. */
static const char *target_of(const struct opi_session *session)
{
	return session->target + strlen(session->dir) + 1;
}

static bool has_something(const struct opi_session *session)
{
	int fd = op_file_open_below(session->dir_fd, target_of(session), O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = false;

	if (fd >= 0 && !dir)
		close(fd);
	if (!dir)
		return fd != -ENOENT;
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
	if (session->is_current && op_session_is_locked_at(session->dir_fd))
		return opr_error(-EBUSY,
				 "a daemon samples into %s: name another session with --output, or another directory with "
				 "--session-dir",
				 session->target);
	return has_something(session) ? explain_taken(session) : 0;
}

/* Makes the session directory if needed, and removes what other imports left. */
static int open_dir(struct opi_session *session)
{
	uint64_t nr_left;

	session->dir_fd = op_session_open(session->dir);
	if (session->dir_fd < 0)
		return opr_error(session->dir_fd, "cannot use the session directory %s: %s", session->dir,
				 strerror(-session->dir_fd));
	nr_left = op_session_import_sweep(session->dir_fd);
	if (nr_left)
		opr_warn("removed from %s/" OP_SESSION_TMP " the files of %llu interrupted runs of opimport", session->dir,
			 (unsigned long long)nr_left);
	return 0;
}

/*
 * The session directory may belong to another user, who may put links there at any time. All is
 * done below the descriptors.
 */
static int open_work(struct opi_session *session)
{
	int err;

	session->work_fd = op_session_import_begin(session->dir_fd, session->work_name);
	if (session->work_fd < 0)
		return opr_error(session->work_fd, "cannot make a directory in %s/" OP_SESSION_TMP ": %s", session->dir,
				 strerror(-session->work_fd));
	err = op_session_prepare(session->work_fd);
	return err ? opr_error(err, "cannot use %s/" OP_SESSION_TMP "/%s: %s", session->dir, session->work_name, strerror(-err)) :
		     0;
}

int opi_session_begin(struct opi_session *session, const char *dir, const char *name)
{
	int err = check_name(name);

	*session = (struct opi_session){ .dir_fd = -1,
					 .work_fd = -1,
					 .is_current = !strcmp(name, strrchr(OP_SESSION_CURRENT, '/') + 1) };
	if (err)
		return err;
	session->dir = strdup(dir);
	if (!session->dir || asprintf(&session->target, "%s/samples/%s", dir, name) < 0)
		return opr_no_memory();
	err = open_dir(session);
	if (!err)
		err = check_free(session);
	return err ? err : open_work(session);
}

/* rename(2) replaces only an empty directory, so a session that appeared meanwhile stays. */
int opi_session_publish(struct opi_session *session)
{
	int parent_fd, err = session->is_current && op_session_is_locked_at(session->dir_fd) ? check_free(session) : 0;
	const char *name;

	if (err)
		return err;
	parent_fd = op_file_open_parent(session->dir_fd, target_of(session), false, &name);
	err = parent_fd < 0 ? parent_fd : op_sys_renameat(session->work_fd, OP_SESSION_CURRENT, parent_fd, name);
	if (parent_fd >= 0)
		close(parent_fd);
	if (err == -EEXIST || err == -ENOTEMPTY)
		return explain_taken(session);
	return err ? opr_error(err, "cannot make %s: %s", session->target, strerror(-err)) : 0;
}

/* Whoever sweeps removes it after an error. */
void opi_session_end(struct opi_session *session)
{
	char path[sizeof(OP_SESSION_TMP "/") + OP_SESSION_IMPORT_BYTES];

	snprintf(path, sizeof(path), OP_SESSION_TMP "/%s", session->work_name);
	if (session->work_fd >= 0) {
		(void)!op_session_remove(session->dir_fd, path);
		close(session->work_fd);
	}
	if (session->dir_fd >= 0)
		close(session->dir_fd);
	free(session->dir);
	free(session->target);
	*session = (struct opi_session){ .dir_fd = -1, .work_fd = -1 };
}
