/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file samples/<session>/stacks: a tree of call stacks with counts, opd-stacks(5). All numbers
 * in it are little-endian.
 *
 *   [ header 64 ][ node 0: the root ][ node 1 ] ...
 *
 * A node is written once, behind all others, and then published by nr_nodes; only its count changes
 * later. So a child lies behind its parent, and every moment leaves a whole file.
 *
 * A stack is a path from the root: EVENT, APP, COMM, CGROUP, THREAD, END (not when complete), STATE
 * (of a wait), then FRAMEs from the outermost caller on, and KERNEL_FRAMEs. RUNTIME_FRAMEs are
 * functions of an interpreter; they lie below the frame of its own code that ran them. Any thread.
 */
#ifndef OP_STACKS_FORMAT_H
#define OP_STACKS_FORMAT_H

#include "libop/base/compiler.h"

#define OP_STACKS_MAGIC	      "opdstck1"
#define OP_STACKS_MAGIC_BYTES 8u
#define OP_STACKS_NODES_MAX   (1u << 25) /* 1 GiB */
#define OP_STACK_PIECE_BYTES  16u        /* of a text, in a node */
#define OP_STACK_TEXT_MAX     4096u      /* bytes of a text */
#define OP_STACK_NR_ENDS      8u         /* enum op_stack_end (libop/session/stack_ends.h) */
#define OP_STACK_NR_STATES    7u         /* enum op_wait_state (libop/session/wait_states.h) */
#define OP_STACK_RECORDS_MAX  UINT16_MAX /* this many, or more */

struct op_stacks_header {
	char magic[OP_STACKS_MAGIC_BYTES];
	uint32_t node_bytes; /* 32 */
	uint32_t nr_nodes;   /* with the root */
	uint64_t no_room;    /* of the counts: samples whose stack had no room below this node */
	uint32_t nr_cut;     /* damaged nodes that were dropped */
	uint32_t spare;
	uint64_t no_room_us; /* the same for the event WAIT, in microseconds */
	uint32_t spares[6];
};

/* Numbers of the file. The value and the image of a node are 0 where nothing else is said. */
enum op_stack_kind {
	OP_STACK_ROOT,
	OP_STACK_EVENT,        /* value: the node where the text "NAME:COUNT:UNIT-MASK" ends */
	OP_STACK_APP,          /* image: of the application */
	OP_STACK_COMM,         /* value, image: 16 bytes of the process name, with NULs */
	OP_STACK_CGROUP,       /* value: the node where the text of the path ends; 0: none */
	OP_STACK_THREAD,       /* value: process << 32 | thread; image: CPU + 1; 0: not separated */
	OP_STACK_END,          /* value: 1 to OP_STACK_NR_ENDS - 1; complete ones have none */
	OP_STACK_FRAME,        /* image; value: position as in sample files */
	OP_STACK_KERNEL_FRAME, /* the same */
	OP_STACK_TEXT,         /* value, image: 16 bytes; a text is all pieces from the root on */
	OP_STACK_STATE,        /* value: 1 to OP_STACK_NR_STATES - 1; only of waits */
	/*
	 * value: line << 32 | the node where the text of the function ends (runtime_name.h); line
	 * 0: not known. image: the file with the code of the runtime
	 */
	OP_STACK_RUNTIME_FRAME,
	/*
	 * below the last frame of a wait: who ended it. value: the node where the name of the
	 * thread ends; 0: an interrupt did. image: of its program; 0: unknown
	 */
	OP_STACK_WAKER,
	OP_NR_STACK_KINDS,
};

struct op_stack_node {
	uint32_t parent; /* less than the node's own index; of the root 0 */
	uint16_t kind;
	uint16_t records; /* of waits: how many are in the count; OP_STACK_RECORDS_MAX: or more */
	uint64_t value;
	uint64_t image; /* dcookie */
	uint64_t count; /* samples that end exactly here; below the event WAIT microseconds */
};

static_assert(sizeof(struct op_stacks_header) == 64 && offsetof(struct op_stacks_header, no_room) == 16 &&
		      offsetof(struct op_stacks_header, no_room_us) == 32,
	      "opd-stacks(5)");
static_assert(sizeof(struct op_stack_node) == 32 && offsetof(struct op_stack_node, value) == 8, "opd-stacks(5)");

/* Length in bytes of a file with so many nodes. */
static inline uint64_t op_stacks_file_bytes(uint32_t nr_nodes)
{
	return sizeof(struct op_stacks_header) + (uint64_t)nr_nodes * sizeof(struct op_stack_node);
}

/* Whether the node is code, which has symbols. */
static inline bool op_stack_is_native(const struct op_stack_node *node)
{
	return node->kind == OP_STACK_FRAME || node->kind == OP_STACK_KERNEL_FRAME;
}

/* Whether the node is a function of a stack, and not what the stack is filed under. */
static inline bool op_stack_is_frame(const struct op_stack_node *node)
{
	return op_stack_is_native(node) || node->kind == OP_STACK_RUNTIME_FRAME;
}

/* Whether the node names an image by its dcookie. */
static inline bool op_stack_has_image(const struct op_stack_node *node)
{
	return node->image &&
	       (node->kind == OP_STACK_APP || op_stack_is_frame(node) || node->kind == OP_STACK_WAKER);
}

/* Whether it is a header of this version, with a possible number of nodes. */
bool op_stacks_is_header(const struct op_stacks_header *header) OP_NONNULL;

/* Whether a node is sound, when all nodes before it are. `nodes` are as in the file. */
bool op_stack_is_sound(const struct op_stack_node *nodes, uint32_t index) OP_NONNULL;

#endif
