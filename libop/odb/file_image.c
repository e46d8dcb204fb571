/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/odb/file_image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"

#define FILE_MODE 0644
#define AHEAD     8 /* one node in so many has its block before it is needed */

/* ---- one file ---- */

/* `backed` has the members that tell of blocks, and the inode. */
static int map_file(int fd, uint32_t size, const struct op_odb_map *backed, struct op_odb_map *ret_map)
{
	size_t nr_bytes = op_odb_file_bytes(size);
	struct op_guard *guard;
	uint8_t *base;
	void *start;
	int err = op_sys_mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &start);

	if (err)
		return err;
	err = op_guard_new(start, nr_bytes, &guard);
	if (err) {
		op_sys_munmap(start, nr_bytes);
		return err;
	}
	base = start;
	*ret_map = (struct op_odb_map){
		.header = start,
		.descr = (void *)(base + sizeof(struct op_odb_header)),
		.nodes = (void *)(base + OP_ODB_NODES_OFFSET),
		.hash = (void *)(base + OP_ODB_NODES_OFFSET + size * sizeof(struct op_odb_node)),
		.size = size,
		.nr_backed = backed->nr_backed,
		.guard = guard,
		.disk_bytes = backed->disk_bytes,
		.nr_bytes = nr_bytes,
		.inode = backed->inode,
	};
	return 0;
}

void op_odb_unmap(const struct op_odb_map *map)
{
	op_guard_free(map->guard);
	op_sys_munmap(map->header, map->nr_bytes);
}

int op_odb_map_error(const struct op_odb_map *map)
{
	return op_unlikely(op_guard_nr_broken()) && op_guard_is_broken(map->guard) ? -EIO : 0;
}

/* ---- blocks: in whole pages, since the kernel allocates the whole page that is written to ---- */

/* Node `size` is where the hash table begins. */
static uint64_t node_offset(uint32_t index)
{
	return OP_ODB_NODES_OFFSET + (uint64_t)index * sizeof(struct op_odb_node);
}

static uint64_t round_up(uint64_t bytes, uint64_t page_bytes)
{
	return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/* The end of the blocks of a file with so many nodes, when it does not need all. */
static uint64_t backed_bytes(uint32_t nr_nodes, uint64_t page_bytes)
{
	uint64_t wanted = (uint64_t)nr_nodes + nr_nodes / AHEAD + 1;

	return round_up(OP_ODB_NODES_OFFSET + wanted * sizeof(struct op_odb_node), page_bytes);
}

/* The first page of the hash table, which may be the last page of the nodes. */
static uint64_t hash_page(uint32_t size, uint64_t page_bytes)
{
	return node_offset(size) / page_bytes * page_bytes;
}

/* A hole of one page is not worth the system calls to fill it later. */
static bool needs_all(uint32_t size, uint64_t end, uint64_t page_bytes)
{
	return end + page_bytes >= hash_page(size, page_bytes);
}

uint64_t op_odb_disk_bytes(uint32_t size, uint32_t nr_nodes)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), end = backed_bytes(nr_nodes, page_bytes);
	uint64_t all = round_up(op_odb_file_bytes(size), page_bytes);

	return needs_all(size, end, page_bytes) ? all : end + all - hash_page(size, page_bytes);
}

/* Allocates the nodes from an offset on. */
static int back_nodes(int fd, uint32_t size, uint64_t offset, uint32_t nr_nodes, struct op_odb_map *map)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), end = backed_bytes(nr_nodes, page_bytes);
	bool all = needs_all(size, end, page_bytes);
	int err;

	if (all)
		end = op_odb_file_bytes(size);
	err = op_file_allocate(fd, (off_t)offset, (off_t)(end - offset));
	if (err)
		return err;
	map->nr_backed = all ? size : (uint32_t)((end - OP_ODB_NODES_OFFSET) / sizeof(struct op_odb_node));
	return 0;
}

/* Asks the file system, which may need blocks of its own for a file in many pieces. */
static int note_disk_bytes(int fd, struct op_odb_map *map)
{
	struct stat st;
	int err = op_sys_fstat(fd, &st);

	if (err)
		return err;
	map->disk_bytes = (uint64_t)st.st_blocks * 512;
	map->inode = st.st_ino;
	return 0;
}

