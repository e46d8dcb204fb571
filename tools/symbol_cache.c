/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbol_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "libop/file.h"
#include "libop/sys.h"
#include "tools/elf_id.h"
#include "tools/grow.h"
#include "tools/report_log.h"
#include "tools/symbols_bfd.h"
#include "tools/symbols_file.h"

#define DIR_ENV    "OPD_CACHE_DIR"
#define SUBDIR     "symbols"
#define NS_PER_S   1000000000u
#define DIGITS     (2 * OP_BUILD_ID_BYTES_MAX + 1)
#define NAME_BYTES (DIGITS + 96)
#define NEW_SUFFIX ".new"
#define SETTLED_S  2
#define SUM_BYTES  4
#define USED_S     3600 /* what was used since then need not be marked as used again */

/* ---- the directory ---- */

static char *choose_dir(void)
{
	const char *said = getenv(DIR_ENV), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int length = -1;

	if (said)
		length = *said == '/' ? asprintf(&dir, "%s/" SUBDIR, said) : -1;
	else if (xdg && *xdg == '/')
		length = asprintf(&dir, "%s/opd/" SUBDIR, xdg);
	else if (home && *home == '/')
		length = asprintf(&dir, "%s/.cache/opd/" SUBDIR, home);
	return length < 0 ? NULL : dir;
}

/* Files in it are believed: nobody else may have put them there. */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

void opr_symbol_cache_open(struct opr_symbol_cache *cache)
{
	char *dir = choose_dir();

	*cache = (struct opr_symbol_cache){ .dir_fd = -1 };
	if (dir && !op_file_make_dirs(dir))
		cache->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (cache->dir_fd >= 0 && !is_own(cache->dir_fd)) {
		close(cache->dir_fd);
		cache->dir_fd = -1;
	}
	free(dir);
}

/* ---- one image ---- */

static uint64_t to_ns(struct timespec time)
{
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* Who writes to a file at once after it was read may leave it with the same times. */
static bool is_settled(const struct stat *st)
{
	return time(NULL) >= st->st_ctim.tv_sec + SETTLED_S;
}

/*
 * What is read depends on more than the build-id: an image and the same without its symbols have one, but not one size. An image without a
 * build-id is known by its inode and the last time that anything of that changed.
 */
static bool make_name(const char *path, const struct opr_symbol_options *options, char name[NAME_BYTES])
{
	char digits[DIGITS];
	struct stat st;
	int err;

	if (options->by_address)
		return false;
	err = opr_elf_build_id(path, digits, &st);
	if (!err) {
		snprintf(name, NAME_BYTES, "%s-%" PRIx64 "-%d", digits, (uint64_t)st.st_size, (int)options->demangle);
		return true;
	}
	if (err != -ENODATA || !S_ISREG(st.st_mode) || !is_settled(&st))
		return false;
	snprintf(name, NAME_BYTES, "inode-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%d", (uint64_t)st.st_dev,
		 (uint64_t)st.st_ino, to_ns(st.st_mtim), to_ns(st.st_ctim), (uint64_t)st.st_size, (int)options->demangle);
	return true;
}

static bool is_there(char *path)
{
	bool found = path && !access(path, F_OK);

	free(path);
	return found;
}

static char *join(const char *root, const char *dir, size_t dir_length, const char *below, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s%.*s%s/%s", root, (int)dir_length, dir, below, name) < 0 ? NULL : path;
}

/* Whether a debug file is now where there was none: by build-id, or where the image's link leads (symbols_debug.c). */
static bool has_debug_file(const struct opr_symbols *symbols, const char *path, const struct opr_symbol_options *options)
{
	const char *root = options->root ? options->root : "", *link = symbols->debug_link, *slash = strrchr(path, '/');
	const char *digits = symbols->build_id;
	size_t length = slash ? (size_t)(slash - path) : 0, root_length = strlen(root);
	char *file = NULL;

	if (digits && strlen(digits) > 2 &&
	    (asprintf(&file, "%s" OPR_DEBUG_DIR "/.build-id/%.2s/%s.debug", root, digits, digits + 2) < 0 || is_there(file)))
		return true;
	if (!link)
		return false;
	if (is_there(join("", path, length, "/.debug", link)) || is_there(join("", path, length, "", link)))
		return true;
	if (length >= root_length && !strncmp(path, root, root_length)) {
		path += root_length;
		length -= root_length;
	}
	file = NULL;
	return asprintf(&file, "%s" OPR_DEBUG_DIR "%.*s/%s", root, (int)length, path, link) < 0 || is_there(file);
}

static bool is_current(const struct opr_symbols *symbols, const char *path, const struct opr_symbol_options *options)
{
	struct stat st;

	if (symbols->debug_path)
		return !stat(symbols->debug_path, &st) && (uint64_t)st.st_size == symbols->debug_size &&
		       to_ns(st.st_mtim) == symbols->debug_mtime_ns;
	return symbols->has_debug_info || !has_debug_file(symbols, path, options);
}

/* Also of the name, so that no file is taken for another. Little end first. */
static void make_sum(const char *name, const char *bytes, size_t nr_bytes, uint8_t sum[SUM_BYTES])
{
	uLong crc = crc32_z(crc32_z(0, (const Bytef *)name, strlen(name)), (const Bytef *)bytes, nr_bytes);

	for (size_t i = 0; i < SUM_BYTES; i++)
		sum[i] = (uint8_t)(crc >> (8 * i));
}

static int check_sum(const char *name, const char *bytes, size_t *nr_bytes)
{
	uint8_t sum[SUM_BYTES];

	if (*nr_bytes < SUM_BYTES)
		return -EBADMSG;
	*nr_bytes -= SUM_BYTES;
	make_sum(name, bytes, *nr_bytes, sum);
	return memcmp(bytes + *nr_bytes, sum, SUM_BYTES) ? -EBADMSG : 0;
}

static int read_whole(int fd, char **ret_bytes, size_t *ret_nr_bytes, time_t *ret_used)
{
	struct stat st;
	char *bytes;
	ssize_t got;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)OPR_SYMBOL_CACHE_BYTES_MAX)
		return -ENOENT;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	got = op_sys_pread(fd, bytes, (size_t)st.st_size, 0);
	if (got != st.st_size) {
		free(bytes);
		return -ENOENT;
	}
	*ret_bytes = bytes;
	*ret_nr_bytes = (size_t)got;
	*ret_used = st.st_mtim.tv_sec;
	return 0;
}

