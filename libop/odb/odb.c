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
#define FETCH_ROUNDS 2          /* nodes of a bucket behind the first that are asked for */
#define RETRY_NS     100000000u /* a file that could not be replaced is tried again after 100 ms */

struct op_odb {
	uint64_t total;                 /* of all counts */
	struct op_odb_pending *pending; /* files that took the place of others, not on the disk yet */
	struct op_odb_map map;
	uint32_t dropped;
	bool is_new;
	bool is_foreign;                /* somebody wrote over it */
	uint32_t nr_nodes;              /* in use, node 0 among them: what the descriptor has to say */
	uint64_t made_bytes; /* of the disk, when the file was made */
	struct op_odb_space *space; /* the caller's; NULL: no limit */
	int error;         /* of the last attempt to replace the file */
	uint64_t retry_ns; /* when the next is made */
	bool promised;     /* what is in it is on the disk, or will be: see op_odb_promise */
	int dir_fd;
	char *tmp_path;
	char path[];
};

static_assert(offsetof(struct op_odb, map.disk_bytes) == OP_CACHE_LINE_BYTES, "what each addition needs is one cache line");

/* ---- files in the making: below tmp_path until they have their place ---- */

struct making {
	int tmp_fd; /* of the directory */
	const char *tmp_name;
	struct op_odb_map map;
};

static int begin_making(const struct op_odb *odb, uint32_t size, uint32_t nr_nodes, struct making *ret_making)
{
	struct making making;
	int err;

	making.tmp_fd = op_file_open_parent(odb->dir_fd, odb->tmp_path, true, &making.tmp_name);
	err = making.tmp_fd < 0 ? making.tmp_fd : op_odb_make_file(making.tmp_fd, making.tmp_name, size, nr_nodes, &making.map);
	if (!err)
		*ret_making = making;
	else if (making.tmp_fd >= 0)
		close(making.tmp_fd);
	return err;
}

/* What has no place is gone. */
static void end_making(const struct making *making, int err)
{
	if (err) {
		op_sys_unlinkat(making->tmp_fd, making->tmp_name, 0);
		op_odb_unmap(&making->map);
	}
	close(making->tmp_fd);
}

static int create(struct op_odb *odb, struct op_file_path *place, const struct op_odb_header *header)
{
	struct making making;
	uint64_t dir_bytes;
	int err = begin_making(odb, OP_ODB_INITIAL_SIZE, 1, &making);

	if (err)
		return err;
	*making.map.header = *header;
	err = op_odb_map_error(&making.map);
	if (!err)
		err = op_file_path_publish(place, making.tmp_fd, making.tmp_name, &dir_bytes);
	end_making(&making, err);
	if (err)
		return err;
	odb->map = making.map;
	odb->made_bytes = odb->map.disk_bytes + dir_bytes;
	odb->nr_nodes = 1;
	return 0;
}

/* ---- what is there already ---- */

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
	odb->promised = true;
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

