/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/odb.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/clock.h"
#include "libop/base/file.h"
#include "libop/base/file_path.h"
#include "libop/base/sys.h"
#include "libop/odb/file_image.h"
#include "libop/odb/repair.h"
#include "libop/odb/replace.h"

#define NO_END       UINT32_MAX /* no node: the chain leads in a circle */
#define QUICK_SIZE   2048u      /* nodes, in 40 kB */
#define FETCH_ROUNDS 2          /* nodes of a bucket behind the first that are prefetched */
#define RETRY_NS     100000000u /* a file that could not be replaced is tried again after 100 ms */

struct op_odb {
	uint64_t total;                 /* of all counts */
	struct op_odb_pending *pending; /* replacements that are not on the disk yet */
	struct op_odb_map map;
	uint32_t dropped;
	bool is_new;
	bool is_foreign;                /* another program overwrote it */
	uint32_t nr_nodes;              /* in use, with node 0; the descriptor must say the same */
	uint64_t made_bytes;            /* of the disk, by op_odb_open */
	struct op_odb_space *space;     /* the caller's; NULL: no limit */
	int error;                      /* of the last attempt to grow */
	uint64_t retry_ns;              /* the time of the next one */
	bool was_dumped;                  /* op_odb_mark_dumped */
	int dir_fd;
	char *tmp_path;
	char path[];
};

static_assert(sizeof(void *) < 8 || offsetof(struct op_odb, map.disk_bytes) == OP_CACHE_LINE_BYTES,
	      "an addition needs one cache line of it");

/* ---- new files: at tmp_path until they are renamed ---- */

struct new_file {
	int tmp_fd; /* of the directory */
	const char *tmp_name;
	struct op_odb_map map;
};

static int begin_file(const struct op_odb *odb, uint32_t size, uint32_t nr_nodes, struct new_file *ret_file)
{
	struct new_file file;
	int err;

	file.tmp_fd = op_file_open_parent(odb->dir_fd, odb->tmp_path, true, &file.tmp_name);
	err = file.tmp_fd < 0 ? file.tmp_fd : op_odb_make_file(file.tmp_fd, file.tmp_name, size, nr_nodes, &file.map);
	if (!err)
		*ret_file = file;
	else if (file.tmp_fd >= 0)
		close(file.tmp_fd);
	return err;
}

/* `err`: the file was not renamed, and is removed. */
static void end_file(const struct new_file *file, int err)
{
	if (err) {
		op_sys_unlinkat(file->tmp_fd, file->tmp_name, 0);
		op_odb_unmap(&file->map);
	}
	close(file->tmp_fd);
}

static int create(struct op_odb *odb, struct op_file_path *place, const struct op_odb_header *header)
{
	struct new_file file;
	uint64_t dir_bytes;
	int err = begin_file(odb, OP_ODB_INITIAL_SIZE, 1, &file);

	if (err)
		return err;
	*file.map.header = *header;
	err = op_odb_map_error(&file.map);
	if (!err)
		err = op_file_path_publish(place, file.tmp_fd, file.tmp_name, &dir_bytes);
	end_file(&file, err);
	if (err)
		return err;
	odb->map = file.map;
	odb->made_bytes = odb->map.disk_bytes + dir_bytes;
	odb->nr_nodes = 1;
	return 0;
}

/* ---- existing files ---- */

static int add_up(struct op_odb *odb)
{
	int err;

	odb->nr_nodes = op_odb_map_nr_nodes(&odb->map);
	odb->total = 0;
	for (uint32_t i = 1; i < odb->nr_nodes; i++)
		odb->total += odb->map.nodes[i].value;
	err = op_odb_map_error(&odb->map);
	if (err) {
		op_odb_unmap(&odb->map);
		odb->map.header = NULL;
	}
	return err;
}

static int open_existing(struct op_odb *odb, const struct op_file_path *place)
{
	struct stat st;
	int fd = op_odb_take_regular(op_file_path_open(place, O_RDWR, 0), &st), err;
	uint32_t dropped = 0;

	if (fd < 0)
		return fd;
	err = op_odb_map_sound(fd, &st, &odb->map, &dropped);
	close(fd);
	odb->dropped += dropped;
	odb->was_dumped = true;
	return err ? err : add_up(odb);
}

static int open_or_repair(struct op_odb *odb, const struct op_file_path *place)
{
	int err = open_existing(odb, place);
	struct op_odb_pending *pending = NULL;
	uint32_t dropped;

	if (err != -EUCLEAN)
		return err;
	err = op_odb_repair(odb->dir_fd, odb->path, odb->tmp_path, &dropped, &pending);
	if (err)
		return err;
	odb->pending = pending;
	odb->dropped += dropped;
	return open_existing(odb, place);
}

