/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/import_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/contents.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"
#include "libop/base/sys.h"

#define ANY_SUFFIX "XXXXXX"

static int lock_dir(int dir_fd, const char *path)
{
	int fd = op_sys_openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd;
	err = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* A sweep may have removed the directory before it was locked. */
static bool is_swept(int fd)
{
	struct stat st;

	return op_sys_fstat(fd, &st) < 0 || !st.st_nlink;
}

/* -EAGAIN: a sweep removed it. */
static int make_once(char *path)
{
	int fd;

	if (!mkdtemp(path))
		return -errno;
	fd = lock_dir(AT_FDCWD, path);
	if (fd == -ENOENT)
		return -EAGAIN;
	if (fd >= 0 && is_swept(fd)) {
		close(fd);
		return -EAGAIN;
	}
	return fd;
}

int op_session_import_begin(const char *session_dir, char **ret_path)
{
	int fd;

	static_assert(sizeof(ANY_SUFFIX) == OP_SESSION_IMPORT_SUFFIX_BYTES + 1, "a suffix of mkdtemp(3)");
	do {
		if (asprintf(ret_path, "%s/" OP_SESSION_TMP "/" OP_SESSION_IMPORT ANY_SUFFIX, session_dir) < 0) {
			*ret_path = NULL;
			return -ENOMEM;
		}
		fd = make_once(*ret_path);
		if (fd == -EAGAIN)
			free(*ret_path);
	} while (fd == -EAGAIN); /* -EWOULDBLOCK is the same number */
	return fd;
}

static bool is_name(const char *name)
{
	size_t nr_prefix = strlen(OP_SESSION_IMPORT);

	return !strncmp(name, OP_SESSION_IMPORT, nr_prefix) && strlen(name) == nr_prefix + OP_SESSION_IMPORT_SUFFIX_BYTES;
}

struct sweeping {
	int session_fd;
	uint64_t nr_removed;
};

static int sweep_one(const char *name, void *arg)
{
	struct sweeping *sweeping = arg;
	char path[sizeof(OP_SESSION_TMP "/" OP_SESSION_IMPORT ANY_SUFFIX)];
	int fd;

	if (!is_name(name))
		return 0;
	snprintf(path, sizeof(path), OP_SESSION_TMP "/%s", name);
	fd = lock_dir(sweeping->session_fd, path);
	if (fd < 0)
		return 0; /* an import works there, or it belongs to another user */
	if (!op_session_remove(sweeping->session_fd, path))
		sweeping->nr_removed++;
	close(fd);
	return 0;
}

uint64_t op_session_import_sweep(int session_fd)
{
	struct sweeping sweeping = { .session_fd = session_fd };
	int err = op_session_visit_dir(session_fd, OP_SESSION_TMP, sweep_one, &sweeping);

	(void)err; /* the caller meets an error of tmp/ in its own work */
	return sweeping.nr_removed;
}