void op_odb_promise(struct op_odb *odb)
{
	odb->promised = true;
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
	return op_load_relaxed(&odb->map.descr->current_size) == odb->nr_nodes && op_load_relaxed(&odb->map.descr->size) == odb->map.size;
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

static int publish_unpromised(const struct op_odb *odb, const struct making *other)
{
	struct op_file_path place;
	int err = op_file_path_find(odb->dir_fd, odb->path, &place);

	if (err)
		return err;
	err = op_file_path_publish(&place, other->tmp_fd, other->tmp_name, NULL);
	op_file_path_close(&place);
	return err;
}

/*
 * Another file takes the place of this one at once; nobody waits for the disk. Where the old one is on the disk by a dump's
 * promise it is kept until the new one is, too. A kill at any moment leaves the old or the new one.
 */
static int publish_other(struct op_odb *odb, const struct making *other)
{
	struct op_odb_pending *pending;
	int err = op_odb_map_error(&odb->map);

	if (!err)
		err = op_odb_map_error(&other->map);
	if (err)
		return err;
	if (!odb->promised)
		return publish_unpromised(odb, other);
	err = op_odb_replace(odb->dir_fd, odb->tmp_path, odb->path, other->map.inode, &pending);
	if (err)
		return err;
	pending->next = odb->pending;
	odb->pending = pending;
	return 0;
}

/*
 * A new file costs the file system the same whatever its size, and more than all that is counted in it: a small one gets so much more room
 * that few are made.
 */
static uint32_t larger_size(uint32_t size)
{
	return size < QUICK_SIZE ? size * 4 : size * 2;
}

/* A file of that size with all that is in this one takes its place. */
static int replace(struct op_odb *odb, uint32_t size)
{
	uint32_t nr_nodes = odb->nr_nodes;
	struct making other;
	int err = has_own_head(odb) ? 0 : give_up(odb);

	if (!err)
		err = begin_making(odb, size, nr_nodes, &other);
	if (err)
		return err;
	*other.map.header = *odb->map.header;
	memcpy(other.map.nodes, odb->map.nodes, (size_t)nr_nodes * sizeof(struct op_odb_node));
	other.map.descr->current_size = nr_nodes;
	op_odb_link_nodes(&other.map);
	err = publish_other(odb, &other);
	end_making(&other, err);
	if (err)
		return err;
	op_odb_unmap(&odb->map);
	odb->map = other.map;
	return 0;
}

/* Blocks for the node, or a larger file. Where somebody else's stands in the place of this one it is replaced, as when it is full. */
static int extend(struct op_odb *odb, uint32_t index)
{
	int err;

	if (index >= odb->map.size)
		return replace(odb, larger_size(odb->map.size));
	err = op_odb_back_nodes(odb->dir_fd, odb->path, &odb->map, index + 1);
	return err == -ESTALE || err == -ENOENT ? replace(odb, odb->map.size) : err;
}

/* Whether the files that share the space may have what extend() would take, and one more block to find the others by. */
static bool may_extend(const struct op_odb *odb, uint32_t index)
{
	const struct op_odb_space *space = odb->space;
	uint32_t size = index < odb->map.size ? odb->map.size : larger_size(odb->map.size);
	uint64_t wanted = op_odb_disk_bytes(size, index + 1) + OP_ODB_BLOCK_BYTES;
	uint64_t more = wanted - op_min_u64(odb->map.disk_bytes, wanted);

	return !space || !space->max_bytes || space->taken_bytes + space->kept_bytes + more <= space->max_bytes;
}

/* On a full disk not with every sample. */
static int make_room(struct op_odb *odb, uint32_t index)
{
	uint64_t before = odb->map.disk_bytes;

	if (index >= OP_ODB_SIZE_MAX)
		return -EFBIG;
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

/* Whether it is the index of a node that has its block: one compare for both ends. */
static bool is_node(const struct op_odb_map *map, uint32_t index)
{
	return index - 1 < map->nr_backed - 1;
}

static uint32_t node_or_none(const struct op_odb_map *map, uint32_t index)
{
	return op_likely(is_node(map, index)) ? index : 0;
}

/*
 * 0: there is none. What is no node, or NO_END: somebody wrote over the chain. Not the node that holds a place by the key of another (op_odb_needs_filler): nothing is
 * counted there.
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
		int err = make_room(odb, index);

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
		/* The file may have grown: the index still holds. */
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
 * Where the node of each addition is, or how far its chain was followed: asks for the buckets, for the first node of each, and for what comes behind a
 * node that is another's, all of them before any is waited for.
 */
static void fetch(const struct op_odb_addition *additions, size_t nr_additions, uint32_t at[OP_ODB_ADDITIONS_MAX])
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

/* A node that was found stays where it is, whatever is added meanwhile. */
static int add_at(struct op_odb *odb, uint64_t key, uint32_t count, uint32_t index)
{
	struct op_odb_node *node = &odb->map.nodes[index];

	if (op_unlikely(!index || node->key != key || !node->value || count > UINT32_MAX - node->value))
		return add(odb, key, count);
	op_store_relaxed(&node->value, node->value + count);
	return 0;
}

static int add_one(const struct op_odb_addition *addition, uint32_t index)
{
	struct op_odb *odb = addition->odb;
	int err = add_at(odb, addition->key, addition->count, index);

	if (op_likely(!err))
		odb->total += addition->count;
	return err;
}

/* What was added to a map whose pages went away is not there. */
static void take_back_broken(struct op_odb_addition *additions, size_t nr_additions)
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

/* How many are to be looked at. */
static size_t nr_notable(const struct op_odb_addition *additions, size_t nr_additions)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_additions; i++)
		nr += additions[i].error || additions[i].odb->pending;
	return nr;
}

size_t op_odb_add_all(struct op_odb_addition *additions, size_t nr_additions)
{
	uint32_t at[OP_ODB_ADDITIONS_MAX];
	size_t nr_all = 0;

	while (nr_additions) {
		size_t nr = op_min_u64(nr_additions, OP_ODB_ADDITIONS_MAX);

		fetch(additions, nr, at);
		for (size_t i = 0; i < nr; i++)
			additions[i].error = add_one(&additions[i], at[i]);
		if (op_unlikely(op_guard_nr_broken()))
			take_back_broken(additions, nr);
		nr_all += nr_notable(additions, nr);
		additions += nr;
		nr_additions -= nr;
	}
	return nr_all;
}

struct op_odb_pending *op_odb_take_pending(struct op_odb *odb)
{
	struct op_odb_pending *pending = odb->pending;

	odb->pending = NULL;
	return pending;
}

void op_odb_let_go(const struct op_odb *odb)
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
