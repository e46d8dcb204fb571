/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads sample files. Any number of readers, in any process, may read beside the writer. */
#ifndef OP_ODB_READ_H
#define OP_ODB_READ_H

#include "libop/odb/format.h"

struct op_odb_samples {
	struct op_odb_header header;
	uint32_t nr_nodes;	   /* nodes in `nodes`: without those in a hole of the file */
	struct op_odb_node *nodes; /* in file order; a key may stand twice; `next` is useless */
};

/* What is wrong with a file, and where. */
struct op_odb_fault {
	const char *why; /* constant text, in the words of the genuine tools */
	uint64_t offset; /* bytes from the start of the file */
};

#define OP_ODB_NO_HEADER   "Can't read sample file header"
#define OP_ODB_BAD_MAGIC   "Invalid sample file, bad magic number"
#define OP_ODB_BAD_VERSION "samples files version mismatch"
#define OP_ODB_OTHER_ORDER "the file has the other byte order: convert it with opimport --abi"
#define OP_ODB_BAD_NODES   "Invalid argument"

/*
 * Reads the file at dir_fd/path into memory; op_odb_samples_free frees it. 0; -EBADMSG when it is
 * not a whole sample file, with the reason in *ret_fault (may be NULL); another -errno. The header
 * of a file of oprofile 0.9 is converted to that of 1.x, but keeps its version.
 */
int op_odb_read(int dir_fd, const char *path, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/* The same for a file that is open. */
int op_odb_read_open(int fd, struct op_odb_samples *ret_samples, struct op_odb_fault *ret_fault) OP_NONNULL OP_MUST_CHECK;

/*
 * The number of nodes, without reading them. Follows no symbolic links. 0 or -errno as
 * op_odb_read.
 */
int op_odb_read_nr_nodes(int dir_fd, const char *path, uint32_t *ret_nr_nodes) OP_NONNULL OP_MUST_CHECK;

/* Converts the number of a processor from 0.9 to 1.x; OP_CPU_TYPE_UNKNOWN: 1.x has none. */
uint32_t op_odb_cpu_type_of_0_9(uint32_t number);

/* Frees what op_odb_read gave; NULL is allowed. */
void op_odb_samples_free(struct op_odb_samples *samples);

/* Fills in *ret_fault. Returns -EBADMSG. */
int op_odb_fault(struct op_odb_fault *ret_fault, const char *why, uint64_t offset) OP_NONNULL;

/* Reads all nr_bytes. 0; op_odb_fault(why) where the file ends before; another -errno. */
int op_odb_read_part(int fd, void *bytes, size_t nr_bytes, uint64_t offset, const char *why,
		     struct op_odb_fault *ret_fault) OP_NONNULL OP_MUST_CHECK;

#endif