static int open_or_create(struct op_odb *odb, const struct op_odb_header *header)
{
	struct op_file_path place;
	int err = op_file_path_find(odb->dir_fd, odb->path, &place);

	if (err)
		return err;
	err = open_or_repair(odb, &place);
	odb->is_new = err == -ENOENT;
	if (odb->is_new)
		err = create(odb, &place, header);
	op_file_path_close(&place);
	return err;
}

int op_odb_open(int dir_fd, const char *path, const char *tmp_path, const struct op_odb_header *header, struct op_odb **ret_odb)
{
	size_t path_bytes = strlen(path) + 1;
	struct op_odb *odb = aligned_alloc(OP_CACHE_LINE_BYTES, op_whole_lines(sizeof(*odb) + path_bytes));
	int err;

	if (!odb)
		return -ENOMEM;
	*odb = (struct op_odb){ .dir_fd = dir_fd };
	memcpy(odb->path, path, path_bytes);
	odb->tmp_path = strdup(tmp_path);
	if (!odb->tmp_path) {
		op_odb_close(odb);
		return -ENOMEM;
	}
	err = open_or_create(odb, header);
	if (err) {
		op_odb_close(odb);
		return err;
	}
	*ret_odb = odb;
	return 0;
}

void op_odb_share(struct op_odb *odb, struct op_odb_space *space)
{
	odb->space = space;
	space->taken_bytes += odb->made_bytes;
	odb->made_bytes = 0;
}

const struct op_odb_header *op_odb_header(const struct op_odb *odb)
{
	return odb->map.header;
}

void op_odb_mark_dumped(struct op_odb *odb)
{
	odb->was_dumped = true;
}

bool op_odb_is_new(const struct op_odb *odb)
{
	return odb->is_new;
}

uint32_t op_odb_dropped(const struct op_odb *odb)
{
	return odb->dropped;
}

/* Whether the descriptor says what the writer last wrote there. */
static bool has_own_descr(const struct op_odb *odb)
{
	const struct op_odb_descr *descr = odb->map.descr;

	return op_load_relaxed(&descr->current_size) == odb->nr_nodes && op_load_relaxed(&descr->size) == odb->map.size;
}

static bool has_own_head(const struct op_odb *odb)
{
	return has_own_descr(odb) && !op_odb_check_head(odb->map.header, odb->map.descr);
}

static int give_up(struct op_odb *odb)
{
	int err = op_odb_map_error(&odb->map);

	odb->is_foreign = true;
	return err ? err : -EBADMSG;
}

/*
 * Renames the other file to the path of this one. A kill at any moment leaves the old or the new
 * file.
 */
static int publish_other(struct op_odb *odb, const struct new_file *other)
{
	struct op_odb_pending *pending;
	uint64_t dir_bytes;
	int err = op_odb_map_error(&odb->map);

	if (!err)
		err = op_odb_map_error(&other->map);
	if (err)
		return err;
	if (!odb->was_dumped)
		return op_file_publish_below(odb->dir_fd, odb->tmp_path, odb->path, &dir_bytes);
	err = op_odb_replace(odb->dir_fd, odb->tmp_path, odb->path, other->map.inode, &pending);
	if (err)
		return err;
	pending->next = odb->pending;
	odb->pending = pending;
	return 0;
}

/*
 * A new file costs the file system more time than the counting in it, whatever its size. So small
 * files grow in large steps.
 */
static uint32_t larger_size(uint32_t size)
{
	return size < QUICK_SIZE ? size * 4 : size * 2;
}

/* Replaces the file by one of that size with the same nodes. */
static int replace(struct op_odb *odb, uint32_t size)
{
	uint32_t nr_nodes = odb->nr_nodes;
	struct new_file other;
	int err = has_own_head(odb) ? 0 : give_up(odb);

	if (!err)
		err = begin_file(odb, size, nr_nodes, &other);
	if (err)
		return err;
	*other.map.header = *odb->map.header;
	memcpy(other.map.nodes, odb->map.nodes, (size_t)nr_nodes * sizeof(struct op_odb_node));
	other.map.descr->current_size = nr_nodes;
	op_odb_link_nodes(&other.map);
	err = publish_other(odb, &other);
	end_file(&other, err);
	if (err)
		return err;
	op_odb_unmap(&odb->map);
	odb->map = other.map;
	return 0;
}

/*
 * Gives the node a block, or replaces the full file by a larger one, and a file that is not at its
 * path any more by a copy.
 */
