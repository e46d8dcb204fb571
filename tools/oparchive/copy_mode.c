/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/copy_mode.h"

#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OWNER_MODES 0700
#define OTHER_MODES (S_IROTH | S_IXOTH)

/* Whether others may pass all directories of an absolute path. */
static bool lets_others_pass(const char *dir)
{
	bool passes = *dir == '/';

	for (const char *end = dir; passes && *end;) {
		struct stat st;
		char *part;

		end += strspn(end, "/");
		end += strcspn(end, "/");
		part = strndup(dir, (size_t)(end - dir));
		passes = part && !stat(part, &st) && (st.st_mode & S_IXOTH);
		free(part);
	}
	return passes;
}

static bool others_reach(struct opr_archive_access *access, int fd)
{
	char link[32], dir[PATH_MAX];
	ssize_t nr_bytes;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	nr_bytes = readlink(link, dir, sizeof(dir) - 1);
	if (nr_bytes <= 0 || dir[0] != '/')
		return false;
	dir[nr_bytes] = '\0';
	strrchr(dir, '/')[1] = '\0';
	if (access->dir && !strcmp(access->dir, dir))
		return access->others_enter;
	free(access->dir);
	access->dir = strdup(dir);
	access->others_enter = lets_others_pass(dir);
	return access->others_enter;
}

mode_t opr_archive_mode(struct opr_archive_access *access, int fd, const struct stat *st)
{
	mode_t owner = (st->st_mode & OWNER_MODES) | S_IRUSR, others = st->st_mode & OTHER_MODES;
	struct statfs fs;

	if (!others || fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || !others_reach(access, fd))
		return owner;
	return owner | others | (st->st_mode & others << 3);
}

void opr_archive_access_free(struct opr_archive_access *access)
{
	free(access->dir);
	*access = (struct opr_archive_access){ 0 };
}
