/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/session/parts.h"
#include "libop/session/stats_files.h"
#include "libop/base/sys.h"
#include "tools/opcheck/sample_file.h"
#include "tools/opcheck/findings.h"

#define FILE_RIGHTS (S_IRUSR | S_IWUSR)
#define DIR_RIGHTS  S_IRWXU

/* False: any owner will do, since the daemon is root or there is no session directory. */
static bool find_owner(const struct opk_check *check, struct stat *ret_owner)
{
	return check->top_fd >= 0 && !op_sys_fstat(check->top_fd, ret_owner) && ret_owner->st_uid;
}

const char *opk_access_fault(const struct opk_check *check, const char *path)
{
	struct stat owner, st;

	if (check->closed || !find_owner(check, &owner) || fstatat(check->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	if (st.st_uid != owner.st_uid)
		return "its owner is not that of the session directory: the daemon cannot write to it";
	return (st.st_mode & FILE_RIGHTS) == FILE_RIGHTS ? NULL : "its mode does not let the daemon write to it";
}

static int give_back(int dir_fd, const char *path, const struct stat *owner)
{
	struct stat st;
	int fd = op_file_open_below(dir_fd, path, O_RDONLY | O_DIRECTORY, 0), err;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, &st);
	if (!err && st.st_uid != owner->st_uid)
		err = fchown(fd, owner->st_uid, owner->st_gid) < 0 ? -errno : 0;
	if (!err && (st.st_mode & DIR_RIGHTS) != DIR_RIGHTS)
		err = fchmod(fd, (st.st_mode & 07777) | DIR_RIGHTS) < 0 ? -errno : 0;
	close(fd);
	return err;
}

/* Whether the daemon counts in the session or will remove it. It removes no saved session. */
static bool is_daemons(const struct opk_check *check)
{
	return !check->closed || check->end == OP_SESSION_rotated;
}

void opk_check_dir(struct opk_check *check, const char *path)
{
	struct opk_problem problem = { .path = path, .detail = "" };
	struct stat owner, st;

	if (!is_daemons(check) || !find_owner(check, &owner) || fstatat(check->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return;
	if (st.st_uid != owner.st_uid)
		problem.fault = "its owner is not that of the session directory: the daemon cannot make or remove files in it";
	else if ((st.st_mode & DIR_RIGHTS) != DIR_RIGHTS)
		problem.fault = "its mode does not let the daemon make or remove anything in it";
	if (problem.fault)
		opk_report(check, &problem, check->repair ? give_back(check->dir_fd, path, &owner) : 0);
}

static void check_leftover(struct opk_check *check, const char *path)
{
	struct opk_problem problem = { .path = path, .fault = "an unfinished file of a program that was killed", .detail = "" };
	struct stat st;

	if (fstatat(check->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(st.st_mode))
		opk_put_aside(check, path, "a directory where files are made", 0, "");
	else if (check->repair)
		opk_report(check, &problem, op_file_remove_below(check->dir_fd, path, 0));
	else
		opk_note(check, path, problem.fault);
}

/*
 * Another kind of file at the path of stats/, or of a number in it, keeps the daemon from writing
 * the ledger.
 */
static void check_stats_paths(struct opk_check *check)
{
	char path[64];
	int fd;

	if (opk_is_other(check, "stats", S_IFDIR)) {
		fd = opk_put_aside(check, "stats", "not a directory", 0, "") ? op_stats_open(check->dir_fd, true) : -ENOENT;
		if (fd >= 0)
			close(fd);
		return;
	}
	for (enum op_stats_number i = 0; i < OP_STATS_NR; i++) {
		snprintf(path, sizeof(path), "stats/%s", op_stats_name(i));
		opk_put_other_aside(check, path, S_IFREG, "not a regular file");
		snprintf(path, sizeof(path), "stats/%s" OP_FILE_TEMPORARY_SUFFIX, op_stats_name(i));
		check_leftover(check, path);
	}
}

void opk_check_leftovers(struct opk_check *check)
{
	char path[64];

	opk_check_dir(check, ".");
	opk_check_dir(check, "stats");
	if (check->live)
		return;
	check_leftover(check, OPK_FILE_NEW);
	check_leftover(check, OPK_FILE_TMP);
	for (const struct op_session_part *part = op_session_parts; part->name; part++) {
		if (!part->is_published)
			continue;
		snprintf(path, sizeof(path), "%s" OP_FILE_TEMPORARY_SUFFIX, part->name);
		check_leftover(check, path);
	}
	check_stats_paths(check);
}
