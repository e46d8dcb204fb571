/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The daemon is the process that holds a lock file. The name of its program says nothing. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/process/lock.h"
#include "libop/session/walk.h"
#include "tools/opcontrol/opcontrol.h"

/* A zombie has ended. */
static bool is_alive(pid_t pid)
{
	char path[64], *stat, *end;
	bool alive;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (pid <= 0 || op_file_read(AT_FDCWD, path, 4096, &stat) < 0)
		return false;
	end = strrchr(stat, ')');
	alive = end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
	free(stat);
	return alive;
}

static bool is_denied(int err)
{
	return err == -EACCES || err == -EPERM;
}

struct open_file {
	const char *fd_dir; /* of the process */
	struct stat st;     /* of the file */
	bool found;
};

static int compare_file(const char *name, void *arg)
{
	struct open_file *file = arg;
	struct op_text path = { 0 };
	struct stat st;
	int err;

	op_text_printf(&path, "%s/%s", file->fd_dir, name);
	err = stat(op_text_get(&path), &st) < 0 ? -errno : 0;
	file->found |= !err && st.st_dev == file->st.st_dev && st.st_ino == file->st.st_ino;
	op_text_free(&path);
	return is_denied(err) ? err : 0;
}

/*
 * True when the process has the file open, and when its descriptors cannot be read: only a daemon
 * writes its pid into a lock that it holds.
 */
static bool has_open(pid_t pid, const struct stat *st)
{
	char fd_dir[64];
	struct open_file file = { .fd_dir = fd_dir, .st = *st };
	int err;

	snprintf(fd_dir, sizeof(fd_dir), "/proc/%d/fd", (int)pid);
	err = op_session_visit_dir(AT_FDCWD, fd_dir, compare_file, &file);
	return file.found || is_denied(err);
}

/* A lock that nobody holds may contain any pid, and a tool that holds one writes no pid. */
pid_t ctl_lock_holder(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	pid_t pid = 0;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		pid = op_lock_owner(AT_FDCWD, path);
	close(fd);
	return is_alive(pid) && has_open(pid, &st) ? pid : 0;
}

bool ctl_lock_may_be_held(const char *path)
{
	struct stat st;

	if (!access(path, R_OK))
		return ctl_lock_holder(path);
	if (errno != EACCES)
		return false;
	return stat(path, &st) < 0 ? errno == EACCES : op_lock_is_listed(&st);
}
