/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/symbols/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/process/guard.h"
#include "libop/base/sys.h"
#include "tools/common/cache_dir.h"
#include "tools/common/log.h"
#include "tools/elf/debug_path.h"
#include "tools/elf/open_file.h"
#include "tools/fetch/debuginfod.h"
#include "tools/fetch/living.h"
#include "tools/symbols/image_identity.h"
#include "tools/symbols/serialize.h"

#define SUBDIR         "symbols"
#define NS_PER_S       1000000000u
#define DIGITS         (OP_BUILD_ID_DIGITS)
#define KEY_BYTES      (OP_BUILD_ID_DIGITS + 96)
#define BOOT_ID        "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES  36
#define NEW_SUFFIX     ".new"
#define SAME_TIME_S    2 /* a file that is written again so soon may keep its times */
#define PACK_SUFFIX    ".pack"
#define PACKS_MAX      32
#define MERGE_RATIO    2 /* a file is merged when it is at most so many times larger */
#define PACK_BYTES_MAX (OPR_SYMBOL_CACHE_BYTES_MAX / 4) /* larger files are not merged */
/* a file is marked as used once in this time */
#define USED_S         3600

/* ---- the packs ---- */

static bool is_pack_name(const char *name)
{
	size_t length = strlen(name), suffix = strlen(PACK_SUFFIX);

	return length > suffix && length < OPR_PACK_NAME_BYTES && !strcmp(name + length - suffix, PACK_SUFFIX);
}

/* A file that is damaged or of another version is removed. */
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

/* The list of the running kernel: its addresses are the same until the next boot. */
static bool make_kernel_key(const struct opr_symbol_options *options, char key[KEY_BYTES])
{
	char digits[OP_BUILD_ID_DIGITS], boot[BOOT_ID_BYTES + 1] = "";
	int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	ssize_t nr_bytes = fd < 0 ? -1 : read(fd, boot, BOOT_ID_BYTES);

	if (fd >= 0)
		close(fd);
	opr_build_id_at(OPR_KALLSYMS, digits);
	if (nr_bytes != BOOT_ID_BYTES || !*digits)
		return false;
	snprintf(key, KEY_BYTES, "%s-%s-%d", digits, boot, (int)options->demangle);
	return true;
}

/*
 * Makes the key of an image. The size is part of it because a stripped image has the same build-id.
 * *ret_file is the file that has this key. False: the image has no key.
 */
static bool make_key(const char *path, const struct opr_symbol_options *options, char key[KEY_BYTES],
		     struct opr_file_read *ret_file)
{
	char digits[OP_BUILD_ID_DIGITS];
	struct stat st;
	int err;

	*ret_file = (struct opr_file_read){ 0 };

	if (options->is_kallsyms && !strcmp(path, OPR_KALLSYMS))
		return make_kernel_key(options, key);
	/* Whoever runs a program chooses the build-id of the file that is copied from it. */
	if (options->by_address || opr_living_is_copy(path))
		return false;
	err = opr_elf_build_id(path, digits, &st);
	if (!err || err == -ENODATA)
		*ret_file = opr_file_read_of(&st);
	/* Other users could make a file with the same build-id and size and other symbols. */
	if (!err && opr_is_safe_file(&st)) {
		snprintf(key, KEY_BYTES, "%s-%" PRIx64 "-%d-%" PRIx32, digits, (uint64_t)st.st_size, (int)options->demangle,
			 options->sources);
		return true;
	}
	if ((err && err != -ENODATA) || time(NULL) < st.st_ctim.tv_sec + SAME_TIME_S)
		return false;
	snprintf(key, KEY_BYTES, "inode-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%d-%" PRIx32,
		 (uint64_t)st.st_dev, (uint64_t)st.st_ino, to_ns(st.st_mtim), to_ns(st.st_ctim), (uint64_t)st.st_size,
		 (int)options->demangle, options->sources);
	return true;
}

static bool has_debug_file(const struct opr_symbols *symbols, const char *path, const char *name, const char *root)
{
	const struct opr_debug_search search = {
		.path = path, .name = name, .root = root, .build_id = symbols->build_id, .link = symbols->debug_link
	};
	struct op_text file = { 0 };
	struct stat st;
	bool found = false;

	for (enum opr_debug_place place = 0; place < OPR_DEBUG_NR_PLACES && !found; place++)
		found = (opr_debug_path(&search, place, &file) && !stat(file.data, &st) && st.st_size) || file.failed;
	op_text_free(&file);
	return found;
}

