/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counts in a sample file: a hash table of (key, count) for one image, event and class, updated in
 * place through a shared mapping and readable at any moment. A file has one writer, and one thread
 * of it calls these functions. None waits for the disk.
 */
#ifndef OP_ODB_H
#define OP_ODB_H

#include "libop/odb/format.h"

struct op_odb;
struct op_odb_pending;

/*
 * Opens `path` below dir_fd for counting. Follows no symbolic links. Makes a missing file, with
 * its directories, under tmp_path (same file system, also below dir_fd) and renames it; its header
 * is *header. An existing file keeps its header; after an unclean stop it is repaired
 * (op_odb_repair), and one of oprofile 0.9 is replaced by one of 1.x. 0 and a handle for
 * op_odb_close, or -ENOSPC, -EMFILE, -EBADMSG (not a sample file), another -errno.
 */
int op_odb_open(int dir_fd, const char *path, const char *tmp_path, const struct op_odb_header *header, struct op_odb **ret_odb)
	OP_NONNULL OP_MUST_CHECK;

/*
 * The disk space of all files of a session. A file that would exceed it does not grow. The owner
 * adds what was there before, and subtracts what was removed.
 */
struct op_odb_space {
	uint64_t taken_bytes;
	uint64_t kept_bytes; /* for others */
	uint64_t max_bytes;  /* 0: no limit */
};

#define OP_ODB_BLOCK_BYTES 4096u /* of most file systems; a directory takes one */

/*
 * Counts the file in `space` from now on, beginning with the blocks that op_odb_open took. `space`
 * must live until op_odb_close.
 */
void op_odb_share(struct op_odb *odb, struct op_odb_space *space) OP_NONNULL;

/* The header of the open file. */
const struct op_odb_header *op_odb_header(const struct op_odb *odb) OP_NONNULL;

/* The number of nodes, and whether one of them has the key. */
uint32_t op_odb_nr_nodes(const struct op_odb *odb) OP_NONNULL;
bool op_odb_has(const struct op_odb *odb, uint64_t key) OP_NONNULL;

/* True when op_odb_open made the file. */
bool op_odb_is_new(const struct op_odb *odb) OP_NONNULL;

/* Nodes that op_odb_open dropped: unpublished or torn ones. */
uint32_t op_odb_dropped(const struct op_odb *odb) OP_NONNULL;

/*
 * Adds `count` to the key. A count beyond 2^32-1 goes on in a second node of the same key; readers
 * add both. A full file is replaced by one of four times the size, a large one by twice; see
 * replace.h. 0; -EMLINK when the shared space has no room; -ENOSPC when the disk has none; another
 * -errno. After an error nothing was added. What the disk refused is not tried again for 100 ms.
 */
int op_odb_add(struct op_odb *odb, uint64_t key, uint32_t count) OP_NONNULL OP_MUST_CHECK;

/* The sum of all counts in the file. */
uint64_t op_odb_total(const struct op_odb *odb) OP_NONNULL;

/*
 * True when pages of the file went away under the map (libop/process/guard.h), or somebody
 * overwrote them. op_odb_add returns -EIO or -EBADMSG then, and the caller must close the file.
 * op_odb_total is what was counted, and not what the file still has.
 */
bool op_odb_is_broken(const struct op_odb *odb) OP_NONNULL;

/* The inode of the open file. When its path has another inode, readers do not see new counts. */
uint64_t op_odb_inode(const struct op_odb *odb) OP_NONNULL;

/*
 * Replaces the file by a copy, which the kernel must write to the disk as a whole. 0, or -errno
 * and nothing has changed.
 */
int op_odb_renew(struct op_odb *odb) OP_NONNULL OP_MUST_CHECK;

/*
 * A dump has reported this file as written to the disk. So a power cut must not lose it: when a new
 * file replaces it, the old one is kept until the new one is on the disk (op_odb_take_pending). A
 * file that existed at op_odb_open is marked already.
 */
void op_odb_mark_dumped(struct op_odb *odb) OP_NONNULL;

/* The replacements of this file since the last call, for op_odb_sync_pending; NULL for none. */
struct op_odb_pending *op_odb_take_pending(struct op_odb *odb) OP_NONNULL OP_MUST_CHECK;

#define OP_ODB_ADDITIONS_MAX 64 /* in one round: a CPU looks up no more at once */

struct op_odb_addition {
	struct op_odb *odb;
	uint64_t key;
	uint32_t count;
	int error; /* filled in: what op_odb_add returned */
};

/*
 * op_odb_add of each, in order. Their cache misses overlap, and these are most of the cost.
 * Returns how many failed or were to a file with something pending.
 */
size_t op_odb_add_all(struct op_odb_addition *additions, size_t nr_additions) OP_NONNULL;

/*
 * Drops the file's pages from the process's memory. They stay in the page cache, and the next
 * access maps them again.
 */
void op_odb_drop_pages(const struct op_odb *odb) OP_NONNULL;

/*
 * Unmaps and closes; NULL is allowed. What was added is in the page cache, not necessarily on the
 * disk.
 */
void op_odb_close(struct op_odb *odb);

#endif
