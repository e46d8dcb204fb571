/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Checks one sample file against doc/format.md, and repairs it. Trusts nothing in the file: every
 * length, index and link is checked before use, and a file takes as much memory as it has bytes.
 */
#ifndef OPK_SAMPLE_FILE_H
#define OPK_SAMPLE_FILE_H

#include "libop/odb/format.h"

#define OPK_FILE_NEW "opcheck.new" /* a new file, in the directory of the session */
#define OPK_FILE_TMP "opcheck.tmp"

enum opk_verdict {
	OPK_SOUND,
	OPK_REPARABLE, /* its samples can be read */
	OPK_LOST,      /* it is no sample file */
	OPK_FOREIGN,   /* of a machine of the other byte order: it stays as it is */
};

struct opk_file {
	enum opk_verdict verdict;
	const char *fault; /* the first fault, a constant text; NULL: none */
	uint64_t offset;   /* of the fault in the file */
	struct op_odb_header header;
	struct op_odb_node *nodes; /* the whole ones */
	uint32_t nr_nodes;
	uint32_t nr_dropped; /* the others */
	uint64_t total;      /* of the whole nodes */
};

enum opk_state {
	OPK_AT_REST,
	OPK_WRITTEN, /* a daemon may be writing: checks only what a reader needs */
	OPK_CLOSED,  /* nobody will count in it again: it needs no hash table (op_odb_compact) */
};

/* Checks dir_fd/path. 0 and a result for opk_file_free, or -errno when the file cannot be read. */
int opk_file_check(int dir_fd, const char *path, enum opk_state state, struct opk_file *ret_file) OP_NONNULL OP_MUST_CHECK;

/*
 * Replaces the file by a new one with the whole nodes, which is on the disk then. It belongs to
 * the owner of the session's directory. 0 or -errno.
 */
int opk_file_rewrite(int dir_fd, const char *path, const struct opk_file *file) OP_NONNULL OP_MUST_CHECK;

/* Exchanges the paths of two sample files, on the disk, too. 0 or -errno. */
int opk_file_exchange(int dir_fd, const char *path, const char *other_path) OP_NONNULL OP_MUST_CHECK;

void opk_file_free(struct opk_file *file);

#endif
