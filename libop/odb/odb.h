/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sample files: one hash table of (key, count) per image, event and class, updated in place through a shared mapping and
 * readable at any moment. Layout of oprofile 1.0 to 1.4 (version 0x13), little-endian hosts; see doc/format.md.
 *
 *   [ header 72 ][ descriptor 32 ][ node array: size x 16 ][ hash table: size x 4 ]
 *
 * Order of publication, writer: node filled, bucket linked, current_size raised. A reader that looks at nodes 1 to
 * current_size - 1 sees whole nodes only. odb.c has the writer, read.c the reader.
 */
#ifndef OP_ODB_H
#define OP_ODB_H

#include "libop/base/compiler.h"

#define OP_ODB_MAGIC "DAE\n"
#define OP_ODB_VERSION 0x13u
#define OP_ODB_VERSION_0_9                                                                                                         \
	0x12u /* oprofile 0.9.x: a longer header and other numbers of processors; read, and made one of ours where it is counted in */
#define OP_CPU_TYPE_UNKNOWN UINT32_MAX /* a processor that oprofile 1.x has no number for */
#define OP_CPU_TYPE_TIMER 4u	 /* the cpu_type of every host as opd writes it: needs no event description files */

struct op_odb_header {
	char magic[4];
	uint32_t version;
	uint32_t cpu_type;
	uint32_t ctr_event;	/* event number, 0 for the timer */
	uint32_t ctr_um;	/* unit mask */
	uint32_t ctr_count;	/* sampling period */
	uint32_t is_kernel;	/* image is kernel or module; in a callgraph file the caller */
	uint32_t pad0;
	double cpu_speed_mhz;	/* <= 0: unknown */
	uint64_t mtime;		/* seconds, of the image; 0: unknown */
	uint32_t cg_to_is_kernel;
	uint32_t pad1;
	uint64_t anon_start;	/* start of the anonymous region, else 0 */
	uint64_t cg_to_anon_start;
};

struct op_odb_descr {
	uint32_t size;		/* nodes allocated, a power of two */
	uint32_t current_size;	/* index of the next free node; node 0 is never used, so 1 when empty */
	uint32_t pad[6];
};

struct op_odb_node {
	uint64_t key;
	uint32_t value;
	uint32_t next; /* next node of the bucket, 0 at the end */
};

static_assert(sizeof(struct op_odb_header) == 72, "header of oprofile 1.x");
static_assert(offsetof(struct op_odb_header, cpu_speed_mhz) == 32, "header of oprofile 1.x");
static_assert(offsetof(struct op_odb_header, anon_start) == 56, "header of oprofile 1.x");
static_assert(sizeof(struct op_odb_descr) == 32, "descriptor of oprofile 1.x");
static_assert(sizeof(struct op_odb_node) == 16, "node of oprofile 1.x");

#define OP_ODB_INITIAL_SIZE 128u
#define OP_ODB_NODES_OFFSET (sizeof(struct op_odb_header) + sizeof(struct op_odb_descr))

/* Length in bytes of a file with room for `size` nodes. */
static inline uint64_t op_odb_file_bytes(uint64_t size)
{
	return OP_ODB_NODES_OFFSET + size * (sizeof(struct op_odb_node) + sizeof(uint32_t));
}

/* Whether a whole sample file may have that length. */
static inline bool op_odb_is_length(uint64_t nr_bytes)
{
	uint64_t size = nr_bytes < OP_ODB_NODES_OFFSET ? 0 : (nr_bytes - OP_ODB_NODES_OFFSET) / (sizeof(struct op_odb_node) + sizeof(uint32_t));

	return size >= 2 && !(size & (size - 1)) && nr_bytes == op_odb_file_bytes(size);
}

/* Bucket of a key; part of the format. */
static inline uint32_t op_odb_bucket(uint64_t key, uint32_t size)
{
	uint32_t t = (uint32_t)(key >> 32) ^ (uint32_t)key;

	return (t ^ (t >> 8)) & (size - 1);
}

