/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define NEWLINE_ESCAPE "\\012"
#define DELETED_SUFFIX " (deleted)"
/* the name in a record, which then has no inode, when the real one is not shorter than this */
#define TOO_LONG       "//toolong"
#define TOO_LONG_BYTES (PATH_MAX - sizeof(uint64_t))
/* directories of an overlay that are tried; the kernel allows 500 */
#define MAX_LAYERS     512
/* at the top of an inode number: with xino, an overlay puts the number of a file system there */
#define XINO_BITS      16

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
		  STATX_INO | STATX_MTIME | STATX_CTIME | STATX_SIZE | STATX_TYPE | STATX_MODE | STATX_UID | STATX_MNT_ID,
		  ret_stat) < 0)
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

/* Without a generation, an earlier file may have had the inode number. */
static bool same_generation(uint64_t a, uint64_t b)
{
	return !a || !b || a == b;
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

/* The mount that a file was reached by. NULL: none of these, or unknown (before Linux 5.8). */
static const struct opd_mount *mount_of(const struct opd_mounts *mounts, const struct statx *st)
{
	return st->stx_mask & STATX_MNT_ID ? opd_mounts_by_id(mounts, st->stx_mnt_id) : NULL;
}

/*
 * A record has the device of the file system. statx(2) reports it, too, but btrfs has a device for
 * each subvolume, and an overlay for each of its file systems; the mount knows. Before Linux 6.18,
 * records of an overlay's files have device and inode of the file in the layer. Of these only block
 * devices are believed, because anybody can mount a file system without one and choose the inodes.
 */
static bool has_recorded_device(const struct opd_mapped *mapped, const struct opd_mounts *mounts, const struct statx *st)
{
	const struct opd_mount *mount;

	if (mapped->device == makedev(st->stx_dev_major, st->stx_dev_minor))
		return true;
	mount = mount_of(mounts, st);
	return mount && (mapped->device == mount->device || (opd_mount_is_overlay(mount) && major(mapped->device)));
}

/* True when the record is of this file, which was reached by one of the mounts. */
static bool is_recorded(const struct opd_mapped *mapped, const struct opd_mounts *mounts, const struct statx *st,
			uint64_t generation)
{
	return mapped->inode && st->stx_ino == mapped->inode && same_generation(generation, mapped->inode_generation) &&
	       has_recorded_device(mapped, mounts, st);
}

static const struct opd_mounts *host_mounts(const struct search *search)
{
	return opd_mount_views_host_mounts(search->mapped->mount_views, false);
}

int opd_stat_on_host(const char *path, struct statx *ret_stat, uint64_t *ret_generation)
{
	return stat_below(opd_host()->prefix, path, ret_stat, ret_generation);
}

static void found_on_host(struct opd_located *located, const char *path, const struct statx *st, uint64_t generation)
{
	op_text_truncate(&located->path, 0);
	op_text_add(&located->path, path);
	located->stat = *st;
	located->inode_generation = generation;
	located->seen = located->on_host = true;
}

/* Tries a path of the host. The file there must be the mapped or recorded one. */
static bool try_host_path(struct search *search, const char *path)
{
	struct opd_located *located = search->located;
	struct statx st;
	uint64_t generation;

	if (opd_stat_on_host(path, &st, &generation) < 0)
		return false;
	if (located->seen ? !same_inode(&st, &located->stat) || !same_generation(generation, located->inode_generation) :
			    !is_recorded(search->mapped, host_mounts(search), &st, generation))
		return false;
	found_on_host(located, path, &st, generation);
	return true;
}

/*
 * True when a file of a layer is the one that its overlay shows. An upper file is, because it hides
 * the lower ones; a copy-up gave it another inode. A lower file has the inode number that the
 * overlay reports, but for the highest bits (xino). The content tells it from files that were there
 * before or come from elsewhere (redirect_dir).
 */
static bool is_shown(const struct search *search, const struct opd_mount *mount, bool is_upper, const struct statx *st,
		     uint64_t generation)
{
	const struct opd_mapped *mapped = search->mapped;
	const struct opd_located *located = search->located;
	uint64_t inode = located->seen ? located->stat.stx_ino : mapped->inode;
	bool same_number = !((st->stx_ino ^ inode) << XINO_BITS);

	if (located->seen)
		return same_content(st, &located->stat) && (is_upper || same_number);
	return is_recorded(mapped, host_mounts(search), st, generation) || (mapped->device == mount->device && same_number);
}

/* Tries the layers of an overlay that root of the host has mounted. */
static bool try_layers(struct search *search, const struct opd_mount *mount, const char *inner)
{
	struct op_text path = { 0 };
	bool found = false;

	for (size_t i = 0; !found && i < MAX_LAYERS && opd_mount_layer(mount, i, &path); i++) {
		struct statx st;
		uint64_t generation;

		if (path.length && path.data[0] == '/') {
			op_text_add(&path, inner);
			found = !opd_stat_on_host(op_text_get(&path), &st, &generation) &&
				is_shown(search, mount, !i, &st, generation);
		}
		if (found)
			found_on_host(search->located, op_text_get(&path), &st, generation);
		op_text_truncate(&path, 0);
	}
	op_text_free(&path);
	return found;
}

/*
 * Tries the mounts of the file system on the host. A layer of an overlay is a better name than the
 * overlay, which goes with its container.
 */
static bool try_host_mounts(struct search *search, const struct opd_mount *mount, const char *inner)
{
	const struct opd_mounts *host = host_mounts(search);
	struct op_text path = { 0 };
	bool found = false;

	for (size_t i = host->nr_rows; !found && i-- > 0;) {
		if (host->rows[i].device == mount->device && opd_mount_outer_path(&host->rows[i], inner, &path))
			found = try_host_path(search, op_text_get(&path));
		if (found && opd_mount_is_overlay(&host->rows[i]))
			try_layers(search, &host->rows[i], inner);
		op_text_truncate(&path, 0);
	}
	op_text_free(&path);
	return found;
}

/*
 * Translates a path of another mount namespace, below the root of its processes, to a path of the
 * host. may_be_here: the file has this path in the namespace, or is gone.
 */
static bool translate_by(struct search *search, const char *path, bool may_be_here, bool again)
{
	struct opd_mount_view *view = search->mapped->mount_view;
	const struct opd_mount *mount = opd_mounts_of(opd_mount_view_mounts(view, search->mapped->pid, again), path);
	struct op_text inner = { 0 };
	bool found;

	opd_mount_views_host_mounts(search->mapped->mount_views, again);
	if (!mount)
		return false;
	opd_mount_inner_path(mount, path, &inner);
	found = try_host_mounts(search, mount, op_text_get(&inner)) ||
		(may_be_here && opd_mount_is_overlay(mount) && opd_mount_view_is_roots(view, search->mapped->pid) &&
		 try_layers(search, mount, op_text_get(&inner)));
	op_text_free(&inner);
	return found;
}

/* Tries the known mounts, then newly read ones. */
static bool translate(struct search *search, const char *path, bool may_be_here)
{
	return translate_by(search, path, may_be_here, false) || translate_by(search, path, may_be_here, true);
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

/* Whether the path leads to the file below a directory. */
static bool is_there(const struct opd_located *located, const char *prefix)
{
	struct statx st;
	uint64_t generation;

	return located->seen && !stat_below(prefix, op_text_get(&located->path), &st, &generation) &&
	       same_inode(&st, &located->stat) && same_generation(generation, located->inode_generation);
}

/* For a mapping that exists. `path` is its name, seen from opd's root. */
static void locate_mapped(struct search *search, const char *path)
{
	struct opd_located *located = search->located;
	const struct opd_mount_view *view = search->mapped->mount_view;
	bool shares_host = opd_mount_view_shares_host(view), is_here;
	char root[64], *inside;

	snprintf(root, sizeof(root), "/proc/%u/root", search->mapped->pid);
	if (shares_host)
		snprintf(root, sizeof(root), "%s", opd_host()->prefix);
	op_text_add(&located->path, shares_host ? path : path_in_view(view, path));
	is_here = is_there(located, root) || (cut_deleted(&located->path) && is_there(located, root));
	if (shares_host) {
		located->on_host = is_here;
		return;
	}
	inside = strdup(op_text_get(&located->path));
	if (!inside) {
		located->path.failed = true;
		return;
	}
	translate(search, inside, is_here);
	free(inside);
}

/* Looks for a file that the host does not have through another process with the same view. */
static void try_other_process(struct search *search, const char *path)
{
	struct opd_located *located = search->located;
	struct opd_mount_view *view = search->mapped->mount_view;
	uint32_t pid = opd_mount_view_pid(view);
	char root[64];
	struct statx st;
	uint64_t generation;

	snprintf(root, sizeof(root), "/proc/%u/root", pid);
	if (!pid || stat_below(root, path, &st, &generation) < 0 ||
	    !is_recorded(search->mapped, opd_mount_view_mounts(view, pid, false), &st, generation))
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
	bool shares_host = opd_mount_view_shares_host(view);
	struct op_text path = { 0 };

	if (view && shares_host && !mapped->name_is_ours)
		op_text_add(&path, view->root);
	op_text_add(&path, view && mapped->name_is_ours && !shares_host ? path_in_view(view, mapped->name) : mapped->name);
	if (shares_host ? !try_host_path(search, op_text_get(&path)) : !translate(search, op_text_get(&path), true)) {
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
 * A pid can be used again, and exec can map another file at the same address, also one of the same
 * name. True when the mapped file is the recorded one. A file that cannot be looked at is known by
 * its name only. `path` is the name, NULL when it is too long for a link.
 */
static bool is_same_mapping(const struct search *search, const char *path)
{
	const struct opd_mapped *mapped = search->mapped;
	const struct opd_located *located = search->located;
	struct opd_mount_view *view = mapped->mount_view;

	if (!strcmp(mapped->name, TOO_LONG))
		return !path || strlen(path) >= TOO_LONG_BYTES;
	if (!located->seen)
		return path && opd_is_same_name(mapped->name, path);
	for (int again = 0; again < 2 && located->stat.stx_ino == mapped->inode; again++) {
		const struct opd_mounts *mounts = opd_mount_view_shares_host(view) ?
							  opd_mount_views_host_mounts(mapped->mount_views, again) :
							  opd_mount_view_mounts(view, mapped->pid, again);

		if (is_recorded(mapped, mounts, &located->stat, located->inode_generation))
			return true;
	}
	return false;
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

	if (op_sys_is_gone(mapped->pid)) /* cheaper than to look for a missing process in /proc */
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", mapped->pid, (unsigned long long)mapped->start,
		 (unsigned long long)mapped->end);
	fd = open_path(path);
	if (fd < 0)
		return op_sys_readlinkat(AT_FDCWD, path, name, PATH_MAX - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = op_sys_readlinkat(AT_FDCWD, path, name, PATH_MAX - 1);
	located->seen = !stat_regular(fd, &located->stat, &located->inode_generation);
	if (located->seen) {
		located->mapped_device = makedev(located->stat.stx_dev_major, located->stat.stx_dev_minor);
		located->mapped_inode = located->stat.stx_ino;
	}
	close(fd);
	return length;
}

/* What the host has at the path, and whether its owner is known. */
static void note_host(struct search *search)
{
	struct opd_located *located = search->located;
	const struct opd_mount *mount = mount_of(host_mounts(search), &located->stat);
	struct statx st;

	located->knows_owner = located->on_host && (mount ? !opd_mount_is_fuse(mount) : located->stat.stx_dev_major);
	located->host_has_another = !located->on_host && !opd_stat_on_host(op_text_get(&located->path), &st, NULL);
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
	if ((length >= 0 || ret_located->seen) && !is_same_mapping(&search, length >= 0 ? path : NULL)) {
		ret_located->seen = false;
		ret_located->mapped_device = ret_located->mapped_inode = 0;
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
	if (ret_located->path.failed) {
		op_text_free(&ret_located->path);
		return -ENOMEM;
	}
	note_host(&search);
	return 0;
}
