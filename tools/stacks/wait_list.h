/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions that waited (opreport -l --waits): the innermost function of a stack that is not
 * the C library's. One thread.
 */
#ifndef OPR_WAIT_LIST_H
#define OPR_WAIT_LIST_H

#include "tools/profile/query.h"
#include "tools/stacks/write_stacks.h"

struct opr_wait_row {
	const struct opr_call_function *function; /* of the tree */
	uint64_t self_us;                         /* the function called what waited */
	uint64_t total_us;                        /* and of all stacks that it is in */
	uint64_t nr_records;                      /* of self_us */
	uint64_t states_us[OP_NR_WAIT_STATES];    /* of self_us */
};

/* Who ended waits of a function. */
struct opr_wait_waker {
	const struct opr_call_function *function, *who;
	uint64_t us, nr_records;
};

/* Zeroed at first; opr_wait_list_free in any case. */
struct opr_wait_list {
	struct opr_wait_row *rows; /* those with most time first */
	size_t nr_rows;
	uint64_t idle_us, nr_idle_records; /* of waits for work, which have no row (--idle) */
	uint64_t all_us;                   /* of all waits in the tree, those for work among them */
	struct opr_wait_row *of_functions; /* by index of the function */
	struct opr_wait_waker *wakers; /* those of a function together, with most time first */
	size_t nr_wakers;
};

/*
 * The function that waited: the innermost one of a stack that is not the kernel's or the C
 * library's; else the innermost one of the library, of the kernel, or the group.
 */
const struct opr_call_function *opr_wait_site(const struct opr_call_node *node) OP_NONNULL;

/* From a tree of waits as opr_stacks_read makes it. 0 or -ENOMEM after a message. */
int opr_wait_list_make(struct opr_wait_list *list, const struct opr_call_tree *tree, bool show_idle) OP_NONNULL OP_MUST_CHECK;

void opr_wait_list_free(struct opr_wait_list *list) OP_NONNULL;

/* Its wakers, with most time first. Returns how many; *ret_first is untouched if there are none. */
size_t opr_wait_wakers(const struct opr_wait_list *list, const struct opr_call_function *function,
		       const struct opr_wait_waker **ret_first) OP_NONNULL;

/* Adds "blocked 92.3 %, runnable 7.69 %". */
void opr_wait_states_describe(const struct opr_wait_row *row, struct op_text *text) OP_NONNULL;

/*
 * Writes the list as text, CSV or JSON. The tree of the report is the one of the list. has_wakers:
 * below each function who woke its threads.
 */
void opr_wait_list_write(const struct opr_wait_list *list, const struct opr_stack_report *report, const struct opr_query *query,
			 bool has_wakers, enum opr_stack_form form, FILE *out) OP_NONNULL;

#endif
