/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/clock.h"
#include "libop/base/sys.h"

#define NEWLINE_ESCAPE "\\012"
#define DELETED_SUFFIX " (deleted)"
#define TOO_LONG       "//toolong" /* the name in a record when the real one is too long */
/* directories of an overlay that are tried; the kernel allows 500 */
#define MAX_LAYERS     512

/*
 * Handle types with a generation. Source: enum fid_type in include/linux/exportfs.h and its users:
 * generic (ext2, 3, 4, xfs); shmem_encode_fh in mm/shmem.c; xfs with 64 bits, and file systems
 * without handles of their own; fs/btrfs/export.h.
 */
static const struct layout {
	int type;
	size_t nr_bytes;
	size_t inode_at, inode_bytes, generation_at;
} layouts[] = {
	{ .type = 0x01, .nr_bytes = 8, .inode_at = 0, .inode_bytes = 4, .generation_at = 4 },
	{ .type = 0x01, .nr_bytes = 12, .inode_at = 4, .inode_bytes = 8, .generation_at = 0 },
	{ .type = 0x81, .nr_bytes = 12, .inode_at = 0, .inode_bytes = 8, .generation_at = 8 },
	{ .type = 0x4d, .nr_bytes = 20, .inode_at = 0, .inode_bytes = 8, .generation_at = 16 },
};

uint64_t opd_generation_in(int type, const uint8_t *handle, size_t nr_bytes, uint64_t inode)
{
	for (size_t i = 0; i < op_array_size(layouts); i++) {
		const struct layout *layout = &layouts[i];
		uint64_t handle_inode = 0;
		uint32_t generation;

		if (layout->type != type || layout->nr_bytes != nr_bytes)
			continue;
		for (size_t byte = layout->inode_bytes; byte--;)
			handle_inode = handle_inode << 8 | handle[layout->inode_at + byte];
		memcpy(&generation, handle + layout->generation_at, sizeof(generation));
		if (handle_inode == inode)
			return generation;
	}
	return 0;
}

uint64_t opd_generation_of(int fd, uint64_t inode)
{
	union {
		struct file_handle head;
		uint8_t bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };

	if (op_sys_name_to_handle(fd, &handle.head) < 0)
		return 0;
	return opd_generation_in(handle.head.handle_type, handle.head.f_handle, handle.head.handle_bytes, inode);
}

/* ---- locating ---- */

struct search {
	const struct opd_mapped *mapped;
	struct opd_located *located;
};

/* A descriptor that stands for the file without opening it. Links are followed. Or -errno. */
static int open_path(const char *path)
{
	return op_sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
}

/*
 * All facts about a file come from one descriptor, because at any moment another file can get its
 * path or its place in the process. ret_generation may be NULL.
 */
static int stat_regular(int fd, struct statx *ret_stat, uint64_t *ret_generation)
{
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_INO | STATX_MTIME | STATX_CTIME | STATX_SIZE | STATX_TYPE, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->stx_mode))
		return -ENOENT;
	if (ret_generation)
		*ret_generation = opd_generation_of(fd, ret_stat->stx_ino);
	return 0;
}

