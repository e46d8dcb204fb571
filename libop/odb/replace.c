/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One sample file in the place of another, without waiting for the disk; file_image.h says how. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/odb/file_image.h"
#include "libop/odb/keep.h"
#include "libop/base/seal.h"
#include "libop/session/list.h"
#include "libop/base/sys.h"

struct op_odb_pending {
	struct op_odb_pending *next;
	uint64_t inode, number;
	bool is_open;
	int fd; /* where it is open: the file, or -1 when there was none */
	char *tmp_path;
	char path[];
};

static struct op_odb_pending *make_pending(const char *tmp_path, const char *path, uint64_t inode)
{
	size_t path_bytes = strlen(path) + 1, tmp_bytes = strlen(tmp_path) + 1;
	struct op_odb_pending *pending = malloc(sizeof(*pending) + path_bytes + tmp_bytes);

	if (!pending)
		return NULL;
	*pending = (struct op_odb_pending){ .inode = inode, .fd = -1, .tmp_path = pending->path + path_bytes };
	memcpy(pending->path, path, path_bytes);
	memcpy(pending->tmp_path, tmp_path, tmp_bytes);
	return pending;
}

struct op_odb_pending **op_odb_pending_next(struct op_odb_pending *pending)
{
	return &pending->next;
}

void op_odb_pending_append(struct op_odb_pending **first, struct op_odb_pending *more)
{
	while (*first)
		first = &(*first)->next;
	*first = more;
}

struct op_odb_pending *op_odb_pending_take(struct op_odb_pending **first, uint64_t number, unsigned int *ret_nr)
{
	struct op_odb_pending *taken = NULL, *pending;
	unsigned int nr = 0;

	while ((pending = *first)) {
		if (pending->number != number) {
			first = &pending->next;
			continue;
		}
		*first = pending->next;
		pending->next = taken;
		taken = pending;
		nr++;
	}
	*ret_nr = nr;
	return taken;
}

static void close_places(const struct op_odb_places *places)
{
	if (places->parent >= 0)
		close(places->parent);
	if (places->tmp_parent >= 0)
		close(places->tmp_parent);
}

static int open_places(int dir_fd, const char *tmp_path, const char *path, struct op_odb_places *ret_places)
{
	struct op_odb_places places = { .parent = -1 };

	places.tmp_parent = op_file_open_parent(dir_fd, tmp_path, false, &places.tmp_name);
	if (places.tmp_parent < 0)
		return places.tmp_parent;
	places.parent = op_file_open_parent(dir_fd, path, false, &places.name);
	if (places.parent < 0) {
		close_places(&places);
		return places.parent;
	}
	*ret_places = places;
	return 0;
}

static int swap_in(const struct op_odb_places *places, const char *path, uint64_t new_inode)
{
	int err = op_odb_keep(places, path, new_inode);

	if (!err)
		err = op_sys_renameat(places->tmp_parent, places->tmp_name, places->parent, places->name);
	if (err)
		op_odb_kept_remove(places, new_inode);
	return err;
}

int op_odb_replace(int dir_fd, const char *tmp_path, const char *path, uint64_t new_inode, struct op_odb_pending **ret_pending)
{
	struct op_odb_pending *pending = make_pending(tmp_path, path, new_inode);
	struct op_odb_places places;
	int err;

	if (!pending)
		return -ENOMEM;
	err = open_places(dir_fd, tmp_path, path, &places);
	if (!err) {
		err = swap_in(&places, path, new_inode);
		if (err)
			op_sys_unlinkat(places.tmp_parent, places.tmp_name, 0);
		close_places(&places);
	}
	if (err) {
		free(pending);
		return err;
	}
	*ret_pending = pending;
	return 0;
}

/* What op_odb_open_regular says where no regular file is. */
static bool is_no_file(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ELOOP || err == -EBADMSG;
}