/* ---- writer; a file has one writer, and one thread of it calls these ---- */

struct op_odb;

/*
 * Opens `path` below dir_fd for counting, or makes it: directories as needed, the file whole under tmp_path (same file system,
 * also below dir_fd) and then renamed. The header of a new file is *header; an existing file keeps its own. Symbolic links are
 * not followed, wherever in the path. An existing file that is not sound (unclean stop) is repaired: nodes that were not published or are
 * torn are dropped and the hash is rebuilt. One of oprofile 0.9 is replaced by one of ours with all that it has. 0 and a handle that op_odb_close frees, or -ENOSPC, -EMFILE, -EBADMSG (a foreign file),
 * another -errno. Nothing is waited for that the disk does.
 */
int op_odb_open(int dir_fd, const char *path, const char *tmp_path, const struct op_odb_header *header, struct op_odb **ret_odb)
	OP_NONNULL OP_MUST_CHECK;

/*
 * What all files of a session share: how much of the disk they take, in blocks. A file that would not fit any more does not grow. Whoever has the files open adds what
 * was there before, and takes off what was removed.
 */
struct op_odb_space {
	uint64_t taken_bytes;
	uint64_t kept_bytes; /* for others */
	uint64_t max_bytes;  /* 0: no limit */
};

#define OP_ODB_BLOCK_BYTES 4096u /* of the disk, as most file systems have them: a file takes whole ones, a directory one */

/* The file is one of those from now on; what op_odb_open made of the disk's blocks, with directories, is taken. `space` is the caller's until op_odb_close. */
void op_odb_share(struct op_odb *odb, struct op_odb_space *space) OP_NONNULL;

/* The header of the open file: of an existing one it is what it had. */
const struct op_odb_header *op_odb_header(const struct op_odb *odb) OP_NONNULL;

/* How many nodes there are, and whether one of them has the key. */
uint32_t op_odb_nr_nodes(const struct op_odb *odb) OP_NONNULL;
bool op_odb_has(const struct op_odb *odb, uint64_t key) OP_NONNULL;
/* True when op_odb_open made the file. */
bool op_odb_is_new(const struct op_odb *odb) OP_NONNULL;

/* Nodes that op_odb_open dropped because they had not been published when the last writer ended, or only in part. */
uint32_t op_odb_dropped(const struct op_odb *odb) OP_NONNULL;

/*
 * Adds `count` to the key. A count that passes 2^32-1 goes on in a second node of the same key; readers add both.
 * A full file is replaced at once by one of four times the size, a large one by twice, made under tmp_path, so that readers see the one or the other, whole.
 * 0; -EMLINK when the space that files share has no room for that; -ENOSPC when the disk has none, another -errno; then nothing was added. What the disk refused is
 * not tried again for 100 ms.
 */
int op_odb_add(struct op_odb *odb, uint64_t key, uint32_t count) OP_NONNULL OP_MUST_CHECK;

/* The sum of all counts: what was there when the file was opened, and what was added. */
uint64_t op_odb_total(const struct op_odb *odb) OP_NONNULL;

/*
 * True when pages of the file went away under the map (libop/base/guard.h), or somebody wrote over them: op_odb_add says -EIO or -EBADMSG, and all that is left to do is to close it. What the
 * file has is what the next op_odb_open finds; the total is that of before.
 */
bool op_odb_is_broken(const struct op_odb *odb) OP_NONNULL;

/* The inode of the open file: where another one stands at its path, or none, what is added is seen by nobody. */
uint64_t op_odb_inode(const struct op_odb *odb) OP_NONNULL;

/*
 * A file of the same size with the same contents takes its place: every byte of it is to be written to the disk, whatever became of those of the one before. Pending as a
 * larger one is. 0 or -errno, and then all is as it was.
 */
