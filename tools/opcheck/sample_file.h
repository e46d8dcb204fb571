/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether one sample file is what doc/format.md says, and making it so. Nothing in the file is trusted: every length, index and link is looked at before it is
 * used, and a file takes as much memory as it has bytes.
 */
#ifndef OPK_CHECK_FILE_H
#define OPK_CHECK_FILE_H

#include "libop/odb/format.h"

#define OPK_FILE_NEW "opcheck.new" /* in the directory of the session: one in the making */
#define OPK_FILE_TMP "opcheck.tmp"

enum opk_verdict {
	OPK_SOUND,
	OPK_REPARABLE, /* its samples can be read */
	OPK_LOST,      /* it is no sample file */
};

struct opk_file {
	enum opk_verdict verdict;
	const char *fault; /* the first thing that is wrong, a constant text; NULL: none */
	uint64_t offset;   /* where in the file */
	struct op_odb_header header;
	struct op_odb_node *nodes; /* those that make sense */
	uint32_t nr_nodes;
	uint32_t nr_dropped; /* those that do not */
	uint64_t total;      /* of the nodes that make sense */
};

enum opk_state {
	OPK_AT_REST,
	OPK_WRITTEN, /* somebody may be writing: only what a reader needs is looked at */
	OPK_CLOSED,  /* nobody will count in it again: it may do without hash tables (op_odb_compact) */
};

/*
 * Looks at dir_fd/path, in a session of that state. 0 and a finding that opk_file_free frees, or -errno from
 * opening and reading.
 */
int opk_file_check(int dir_fd, const char *path, enum opk_state state, struct opk_file *ret_file) OP_NONNULL OP_MUST_CHECK;

/* Puts a new file, of the nodes that make sense, in the place of the one that was looked at; on the disk before it is there. It belongs to the owner of the session's directory (op_file_inherit_owner). 0 or -errno. */
int opk_file_rewrite(int dir_fd, const char *path, const struct opk_file *file) OP_NONNULL OP_MUST_CHECK;

/* Two sample files take each other's places, on the disk when it returns. 0 or -errno. */
int opk_file_exchange(int dir_fd, const char *path, const char *other_path) OP_NONNULL OP_MUST_CHECK;

void opk_file_free(struct opk_file *file);

#endif