/* 0 where no regular file is. */
static int find_inode(int dir_fd, const char *path, uint64_t *ret_inode)
{
	struct stat st = { 0 };
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st);

	if (fd < 0 && !is_no_file(fd))
		return fd;
	*ret_inode = fd < 0 ? 0 : st.st_ino;
	if (fd >= 0)
		close(fd);
	return 0;
}

/* Takes the place of a regular file. */
static int replace_sealed(int dir_fd, const char *tmp_path, const char *path, struct op_odb_pending **ret_pending)
{
	uint64_t new_inode;
	int err = find_inode(dir_fd, tmp_path, &new_inode);

	if (!err)
		return op_odb_replace(dir_fd, tmp_path, path, new_inode, ret_pending);
	op_file_unlink_below(dir_fd, tmp_path);
	return err;
}

int op_odb_publish_sealed(int dir_fd, const char *tmp_path, const char *path, uint64_t *ret_dir_bytes,
			  struct op_odb_pending **ret_pending)
{
	struct op_odb_pending *pending = NULL;
	uint64_t old_inode, dir_bytes = 0;
	int err = find_inode(dir_fd, path, &old_inode);

	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	else if (old_inode)
		err = replace_sealed(dir_fd, tmp_path, path, &pending);
	else
		err = op_odb_publish(dir_fd, tmp_path, path, &dir_bytes);
	if (err)
		return err;
	*ret_dir_bytes = dir_bytes;
	*ret_pending = pending;
	return 0;
}

/* ---- onto the disk ---- */

/* Whatever is there now: it has all that was there before. *ret_fd -1: somebody removed it. */
static int open_file(int dir_fd, const char *path, int *ret_fd)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st);

	if (fd < 0 && !is_no_file(fd))
		return fd;
	*ret_fd = fd < 0 ? -1 : fd;
	return 0;
}

