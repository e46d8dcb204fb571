/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/cache_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/session/memory_view.h"
#include "libop/base/sys.h"
#include "libop/base/grow.h"

#define DIR_ENV "OPD_CACHE_DIR"

static char *choose_dir(const char *subdir)
{
	const char *said = getenv(DIR_ENV), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int length = -1;

	if (said)
		length = *said == '/' ? asprintf(&dir, "%s/%s", said, subdir) : -1;
	else if (xdg && *xdg == '/')
		length = asprintf(&dir, "%s/opd/%s", xdg, subdir);
	else if (home && *home == '/')
		length = asprintf(&dir, "%s/.cache/opd/%s", home, subdir);
	return length < 0 ? NULL : dir;
}

/* Files in it are believed: nobody else may have put them there. */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

int opr_cache_dir_open(const char *subdir, bool make)
{
	char *dir = choose_dir(subdir);
	int fd = -ENOENT;

	if (dir && (!make || !op_file_make_dirs(dir)))
		fd = op_sys_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);
	free(dir);
	if (fd < 0 || is_own(fd))
		return fd < 0 ? -1 : fd;
	close(fd);
	return -1;
}

DIR *opr_cache_dir_list(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

struct kept {
	char name[NAME_MAX + 1];
	struct timespec time;
	uint64_t nr_bytes;
};

static int compare_kept(const void *left, const void *right)
{
	const struct kept *a = left, *b = right;

	if (a->time.tv_sec != b->time.tv_sec)
		return a->time.tv_sec > b->time.tv_sec ? -1 : 1;
	return a->time.tv_nsec > b->time.tv_nsec ? -1 : a->time.tv_nsec < b->time.tv_nsec;
}

static struct kept *list_kept(DIR *dir, size_t *ret_nr_kept)
{
	size_t capacity = 0, nr_kept = 0;
	struct kept *kept = NULL;
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    strlen(entry->d_name) > NAME_MAX || !op_grow(&kept, &capacity, nr_kept + 1))
			continue;
		kept[nr_kept] = (struct kept){ .time = st.st_mtim, .nr_bytes = (uint64_t)st.st_size };
		memcpy(kept[nr_kept++].name, entry->d_name, strlen(entry->d_name) + 1);
	}
	*ret_nr_kept = nr_kept;
	return kept;
}

void opr_cache_dir_prune(int dir_fd, uint64_t nr_bytes_max)
{
	DIR *dir = opr_cache_dir_list(dir_fd);
	uint64_t nr_bytes = 0;
	size_t nr_kept = 0;
	struct kept *kept;

	if (!dir)
		return;
	kept = list_kept(dir, &nr_kept);
	if (nr_kept)
		qsort(kept, nr_kept, sizeof(*kept), compare_kept);
	for (size_t i = 0; i < nr_kept; i++) {
		nr_bytes += kept[i].nr_bytes;
		if (nr_bytes > nr_bytes_max)
			op_sys_unlinkat(dir_fd, kept[i].name, 0);
	}
	free(kept);
	closedir(dir);
}
