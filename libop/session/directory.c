/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/process/lock.h"
#include "libop/base/sys.h"
#include "libop/base/text.h"
#include "libop/odb/abi.h"
#include "libop/session/layout.h"

/* Sessions are private: they say what ran, and in which container. Owner and group only. */
#define DIR_MODE 0750

static bool has_abi(int dir_fd, const char *text)
{
	char *there = NULL;
	bool same = !op_file_read_own(dir_fd, OP_ABI_NAME, strlen(text) + 1, &there, NULL) && !strcmp(there, text);

	free(there);
	return same;
}

/* A process that opens the directory at the same time writes the same text. */
static int write_abi(int dir_fd)
{
	struct op_text text = { 0 };
	int err = 0;

	op_abi_describe(&text);
	if (text.failed)
		err = -ENOMEM;
	else if (!has_abi(dir_fd, text.data))
		err = op_file_publish(dir_fd, OP_ABI_NAME, text.data, 0644);
	if ((err == -EEXIST || err == -ENOENT) && has_abi(dir_fd, text.data))
		err = 0;
	op_text_free(&text);
	return err;
}

/* A new directory (err 0) gets the mode whatever the umask; an old one keeps its mode. */
static int set_mode_if_new(int dir_fd, const char *path, mode_t mode, int err)
{
	if (err < 0)
		return err == -EEXIST ? 0 : err;
	return op_file_set_dir_mode(dir_fd, path, mode);
}

/* What root makes in a directory of root's is the daemon's, where its user and group exist. */
static int give_to_daemon(int fd)
{
	const struct passwd *user = geteuid() ? NULL : getpwnam(OP_SESSION_OWNER);
	const struct group *group = geteuid() ? NULL : getgrnam(OP_SESSION_OWNER);
	struct stat st;

	if (!group || op_sys_fstat(fd, &st) < 0 || st.st_uid)
		return 0;
	return fchown(fd, user ? user->pw_uid : (uid_t)-1, group->gr_gid) < 0 ? -errno : 0;
}

/*
 * Mode and owner are set through a descriptor: the owner of the directory above may put a link to
 * any file at the path. O_NOFOLLOW follows a link before a slash, so `path` ends without one.
 */
static int make_dir(const char *path)
{
	int err = op_sys_mkdirat(AT_FDCWD, path, DIR_MODE), fd;

	if (err)
		return err == -EEXIST ? 0 : err;
	fd = op_sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = fchmod(fd, DIR_MODE) < 0 ? -errno : 0;
	if (!err)
		err = op_file_inherit_parent_owner(fd);
	if (!err)
		err = give_to_daemon(fd);
	close(fd);
	return err;
}

int op_session_make(const char *path)
{
	char *copy = strdup(path), *plain = strdup(path);
	int err = copy && plain ? op_file_make_dirs(dirname(copy)) : -ENOMEM;

	for (size_t length = plain ? strlen(plain) : 0; length > 1 && plain[length - 1] == '/'; length--)
		plain[length - 1] = '\0';
	if (!err)
		err = make_dir(plain);
	free(plain);
	free(copy);
	return err;
}

mode_t op_session_dir_mode(int session_fd)
{
	struct stat st;

	return op_sys_fstat(session_fd, &st) < 0 ? DIR_MODE : 0700 | (st.st_mode & 0055);
}

void op_session_adopt_mode(int session_fd)
{
	umask(0777 & ~op_session_dir_mode(session_fd));
}