static int sync_file(int dir_fd, const char *path)
{
	int fd, err = open_file(dir_fd, path, &fd);

	if (err || fd < 0)
		return err;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

/* Unless the inode is another file's meanwhile. */
static void remove_links_of(int dir_fd, const struct op_odb_pending *pending)
{
	struct op_odb_places places = { .parent = -1 };
	char path[PATH_MAX];

	places.tmp_parent = op_file_open_parent(dir_fd, pending->tmp_path, false, &places.tmp_name);
	if (places.tmp_parent < 0)
		return;
	if (!op_odb_kept_path(&places, pending->inode, path) && !strcmp(path, pending->path))
		op_odb_kept_remove(&places, pending->inode);
	close_places(&places);
}

int op_odb_pending_open(struct op_odb_pending *pending, int top_fd, const char *top)
{
	size_t length = strlen(top);
	int err = 0;

	if (pending->is_open)
		return 0;
	if (!length)
		err = open_file(top_fd, pending->path, &pending->fd);
	else if (!strncmp(pending->path, top, length) && pending->path[length] == '/')
		err = open_file(top_fd, pending->path + length + 1, &pending->fd);
	else
		err = -EINVAL;
	pending->is_open = !err;
	return err;
}

uint64_t *op_odb_pending_number(struct op_odb_pending *pending)
{
	return &pending->number;
}

static void free_pending(struct op_odb_pending *pending)
{
	if (pending->fd >= 0)
		close(pending->fd);
	free(pending);
}

int op_odb_settle_or_keep(int dir_fd, struct op_odb_pending *pending)
{
	int err = op_odb_pending_open(pending, dir_fd, "");

	if (!err && pending->fd >= 0)
		err = op_sys_fsync(pending->fd);
	if (err)
		return err;
	remove_links_of(dir_fd, pending);
	free_pending(pending);
	return 0;
}

int op_odb_settle(int dir_fd, struct op_odb_pending *pending)
{
	int err = op_odb_settle_or_keep(dir_fd, pending);

	if (err)
		free_pending(pending);
	return err;
}

void op_odb_pending_free(struct op_odb_pending *pending)
{
	struct op_odb_pending *next;

	for (; pending; pending = next) {
		next = pending->next;
		free_pending(pending);
	}
}

/* ---- after an unclean stop ---- */

static int compare_keys(const void *a, const void *b)
{
	const struct op_odb_node *left = a, *right = b;

	return left->key < right->key ? -1 : left->key > right->key;
}

/* Whole nodes by key. Node i has index i + 1. */
static void sort_whole(struct op_odb_samples *samples)
{
	uint32_t nr = 0;

	for (uint32_t i = samples->nr_nodes; i; i--)
		if (op_odb_is_torn(&samples->nodes[i - 1], i))
			samples->nodes[i - 1].value = 0; /* the one behind it has been looked at */
	for (uint32_t i = 0; i < samples->nr_nodes; i++)
		if (samples->nodes[i].value)
			samples->nodes[nr++] = samples->nodes[i];
	samples->nr_nodes = nr;
	if (nr)
		qsort(samples->nodes, nr, sizeof(*samples->nodes), compare_keys);
}

/* The count of the key of node *at, which moves behind it. */
static uint64_t take_key(const struct op_odb_samples *samples, uint32_t *at, uint64_t key)
{
	uint64_t sum = 0;

	for (; *at < samples->nr_nodes && samples->nodes[*at].key <= key; (*at)++)
		if (samples->nodes[*at].key == key)
			sum += samples->nodes[*at].value;
	return sum;
}

/* Whether no count of the old one is larger than in the new one; both are sorted. */
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

/*
 * What the links say: old-INODE is what was at `path` before the file with that inode. A file that grew again before it was settled has several:
 * what is new for one is old for the next.
 */
struct entry {
	uint64_t inode, old_inode; /* 0: not there */
	char *path;
	struct entry *newer; /* of the same path */
	bool done;
};

struct entries {
	struct entry *entries;
	size_t nr, capacity;
};

static struct entry *find_entry(const struct entries *entries, const char *path, uint64_t inode)
{
	for (size_t i = 0; inode && i < entries->nr; i++) {
		struct entry *entry = &entries->entries[i];

		if (entry->inode == inode && !entry->done && !strcmp(entry->path, path))
			return entry;
	}
	return NULL;
}

/* Takes the samples over, or frees them: the best so far are replaced by those that lack nothing of them. */
static bool take_better(struct op_odb_samples *best, bool *has_best, struct op_odb_samples *samples)
{
	bool is_better;

	sort_whole(samples);
	is_better = !*has_best || has_all(samples, best);
	if (is_better && *has_best)
		op_odb_samples_free(best);
	if (is_better)
		*best = *samples;
	else
		op_odb_samples_free(samples);
	*has_best = true;
	return is_better;
}

/* From the oldest on. *ret_best: the entry whose old file is the best of all, NULL for the one that stands at the path. */
static int choose(int dir_fd, const struct op_odb_places *places, struct entry *oldest, struct entry **ret_best)
{
	struct op_odb_samples best = { 0 }, samples;
	struct entry *best_entry = NULL, *entry = oldest;
	bool has_best = false, at_path;
	char name[OP_ODB_KEPT_BYTES];
	int err;

	do {
		at_path = !entry;
		err = at_path ? op_odb_read(dir_fd, oldest->path, &samples, NULL)
			      : op_odb_read(places->tmp_parent, op_odb_kept_name(places, OP_ODB_OLD, entry->inode, name), &samples,
					    NULL);
		if (!err && take_better(&best, &has_best, &samples))
			best_entry = entry;
		if (err == -EBADMSG || err == -ENOENT)
			err = 0; /* it is worth nothing */
		if (!at_path)
			entry = entry->newer;
	} while (!err && !at_path);
	if (has_best)
		op_odb_samples_free(&best);
	if (!err)
		*ret_best = best_entry;
	return err;
}

int op_odb_check_seal(int dir_fd, const char *path)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDONLY, &st), err;

	if (fd < 0)
		return fd;
	err = op_seal_check(fd);
	close(fd);
	return err;
}

