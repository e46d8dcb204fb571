/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/grow.h"
#include "libop/base/sys.h"
#include "libop/odb/keep.h"
#include "libop/odb/read.h"
#include "libop/odb/replace.h"

/*
 * One replacement under tmp/. A file that was replaced several times has several: the new file of
 * one is the old file of the next.
 */
struct entry {
	uint64_t inode, old_inode; /* of the new and the old file; old_inode 0: it is not there */
	char *path;
	struct entry *newer; /* of the same path */
	bool done;
};

struct recovery {
	int dir_fd;
	struct op_odb_tmp tmp;
	bool (*is_sealed)(const char *path);
	struct entry *entries;
	size_t nr, capacity;
	uint64_t nr_put_back;
};

/* ---- comparing files ---- */

static int compare_keys(const void *a, const void *b)
{
	const struct op_odb_node *left = a, *right = b;

	return left->key < right->key ? -1 : left->key > right->key;
}

/* Whole nodes by key. Node i has index i + 1. */
static void sort_whole(struct op_odb_samples *samples)
{
	uint32_t nr = 0;

	/* Backwards: whether a node is torn depends on the one before it. */
	for (uint32_t i = samples->nr_nodes; i; i--)
		if (op_odb_is_torn(&samples->nodes[i - 1], i))
			samples->nodes[i - 1].value = 0;
	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		if (samples->nodes[i].value)
			samples->nodes[nr++] = samples->nodes[i];
	samples->nr_nodes = nr;
	if (nr)
		qsort(samples->nodes, nr, sizeof(*samples->nodes), compare_keys);
}

/*
 * The count of a key. Moves *at from the first node of that key or a lower one to the first behind
 * it.
 */
static uint64_t take_key(const struct op_odb_samples *samples, uint32_t *at, uint64_t key)
{
	uint64_t sum = 0;

	for (; *at < samples->nr_nodes && samples->nodes[*at].key <= key; (*at)++)
		if (samples->nodes[*at].key == key)
			sum += samples->nodes[*at].value;
	return sum;
}

/* Whether `new` has all counts of `old`; both are sorted. */
static bool has_all(const struct op_odb_samples *new, const struct op_odb_samples *old)
{
	uint32_t at = 0, new_at = 0;

	while (at < old->nr_nodes) {
		uint64_t key = old->nodes[at].key;

		if (take_key(old, &at, key) > take_key(new, &new_at, key))
			return false;
	}
	return true;
}

struct best {
	bool is_sealed;
	bool has_samples;
	struct op_odb_samples samples; /* of the best sample file so far */
};

/* A sample file is better when it has all counts of the best so far, which it replaces in *best. */
static int compare_samples(struct best *best, int dir_fd, const char *path, bool *ret_better)
{
	struct op_odb_samples samples;
	int err = op_odb_read(dir_fd, path, &samples, NULL);

	if (err)
		return err;
	sort_whole(&samples);
	*ret_better = !best->has_samples || has_all(&samples, &best->samples);
	if (*ret_better) {
		op_odb_samples_free(&best->samples);
		best->samples = samples;
		best->has_samples = true;
	} else {
		op_odb_samples_free(&samples);
	}
	return 0;
}

/* Whether a file is better than all that were compared before it. A damaged file never is. */
static int compare(struct best *best, int dir_fd, const char *path, bool *ret_better)
{
	int err;

	*ret_better = best->is_sealed;
	err = best->is_sealed ? op_odb_check_seal(dir_fd, path) : compare_samples(best, dir_fd, path, ret_better);
	if (!err)
		return 0;
	*ret_better = false;
	return err == -EBADMSG || err == -ENOENT ? 0 : err;
}

/*
 * The entry whose old file is the best of all, from the oldest on; NULL for the file at the path,
 * which also stays when none is any good.
 */