/* Allocates nodes and hash table, which gives the file its length. */
static int back(int fd, uint32_t size, uint32_t nr_nodes, struct op_odb_map *map)
{
	uint64_t hash = hash_page(size, (uint64_t)sysconf(_SC_PAGESIZE));
	int err = back_nodes(fd, size, 0, nr_nodes, map);

	if (!err && map->nr_backed < size)
		err = op_file_allocate(fd, (off_t)hash, (off_t)(op_odb_file_bytes(size) - hash));
	return err ? err : note_disk_bytes(fd, map);
}

int op_odb_back_nodes(int dir_fd, const char *path, struct op_odb_map *map, uint32_t nr_nodes)
{
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDWR, &st), err;

	if (fd < 0)
		return fd;
	err = st.st_ino == map->inode ? back_nodes(fd, map->size, node_offset(map->nr_backed), nr_nodes, map) : -ESTALE;
	if (!err)
		err = note_disk_bytes(fd, map);
	close(fd);
	return err;
}

static int fill(int fd, uint32_t size, uint32_t nr_nodes, struct op_odb_map *ret_map)
{
	struct op_odb_map backed = { 0 };
	int err = back(fd, size, nr_nodes, &backed);

	if (!err)
		err = map_file(fd, size, &backed, ret_map);
	if (err)
		return err;
	ret_map->descr->size = size;
	ret_map->descr->current_size = 1;
	return 0;
}

int op_odb_make_file(int dir_fd, const char *tmp_path, uint32_t size, uint32_t nr_nodes, struct op_odb_map *ret_map)
{
	int fd = op_file_create_below(dir_fd, tmp_path, FILE_MODE), err;

	if (fd < 0)
		return fd;
	err = fill(fd, size, nr_nodes, ret_map);
	close(fd);
	if (err)
		op_file_unlink_below(dir_fd, tmp_path);
	return err;
}

void op_odb_link_nodes(const struct op_odb_map *map)
{
	uint32_t nr_nodes = op_odb_map_nr_nodes(map);

	for (uint32_t i = 1; i < nr_nodes; i++)
		op_odb_link_node(map, i);
}

int op_odb_take_regular(int fd, struct stat *ret_stat)
{
	int err;

	if (fd < 0)
		return fd;
	err = op_sys_fstat(fd, ret_stat);
	if (!err && !S_ISREG(ret_stat->st_mode))
		err = -EBADMSG;
	if (err)
		close(fd);
	return err ? err : fd;
}

int op_odb_open_regular(int dir_fd, const char *path, int flags, struct stat *ret_stat)
{
	return op_odb_take_regular(op_file_open_below(dir_fd, path, flags, 0), ret_stat);
}

/* ---- existing files ---- */

/*
 * Whether the chains reach each node in use once, from the bucket of its key. Ends also when a
 * foreign chain is a circle.
 */
static bool hash_is_sound(const struct op_odb_map *map)
{
	uint32_t nr_nodes = op_odb_map_nr_nodes(map), reached = 1;

	for (uint32_t bucket = 0; bucket < map->size; bucket++) {
		for (uint32_t i = op_load_relaxed(&map->hash[bucket]); i; i = op_load_relaxed(&map->nodes[i].next)) {
			if (i >= nr_nodes || ++reached > nr_nodes || op_odb_bucket(map->nodes[i].key, map->size) != bucket)
				return false;
		}
	}
	return reached == nr_nodes;
}

/*
 * Finds the next nodes from `index` on that lie in data as a whole, and not in a hole; false:
 * there are none. Where the file system does not tell, all is data.
 */
static bool find_data(int fd, uint32_t size, uint32_t index, uint32_t *ret_begin, uint32_t *ret_end)
{
	off_t begin = op_sys_lseek(fd, (off_t)node_offset(index), SEEK_DATA), end;

	if (begin == -ENXIO || begin >= (off_t)node_offset(size))
		return false;
	if (begin < 0)
		begin = (off_t)node_offset(index);
	end = op_sys_lseek(fd, begin, SEEK_HOLE);
	*ret_begin = index + (uint32_t)(((uint64_t)begin - node_offset(index) + sizeof(struct op_odb_node) - 1) /
					sizeof(struct op_odb_node));
	*ret_end = end < 0 ? size : (uint32_t)op_min_u64(size, ((uint64_t)end - OP_ODB_NODES_OFFSET) / sizeof(struct op_odb_node));
	return true;
}

