/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/log.h"

#define LOCK_NAME "opd-archive.lock"

/* The process that had the lock before may have removed the file since it was opened. */
static bool is_there(int dir_fd, int fd)
{
	struct stat opened, named;

	return !fstat(fd, &opened) && !fstatat(dir_fd, LOCK_NAME, &named, AT_SYMLINK_NOFOLLOW) && opened.st_dev == named.st_dev &&
	       opened.st_ino == named.st_ino;
}

/* Reports the process that has the lock. 0: it has ended meanwhile. */
static int report_owner(const char *dir, int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char process[32] = "";

	if (!fcntl(fd, F_GETLK, &lock) && lock.l_type == F_UNLCK)
		return 0;
	if (lock.l_pid > 0)
		snprintf(process, sizeof(process), " (process %d)", (int)lock.l_pid);
	return opr_error(-EBUSY, "%s is being written by another oparchive%s: wait for its end, or take another directory", dir,
			 process);
}

/* 0 with *ret_has; false: try again. */
static int try_lock(int dir_fd, const char *dir, int fd, bool *ret_has)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	*ret_has = !fcntl(fd, F_SETLK, &lock);
	if (!*ret_has && (errno == EAGAIN || errno == EACCES))
		return report_owner(dir, fd);
	if (!*ret_has)
		return opr_error(-errno, "%s/" LOCK_NAME ": cannot lock it: %s", dir, strerror(errno));
	*ret_has = is_there(dir_fd, fd);
	return 0;
}

int opr_archive_lock(int dir_fd, const char *dir, int *ret_fd)
{
	for (;;) {
		int fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), err;
		bool has = false;

		if (fd < 0)
			return opr_error(-errno, "%s/" LOCK_NAME ": %s", dir, strerror(errno));
		err = try_lock(dir_fd, dir, fd, &has);
		if (has) {
			*ret_fd = fd;
			return 0;
		}
		close(fd);
		if (err)
			return err;
	}
}

void opr_archive_unlock(int dir_fd, int fd)
{
	if (fd < 0)
		return;
	unlinkat(dir_fd, LOCK_NAME, 0);
	close(fd);
}