static int choose(const struct recovery *recovery, struct entry *oldest, struct entry **ret_best)
{
	struct best best = { .is_sealed = recovery->is_sealed(oldest->path) };
	struct entry *best_entry = NULL;
	char name[OP_ODB_KEPT_BYTES];
	bool is_better = false;
	int err = 0;

	for (struct entry *entry = oldest; entry && !err; entry = entry->newer) {
		op_odb_kept_name(&recovery->tmp, OP_ODB_OLD, entry->inode, name);
		err = compare(&best, recovery->tmp.fd, name, &is_better);
		if (is_better)
			best_entry = entry;
	}
	if (!err)
		err = compare(&best, recovery->dir_fd, oldest->path, &is_better);
	op_odb_samples_free(&best.samples);
	if (!err)
		*ret_best = is_better ? NULL : best_entry;
	return err;
}

/* ---- one path ---- */

static struct entry *find_entry(const struct recovery *recovery, const char *path, uint64_t inode)
{
	for (size_t i = 0; inode && i < recovery->nr; i++) {
		struct entry *entry = &recovery->entries[i];

		if (entry->inode == inode && !entry->done && !strcmp(entry->path, path))
			return entry;
	}
	return NULL;
}

/* Follows the replacements back from the file at the path. NULL: that file replaced none. */
static int find_oldest(const struct recovery *recovery, const char *path, struct entry **ret_oldest)
{
	struct entry *newer = NULL, *entry;
	uint64_t inode;
	int err = op_odb_find_inode(recovery->dir_fd, path, &inode);

	if (err)
		return err;
	for (entry = find_entry(recovery, path, inode); entry; entry = find_entry(recovery, path, entry->old_inode)) {
		entry->newer = newer;
		entry->done = true;
		newer = entry;
	}
	*ret_oldest = newer;
	return 0;
}

static int put_back(const struct recovery *recovery, const struct entry *entry)
{
	const char *name;
	char old_name[OP_ODB_KEPT_BYTES];
	int parent = op_file_open_parent(recovery->dir_fd, entry->path, false, &name), err;

	if (parent < 0)
		return parent;
	op_odb_kept_name(&recovery->tmp, OP_ODB_OLD, entry->inode, old_name);
	err = op_sys_renameat(recovery->tmp.fd, old_name, parent, name);
	close(parent);
	return err;
}

