/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A tree of calls for a report: below the root the groups (applications, or what --by says), below
 * them the functions that were called, or with --invert the functions that called. One thread.
 */
#ifndef OPR_CALL_TREE_H
#define OPR_CALL_TREE_H

#include "libop/base/compiler.h"
#include "libop/base/build_id.h"
#include "libop/base/htable.h"
#include "libop/stacks/format.h"

/* Levels of a tree. opd walks 512 frames of a stack; a store that has more is damaged. */
#define OPR_CALL_DEPTH_MAX 4096u

/* What a node stands for. */
enum opr_call_kind {
	OPR_CALL_GROUP, /* an event, an application, or what --by says */
	OPR_CALL_END,   /* why callers are missing: "[cut]" */
	OPR_CALL_USER,
	OPR_CALL_KERNEL,
	OPR_CALL_INLINED, /* a function that was inlined into its parent */
	OPR_CALL_LESS,    /* nodes that are not shown: --threshold, --depth */
	/* up to here the page has the same numbers (tools/page/web/page.js) */
	OPR_CALL_STATE, /* what a thread waits for, or that it runs: "[blocked]", "[running]" */
	OPR_CALL_RUNTIME, /* a function that an interpreter runs: "handler (app.py:41)", "python" */
	OPR_CALL_WAKER, /* in no stack: the thread that ended waits, and its program */
};

/* An image, in a tree with places (read_stacks.h). */
struct opr_call_image {
	struct opr_call_image *made_before;
	char *name; /* full */
	char *path; /* of the file with its symbols; "": none was found */
	char build_id[OP_BUILD_ID_DIGITS]; /* "": not known */
	bool is_kernel;
};

/*
 * Where a stack goes through a function, in a tree with places. In a tree with lines source and
 * line are the begin of the function; of a function of a runtime they are in each tree. All other
 * fields are 0.
 */
struct opr_call_place {
	const struct opr_call_image *image; /* NULL: not known */
	/*
	 * as in sample files and, where it is known, as in the symbol table; of a caller one byte
	 * before the return address
	 */
	uint64_t position, vma;
	const char *source; /* file; NULL: not known */
	unsigned int line;  /* 0: not known */
	/* of a function of a runtime: its name alone, and the line where it begins; 0: not known */
	const char *function;
	unsigned int first_line;
	/*
	 * of a group, also in a tree without places: OP_STACK_EVENT to OP_STACK_THREAD;
	 * OP_STACK_ROOT: not told
	 */
	enum op_stack_kind label;
	uint64_t thread; /* of OP_STACK_THREAD: process << 32 | thread */
};

/* The name of a function whose image has no symbols. */
#define OPR_CALL_NO_SYMBOLS "(no symbols)"

struct opr_call_function {
	struct op_hlink link;
	enum opr_call_kind kind;
	char *name;
	char *image; /* "" for a group and an end */
	struct opr_call_place place;
	char *source, *bare_name; /* place.source, place.function */
	size_t index; /* of those of the tree, in the order of their making */
};

/* The name without file and line: "handler". */
static inline const char *opr_call_bare_name(const struct opr_call_function *function)
{
	return function->place.function && *function->place.function ? function->place.function : function->name;
}

struct opr_call_node {
	struct op_hlink link;
	struct opr_call_node *parent; /* NULL: the root */
	struct opr_call_node *children;
	struct opr_call_node *next; /* with the same parent */
	const struct opr_call_function *function; /* NULL: the root */
	size_t index;  /* in the order of their making; the root has 0 */
	uint32_t depth; /* of the root 0, of a group 1 */
	uint64_t self; /* samples that end here */
	uint64_t total; /* and those of all children; set by opr_call_tree_sum */
	/* of waits: how many are behind self, and behind total */
	uint64_t self_records, records;
	/* this node or one above it matches (arrange.h) */
	bool is_focused, is_ignored;
	struct opr_call_node *made_before;
};

/* Who ended waits of stacks that end at a node. */
struct opr_call_waker {
	struct opr_call_node *node;
	const struct opr_call_function *who; /* of kind WAKER */
	uint64_t us, nr_records;
};

#define OPR_CALL_INTERRUPT "(interrupt)" /* the name of a waker that is no thread */

/* Zeroed at first; opr_call_tree_free in any case. */
struct opr_call_tree {
	struct opr_call_node root;
	struct opr_call_node *made_last; /* all nodes but the root, children before parents */
	struct op_htable nodes, functions;
	size_t nr_nodes;
	struct opr_call_image *images; /* the last one first */
	struct opr_call_waker *wakers; /* of stacks as they were read (read_stacks.h) */
	size_t nr_wakers, waker_capacity;
};

/* The function of that kind, name and image whose source is known. NULL: none, or several. */
const struct opr_call_function *opr_call_function_with_source(const struct opr_call_tree *tree, enum opr_call_kind kind,
							      const char *name, const char *image) OP_NONNULL;

/* The function with that kind, name and image, which are copied. NULL: no memory. */
const struct opr_call_function *opr_call_function(struct opr_call_tree *tree, enum opr_call_kind kind, const char *name,
						  const char *image) OP_NONNULL OP_MUST_CHECK;

/* The same at a place, whose image belongs to the tree. */
const struct opr_call_function *opr_call_function_at(struct opr_call_tree *tree, enum opr_call_kind kind, const char *name,
						     const char *image,
						     const struct opr_call_place *place) OP_NONNULL OP_MUST_CHECK;

/* Adds an image to the tree; the strings are copied. NULL: no memory. */
struct opr_call_image *opr_call_image(struct opr_call_tree *tree, const char *name, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * The child of a node for a function of any tree that outlives this one. NULL: no memory. A node at
 * the greatest depth has no children: it is returned itself.
 */
struct opr_call_node *opr_call_child(struct opr_call_tree *tree, struct opr_call_node *parent,
				     const struct opr_call_function *function) OP_NONNULL OP_MUST_CHECK;

/*
 * The functions from the first one below the root to that of the node; of a deeper tree the last
 * ones. Returns their number.
 */
size_t opr_call_path(const struct opr_call_node *node, const struct opr_call_function *path[OPR_CALL_DEPTH_MAX + 1]) OP_NONNULL;

/* Nodes from the root to this one: 0 for the root, 1 for a group, OPR_CALL_DEPTH_MAX at most. */
size_t opr_call_depth(const struct opr_call_node *node) OP_NONNULL;

/* Sets all totals. Sorts children: those with most samples first, then by name. 0 or -ENOMEM. */
int opr_call_tree_sum(struct opr_call_tree *tree) OP_NONNULL OP_MUST_CHECK;

void opr_call_tree_free(struct opr_call_tree *tree) OP_NONNULL;

#endif
