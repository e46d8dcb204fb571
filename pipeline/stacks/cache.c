/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/stacks/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/log.h"
#include "libop/base/seal.h"
#include "libop/base/sys.h"

#define SEAL_BYTES   16u
#define BLOCK_BYTES  4096u /* of the disk; small tables take a whole one */
#define NAME_BYTES   80u  /* "xx/", the digits, and the user */
#define RETRY_NS     (60u * (uint64_t)OP_NS_PER_S)
#define LEFTOVER_S   3600 /* a temporary file that is older was left by an opd that died */
#define KEPT_EIGHTHS 7u   /* of max_use, when there is no room */

static uint64_t on_disk(uint64_t nr_bytes)
{
	return (nr_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
}

static bool is_ours(const struct stat *st)
{
	return (st->st_uid == geteuid() || !st->st_uid) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* "xx/BUILD-ID" or "xx/BUILD-ID.UID" */
static void name_of(const struct op_build_id *id, uint32_t uid, char name[NAME_BYTES])
{
	char digits[OP_BUILD_ID_DIGITS], owner[16] = "";

	op_build_id_format(id->bytes, id->nr_bytes, digits);
	if (uid)
		snprintf(owner, sizeof(owner), ".%u", uid);
	snprintf(name, NAME_BYTES, "%.2s/%s%s", digits, digits, owner);
}

/* ---- all files ---- */

struct entry {
	char name[NAME_BYTES];
	int64_t used_s;
	uint64_t nr_bytes;
};

struct listing {
	struct entry *entries;
	size_t nr_entries, capacity;
	uint64_t nr_bytes;
};

static void note(const struct opd_cache *cache, const char *dir, const char *file, struct listing *listing)
{
	struct entry entry;
	struct stat st;

	if (file[0] == '.' || (size_t)snprintf(entry.name, sizeof(entry.name), "%s/%s", dir, file) >= sizeof(entry.name) ||
	    fstatat(cache->dir_fd, entry.name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return;
	if (strstr(file, OP_FILE_TEMPORARY_SUFFIX)) {
		if (time(NULL) - st.st_mtime > LEFTOVER_S)
			op_sys_unlinkat(cache->dir_fd, entry.name, 0);
		return;
	}
	entry.used_s = st.st_mtime;
	entry.nr_bytes = on_disk((uint64_t)st.st_size);
	listing->nr_bytes += entry.nr_bytes;
	if (op_grow(&listing->entries, &listing->capacity, listing->nr_entries + 1))
		listing->entries[listing->nr_entries++] = entry;
}

static DIR *open_dir(int dir_fd, const char *name)
{
	int fd = op_sys_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static void list(const struct opd_cache *cache, struct listing *ret_listing)
{
	DIR *top = open_dir(cache->dir_fd, ".");
	const struct dirent *dir, *file;

	*ret_listing = (struct listing){ 0 };
	while (top && (dir = readdir(top))) {
		DIR *files = strlen(dir->d_name) == 2 && dir->d_name[0] != '.' ? open_dir(cache->dir_fd, dir->d_name) : NULL;

		while (files && (file = readdir(files)))
			note(cache, dir->d_name, file->d_name, ret_listing);
		if (files)
			closedir(files);
	}
	if (top)
		closedir(top);
}

static int by_use(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return a->used_s < b->used_s ? -1 : a->used_s > b->used_s;
}

/* Removes the tables that were used last the longest time ago. */
static void make_room(struct opd_cache *cache, uint64_t nr_bytes)
{
	uint64_t kept = cache->max_use / 8 * KEPT_EIGHTHS;
	struct listing listing;

	if (!cache->max_use || cache->used + nr_bytes <= cache->max_use)
		return;
	list(cache, &listing);
	if (listing.nr_entries)
		qsort(listing.entries, listing.nr_entries, sizeof(*listing.entries), by_use);
	cache->used = listing.nr_bytes;
	for (size_t i = 0; i < listing.nr_entries && cache->used + nr_bytes > kept; i++)
		if (!op_sys_unlinkat(cache->dir_fd, listing.entries[i].name, 0))
			cache->used -= listing.entries[i].nr_bytes;
	free(listing.entries);
}

/* ---- open and close ---- */

/* Opens the directory of the cache, which belongs to this user. */
static int find_dir(struct opd_cache *cache, const char *path)
{
	struct stat st;
	int err = op_file_make_dirs(path);

	/* With these, what is there can be read. */
	if (err && err != -EROFS && err != -EACCES && err != -EPERM && err != -EEXIST)
		return err;
	cache->dir_fd = op_sys_openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (cache->dir_fd < 0)
		return cache->dir_fd;
	err = op_sys_fstat(cache->dir_fd, &st);
	if (err)
		return err;
	return is_ours(&st) ? 0 : -EPERM;
}

void opd_cache_open(struct opd_cache *cache, const char *path, uint64_t max_use)
{
	struct listing listing;
	int err;

	*cache = (struct opd_cache){ .dir_fd = -1, .max_use = max_use };
	if (!path)
		return;
	err = find_dir(cache, path);
	if (err) {
		op_log(OP_LOG_WARNING, "%s: %s: tables of images are kept in memory only", path,
			err == -EPERM ? "it belongs to another user, or others may write to it" : strerror(-err));
		opd_cache_close(cache);
		return;
	}
	list(cache, &listing);
	cache->used = listing.nr_bytes;
	free(listing.entries);
}

void opd_cache_close(struct opd_cache *cache)
{
	if (cache->dir_fd >= 0)
		close(cache->dir_fd);
	cache->dir_fd = -1;
}

/* ---- one table ---- */

/* The length of the table without its seal; -EBADMSG: damaged; -EPERM: others can write it. */
static int check(int fd, uint64_t *ret_nr_bytes)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode) || !is_ours(&st))
		return -EPERM;
	err = op_seal_check(fd);
	if (!err)
		*ret_nr_bytes = (uint64_t)st.st_size - SEAL_BYTES;
	return err;
}

int opd_cache_find(struct opd_cache *cache, const struct op_build_id *id, uint32_t uid, uint64_t *ret_nr_bytes)
{
	char name[NAME_BYTES];
	int fd, err;

	if (cache->dir_fd < 0 || !id->nr_bytes)
		return -ENOENT;
	name_of(id, uid, name);
	fd = op_file_open_below(cache->dir_fd, name, O_RDONLY, 0);
	if (fd < 0)
		return -ENOENT;
	err = check(fd, ret_nr_bytes);
	if (err) {
		close(fd);
		return -ENOENT; /* a new one will take its place */
	}
	(void)!futimens(fd, NULL); /* it is in use; another time says so again */
	return fd;
}

static int write_table(int fd, const void *table, uint64_t nr_bytes)
{
	int err = op_sys_write_all(fd, table, nr_bytes);

	return err ? err : op_seal_append(fd);
}

static void report(struct opd_cache *cache, int err)
{
	static struct op_rate rate;
	uint64_t suppressed;

	cache->retry_ns = op_now_ns() + RETRY_NS;
	if (op_rate_allows(&rate, op_now_ns(), OP_LOG_INTERVAL_NS, &suppressed))
		op_log(OP_LOG_NOTICE, "tables of images are not kept on the disk: %s", strerror(-err));
}

int opd_cache_add_unnamed(struct opd_cache *cache, const void *table, uint64_t nr_bytes)
{
	int fd, err;

	if (cache->dir_fd < 0 || (cache->max_use && nr_bytes > cache->max_use))
		return -ENOENT;
	fd = op_sys_openat(cache->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	err = op_sys_write_all(fd, table, nr_bytes);
	if (err)
		close(fd);
	return err ? err : fd;
}

int opd_cache_add(struct opd_cache *cache, const struct op_build_id *id, uint32_t uid, const void *table, uint64_t nr_bytes)
{
	char name[NAME_BYTES], temporary[NAME_BYTES + 24];
	uint64_t nr_disk_bytes = on_disk(nr_bytes + SEAL_BYTES);
	int fd, err;

	if (cache->dir_fd < 0 || !id->nr_bytes || (cache->max_use && nr_disk_bytes > cache->max_use) ||
	    op_now_ns() < cache->retry_ns)
		return -ENOENT;
	make_room(cache, nr_disk_bytes);
	name_of(id, uid, name);
	snprintf(temporary, sizeof(temporary), "%s.%d" OP_FILE_TEMPORARY_SUFFIX, name, (int)getpid());
	op_file_unlink_below(cache->dir_fd, temporary);
	fd = op_file_open_below(cache->dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL, 0644);
	err = fd < 0 ? fd : write_table(fd, table, nr_bytes);
	if (!err)
		err = op_file_rename_below(cache->dir_fd, temporary, name);
	if (!err) {
		cache->used += nr_disk_bytes;
		return fd;
	}
	if (fd >= 0) {
		close(fd);
		op_file_unlink_below(cache->dir_fd, temporary);
	}
	report(cache, err);
	return err;
}