static int extend(struct op_odb *odb, uint32_t index)
{
	int err;

	if (index >= odb->map.size)
		return replace(odb, larger_size(odb->map.size));
	err = op_odb_back_nodes(odb->dir_fd, odb->path, &odb->map, index + 1);
	return err == -ESTALE || err == -ENOENT ? replace(odb, odb->map.size) : err;
}

/*
 * Whether the shared space has room for extend(), and for one more block of the file system's own.
 */
static bool may_extend(const struct op_odb *odb, uint32_t index)
{
	const struct op_odb_space *space = odb->space;
	uint32_t size = index < odb->map.size ? odb->map.size : larger_size(odb->map.size);
	uint64_t wanted = op_odb_disk_bytes(size, index + 1) + OP_ODB_BLOCK_BYTES;
	uint64_t more = wanted - op_min_u64(odb->map.disk_bytes, wanted);

	return !space || !space->max_bytes || space->taken_bytes + space->kept_bytes + more <= space->max_bytes;
}

/* Makes node `index` usable. On a full disk it does not try again with every sample. */
static int back_node(struct op_odb *odb, uint32_t index)
{
	uint64_t before = odb->map.disk_bytes;

	if (index >= OP_ODB_SIZE_MAX)
		return -EOVERFLOW; /* no limit of the process, as EFBIG is */
	if (!may_extend(odb, index))
		return -EMLINK;
	if (odb->error && op_now_ns() < odb->retry_ns)
		return odb->error;
	odb->error = extend(odb, index);
	if (odb->error)
		odb->retry_ns = op_now_ns() + RETRY_NS;
	else if (odb->space)
		odb->space->taken_bytes += odb->map.disk_bytes - before;
	return odb->error;
}

int op_odb_renew(struct op_odb *odb)
{
	return replace(odb, odb->map.size);
}

/* Whether it is the index of a node that has a block; one comparison for both ends. */
static bool is_node(const struct op_odb_map *map, uint32_t index)
{
	return index - 1 < map->nr_backed - 1;
}

static uint32_t node_or_none(const struct op_odb_map *map, uint32_t index)
{
	return op_likely(is_node(map, index)) ? index : 0;
}

/*
 * The node of a key, which is no filler (op_odb_needs_filler). 0: there is none. Any other index
 * that is no node, such as NO_END: the chain was overwritten.
 */
static uint32_t find(const struct op_odb *odb, uint64_t key)
{
	const struct op_odb_map *map = &odb->map;
	const struct op_odb_node *nodes = map->nodes;
	uint32_t index = op_load_relaxed(op_odb_map_bucket(map, key)), nr_left = map->nr_backed;

	while (op_likely(is_node(map, index)) && (nodes[index].key != key || !nodes[index].value)) {
		if (op_unlikely(!--nr_left))
			return NO_END;
		index = op_load_relaxed(&nodes[index].next);
	}
	return index;
}

uint32_t op_odb_nr_nodes(const struct op_odb *odb)
{
	return odb->nr_nodes - 1;
}

bool op_odb_has(const struct op_odb *odb, uint64_t key)
{
	return is_node(&odb->map, find(odb, key));
}

static int append(struct op_odb *odb, uint64_t key, uint32_t count)
{
	uint32_t index = odb->nr_nodes;

	if (op_unlikely(!has_own_descr(odb)))
		return give_up(odb);
	if (op_unlikely(index >= odb->map.nr_backed)) {
		int err = back_node(odb, index);

		if (err)
			return err;
	}
	odb->map.nodes[index].key = key;
	odb->map.nodes[index].value = count;
	op_odb_link_node(&odb->map, index);
	odb->nr_nodes = index + 1;
	/* P, pairs with Q in op_odb_read: a reader that sees the size sees the node. */
	op_store_release(&odb->map.descr->current_size, index + 1);
	return 0;
}

static int insert(struct op_odb *odb, uint64_t key, uint32_t count)
{
	if (op_unlikely(op_odb_needs_filler(key, odb->nr_nodes))) {
		int err = append(odb, odb->map.nodes[odb->nr_nodes - 1].key, 0);

		if (err)
			return err;
	}
	return append(odb, key, count);
}

static int add(struct op_odb *odb, uint64_t key, uint32_t count)
{
	uint32_t index = find(odb, key);
	uint32_t value;

	if (!index)
		return insert(odb, key, count);
	if (op_unlikely(!is_node(&odb->map, index)))
		return give_up(odb);
	value = odb->map.nodes[index].value;
	if (op_unlikely(count > UINT32_MAX - value)) {
		uint32_t fits = UINT32_MAX - value;
		int err = insert(odb, key, count - fits);

		if (err)
			return err;
		/* The file may have grown; the index is the same in the new one. */
		op_store_relaxed(&odb->map.nodes[index].value, UINT32_MAX);
		return 0;
	}
	op_store_relaxed(&odb->map.nodes[index].value, value + count);
	return 0;
}

