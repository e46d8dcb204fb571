/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/guard.h"
#include "libop/base/sys.h"
#include "tools/common/cache_dir.h"
#include "tools/symbols/image_identity.h"
#include "tools/common/log.h"
#include "tools/symbols/bfd_file.h"
#include "tools/symbols/packed_file.h"

#define SUBDIR         "symbols"
#define NS_PER_S       1000000000u
#define DIGITS         (OP_BUILD_ID_DIGITS)
#define NAME_BYTES     (DIGITS + 96)
#define NEW_SUFFIX     ".new"
#define SETTLED_S      2
#define PACK_SUFFIX    ".pack"
#define PACKS_MAX      32
#define TAKEN_TIMES    2
#define PACK_BYTES_MAX (OPR_SYMBOL_CACHE_BYTES_MAX / 4) /* that others are added to */
#define USED_S         3600                             /* what was used since then need not be marked as used again */

/* ---- the packs ---- */

static bool is_pack_name(const char *name)
{
	size_t length = strlen(name), suffix = strlen(PACK_SUFFIX);

	return length > suffix && length < OPR_PACK_NAME_BYTES && !strcmp(name + length - suffix, PACK_SUFFIX);
}

/* What is damaged, or of another version, is of no use to anybody. */
static void open_pack(struct opr_symbol_cache *cache, const char *name)
{
	struct opr_kept_pack *kept = &cache->packs[cache->nr_packs];
	int fd = openat(cache->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), err;
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)OPR_SYMBOL_CACHE_BYTES_MAX) {
		close(fd);
		return;
	}
	err = opr_pack_open(&kept->pack, fd);
	if (err == -EBADMSG) {
		opr_verbose(OPR_TOPIC_bfd, "kept symbols in %s are damaged", name);
		op_sys_unlinkat(cache->dir_fd, name, 0);
	}
	if (err)
		return;
	memcpy(kept->name, name, strlen(name) + 1);
	kept->used = st.st_mtim.tv_sec;
	kept->is_used = 0;
	cache->nr_packs++;
}

static int compare_packs(const void *left, const void *right)
{
	const struct opr_kept_pack *a = left, *b = right;

	return a->pack.nr_bytes < b->pack.nr_bytes ? -1 : a->pack.nr_bytes > b->pack.nr_bytes;
}

static void open_packs(struct opr_symbol_cache *cache)
{
	DIR *dir = opr_cache_dir_list(cache->dir_fd);
	struct dirent *entry;

	cache->packs = dir ? calloc(PACKS_MAX, sizeof(*cache->packs)) : NULL;
	while (cache->packs && cache->nr_packs < PACKS_MAX && (entry = readdir(dir)))
		if (is_pack_name(entry->d_name))
			open_pack(cache, entry->d_name);
	if (cache->nr_packs)
		qsort(cache->packs, cache->nr_packs, sizeof(*cache->packs), compare_packs);
	if (dir)
		closedir(dir);
}

