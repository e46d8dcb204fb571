/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stacks of a page. Those of all contexts are one tree; where stacks end, a node has a count
 * for each context. Contexts with few samples become "(other)" when there are too many. Waits for
 * work (idle.h) have contexts of their own. One thread.
 */
#ifndef OPR_PAGE_COLLECT_H
#define OPR_PAGE_COLLECT_H

#include "libop/base/text.h"
#include "tools/common/words.h"
#include "tools/report/run.h"
#include "tools/stacks/read_stacks.h"

/* A profile of the page: the only one, or the one before and the one after. */
struct opr_page_side {
	struct opr_run *run;       /* its samples are read */
	struct opr_call_tree tree; /* a group for each context */
	struct opr_stack_contexts contexts;
	struct opr_stack_sums sums;
	struct op_text code, flat; /* JSON of opr_page_add_code; empty: none */
};

struct opr_page_count {
	const struct opr_call_node *node; /* in the tree of the page */
	size_t context; /* those of the second side come behind those of the first */
	uint64_t count, nr_records; /* records: of waits */
};

/* What a span of time added at a node. */
struct opr_page_time {
	const struct opr_call_node *node; /* in the tree of the page */
	size_t context, span;
	uint64_t count, nr_records;
};

/* Who ended waits of stacks that end at a node. Those of one node and context are together. */
struct opr_page_waker {
	const struct opr_call_node *node; /* in the tree of the page */
	size_t context;
	const struct opr_call_function *who;
	uint64_t us;
};

#define OPR_PAGE_WAKERS_MAX 4u /* of a node and context: those with most time */

#define OPR_PAGE_SPANS_MAX 120u /* opr_stack_contexts.max_spans: columns of the heat map */

struct opr_page {
	struct opr_page_side sides[2];
	size_t nr_sides;
	enum opr_view view; /* that the page shows first; OPR_VIEW_PAGE is not allowed */
	bool show_idle;
	struct opr_call_tree tree; /* the calls, without groups */
	struct opr_page_count *counts; /* sorted by the index of the node, then by context */
	size_t nr_counts, capacity;
	struct opr_page_time *times; /* of the only side; at each of them is a count, or one of 0 */
	size_t nr_times, times_capacity;
	struct opr_page_waker *wakers; /* sorted as the counts, then by time */
	size_t nr_wakers, wakers_capacity;
	/* where a function begins, by its index: of the last side that has it */
	const struct opr_call_place **places;
	size_t places_capacity;
};

/* Fills the tree and the counts from the sides, which were read. 0 or -ENOMEM after a message. */
int opr_page_collect(struct opr_page *page) OP_NONNULL OP_MUST_CHECK;

/* Frees everything but the selections. */
void opr_page_free(struct opr_page *page) OP_NONNULL;

#endif
