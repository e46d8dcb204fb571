/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/close.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/base/sys.h"

#define NEW_CURRENT     OP_SESSION_TMP "/current"
#define DIR_MODE        0755
#define NAMES_MAX       9999 /* of one time */
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:,."

const char *op_session_name_fault(const char *name)
{
	if (!*name)
		return "it is empty";
	if (name[strspn(name, NAME_CHARACTERS)])
		return "it may have letters, digits and - _ : , . only";
	if (*name == '.')
		return "it begins with a dot";
	if (*name == '-')
		return "it begins with a dash, as an option does";
	if (!strcmp(name, "current"))
		return "that is the session being written";
	return strlen(name) > OP_SESSION_NAME_MAX ? "it is too long" : NULL;
}

void op_session_time_name(uint64_t begin_ns, bool with_seconds, char name[OP_SESSION_NAME_BYTES])
{
	time_t seconds = (time_t)(begin_ns / OP_NS_PER_S);
	struct tm tm = { 0 };

	gmtime_r(&seconds, &tm);
	strftime(name, OP_SESSION_NAME_BYTES, with_seconds ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%MZ", &tm);
}

/* What follows in a string that begins with `form`, in which 0 is any digit; else NULL. */
static const char *after_form(const char *string, const char *form)
{
	for (; *form; form++, string++)
		if (*form == '0' ? !isdigit((unsigned char)*string) : *string != *form)
			return NULL;
	return string;
}

bool op_session_is_time_name(const char *name)
{
	const char *rest = after_form(name, "0000-00-00T00:00Z");

	if (!rest)
		rest = after_form(name, "0000-00-00T00:00:00Z");
	if (!rest)
		return false;
	return !*rest || (*rest == '-' && rest[1] && strlen(rest + 1) <= 4 && rest[1 + strspn(rest + 1, "0123456789")] == '\0');
}

/* A killed call may have left the directory. Anything else there would become the session. */
static int check_new_current(int session_fd)
{
	struct stat st;

	if (fstatat(session_fd, NEW_CURRENT, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int make_new_current(int session_fd)
{
	int err = op_file_make_dir_below(session_fd, NEW_CURRENT, DIR_MODE);

	/* Another program removed tmp/. */
	if (err == -ENOENT && !op_file_make_dir_below(session_fd, OP_SESSION_TMP, DIR_MODE))
		err = op_file_make_dir_below(session_fd, NEW_CURRENT, DIR_MODE);
	if (err == -EEXIST)
		return check_new_current(session_fd);
	return err ? err : op_file_set_dir_mode(session_fd, NEW_CURRENT, op_session_dir_mode(session_fd));
}

static int mark_closing(int session_fd)
{
	const char *name;
	int parent = op_file_open_parent(session_fd, OP_SESSION_CURRENT "/" OP_SESSION_CLOSING, false, &name), fd;

	if (parent < 0)
		return parent;
	fd = op_sys_openat(parent, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	close(parent);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

void op_session_mark_whole(int dir_fd)
{
	op_sys_unlinkat(dir_fd, OP_SESSION_CLOSING, 0);
}

/* An empty directory is no session: a killed call may have left it. */
static int put_new_at(int session_fd, const char *path)
{
	int err = op_sys_rename_new(session_fd, NEW_CURRENT, session_fd, path);

	if (err == -EEXIST && !op_sys_unlinkat(session_fd, path, AT_REMOVEDIR))
		err = op_sys_rename_new(session_fd, NEW_CURRENT, session_fd, path);
	return err;
}

/*
 * For file systems that cannot exchange directories: there is no current for a moment. The
 * directory at `path` is empty.
 */
static int replace_in_steps(int session_fd, const char *path)
{
	int err = make_new_current(session_fd);

	if (!err)
		err = op_sys_renameat(session_fd, OP_SESSION_CURRENT, session_fd, path);
	if (err)
		return err;
	if (op_sys_renameat(session_fd, NEW_CURRENT, session_fd, OP_SESSION_CURRENT) < 0)
		op_sys_unlinkat(session_fd, NEW_CURRENT, AT_REMOVEDIR);
	return 0;
}

/*
 * The new current first gets the closed name and is then exchanged with the old one: readers always
 * find a current.
 */
static int change_places(int session_fd, const char *path)
{
	int err = put_new_at(session_fd, path);

	if (err)
		return err;
	err = op_sys_rename_exchange(session_fd, OP_SESSION_CURRENT, session_fd, path);
	if (err == -EINVAL || err == -ENOSYS)
		err = replace_in_steps(session_fd, path);
	if (err)
		op_sys_unlinkat(session_fd, path, AT_REMOVEDIR);
	return err;
}

/* Makes the new current first: a full disk is noticed before anything has changed. */
int op_session_close(int session_fd, const char *name)
{
	char path[sizeof("samples/") + OP_SESSION_NAME_BYTES];
	int err;

	snprintf(path, sizeof(path), "samples/%s", name);
	err = make_new_current(session_fd);
	if (err)
		return err;
	err = mark_closing(session_fd);
	if (!err)
		err = change_places(session_fd, path);
	if (err) {
		op_file_unlink_below(session_fd, OP_SESSION_CURRENT "/" OP_SESSION_CLOSING);
		op_sys_unlinkat(session_fd, NEW_CURRENT, AT_REMOVEDIR);
	}
	return err;
}

int op_session_close_timed(int session_fd, char name[OP_SESSION_NAME_BYTES])
{
	size_t length = strlen(name);
	int err = op_session_close(session_fd, name);

	for (unsigned int i = 2; err == -EEXIST && i <= NAMES_MAX; i++) {
		snprintf(name + length, OP_SESSION_NAME_BYTES - length, "-%02u", i);
		err = op_session_close(session_fd, name);
	}
	return err;
}

static int sync_dir(int session_fd, const char *path)
{
	int fd = op_sys_openat(session_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err;

	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

int op_session_sync_dirs(int session_fd)
{
	static const char *const dirs[] = { "samples", OP_SESSION_TMP, "." };
	int first_err = 0;

	for (size_t i = 0; i < op_array_size(dirs); i++) {
		int err = sync_dir(session_fd, dirs[i]);

		if (!first_err)
			first_err = err;
	}
	return first_err;
}