static int sync_file(int dir_fd, const char *path)
{
	uint64_t inode;
	int fd, err = op_odb_open_if_there(dir_fd, path, &fd, &inode);

	if (err || fd < 0)
		return err;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

static int recover_path(struct recovery *recovery, const char *path)
{
	struct entry *oldest, *best = NULL;
	int err = find_oldest(recovery, path, &oldest);

	if (err || !oldest)
		return err;
	err = choose(recovery, oldest, &best);
	if (!err && best) {
		err = put_back(recovery, best);
		recovery->nr_put_back += !err;
	}
	if (!err)
		err = sync_file(recovery->dir_fd, path);
	if (err)
		return err;
	for (; oldest; oldest = oldest->newer)
		op_odb_kept_remove(&recovery->tmp, oldest->inode);
	return 0;
}

/* ---- the links in tmp/ ---- */

static int add_entry(struct recovery *recovery, uint64_t inode)
{
	struct entry entry = { .inode = inode };
	char path[PATH_MAX], name[OP_ODB_KEPT_BYTES];
	int err;

	if (op_odb_kept_path(&recovery->tmp, inode, path) < 0)
		return 0;
	err = op_odb_find_inode(recovery->tmp.fd, op_odb_kept_name(&recovery->tmp, OP_ODB_OLD, inode, name), &entry.old_inode);
	if (err)
		return err;
	if (!op_grow(&recovery->entries, &recovery->capacity, recovery->nr + 1))
		return -ENOMEM;
	entry.path = strdup(path);
	if (!entry.path)
		return -ENOMEM;
	recovery->entries[recovery->nr++] = entry;
	return 0;
}

/*
 * Links whose file was not replaced before everything stopped, or was replaced by another program
 * since.
 */
static int remove_rest(struct recovery *recovery, uint64_t inode)
{
	op_odb_kept_remove(&recovery->tmp, inode);
	return 0;
}

/* Calls back with the inode of each link of a kind, with_parts: and of each part of a path. */
static int for_links(struct recovery *recovery, const char *kind, bool with_parts,
		     int (*action)(struct recovery *recovery, uint64_t inode))
{
	int fd = op_sys_openat(recovery->tmp.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t inode;
	bool is_part;

	if (!dir) {
		err = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (entry = readdir(dir)))
		if (op_odb_kept_parse(entry->d_name, recovery->tmp.name, kind, &inode, &is_part) && (with_parts || !is_part))
			err = action(recovery, inode);
	closedir(dir);
	return err;
}

/* ---- directories that were renamed ---- */

static bool is_at(int dir_fd, const char *path, uint64_t inode)
{
	uint64_t found;

	return !op_odb_find_inode(dir_fd, path, &found) && found == inode;
}

/*
 * The path below one of the directories at which a file has this inode, freed by the caller; NULL
 * when there is none.
 */
static char *find_moved(int dir_fd, const struct op_odb_moves *moves, const struct entry *entry)
{
	size_t length = strlen(moves->from);
	char *path;

	if (strncmp(entry->path, moves->from, length) || entry->path[length] != '/')
		return NULL;
	for (size_t i = 0; i < moves->nr_to; i++) {
		if (asprintf(&path, "%s%s", moves->to[i], entry->path + length) < 0)
			return NULL;
		if (is_at(dir_fd, path, entry->inode))
			return path;
		free(path);
	}
	return NULL;
}

/* Gives the new path to the last replacement of a file and to those before it. */
static int move_chain(const struct recovery *recovery, struct entry *last, const char *path)
{
	struct entry *before;

	for (struct entry *entry = last; entry; entry = before) {
		char *copy = strdup(path);

		if (!copy)
			return -ENOMEM;
		before = find_entry(recovery, entry->path, entry->old_inode);
		free(entry->path);
		entry->path = copy;
	}
	return 0;
}

static int relocate(const struct recovery *recovery, const struct op_odb_moves *moves)
{
	int err = 0;

	for (size_t i = 0; i < recovery->nr && !err; i++) {
		struct entry *entry = &recovery->entries[i];
		char *path;

		if (is_at(recovery->dir_fd, entry->path, entry->inode))
			continue;
		path = find_moved(recovery->dir_fd, moves, entry);
		if (path)
			err = move_chain(recovery, entry, path);
		free(path);
	}
	return err;
}

/* ---- all ---- */

/* After an error the links stay for the next start. */
static int recover_all(struct recovery *recovery)
{
	int first_err = 0;

	for (size_t i = 0; i < recovery->nr; i++) {
		int err = recovery->entries[i].done ? 0 : recover_path(recovery, recovery->entries[i].path);

		if (!first_err)
			first_err = err;
	}
	if (!first_err)
		first_err = for_links(recovery, OP_ODB_OLD, false, remove_rest);
	return first_err ? first_err : for_links(recovery, OP_ODB_FOR, true, remove_rest);
}

int op_odb_recover(int dir_fd, const char *tmp_path, const struct op_odb_moves *moves, bool (*is_sealed)(const char *path),
		   uint64_t *ret_nr_put_back)
{
	struct recovery recovery = { .dir_fd = dir_fd, .is_sealed = is_sealed };
	int err;

	recovery.tmp.fd = op_file_open_parent(dir_fd, tmp_path, false, &recovery.tmp.name);
	if (recovery.tmp.fd < 0)
		return recovery.tmp.fd == -ENOENT ? 0 : recovery.tmp.fd;
	op_sys_unlinkat(recovery.tmp.fd, recovery.tmp.name, 0);
	err = for_links(&recovery, OP_ODB_FOR, false, add_entry);
	if (err)
		goto out;
	err = relocate(&recovery, moves);
	if (err)
		goto out;
	err = recover_all(&recovery);
	if (!err)
		*ret_nr_put_back = recovery.nr_put_back;
out:
	for (size_t i = 0; i < recovery.nr; i++)
		free(recovery.entries[i].path);
	free(recovery.entries);
	close(recovery.tmp.fd);
	return err;
}