int op_odb_add(struct op_odb *odb, uint64_t key, uint32_t count)
{
	int err = add(odb, key, count), map_err = op_odb_map_error(&odb->map);

	if (op_unlikely(map_err))
		return map_err;
	if (!err)
		odb->total += count;
	return err;
}

bool op_odb_is_broken(const struct op_odb *odb)
{
	return op_odb_map_error(&odb->map) || odb->is_foreign || !has_own_head(odb);
}

uint64_t op_odb_inode(const struct op_odb *odb)
{
	return odb->map.inode;
}

uint64_t op_odb_total(const struct op_odb *odb)
{
	return odb->total;
}

/*
 * Prefetches for all additions at once: the buckets, then the first node of each, then, where that
 * has another key, the next nodes. at[i] is the node where this ended for addition i, or 0.
 */
static void prefetch_nodes(const struct op_odb_addition *additions, size_t nr_additions, uint32_t at[OP_ODB_ADDITIONS_MAX])
{
	for (size_t i = 0; i < nr_additions; i++)
		op_prefetch(op_odb_map_bucket(&additions[i].odb->map, additions[i].key));
	for (size_t i = 0; i < nr_additions; i++) {
		const struct op_odb_map *map = &additions[i].odb->map;

		at[i] = node_or_none(map, op_load_relaxed(op_odb_map_bucket(map, additions[i].key)));
		op_prefetch(&map->nodes[at[i]]);
	}
	for (int round = 0; round < FETCH_ROUNDS; round++) {
		for (size_t i = 0; i < nr_additions; i++) {
			const struct op_odb_node *nodes = additions[i].odb->map.nodes;

			if (!at[i] || nodes[at[i]].key == additions[i].key)
				continue;
			at[i] = node_or_none(&additions[i].odb->map, op_load_relaxed(&nodes[at[i]].next));
			op_prefetch(&nodes[at[i]]);
		}
	}
	for (size_t i = 0; i < nr_additions; i++)
		if (!at[i])
			op_prefetch(additions[i].odb->map.descr);
}

/* `index` is of prefetch_nodes; additions in between do not move nodes. */
static int add_at(struct op_odb *odb, uint64_t key, uint32_t count, uint32_t index)
{
	struct op_odb_node *node = &odb->map.nodes[index];
	int err = 0;

	if (op_unlikely(!index || node->key != key || !node->value || count > UINT32_MAX - node->value))
		err = add(odb, key, count);
	else
		op_store_relaxed(&node->value, node->value + count);
	if (op_likely(!err))
		odb->total += count;
	return err;
}

/* Additions to a map whose pages went away failed. */
static void fail_broken(struct op_odb_addition *additions, size_t nr_additions)
{
	for (size_t i = 0; i < nr_additions; i++) {
		int err = op_odb_map_error(&additions[i].odb->map);

		if (!err)
			continue;
		if (!additions[i].error)
			additions[i].odb->total -= additions[i].count;
		additions[i].error = err;
	}
}

size_t op_odb_add_all(struct op_odb_addition *additions, size_t nr_additions)
{
	uint32_t at[OP_ODB_ADDITIONS_MAX];
	size_t nr_notable = 0;

	while (nr_additions) {
		size_t nr = op_min_u64(nr_additions, OP_ODB_ADDITIONS_MAX);

		prefetch_nodes(additions, nr, at);
		for (size_t i = 0; i < nr; i++)
			additions[i].error = add_at(additions[i].odb, additions[i].key, additions[i].count, at[i]);
		if (op_unlikely(op_guard_nr_broken()))
			fail_broken(additions, nr);
		for (size_t i = 0; i < nr; i++)
			nr_notable += additions[i].error || additions[i].odb->pending;
		additions += nr;
		nr_additions -= nr;
	}
	return nr_notable;
}

struct op_odb_pending *op_odb_take_pending(struct op_odb *odb)
{
	struct op_odb_pending *pending = odb->pending;

	odb->pending = NULL;
	return pending;
}

void op_odb_drop_pages(const struct op_odb *odb)
{
	op_sys_release_pages(odb->map.header, odb->map.nr_bytes);
}

void op_odb_close(struct op_odb *odb)
{
	if (!odb)
		return;
	if (odb->map.header)
		op_odb_unmap(&odb->map);
	op_odb_free_pending(odb->pending);
	free(odb->tmp_path);
	free(odb);
}
