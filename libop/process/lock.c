/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/process/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/parse.h"
#include "libop/base/sys.h"

#define MODE      0600 /* a user who can open the file can lock it, and keep every owner out */
#define TRIES     5
#define MOMENT_NS 20000000
#define PID_BYTES 32

static int open_file(int dir_fd, const char *name, bool *ret_was_there)
{
	int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = op_sys_openat(dir_fd, name, flags | O_EXCL, MODE);

	*ret_was_there = fd == -EEXIST;
	return fd == -EEXIST ? op_sys_openat(dir_fd, name, flags, MODE) : fd;
}

/* A process that checks whether there is an owner holds a shared lock for a moment. */
static int lock_file(int fd)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };
	int err = 0;

	for (int i = 0; i < TRIES; i++) {
		err = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		if (err != -EWOULDBLOCK)
			return err;
		nanosleep(&moment, NULL);
	}
	return -EBUSY;
}

/*
 * An owner that ended may have removed the file between our open and our lock: others do not see
 * it.
 */
static bool is_removed(int fd)
{
	struct stat st;

	return !op_sys_fstat(fd, &st) && !st.st_nlink;
}

int op_lock_take(int dir_fd, const char *name, bool *ret_was_there)
{
	bool was_there, again;
	int fd, err;

	do {
		fd = open_file(dir_fd, name, &was_there);
		if (fd < 0)
			return fd;
		err = lock_file(fd);
		if (err) {
			close(fd);
			return err;
		}
		again = is_removed(fd);
		if (again)
			close(fd);
	} while (again);
	/*
	 * Both may fail: the mode is wrong only in a file of an earlier version, and the pid is
	 * overwritten later.
	 */
	(void)fchmod(fd, MODE);
	(void)!ftruncate(fd, 0);
	*ret_was_there = was_there;
	return fd;
}

int op_lock_take_stale(int dir_fd, const char *name)
{
	int fd = op_sys_openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd;
	err = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : is_removed(fd) ? -ENOENT : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int op_lock_write_pid(int lock_fd)
{
	char pid[PID_BYTES];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return ftruncate(lock_fd, 0) < 0 ? -errno : op_sys_write_all(lock_fd, pid, strlen(pid));
}

/* False: there is no file. *ret_pid is 0 while the file has no pid. */
static bool read_owner(int dir_fd, const char *name, pid_t *ret_pid)
{
	uint64_t pid = 0;
	char *text;

	if (op_file_read_own(dir_fd, name, PID_BYTES, &text, NULL) < 0)
		return false;
	if (op_parse_u64(text, 1, INT_MAX, &pid) < 0)
		pid = 0;
	free(text);
	*ret_pid = (pid_t)pid;
	return true;
}

pid_t op_lock_owner(int dir_fd, const char *name)
{
	const struct timespec moment = { .tv_nsec = MOMENT_NS };
	pid_t pid = 0;

	for (int i = 0; i < TRIES && read_owner(dir_fd, name, &pid) && !pid; i++)
		nanosleep(&moment, NULL);
	return pid;
}

/* ---- the kernel's list of locks ---- */

/*
 * The inode and the process of a row: "7: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF". A lock
 * that waits has "->" before FLOCK. 0: it is no flock(2).
 */
static ino_t read_row(const char *row, bool alone, pid_t *ret_pid)
{
	const char *mode = strstr(row, " WRITE "), *inode = strrchr(row, ':');

	if (!mode && !alone)
		mode = strstr(row, " READ ");
	if (!mode || !strstr(row, ": FLOCK "))
		return 0;
	*ret_pid = (pid_t)strtol(mode + strcspn(mode, "0123456789"), NULL, 10);
	return strtoull(inode + 1, NULL, 10);
}

/* `alone`: locks that keep all others out. is_it NULL: any process. */
static bool find_lock(const struct stat *st, bool alone, bool (*is_it)(pid_t pid))
{
	FILE *locks = fopen("/proc/locks", "re");
	char *row = NULL;
	size_t room = 0;
	bool found = false;
	pid_t pid = 0;

	while (locks && !found && getline(&row, &room, locks) > 0)
		found = read_row(row, alone, &pid) == st->st_ino && (!is_it || is_it(pid));
	free(row);
	if (locks)
		fclose(locks);
	return found;
}

bool op_lock_is_listed(const struct stat *st)
{
	return find_lock(st, true, NULL);
}

/* ---- a directory ---- */

/* The real user: a program that gives its caller more rights is still the caller's. */
static bool is_trusted(pid_t pid)
{
	char path[64], *status, *line;
	bool trusted;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (op_file_read(AT_FDCWD, path, OP_FILE_MAX_BYTES, &status) < 0)
		return false;
	line = strstr(status, "\nUid:");
	trusted = line && (!strtoul(line + 5, NULL, 10) || strtoul(line + 5, NULL, 10) == getuid());
	free(status);
	return trusted;
}

int op_lock_take_dir(int dir_fd)
{
	struct stat st;
	int err = lock_file(dir_fd);

	if (err != -EBUSY)
		return 0;
	err = op_sys_fstat(dir_fd, &st);
	return !err && find_lock(&st, false, is_trusted) ? -EBUSY : 0;
}

void op_lock_leave_dir(int dir_fd)
{
	flock(dir_fd, LOCK_UN);
}