void opr_symbol_cache_open(struct opr_symbol_cache *cache)
{
	*cache = (struct opr_symbol_cache){ .dir_fd = opr_cache_dir_open(SUBDIR, true) };
	if (cache->dir_fd >= 0 && !op_guard_install())
		open_packs(cache);
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

/* Anybody can make a file with the build-id and size of another one, and other symbols in it. */
static bool is_believed(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * What is read depends on more than the build-id: an image and the same without its symbols have one, but not one size. An image without a
 * build-id, or whose build-id may be a lie, is known by its inode and the last time that anything of that changed.
 */
static bool make_name(const char *path, const struct opr_symbol_options *options, char name[NAME_BYTES])
{
	char digits[DIGITS];
	struct stat st;
	int err;

	if (options->by_address)
		return false;
	err = opr_elf_build_id(path, digits, &st);
	if (!err && is_believed(&st)) {
		snprintf(name, NAME_BYTES, "%s-%" PRIx64 "-%d", digits, (uint64_t)st.st_size, (int)options->demangle);
		return true;
	}
	if ((err && err != -ENODATA) || !S_ISREG(st.st_mode) || !is_settled(&st))
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

/* Whether a debug file is now where there was none: by build-id, or where the image's link leads (bfd_file.c). */
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

static int read_kept(const struct opr_pack *pack, const char *name, const char *path, const struct opr_symbol_options *options,
		     struct opr_symbols *symbols)
{
	const struct opr_pack_row *row = opr_pack_find(pack, name);
	const char *bytes = NULL;
	int err = row ? opr_pack_get(pack, row, &bytes) : -ENOENT;

	if (!err)
		err = opr_symbols_file_look(symbols, bytes, row->nr_bytes, path);
	if (!err && opr_pack_is_broken(pack))
		err = -EIO;
	if (!err && !is_current(symbols, path, options))
		err = -ENOENT;
	if (err)
		opr_symbols_free(symbols);
	return err;
}

int opr_symbol_cache_get(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			 struct opr_symbols *symbols)
{
	char name[NAME_BYTES];
	int err = -ENOENT;

	if (!cache->nr_packs || !make_name(path, options, name))
		return -ENOENT;
	for (size_t i = 0; i < cache->nr_packs && err && err != -ENOMEM; i++) {
		err = read_kept(&cache->packs[i].pack, name, path, options, symbols);
		if (!err)
			op_store_relaxed(&cache->packs[i].is_used, 1);
	}
	opr_verbose(OPR_TOPIC_bfd, "%s: symbols %s kept", path, err ? "are not" : "were");
	return err && err != -ENOMEM ? -ENOENT : err;
}

/* Nobody else has the name: a process writes one at a time. */
static bool begin_writing(struct opr_symbol_cache *cache)
{
	struct timespec now;
	int fd;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(cache->temporary, sizeof(cache->temporary), "%" PRIx64 "-%x" NEW_SUFFIX, to_ns(now), (unsigned int)getpid());
	fd = openat(cache->dir_fd, cache->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	cache->is_writing = true;
	opr_pack_writer_begin(&cache->writer, fd);
	return true;
}

void opr_symbol_cache_put(struct opr_symbol_cache *cache, const char *path, const struct opr_symbol_options *options,
			  const char *bytes, size_t nr_bytes)
{
	char name[NAME_BYTES];

	if (cache->dir_fd < 0 || cache->write_err || !make_name(path, options, name))
		return;
	if (!cache->is_writing && !begin_writing(cache))
		return;
	cache->write_err = opr_pack_writer_add(&cache->writer, name, bytes, nr_bytes);
}

/* ---- the end ---- */

/* Takes in those that are not much larger, so that there are never many of them, and each is copied a few times at the most. */
static size_t take_packs(struct opr_symbol_cache *cache)
{
	size_t nr_taken = 0;

	for (; nr_taken < cache->nr_packs && !cache->write_err; nr_taken++) {
		const struct opr_pack *pack = &cache->packs[nr_taken].pack;

		if (pack->nr_bytes / TAKEN_TIMES > cache->writer.at || pack->nr_bytes + cache->writer.at > PACK_BYTES_MAX)
			break;
		cache->write_err = opr_pack_writer_take(&cache->writer, pack);
	}
	return nr_taken;
}

static int end_writing(struct opr_symbol_cache *cache)
{
	size_t nr_taken = take_packs(cache);
	char name[OPR_PACK_NAME_BYTES];
	int err = opr_pack_writer_end(&cache->writer, cache->write_err);

	snprintf(name, sizeof(name), "%.*s" PACK_SUFFIX, (int)(strlen(cache->temporary) - strlen(NEW_SUFFIX)), cache->temporary);
	if (!err)
		err = op_sys_renameat(cache->dir_fd, cache->temporary, cache->dir_fd, name);
	if (err)
		op_sys_unlinkat(cache->dir_fd, cache->temporary, 0);
	for (size_t i = 0; i < nr_taken && !err; i++)
		op_sys_unlinkat(cache->dir_fd, cache->packs[i].name, 0);
	return err;
}

static void close_packs(struct opr_symbol_cache *cache)
{
	time_t now = time(NULL);

	for (size_t i = 0; i < cache->nr_packs; i++) {
		struct opr_kept_pack *kept = &cache->packs[i];

		if (kept->is_used && now - kept->used > USED_S)
			utimensat(cache->dir_fd, kept->name, NULL, AT_SYMLINK_NOFOLLOW);
		if (kept->is_used)
			opr_pack_leave(&kept->pack);
		else
			opr_pack_close(&kept->pack);
	}
	free(cache->packs);
}

void opr_symbol_cache_close(struct opr_symbol_cache *cache)
{
	if (cache->dir_fd < 0)
		return;
	if (cache->is_writing && !end_writing(cache))
		opr_cache_dir_prune(cache->dir_fd, OPR_SYMBOL_CACHE_BYTES_MAX);
	close_packs(cache);
	close(cache->dir_fd);
	*cache = (struct opr_symbol_cache){ .dir_fd = -1 };
}
