/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads a file of stacks into memory, also beside its writer. Every node is checked; what follows
 * the first damaged one is left out, and told. Any thread.
 */
#ifndef OP_STACKS_READ_H
#define OP_STACKS_READ_H

#include "libop/stacks/format.h"

struct op_stack_tree {
	struct op_stack_node *nodes; /* in the byte order of this machine; node 0 is the root */
	uint32_t nr_nodes;           /* at least 1 */
	uint32_t nr_damaged;         /* nodes that were left out now */
	uint32_t nr_cut;             /* nodes that the writer had to drop earlier */
	uint64_t no_room;            /* samples that are counted at a caller, for lack of room */
	uint64_t no_room_us;         /* of the event WAIT, in microseconds */
};

/*
 * Reads the file at `path` below dir_fd. 0 and a tree for op_stack_tree_free; -ENOENT; -EBADMSG: it
 * is no file of stacks, or of a later version; -ENOMEM; another -errno.
 */
int op_stacks_read(int dir_fd, const char *path, struct op_stack_tree *ret_tree) OP_NONNULL OP_MUST_CHECK;

void op_stack_tree_free(struct op_stack_tree *tree) OP_NONNULL;

/*
 * The text that ends at a node of kind TEXT, which the caller frees; of a longer one the last
 * OP_STACK_TEXT_MAX bytes. It may have any bytes but NUL. NULL without memory.
 */
char *op_stack_text(const struct op_stack_tree *tree, uint64_t node) OP_NONNULL OP_MUST_CHECK;

/* The name of a process in a node of kind COMM, with its NUL. */
void op_stack_comm(const struct op_stack_node *node, char comm[OP_STACK_PIECE_BYTES]) OP_NONNULL;

#endif