const char *op_session_in_the_way(const char *session_dir)
{
	static const char *const names[] = { OP_ABI_NAME OP_FILE_TEMPORARY_SUFFIX, OP_ABI_NAME };
	int fd = op_sys_openat(AT_FDCWD, session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	const char *found = NULL;
	struct stat st;

	for (size_t i = 0; fd >= 0 && !found && i < op_array_size(names); i++)
		if (!fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
			found = names[i];
	if (fd >= 0)
		close(fd);
	return found;
}

int op_session_prepare(int session_fd)
{
	static const char *const dirs[] = { "samples", OP_SESSION_CURRENT, OP_SESSION_TMP };
	int err = 0;

	op_session_adopt_mode(session_fd);
	for (size_t i = 0; i < op_array_size(dirs) && !err; i++)
		err = set_mode_if_new(session_fd, dirs[i], op_session_dir_mode(session_fd),
				      op_file_make_dir_below(session_fd, dirs[i], DIR_MODE));
	return err ? err : write_abi(session_fd);
}

int op_session_open(const char *session_dir)
{
	int err, fd;

	if (!*session_dir)
		return -ENOENT;
	err = op_session_make(session_dir);
	if (err < 0)
		return err;
	fd = op_sys_openat(AT_FDCWD, session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = op_session_prepare(fd);
	if (err < 0) {
		close(fd);
		return err;
	}
	return fd;
}

int op_session_open_current(int session_fd)
{
	return op_sys_openat(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* ---- the lock ---- */

bool op_session_is_locked_at(int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	bool locked;

	if (fd < 0)
		return fd == -EACCES;
	locked = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

bool op_session_is_locked(const char *session_dir)
{
	int fd = op_sys_openat(AT_FDCWD, session_dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	bool locked = fd >= 0 && op_session_is_locked_at(fd);

	if (fd >= 0)
		close(fd);
	return locked;
}

bool op_session_is_unclean_at(int session_fd)
{
	return !faccessat(session_fd, OP_SESSION_LOCK, F_OK, AT_SYMLINK_NOFOLLOW) ||
	       !faccessat(session_fd, OP_SESSION_UNCLEAN, F_OK, AT_SYMLINK_NOFOLLOW);
}

int op_session_leave_unclean(int session_fd)
{
	int fd = op_sys_openat(session_fd, OP_SESSION_UNCLEAN, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int op_session_take_lock(int session_fd, bool *ret_was_there)
{
	int fd = op_lock_take(session_fd, OP_SESSION_LOCK, ret_was_there), err;

	if (fd < 0)
		return fd;
	err = op_lock_take_dir(session_fd);
	if (!err)
		return fd;
	/* The lock file of a running daemon was removed. */
	op_sys_unlinkat(session_fd, OP_SESSION_LOCK, 0);
	close(fd);
	return err;
}

/* An error says nothing: the daemon may have become a user who may not look there. */
static bool is_another(int dir_fd, const char *path, const struct stat *ours)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, 0) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != ours->st_dev || st.st_ino != ours->st_ino;
}

bool op_session_has_lost_lock(const char *session_dir, int session_fd, int lock_fd)
{
	struct stat dir, lock;

	if (op_sys_fstat(session_fd, &dir) < 0 || op_sys_fstat(lock_fd, &lock) < 0)
		return false;
	return is_another(AT_FDCWD, session_dir, &dir) || is_another(session_fd, OP_SESSION_LOCK, &lock);
}

int op_session_lock(int session_fd)
{
	bool was_there;
	int fd = op_session_take_lock(session_fd, &was_there), err;

	op_session_adopt_mode(session_fd);
	err = fd >= 0 && was_there ? op_session_leave_unclean(session_fd) : 0;
	if (!err)
		return fd;
	close(fd);
	return err;
}

void op_session_unlock(int session_fd, int lock_fd)
{
	op_sys_unlinkat(session_fd, OP_SESSION_LOCK, 0);
	op_lock_leave_dir(session_fd);
	close(lock_fd);
}

static const char *const profiling_words[] = { "off\n", "on\n" };

bool op_session_wants_profiling(int session_fd, bool preset)
{
	char *text;
	bool wanted = preset;

	if (op_file_read_own(session_fd, OP_SESSION_PROFILING, 16, &text, NULL) < 0)
		return preset;
	for (size_t on = 0; on < op_array_size(profiling_words); on++)
		if (!strcmp(text, profiling_words[on]))
			wanted = on;
	free(text);
	return wanted;
}

int op_session_want_profiling(int session_fd, bool on)
{
	return op_file_publish(session_fd, OP_SESSION_PROFILING, profiling_words[on], 0644);
}

int op_session_pause_once(int session_fd)
{
	return op_file_publish(session_fd, OP_SESSION_PAUSED, "", 0644);
}

int op_session_take_pause(int session_fd)
{
	return op_sys_unlinkat(session_fd, OP_SESSION_PAUSED, 0);
}
