/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files as mapped memory: made, opened, extended by blocks, checked. One thread at a time
 * uses a map.
 */
#ifndef OP_ODB_FILE_IMAGE_H
#define OP_ODB_FILE_IMAGE_H

#include <sys/stat.h>

#include "libop/base/atomic.h"
#include "libop/process/guard.h"
#include "libop/odb/format.h"

/* A file that is mapped. Its descriptor is closed: open sample files cost no descriptors. */
struct op_odb_map {
	struct op_odb_header *header; /* start of the mapping */
	struct op_odb_descr *descr;
	struct op_odb_node *nodes;
	uint32_t *hash;
	uint32_t size;      /* as in the descriptor, which is a page away */
	uint32_t nr_backed; /* nodes from 0 on that have blocks; only these may be written */
	struct op_guard *guard; /* of the mapping; op_odb_add needs the members above only */
	uint64_t disk_bytes; /* of all blocks of the file */
	size_t nr_bytes;
	uint64_t inode;
};

/* 0, or -EIO when pages of the file went away under the map (libop/process/guard.h). */
int op_odb_map_error(const struct op_odb_map *map) OP_NONNULL OP_MUST_CHECK;

void op_odb_unmap(const struct op_odb_map *map) OP_NONNULL;

/*
 * Makes tmp_path below dir_fd with room for `size` nodes and maps it. It is zero but for the
 * descriptor, which says that there are no nodes. nr_nodes nodes (node 0 is one), some more, and
 * the hash table get blocks, so that writing there cannot fail; the rest is a hole. 0, or -errno
 * and nothing is left.
 */
int op_odb_make_file(int dir_fd, const char *tmp_path, uint32_t size, uint32_t nr_nodes,
		     struct op_odb_map *ret_map) OP_NONNULL OP_MUST_CHECK;

/* Estimates the disk space of such a file; map.disk_bytes has what the file system says. */
uint64_t op_odb_disk_bytes(uint32_t size, uint32_t nr_nodes);

/*
 * Allocates blocks for nr_nodes and some more of the file that is mapped and stands at `path`. 0;
 * -ESTALE when another file stands there; another -errno.
 */
int op_odb_back_nodes(int dir_fd, const char *path, struct op_odb_map *map, uint32_t nr_nodes) OP_NONNULL OP_MUST_CHECK;

/* Builds the hash chains from the nodes in use. The hash table must be zero. */
void op_odb_link_nodes(const struct op_odb_map *map) OP_NONNULL;

/*
 * Nodes in use by the descriptor, node 0 among them; at most `size`, whatever the descriptor says.
 */
static inline uint32_t op_odb_map_nr_nodes(const struct op_odb_map *map)
{
	return (uint32_t)op_min_u64(op_load_relaxed(&map->descr->current_size), map->size);
}

static inline uint32_t *op_odb_map_bucket(const struct op_odb_map *map, uint64_t key)
{
	return &map->hash[op_odb_bucket(key, map->size)];
}

/* Puts a node at the front of its bucket. */
static inline void op_odb_link_node(const struct op_odb_map *map, uint32_t index)
{
	uint32_t *bucket = op_odb_map_bucket(map, map->nodes[index].key);

	map->nodes[index].next = *bucket;
	*bucket = index;
}

/*
 * Maps an existing file and gives blocks to its nodes in use, as op_odb_make_file does. Removes
 * and counts nodes that were written but not published, and rebuilds the hash table where it is
 * wrong. 0; -EUCLEAN when the file needs op_odb_repair first: its length is wrong, nodes are torn,
 * or it is of oprofile 0.9; -EBADMSG when it is no sample file; another -errno.
 */
int op_odb_map_sound(int fd, const struct stat *st, struct op_odb_map *ret_map, uint32_t *ret_dropped) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens a regular file; follows no links. A descriptor, -EBADMSG for another kind of file, another
 * -errno.
 */
int op_odb_open_regular(int dir_fd, const char *path, int flags, struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/* The same for a descriptor, which it closes after an error; a negative fd is returned as it is. */
int op_odb_take_regular(int fd, struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/*
 * Gives back the blocks behind the nodes in use, those of the hash table too, which is empty then.
 * Readers do not need it, and op_odb_open rebuilds it. Nobody may count in the file or have it
 * mapped to write. 0; -EBADMSG, -EUCLEAN when it is no whole sample file; -EOPNOTSUPP where the
 * file system cannot do it.
 */
int op_odb_compact(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

#endif