/*
 * False: the debug file changed, one came, or one that was downloaded is not to be used. Without
 * .symtab none is used.
 */
static bool is_current(const struct opr_symbols *symbols, const char *path, const char *name,
		       const struct opr_symbol_options *options)
{
	struct stat st;

	if (symbols->debug_path && !opr_debuginfod_dir() && symbols->build_id &&
	    opr_debug_is_downloaded(symbols->debug_path, symbols->build_id))
		return false;
	if (symbols->debug_path)
		return !stat(symbols->debug_path, &st) && (uint64_t)st.st_size == symbols->debug_size &&
		       to_ns(st.st_mtim) == symbols->debug_mtime_ns;
	return options->is_kallsyms || symbols->has_debug_info || !(options->sources & OPR_FROM_SYMTAB) ||
	       !has_debug_file(symbols, path, name, options->root);
}

static int read_kept(const struct opr_pack *pack, const char *key, const char *path, const char *name,
		     const struct opr_symbol_options *options, struct opr_symbols *symbols)
{
	const struct opr_pack_row *row = opr_pack_find(pack, key);
	const char *bytes = NULL;
	int err = row ? opr_pack_get(pack, row, &bytes) : -ENOENT;

	if (!err)
		err = opr_symbols_deserialize(symbols, bytes, row->nr_bytes, path, false);
	if (!err)
		err = opr_pack_is_broken(pack) ? -EIO : is_current(symbols, path, name, options) ? 0 : -ENOENT;
	if (err)
		opr_symbols_free(symbols);
	return err;
}

int opr_symbol_cache_get(struct opr_symbol_cache *cache, const char *path, const char *name,
			 const struct opr_symbol_options *options, struct opr_symbols *symbols)
{
	struct opr_file_read file;
	char key[KEY_BYTES];
	int err = -ENOENT;

	if (!cache->nr_packs || !make_key(path, options, key, &file))
		return -ENOENT;
	for (size_t i = 0; i < cache->nr_packs && err && err != -ENOMEM; i++) {
		err = read_kept(&cache->packs[i].pack, key, path, name, options, symbols);
		if (err)
			continue;
		symbols->file = file;
		op_store_relaxed(&cache->packs[i].is_used, 1);
	}
	opr_verbose(OPR_TOPIC_bfd, "%s: symbols %s kept", path, err ? "are not" : "were");
	return err && err != -ENOMEM ? -ENOENT : err;
}

/* The name is unique: a process writes one file at a time. */
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
			  const struct opr_file_read *file, const char *bytes, size_t nr_bytes)
{
	struct opr_file_read now;
	char key[KEY_BYTES];

	if (cache->dir_fd < 0 || cache->write_err || !make_key(path, options, key, &now) || memcmp(&now, file, sizeof(now)) != 0)
		return;
	if (!cache->is_writing && !begin_writing(cache))
		return;
	cache->write_err = opr_pack_writer_add(&cache->writer, key, bytes, nr_bytes);
}

/* ---- the end ---- */

/*
 * Merges older files that are not much larger into the new one. So there are never many files, and
 * each entry is copied a few times at most. Returns how many were merged.
 */
static size_t merge_packs(struct opr_symbol_cache *cache)
{
	size_t nr_merged = 0;

	for (; nr_merged < cache->nr_packs && !cache->write_err; nr_merged++) {
		const struct opr_pack *pack = &cache->packs[nr_merged].pack;

		if (pack->nr_bytes / MERGE_RATIO > cache->writer.at || pack->nr_bytes + cache->writer.at > PACK_BYTES_MAX)
			break;
		cache->write_err = opr_pack_writer_merge(&cache->writer, pack);
	}
	return nr_merged;
}

static int end_writing(struct opr_symbol_cache *cache)
{
	size_t nr_merged = merge_packs(cache);
	char name[OPR_PACK_NAME_BYTES];
	int err = opr_pack_writer_end(&cache->writer, cache->write_err);

	snprintf(name, sizeof(name), "%.*s" PACK_SUFFIX, (int)(strlen(cache->temporary) - strlen(NEW_SUFFIX)), cache->temporary);
	if (!err)
		err = op_sys_renameat(cache->dir_fd, cache->temporary, cache->dir_fd, name);
	if (err)
		op_sys_unlinkat(cache->dir_fd, cache->temporary, 0);
	for (size_t i = 0; i < nr_merged && !err; i++)
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