int opr_symbol_cache_get(const struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			 struct opr_symbols *symbols)
{
	char name[NAME_BYTES], *bytes = NULL;
	size_t nr_bytes = 0;
	time_t used = 0;
	int fd, err;

	if (cache->dir_fd < 0 || !make_name(path, options, name))
		return -ENOENT;
	fd = openat(cache->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -ENOENT;
	err = read_whole(fd, &bytes, &nr_bytes, &used);
	if (!err)
		err = check_sum(name, bytes, &nr_bytes);
	if (!err)
		err = opr_symbols_file_read(symbols, bytes, nr_bytes, path);
	if (!err && !is_current(symbols, path, options))
		err = -ENOENT;
	if (err)
		opr_symbols_free(symbols);
	else if (time(NULL) - used > USED_S)
		futimens(fd, NULL);
	free(bytes);
	close(fd);
	opr_verbose(OPR_TOPIC_bfd, "%s: symbols %s kept", path, err ? "are not" : "were");
	return err == -EBADMSG ? -ENOENT : err;
}

void opr_symbol_cache_put(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			  const char *bytes, size_t nr_bytes)
{
	char name[NAME_BYTES], temporary[NAME_BYTES + sizeof(NEW_SUFFIX) + 16];
	uint8_t sum[SUM_BYTES];
	int fd, err;

	if (cache->dir_fd < 0 || !make_name(path, options, name))
		return;
	make_sum(name, bytes, nr_bytes, sum);
	snprintf(temporary, sizeof(temporary), "%s.%d" NEW_SUFFIX, name, (int)getpid());
	fd = openat(cache->dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	err = op_sys_write_all(fd, bytes, nr_bytes);
	if (!err)
		err = op_sys_write_all(fd, sum, SUM_BYTES);
	if (close(fd) < 0)
		err = -EIO;
	if (!err)
		err = op_sys_renameat(cache->dir_fd, temporary, cache->dir_fd, name);
	if (err)
		op_sys_unlinkat(cache->dir_fd, temporary, 0);
	cache->has_new = !err;
}

/* ---- what is too much ---- */

struct kept {
	char name[NAME_BYTES];
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
	void *items = NULL;
	size_t capacity = 0, nr_kept = 0;
	struct dirent *entry;

	while ((entry = readdir(dir))) {
		struct stat st;
		struct kept *kept;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    strlen(entry->d_name) >= NAME_BYTES || !opr_grow(&items, &capacity, nr_kept, 1, sizeof(*kept)))
			continue;
		kept = (struct kept *)items + nr_kept++;
		*kept = (struct kept){ .time = st.st_mtim, .nr_bytes = (uint64_t)st.st_size };
		memcpy(kept->name, entry->d_name, strlen(entry->d_name) + 1);
	}
	*ret_nr_kept = nr_kept;
	return items;
}

/* Newest first; what lies beyond the limit goes. */
static void prune(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t nr_bytes = 0;
	size_t nr_kept = 0;
	struct kept *kept;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	kept = list_kept(dir, &nr_kept);
	if (nr_kept)
		qsort(kept, nr_kept, sizeof(*kept), compare_kept);
	for (size_t i = 0; i < nr_kept; i++) {
		nr_bytes += kept[i].nr_bytes;
		if (nr_bytes > OPR_SYMBOL_CACHE_BYTES_MAX)
			op_sys_unlinkat(dir_fd, kept[i].name, 0);
	}
	free(kept);
	closedir(dir);
}

void opr_symbol_cache_close(struct opr_symbol_cache *cache)
{
	if (cache->dir_fd < 0)
		return;
	if (cache->has_new)
		prune(cache->dir_fd);
	close(cache->dir_fd);
	cache->dir_fd = -1;
}
