/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files as files: made, put in place, replaced. Between the files of odb*.c.
 *
 * A file that replaces one that a dump has promised to be on the disk is not on the disk itself yet, and whoever counts does not
 * wait until it is. Meanwhile the one before it is kept:
 *
 *   tmp/sample.old-INODE   what was there before, a hard link
 *   tmp/sample.for-INODE   a symbolic link whose text is the path (keep.h); INODE, in hexadecimal, is that of the new file
 *
 * A sealed file, as the symbols of JIT code are, is replaced in the same way. A file may grow again meanwhile; then there are several of these pairs. op_odb_settle writes the new one to the disk and removes the two; op_odb_recover decides, after an unclean stop, which one stays.
 */
#ifndef OP_ODB_FILE_H
#define OP_ODB_FILE_H

#include <sys/stat.h>

#include "libop/base/atomic.h"
#include "libop/base/compiler.h"
#include "libop/base/guard.h"
#include "libop/odb/odb.h"

#define OP_ODB_SIZE_MAX (1u << 27) /* nodes; 2.7 GB in one file: an image has no more addresses than that */

/* A file that is mapped. Its descriptor is closed, so open sample files cost no descriptors. */
struct op_odb_map {
	struct op_odb_header *header; /* start of the mapping */
	struct op_odb_descr *descr;
	struct op_odb_node *nodes;
	uint32_t *hash;
	uint32_t size;      /* as in the descriptor, which is a page away */
	uint32_t nr_backed; /* nodes from 0 on that have blocks: no others are written to */
	struct op_guard *guard; /* of the mapping; what is behind it is not needed to add */
	uint64_t disk_bytes; /* in all its blocks */
	size_t nr_bytes;
	uint64_t inode;
};

/* 0, or -EIO when what was in the map, or was written to it, may be gone (libop/base/guard.h). */
int op_odb_map_error(const struct op_odb_map *map) OP_NONNULL OP_MUST_CHECK;

/* Unmaps. */
void op_odb_unmap(const struct op_odb_map *map) OP_NONNULL;

/*
 * Makes tmp_path below dir_fd with room for `size` nodes, mapped, zero but for the descriptor, which says that there are none. Blocks are allocated for nr_nodes of them,
 * node 0 is one, for some more, and for the hash table: what is written there later cannot fail. The rest is a hole. 0, or -errno and nothing is left.
 */
int op_odb_make_file(int dir_fd, const char *tmp_path, uint32_t size, uint32_t nr_nodes,
		     struct op_odb_map *ret_map) OP_NONNULL OP_MUST_CHECK;

/* What a file of that size takes of the disk when it has room for nr_nodes, by this reckoning; map.disk_bytes is what the file system says afterwards. */
uint64_t op_odb_disk_bytes(uint32_t size, uint32_t nr_nodes);

/* Allocates blocks for nr_nodes and some more of the file that is mapped and stands at `path`. 0; -ESTALE when another file does; another -errno. */
int op_odb_back_nodes(int dir_fd, const char *path, struct op_odb_map *map, uint32_t nr_nodes) OP_NONNULL OP_MUST_CHECK;

/* Puts the hash chains together anew from the nodes in use; the hash table is zero. */
void op_odb_link_nodes(const struct op_odb_map *map) OP_NONNULL;

/* Nodes in use, node 0 among them, by the descriptor; no more than there are, whoever wrote it. */
static inline uint32_t op_odb_map_nr_nodes(const struct op_odb_map *map)
{
	return (uint32_t)op_min_u64(op_load_relaxed(&map->descr->current_size), map->size);
}

/* The bucket of a key, and a node at its front. */
static inline uint32_t *op_odb_map_bucket(const struct op_odb_map *map, uint64_t key)
{
	return &map->hash[op_odb_bucket(key, map->size)];
}