/* `path` is below a directory that is not part of its name. ret_generation may be NULL. */
static int stat_below(const char *prefix, const char *path, struct statx *ret_stat, uint64_t *ret_generation)
{
	char whole[PATH_MAX];
	int fd, err;

	if (snprintf(whole, sizeof(whole), "%s%s", prefix, path) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	fd = open_path(whole);
	if (fd < 0)
		return fd;
	err = stat_regular(fd, ret_stat, ret_generation);
	close(fd);
	return err;
}

/* True when the file has the inode of the record. */
static bool has_recorded_inode(const struct opd_mapped *mapped, const struct statx *st, uint64_t generation)
{
	return st->stx_ino == mapped->inode && (!generation || !mapped->inode_generation || generation == mapped->inode_generation);
}

static bool same_inode(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor;
}

static bool same_content(const struct statx *a, const struct statx *b)
{
	return a->stx_size == b->stx_size && a->stx_mtime.tv_sec == b->stx_mtime.tv_sec &&
	       a->stx_mtime.tv_nsec == b->stx_mtime.tv_nsec;
}

static uint64_t real_ns(const struct statx_timestamp *t)
{
	return (uint64_t)t->tv_sec * OP_NS_PER_S + t->tv_nsec;
}

/* True when the file was not changed since a time of OP_CLOCK; 0: now. */
static bool is_older_than(const struct statx *st, uint64_t time_ns)
{
	uint64_t ago_ns = time_ns ? op_now_ns() - time_ns : 0;

	return real_ns(&st->stx_ctime) <= op_clock_ns(CLOCK_REALTIME) - ago_ns;
}

/* True when the file at the path is the one that was mapped, for a mapping that is gone. */
static bool is_mapped_file(const struct opd_mapped *mapped, const struct statx *st, uint64_t generation)
{
	return mapped->inode ? has_recorded_inode(mapped, st, generation) : is_older_than(st, mapped->time_ns);
}

/*
 * Tries a path of the host. While the mapping exists, the inode must be the same, or in a layer of
 * an overlay the content, because a copy-up changes the inode. For a mapping that is gone, the
 * record decides.
 */
static bool try_host_path(struct search *search, const char *path, bool is_layer)
{
	struct opd_located *located = search->located;
	const struct opd_mapped *mapped = search->mapped;
	struct statx st;
	uint64_t generation;

	if (stat_below(search->mapped->mount_views->host_prefix, path, &st, &generation) < 0)
		return false;
	if (located->seen) {
		if (is_layer ? !same_content(&st, &located->stat) : !same_inode(&st, &located->stat))
			return false;
	} else if (!is_mapped_file(mapped, &st, generation)) {
		return false;
	}
	op_text_truncate(&located->path, 0);
	op_text_add(&located->path, path);
	located->stat = st;
	located->inode_generation = generation;
	located->seen = located->on_host = true;
	return true;
}

static bool try_layers(struct search *search, const struct opd_mount *mount, const char *inner)
{
	struct op_text path = { 0 };
	bool found = false;

	for (size_t i = 0; !found && i < MAX_LAYERS && opd_mount_layer(mount, i, &path); i++) {
		if (path.length && path.data[0] == '/') {
			op_text_add(&path, inner);
			found = try_host_path(search, op_text_get(&path), true);
		}
		op_text_truncate(&path, 0);
	}
	op_text_free(&path);
	return found;
}

static bool try_host_mounts(struct search *search, const struct opd_mounts *host, const struct opd_mount *mount, const char *inner)
{
	struct op_text path = { 0 };
	bool found = false;

	for (size_t i = host->nr_rows; !found && i-- > 0;) {
		if (host->rows[i].device == mount->device && opd_mount_outer_path(&host->rows[i], inner, &path))
			found = try_host_path(search, op_text_get(&path), false);
		op_text_truncate(&path, 0);
	}
	op_text_free(&path);
	return found;
}

/*
 * Translates a path of another mount namespace, below the root of its processes, to a path of the
 * host.
 */
static bool translate_by(struct search *search, const char *path, bool again)
{
	struct opd_mount_view *view = search->mapped->mount_view;
	const struct opd_mounts *host = opd_mount_views_host_mounts(search->mapped->mount_views, again);
	const struct opd_mount *mount = opd_mounts_of(opd_mount_view_mounts(view, search->mapped->pid, again), path);
	struct op_text inner = { 0 };
	bool found;

	if (!mount)
		return false;
	opd_mount_inner_path(mount, path, &inner);
	found = (opd_mount_is_overlay(mount) && try_layers(search, mount, op_text_get(&inner))) ||
		try_host_mounts(search, host, mount, op_text_get(&inner));
	op_text_free(&inner);
	return found;
}

/* Tries the known mounts, then newly read ones. */
static bool translate(struct search *search, const char *path)
{
	return translate_by(search, path, false) || translate_by(search, path, true);
}

/* From a path seen from opd's root to the path that the process sees. */
static const char *path_in_view(const struct opd_mount_view *view, const char *path)
{
	const char *below = opd_path_below(view->root, path);

	return below && *below == '/' ? below : path;
}

/*
 * Cuts the suffix that the kernel appends to the name of a removed file. The name itself may end
 * like that.
 */
static bool cut_deleted(struct op_text *path)
{
	size_t length = strlen(DELETED_SUFFIX);

	if (path->length <= length || strcmp(path->data + path->length - length, DELETED_SUFFIX) != 0)
		return false;
	op_text_truncate(path, path->length - length);
	return true;
}

static bool is_there(const struct opd_located *located, const char *prefix)
{
	struct statx st;

	return !stat_below(prefix, op_text_get(&located->path), &st, NULL) && (!located->seen || same_inode(&st, &located->stat));
}

/* For a mapping that exists. `path` is its name, seen from opd's root. */
static void locate_mapped(struct search *search, const char *path)
{
	struct opd_located *located = search->located;
	const struct opd_mount_view *view = search->mapped->mount_view;
	const char *prefix = search->mapped->mount_views->host_prefix;
	bool shares_host = opd_mount_view_shares_host(search->mapped->mount_views, view);
	char root[64];
	char *inside;

	snprintf(root, sizeof(root), "/proc/%u/root", search->mapped->pid);
	op_text_add(&located->path, shares_host ? path : path_in_view(view, path));
	if (!is_there(located, shares_host ? prefix : root) && cut_deleted(&located->path))
		located->on_host = shares_host && is_there(located, prefix);
	else
		located->on_host = shares_host;
	if (shares_host)
		return;
	inside = strdup(op_text_get(&located->path));
	if (!inside) {
		located->path.failed = true;
		return;
	}
	translate(search, inside);
	free(inside);
}

/* Looks for a file that the host does not have through another process with the same view. */
static void try_other_process(struct search *search, const char *path)
{
	struct opd_located *located = search->located;
	uint32_t pid = opd_mount_view_pid(search->mapped->mount_view);
	char root[64];
	struct statx st;
	uint64_t generation;

	snprintf(root, sizeof(root), "/proc/%u/root", pid);
	if (!pid || stat_below(root, path, &st, &generation) < 0 || !is_mapped_file(search->mapped, &st, generation))
		return;
	located->stat = st;
	located->inode_generation = generation;
	located->seen = true;
}

/* For a mapping that is gone: its name in the record is all there is. */
static void locate_gone(struct search *search)
{
	const struct opd_mapped *mapped = search->mapped;
	struct opd_located *located = search->located;
	const struct opd_mount_view *view = mapped->mount_view;
	bool shares_host = opd_mount_view_shares_host(search->mapped->mount_views, view);
	struct op_text path = { 0 };

	if (view && shares_host && !mapped->name_is_ours)
		op_text_add(&path, view->root);
	op_text_add(&path, view && mapped->name_is_ours && !shares_host ? path_in_view(view, mapped->name) : mapped->name);
	if (shares_host ? !try_host_path(search, op_text_get(&path), false) : !translate(search, op_text_get(&path))) {
		if (!shares_host && !path.failed)
			try_other_process(search, op_text_get(&path));
		if (!located->seen)
			cut_deleted(&path);
		op_text_add(&located->path, op_text_get(&path));
	}
	if (path.failed)
		located->path.failed = true;
	op_text_free(&path);
}

static int locate_foreign(const struct opd_mapped *mapped, struct opd_located *located)
{
	op_text_add(&located->path, mapped->name);
	cut_deleted(&located->path);
	return located->path.failed ? -ENOMEM : 0;
}

static size_t length_without_deleted(const char *name)
{
	size_t length = strlen(name), suffix = strlen(DELETED_SUFFIX);

	return length > suffix && !strcmp(name + length - suffix, DELETED_SUFFIX) ? length - suffix : length;
}

bool opd_is_same_name(const char *a, const char *b)
{
	size_t length = length_without_deleted(a), other = length_without_deleted(b);
	size_t nr_bytes = 0;

	while (nr_bytes < length && nr_bytes < other && a[length - nr_bytes - 1] == b[other - nr_bytes - 1]) {
		nr_bytes++;
		if (a[length - nr_bytes] == '/')
			return true;
	}
	return nr_bytes == length && nr_bytes == other;
}

/*
 * A pid can be used again, and exec can map another file at the same address. True when the mapped
 * file has the recorded name, or, after a rename, the recorded inode.
 */
static bool is_same_mapping(const struct opd_mapped *mapped, const char *path, const struct opd_located *located)
{
	return !strcmp(mapped->name, TOO_LONG) || opd_is_same_name(mapped->name, path) ||
	       (located->seen && mapped->inode && has_recorded_inode(mapped, &located->stat, located->inode_generation));
}

void opd_decode_newlines(char *name)
{
	char *out = name;

	while (*name) {
		if (!strncmp(name, NEWLINE_ESCAPE, strlen(NEWLINE_ESCAPE))) {
			*out++ = '\n';
			name += strlen(NEWLINE_ESCAPE);
		} else {
			*out++ = *name++;
		}
	}
	*out = '\0';
}

/*
 * The path in a line of /proc/PID/maps, where it is complete. Nothing before the path has a slash.
 * NULL: the line of another mapping.
 */
static char *path_in_line(char *line, uint64_t start)
{
	char *path = strtoull(line, NULL, 16) == start ? strchr(line, '/') : NULL;

	if (path) {
		path[strcspn(path, "\n")] = '\0';
		opd_decode_newlines(path);
	}
	return path;
}

/*
 * Finds a path that is too long for a record and for a link. False: /proc/PID/maps does not have it
 * either.
 */
static bool locate_too_long(struct search *search)
{
	char maps[64], *line = NULL, *path = NULL;
	size_t capacity = 0;
	FILE *file;

	snprintf(maps, sizeof(maps), "/proc/%u/maps", search->mapped->pid);
	file = fopen(maps, "re");
	while (file && !path && getline(&line, &capacity, file) > 0)
		path = path_in_line(line, search->mapped->start);
	if (path)
		locate_mapped(search, path);
	free(line);
	if (file)
		fclose(file);
	return path;
}

/*
 * Without CAP_CHECKPOINT_RESTORE the link can be read, but not followed. Then the name is used as
 * for a mapping that is gone.
 */
static bool locate_unfollowed(struct search *search)
{
	struct opd_located *located = search->located;

	locate_gone(search);
	if (located->seen)
		return true;
	op_text_truncate(&located->path, 0);
	located->on_host = false;
	return false;
}

/*
 * Looks at the file of the mapping. Returns the length of its name, which has no NUL at its end, or
 * -errno. Without CAP_CHECKPOINT_RESTORE the name is all there is.
 */
static ssize_t look_at_mapping(const struct opd_mapped *mapped, char name[PATH_MAX], struct opd_located *located)
{
	char path[64];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", mapped->pid, (unsigned long long)mapped->start,
		 (unsigned long long)mapped->end);
	fd = open_path(path);
	if (fd < 0)
		return op_sys_readlinkat(AT_FDCWD, path, name, PATH_MAX - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = op_sys_readlinkat(AT_FDCWD, path, name, PATH_MAX - 1);
	located->seen = !stat_regular(fd, &located->stat, &located->inode_generation);
	close(fd);
	return length;
}

int opd_locate(const struct opd_mapped *mapped, struct opd_located *ret_located)
{
	struct search search = { .mapped = mapped, .located = ret_located };
	char path[PATH_MAX];
	ssize_t length;

	*ret_located = (struct opd_located){ 0 };
	if (mapped->is_foreign)
		return locate_foreign(mapped, ret_located);
	opd_mount_views_host_mounts(mapped->mount_views, false);
	length = look_at_mapping(mapped, path, ret_located);
	if (length >= 0)
		path[length] = '\0';
	if (length >= 0 && !is_same_mapping(mapped, path, ret_located)) {
		ret_located->seen = false;
		length = -1;
	}
	if (length >= 0) {
		if (ret_located->seen || !locate_unfollowed(&search))
			locate_mapped(&search, path);
	} else if (ret_located->seen && mapped->name_is_ours) {
		locate_mapped(&search, mapped->name); /* the path is too long for a link */
	} else if (!ret_located->seen || strcmp(mapped->name, TOO_LONG) != 0 || !locate_too_long(&search)) {
		locate_gone(&search);
	}
	if (!ret_located->path.failed)
		return 0;
	op_text_free(&ret_located->path);
	return -ENOMEM;
}
