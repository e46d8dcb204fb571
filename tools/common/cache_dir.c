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
	const char *env = getenv(DIR_ENV), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int length = -1;

	if (env)
		length = *env == '/' ? asprintf(&dir, "%s/%s", env, subdir) : -1;
	else if (xdg && *xdg == '/')
		length = asprintf(&dir, "%s/opd/%s", xdg, subdir);
	else if (home && *home == '/')
		length = asprintf(&dir, "%s/.cache/opd/%s", home, subdir);
	return length < 0 ? NULL : dir;
}

/* The tools trust the files in it, so no other user may write to it. */
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

struct cached_file {
	char name[NAME_MAX + 1];
	struct timespec time;
	uint64_t nr_bytes;
};

static int compare_age(const void *left, const void *right)
{
	const struct cached_file *a = left, *b = right;

	if (a->time.tv_sec != b->time.tv_sec)
		return a->time.tv_sec > b->time.tv_sec ? -1 : 1;
	return a->time.tv_nsec > b->time.tv_nsec ? -1 : a->time.tv_nsec < b->time.tv_nsec;
}

static struct cached_file *list_files(DIR *dir, size_t *ret_nr_files)
{
	size_t capacity = 0, nr_files = 0;
	struct cached_file *files = NULL;
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    strlen(entry->d_name) > NAME_MAX || !op_grow(&files, &capacity, nr_files + 1))
			continue;
		files[nr_files] = (struct cached_file){ .time = st.st_mtim, .nr_bytes = (uint64_t)st.st_size };
		memcpy(files[nr_files++].name, entry->d_name, strlen(entry->d_name) + 1);
	}
	*ret_nr_files = nr_files;
	return files;
}

void opr_cache_dir_prune(int dir_fd, uint64_t nr_bytes_max)
{
	DIR *dir = opr_cache_dir_list(dir_fd);
	uint64_t nr_bytes = 0;
	size_t nr_files = 0;
	struct cached_file *files;

	if (!dir)
		return;
	files = list_files(dir, &nr_files);
	if (nr_files)
		qsort(files, nr_files, sizeof(*files), compare_age);
	for (size_t i = 0; i < nr_files; i++) {
		nr_bytes += files[i].nr_bytes;
		if (nr_bytes > nr_bytes_max)
			op_sys_unlinkat(dir_fd, files[i].name, 0);
	}
	free(files);
	closedir(dir);
}