static int check_seal(int dir_fd, const char *path, bool *ret_whole)
{
	int err = op_odb_check_seal(dir_fd, path);

	if (err && err != -EBADMSG && err != -ENOENT)
		return err;
	*ret_whole = !err;
	return 0;
}

/* The newest that is whole. None: that of an opd that had no seals may stay. */
static int choose_sealed(int dir_fd, const struct op_odb_places *places, struct entry *oldest, struct entry **ret_best)
{
	struct entry *best = NULL;
	char name[OP_ODB_KEPT_BYTES];
	bool whole = false;
	int err = 0;

	for (struct entry *entry = oldest; entry && !err; entry = entry->newer) {
		err = check_seal(places->tmp_parent, op_odb_kept_name(places, OP_ODB_OLD, entry->inode, name), &whole);
		if (!err && whole)
			best = entry;
	}
	if (!err)
		err = check_seal(dir_fd, oldest->path, &whole);
	if (!err)
		*ret_best = whole ? NULL : best;
	return err;
}

static int put_back(int dir_fd, const struct op_odb_places *places, const struct entry *entry)
{
	const char *name;
	char old_name[OP_ODB_KEPT_BYTES];
	int parent = op_file_open_parent(dir_fd, entry->path, false, &name), err;

	if (parent < 0)
		return parent;
	err = op_sys_renameat(places->tmp_parent, op_odb_kept_name(places, OP_ODB_OLD, entry->inode, old_name), parent, name);
	close(parent);
	return err;
}

/* The oldest of a path: from what stands there back. NULL: it is not what any of them was replaced by. */
static int find_oldest(int dir_fd, const struct entries *entries, const char *path, struct entry **ret_oldest)
{
	struct entry *newer = NULL, *entry;
	uint64_t inode;
	int err = find_inode(dir_fd, path, &inode);

	if (err)
		return err;
	for (entry = find_entry(entries, path, inode); entry; entry = find_entry(entries, path, entry->old_inode)) {
		entry->newer = newer;
		entry->done = true;
		newer = entry;
	}
	*ret_oldest = newer;
	return 0;
}

static int recover_path(int dir_fd, const struct op_odb_places *places, const struct entries *entries, const char *path,
			struct op_odb_recovery *recovery)
{
	struct entry *oldest, *best = NULL;
	int err = find_oldest(dir_fd, entries, path, &oldest);

	if (err || !oldest)
		return err;
	err = op_session_is_jit_object(path) ? choose_sealed(dir_fd, places, oldest, &best) : choose(dir_fd, places, oldest, &best);
	if (!err && best) {
		err = put_back(dir_fd, places, best);
		recovery->nr_put_back += !err;
	}
	if (!err)
		err = sync_file(dir_fd, path);
	if (err)
		return err;
	for (; oldest; oldest = oldest->newer)
		op_odb_kept_remove(places, oldest->inode);
	return 0;
}

