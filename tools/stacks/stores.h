/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The stack stores of the selected sessions as they are read: their trees, and names of images. */
#ifndef OPR_STORES_H
#define OPR_STORES_H

#include "libop/stacks/read.h"
#include "tools/elf/line_table.h"
#include "tools/profile/selection.h"
#include "tools/stacks/call_tree.h"
#include "tools/stacks/contexts.h"
#include "tools/symbols/symbols.h"

/* An image of a session that stacks refer to. */
struct opr_named {
	uint64_t cookie;
	char *name; /* full */
	struct op_image_name image_name;
	const struct op_dcookie_row *row;
	bool is_of_frames; /* else it is an application only, and needs no symbols */
	bool is_in_tree;
	struct opr_image *image;                 /* NULL until symbols are read */
	uint64_t offset;                         /* opr_position_offset */
	const struct opr_call_image *call_image; /* of the tree; NULL: a tree without places */
};

/* Who ended waits of a stack. Their time is in the count of the node, too. */
struct opr_store_waker {
	uint32_t node;
	uint64_t text, image; /* as in the file */
	uint64_t us, nr_records;
};

/* The stacks of a session, or of a span of its time: such a store shares the images. */
struct opr_store {
	size_t session;
	bool is_span;
	struct opr_stack_span span;
	size_t span_index; /* in the order of time */
	struct op_stack_tree tree;
	struct opr_named *images; /* sorted by cookie */
	size_t nr_images, capacity;
	struct opr_call_node **nodes; /* of the report, by index; NULL: not selected */
	uint8_t *ends;                /* enum op_stack_end, by index */
	uint8_t *flags;               /* select_stacks.h, by index */
	struct opr_store_waker *wakers; /* spans have none */
	size_t nr_wakers, waker_capacity;
};

/* Zeroed at first; opr_stores_free in any case. */
struct opr_stores {
	struct opr_store *list;
	size_t nr_stores, capacity;
	uint64_t nr_nodes; /* of all trees */
	size_t nr_spans;
};

/* Reads the stores of the sessions. 0; -ENOENT with a message: there is none; -errno after one. */
int opr_stores_open(struct opr_stores *stores, struct opr_selection *selection, bool is_optional) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds stores of spans of time, at most max_spans, behind those of the sessions. Where a session
 * has stacks and no timeline there are none. 0 or -ENOMEM after a message.
 */
int opr_stores_add_spans(struct opr_stores *stores, const struct opr_profile *profile, size_t max_spans) OP_NONNULL OP_MUST_CHECK;

/* NULL: the table has no such image. */
struct opr_named *opr_store_named(const struct opr_store *store, uint64_t cookie) OP_NONNULL;

void opr_stores_free(struct opr_stores *stores) OP_NONNULL;

#endif