int op_odb_renew(struct op_odb *odb) OP_NONNULL OP_MUST_CHECK;

/*
 * Somebody writes the file to the disk and counts on finding it there: from now on what takes its place is pending until it is on the disk,
 * too. So is what takes the place of a file that op_odb_open found, since nobody knows what was promised of it; a new file is nobody's yet.
 */
void op_odb_promise(struct op_odb *odb) OP_NONNULL;

/* A file that took the place of another and is not on the disk; the other one is kept below tmp_path until it is. */
struct op_odb_pending;

/*
 * tmp_path takes the place of `path` below dir_fd: a sealed file (libop/base/seal.h), which lies beside sample files as the symbols of JIT code do. *ret_pending: NULL where there was none, which
 * nobody has a promise of, and then directories are made, *ret_dir_bytes as op_file_publish_below gives it; else what op_odb_settle takes, as of a sample file.
 * 0, or -errno, tmp_path is gone and `path` is as it was.
 */
int op_odb_publish_sealed(int dir_fd, const char *tmp_path, const char *path, uint64_t *ret_dir_bytes,
			  struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

/* Reads all of a sealed file below dir_fd: 0, it is as it was sealed; -EBADMSG: it is not, never was, or is no regular file; another -errno. */
int op_odb_check_seal(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/* What is pending of this file since the last call: a list by op_odb_pending_next, NULL for none. Each goes to op_odb_settle. */
struct op_odb_pending *op_odb_take_pending(struct op_odb *odb) OP_NONNULL OP_MUST_CHECK;

/* Where the next of a list is. */
struct op_odb_pending **op_odb_pending_next(struct op_odb_pending *pending) OP_NONNULL;

/* Appends a list, NULL for an empty one, to another. */
void op_odb_pending_append(struct op_odb_pending **first, struct op_odb_pending *more) OP_NONNULL_ARGS(1);

/* Takes those that have this number (op_odb_pending_number) out of a list; NULL for none. *ret_nr is how many they are. */
struct op_odb_pending *op_odb_pending_take(struct op_odb_pending **first, uint64_t number, unsigned int *ret_nr) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens the file, so that op_odb_settle finds it wherever its directories are renamed to meanwhile; does not wait. top_fd is the directory that was called
 * `top` below dir_fd when the file was opened, "" for dir_fd itself. 0, also when the file is not there, or -errno.
 */
int op_odb_pending_open(struct op_odb_pending *pending, int top_fd, const char *top) OP_NONNULL OP_MUST_CHECK;

/* A number of the caller's, 0 at first. */
uint64_t *op_odb_pending_number(struct op_odb_pending *pending) OP_NONNULL;

/*
 * Writes the file to the disk and removes what was kept of the other one; frees `pending`. Waits for the disk: any thread but one that counts.
 * 0, or -errno from writing, and then the other one is kept for op_odb_recover.
 */
int op_odb_settle(int dir_fd, struct op_odb_pending *pending) OP_NONNULL OP_MUST_CHECK;

/* The same, but after an error `pending` is still the caller's. Before another try the file is to be written anew: the kernel reports an error once. */
int op_odb_settle_or_keep(int dir_fd, struct op_odb_pending *pending) OP_NONNULL OP_MUST_CHECK;

/* Frees a list without settling: op_odb_recover does it at the next start. NULL is allowed. */
void op_odb_pending_free(struct op_odb_pending *pending);

#define OP_ODB_ADDITIONS_MAX 64 /* in one call; more would not fit in what a CPU looks up at once */

struct op_odb_addition {
	struct op_odb *odb;
	uint64_t key;
	uint32_t count;
	int error; /* filled in: what op_odb_add returned */
};

/*
 * op_odb_add of each, in order. They wait for memory at the same time and not one after another, which is most of what they cost. How many
 * of the additions failed, or were to a file that has something pending.
 */
size_t op_odb_add_all(struct op_odb_addition *additions, size_t nr_additions) OP_NONNULL;

/* Takes the file's pages out of the process's memory, until they are needed: what was counted is in the page cache all the same. */
void op_odb_let_go(const struct op_odb *odb) OP_NONNULL;

/* Unmaps and closes; NULL is allowed. What was added is in the page cache, not necessarily on the disk. */
void op_odb_close(struct op_odb *odb);

/*
 * For a file that nobody counts in, or has mapped to write, any more: gives the blocks back that no node in use lies in. Its hash table has empty buckets only then, where it had
 * blocks of its own; readers do not need it, and op_odb_open makes it anew. 0; -EBADMSG, -EUCLEAN when it is no whole sample file; -EOPNOTSUPP where the file system cannot.
 */
int op_odb_compact(int dir_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/* ---- after an unclean stop, before anything is counted ---- */

/* A directory that may have got another name since: files that were replaced below `from` may be below one of `to`. */
struct op_odb_moves {
	const char *from;
	char *const *to;
	size_t nr_to;
};

struct op_odb_recovery {
	uint64_t nr_put_back; /* files that were kept and stand in their old place again: what had taken it was not whole */
};

/*
 * Ends what op_odb_replace left pending under tmp_path: a new file that has all that the one before it had, or whose seal is whole, is written to the disk, else the one
 * before takes its place again. Removes what was in the making. `moves` may be NULL. 0, or the first -errno, after the rest was done.
 */
int op_odb_recover(int dir_fd, const char *tmp_path, const struct op_odb_moves *moves, struct op_odb_recovery *ret_recovery)
	OP_NONNULL_ARGS(2, 4) OP_MUST_CHECK;

/*
 * Looks whether a reader takes the file and no node is torn, and if not, or when it is of oprofile 0.9, replaces it by one with the nodes that are whole. What was not published
 * is removed, and the hash is put in order. *ret_dropped is how many nodes are torn, not published, or missing at the end. 0, also when there was nothing to do; -EBADMSG when it is no sample file or its head is damaged;
 * another -errno. *ret_pending is as op_odb_take_pending gives it.
 */
int op_odb_repair(int dir_fd, const char *path, const char *tmp_path, uint32_t *ret_dropped,
		  struct op_odb_pending **ret_pending) OP_NONNULL OP_MUST_CHECK;

/* ---- reader; any number of readers, in any process, beside the writer ---- */

struct op_odb_samples {
	struct op_odb_header header;
	uint32_t nr_nodes;	   /* nodes in `nodes` */
	struct op_odb_node *nodes; /* in file order; `next` is of no use here; the same key may stand twice */
};

/* What is wrong with a file, and where. */
struct op_odb_fault {
	const char *why; /* constant text, in the words of the genuine tools */
	uint64_t offset; /* bytes from the start of the file */
};

/*
 * Reads the file at dir_fd/path. Its parts are copied, so a writer does not disturb. 0 and samples that op_odb_samples_free frees;
 * -EBADMSG when it is not a whole sample file, and then *ret_fault, when given, says why; another -errno from open or read. Of a file of
 * oprofile 0.9.x the header is as 1.x has it: fields moved, cpu_type by the numbers of 1.x; its version stays what it is.
 */
int op_odb_read(int dir_fd, const char *path, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* How many nodes the file has, without reading them. Symbolic links are not followed. 0 or -errno as op_odb_read. */
int op_odb_read_nr_nodes(int dir_fd, const char *path, uint32_t *ret_nr_nodes) OP_NONNULL OP_MUST_CHECK;

/* The number that 1.x has for a processor of 0.9.x; OP_CPU_TYPE_UNKNOWN: it has none. */
uint32_t op_odb_cpu_type_of_0_9(uint32_t number);

/* Frees what op_odb_read gave; NULL is allowed. */
void op_odb_samples_free(struct op_odb_samples *samples);

#endif