static int add_entry(struct entries *entries, const struct op_odb_places *places, uint64_t inode)
{
	struct entry *larger;
	char path[PATH_MAX], name[OP_ODB_KEPT_BYTES];
	uint64_t old_inode;
	int err;

	if (op_odb_kept_path(places, inode, path) < 0)
		return 0;
	err = find_inode(places->tmp_parent, op_odb_kept_name(places, OP_ODB_OLD, inode, name), &old_inode);
	if (err)
		return err;
	if (entries->nr == entries->capacity) {
		entries->capacity = entries->capacity ? 2 * entries->capacity : 16;
		larger = reallocarray(entries->entries, entries->capacity, sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		entries->entries = larger;
	}
	entries->entries[entries->nr] = (struct entry){
		.inode = inode,
		.old_inode = old_inode,
		.path = strdup(path),
	};
	if (!entries->entries[entries->nr].path)
		return -ENOMEM;
	entries->nr++;
	return 0;
}

/* Calls back with the inode of each link of a kind, or of each part of its path, too. */
static int for_links(const struct op_odb_places *places, const char *kind, bool with_parts,
		     int (*action)(struct entries *, const struct op_odb_places *, uint64_t), struct entries *entries)
{
	int fd = op_sys_openat(places->tmp_parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), err = 0;
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
		if (op_odb_kept_parse(entry->d_name, places->tmp_name, kind, &inode, &is_part) && (with_parts || !is_part))
			err = action(entries, places, inode);
	closedir(dir);
	return err;
}

/* Whose place was not taken when all ended, or taken by something else since. */
static int remove_rest(struct entries *entries OP_UNUSED, const struct op_odb_places *places, uint64_t inode)
{
	op_odb_kept_remove(places, inode);
	return 0;
}

static bool is_at(int dir_fd, const char *path, uint64_t inode)
{
	uint64_t found;

	return !find_inode(dir_fd, path, &found) && found == inode;
}

/* The path below one of the directories at which a file has this inode; NULL when there is none. */
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

/* What grew again is where the last of them is: each leads to the one that was there before it. */
static int move_chain(struct entries *entries, struct entry *last, char *path)
{
	struct entry *entry = last;

	while (entry) {
		struct entry *before = find_entry(entries, entry->path, entry->old_inode);
		char *copy = strdup(path);

		if (!copy)
			return -ENOMEM;
		free(entry->path);
		entry->path = copy;
		entry = before;
	}
	return 0;
}

static int relocate(int dir_fd, const struct op_odb_moves *moves, struct entries *entries)
{
	int err = 0;

	for (size_t i = 0; i < entries->nr && !err; i++) {
		struct entry *entry = &entries->entries[i];
		char *path = is_at(dir_fd, entry->path, entry->inode) ? NULL : find_moved(dir_fd, moves, entry);

		if (path)
			err = move_chain(entries, entry, path);
		free(path);
	}
	return err;
}

static int recover_all(int dir_fd, const struct op_odb_places *places, struct entries *entries, struct op_odb_recovery *recovery)
{
	int first_err = 0;

	for (size_t i = 0; i < entries->nr; i++) {
		int err = entries->entries[i].done ? 0 : recover_path(dir_fd, places, entries, entries->entries[i].path, recovery);

		if (!first_err)
			first_err = err;
	}
	if (first_err)
		return first_err; /* the rest waits for the next start */
	first_err = for_links(places, OP_ODB_OLD, false, remove_rest, entries);
	return first_err ? first_err : for_links(places, OP_ODB_FOR, true, remove_rest, entries);
}

int op_odb_recover(int dir_fd, const char *tmp_path, const struct op_odb_moves *moves, struct op_odb_recovery *ret_recovery)
{
	struct op_odb_recovery recovery = { 0 };
	struct op_odb_places places = { .parent = -1 };
	struct entries entries = { 0 };
	int err;

	places.tmp_parent = op_file_open_parent(dir_fd, tmp_path, false, &places.tmp_name);
	if (places.tmp_parent < 0)
		return places.tmp_parent == -ENOENT ? 0 : places.tmp_parent;
	op_sys_unlinkat(places.tmp_parent, places.tmp_name, 0);
	err = for_links(&places, OP_ODB_FOR, false, add_entry, &entries);
	if (!err && moves)
		err = relocate(dir_fd, moves, &entries);
	if (!err)
		err = recover_all(dir_fd, &places, &entries, &recovery);
	for (size_t i = 0; i < entries.nr; i++)
		free(entries.entries[i].path);
	free(entries.entries);
	close_places(&places);
	if (!err)
		*ret_recovery = recovery;
	return err;
}