static inline void op_odb_link_node(const struct op_odb_map *map, uint32_t index)
{
	uint32_t *bucket = op_odb_map_bucket(map, map->nodes[index].key);

	map->nodes[index].next = *bucket;
	*bucket = index;
}

/* What is wrong with a file, in the words of the genuine tools. */
#define OP_ODB_NO_HEADER   "Can't read sample file header"
#define OP_ODB_BAD_MAGIC   "Invalid sample file, bad magic number"
#define OP_ODB_BAD_VERSION "samples files version mismatch"
#define OP_ODB_BAD_NODES   "Invalid argument"

/* -EBADMSG, and why and where. */
int op_odb_fault(struct op_odb_fault *ret_fault, const char *why, uint64_t offset) OP_NONNULL;

/* Reads all the bytes of a part: 0, op_odb_fault where the file ends before it does, or another -errno. */
int op_odb_read_part(int fd, void *bytes, size_t nr_bytes, uint64_t offset, const char *why,
		     struct op_odb_fault *ret_fault) OP_NONNULL OP_MUST_CHECK;

/* What op_odb_open_regular is of a descriptor, or an error, which it takes over. */
int op_odb_take_regular(int fd, struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

/* Renames tmp_path to path, making directories: see op_file_publish_below. 0, or -errno and tmp_path is gone. */
int op_odb_publish(int dir_fd, const char *tmp_path, const char *path, uint64_t *ret_dir_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * The same where a file is replaced that may be on the disk by a promise: it is kept as said above. new_inode is that of tmp_path. 0 and what op_odb_settle takes, or -errno, tmp_path is gone and path is as it was.
 */
int op_odb_replace(int dir_fd, const char *tmp_path, const char *path, uint64_t new_inode,
		   struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

/*
 * A node of which a power cut left a part: its value is not there, or not its key, where the two are in different sectors. The writer
 * sees to it that no whole node looks so: op_odb_needs_filler. A node that holds a place only (the key of the one before it, value 0) is whole.
 * `node` is the one with that index, in an array.
 */
bool op_odb_is_torn(const struct op_odb_node *node, uint32_t index) OP_NONNULL;

/* Whether key 0 would look torn at this index. */
static inline bool op_odb_needs_filler(uint64_t key, uint32_t index)
{
	return !key && index % 32 == 25; /* (104 + 16 * 25 + 8) % 512 == 0 */
}

static_assert((OP_ODB_NODES_OFFSET + 25 * sizeof(struct op_odb_node) + 8) % 512 == 0, "key and value in two sectors");

/* What header and descriptor say of themselves: 0, -EBADMSG for a foreign file. */
int op_odb_check_head(const struct op_odb_header *header, const struct op_odb_descr *descr) OP_NONNULL OP_MUST_CHECK;

/* Whether it is a header of oprofile 0.9. */
static inline bool op_odb_is_of_0_9(const struct op_odb_header *header)
{
	return !memcmp(header->magic, OP_ODB_MAGIC, sizeof(header->magic)) && header->version == OP_ODB_VERSION_0_9;
}

/* op_odb_read of a file that is open. */
int op_odb_read_open(int fd, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault) OP_NONNULL OP_MUST_CHECK;

/*
 * Maps a file that is there, with blocks allocated as op_odb_make_file does for the nodes in use: what was written of nodes that were not published is removed and counted, the hash
 * is made anew where it is not sound. 0; -EUCLEAN when it has to be repaired first: its length is wrong, nodes are torn, or it is of oprofile 0.9; -EBADMSG when its head
 * is none; another -errno.
 */
int op_odb_map_sound(int fd, const struct stat *st, struct op_odb_map *ret_map, uint32_t *ret_dropped) OP_NONNULL OP_MUST_CHECK;

/* Opens a regular file at the end of a path without links. A descriptor, -EBADMSG when something else is there, another -errno. */
int op_odb_open_regular(int dir_fd, const char *path, int flags, struct stat *ret_stat) OP_NONNULL OP_MUST_CHECK;

#endif