static uint32_t drop_nodes(const struct op_odb_map *map, uint32_t begin, uint32_t end)
{
	uint32_t nr_dropped = 0;

	for (uint32_t i = begin; i < end; i++) {
		if (!map->nodes[i].key && !map->nodes[i].value)
			continue;
		map->nodes[i] = (struct op_odb_node){ 0 };
		nr_dropped++;
	}
	return nr_dropped;
}

/*
 * Nodes that the last writer wrote and did not publish. Reading a hole may cost a page, so holes
 * are skipped.
 */
static uint32_t drop_unpublished(int fd, const struct op_odb_map *map)
{
	uint32_t nr_dropped = 0, begin = 0, end;

	for (uint32_t i = op_odb_map_nr_nodes(map); i < map->size && find_data(fd, map->size, i, &begin, &end); i = end + 1)
		nr_dropped += drop_nodes(map, begin, end);
	return nr_dropped;
}

static bool has_torn_nodes(const struct op_odb_map *map)
{
	uint32_t nr_nodes = op_odb_map_nr_nodes(map);

	for (uint32_t i = 1; i < nr_nodes; i++)
		if (op_odb_is_torn(&map->nodes[i], i))
			return true;
	return false;
}

/* The nodes are the truth; the hash table is rebuilt from them. */
static void mend_hash(const struct op_odb_map *map)
{
	if (hash_is_sound(map))
		return;
	memset(map->hash, 0, map->size * sizeof(uint32_t));
	op_odb_link_nodes(map);
}

/* -EUCLEAN when length and descriptor differ, or the file is of oprofile 0.9. */
static int read_descr(int fd, const struct stat *st, struct op_odb_descr *ret_descr)
{
	struct {
		struct op_odb_header header;
		struct op_odb_descr descr;
	} head;
	ssize_t nr = op_sys_pread(fd, &head, sizeof(head), 0);
	int err;

	if (nr < 0)
		return (int)nr;
	if (nr < (ssize_t)sizeof(head))
		return -EBADMSG;
	err = op_odb_is_of_0_9(&head.header) ? -EUCLEAN : op_odb_check_head(&head.header, &head.descr);
	if (!err && st->st_size != (off_t)op_odb_file_bytes(head.descr.size))
		err = -EUCLEAN;
	if (!err)
		*ret_descr = head.descr;
	return err;
}

static int punch_behind_nodes(int fd, const struct op_odb_descr *descr)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), begin = node_offset(descr->current_size);
	uint64_t end = round_up(op_odb_file_bytes(descr->size), page_bytes);

	/* Either the whole hash table goes, or nothing. */
	if (round_up(begin, page_bytes) >= end)
		return 0;
	return op_sys_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin));
}

int op_odb_compact(int dir_fd, const char *path)
{
	struct op_odb_descr descr;
	struct stat st;
	int fd = op_odb_open_regular(dir_fd, path, O_RDWR, &st), err;

	if (fd < 0)
		return fd;
	err = read_descr(fd, &st, &descr);
	if (!err)
		err = punch_behind_nodes(fd, &descr);
	close(fd);
	return err;
}

int op_odb_map_sound(int fd, const struct stat *st, struct op_odb_map *ret_map, uint32_t *ret_dropped)
{
	struct op_odb_descr descr = { 0 };
	struct op_odb_map map, backed = { 0 };
	uint32_t dropped;
	int err = read_descr(fd, st, &descr);

	/* A sparse copy lacks blocks; writing there would be SIGBUS on a full disk. */
	if (!err)
		err = back(fd, descr.size, descr.current_size, &backed);
	if (!err)
		err = map_file(fd, descr.size, &backed, &map);
	if (err)
		return err;
	if (has_torn_nodes(&map)) {
		err = op_odb_map_error(&map);
		op_odb_unmap(&map);
		return err ? err : -EUCLEAN;
	}
	dropped = drop_unpublished(fd, &map);
	mend_hash(&map);
	err = op_odb_map_error(&map);
	if (err) {
		op_odb_unmap(&map);
		return err;
	}
	*ret_dropped = dropped;
	*ret_map = map;
	return 0;
}
