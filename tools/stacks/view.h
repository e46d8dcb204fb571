/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the counts of a stack report are. Stacks of a CPU count samples. With --stacks=wait and
 * --stacks=wall all counts are microseconds: those of WAIT as they are, and a sample of STACKS is
 * the time for which it stands. A page has all of them as they are: its contexts tell waits apart.
 */
#ifndef OPR_VIEW_H
#define OPR_VIEW_H

#include "libop/stacks/read.h"
#include "tools/profile/selection.h"

/* What became of the stack samples that are in the tree. */
struct opr_stack_sums {
	/* in the tree; all numbers of --stacks=wait and --stacks=wall are microseconds */
	uint64_t nr_samples;
	uint64_t ends[OP_NR_STACK_ENDS];
	/* of the sessions as a whole, by their ledgers; 0: they have none */
	uint64_t nr_received, nr_lost;
	uint64_t nr_unselected;  /* in the stores, but not in the tree */
	/* of waits: records in the tree, time in the tree and not in it, time in the stores */
	uint64_t nr_records, selected_us, unselected_us, found_us;
	/* and all switches */
	struct op_wait_ledger waits;
	struct opr_words events; /* in the tree, "STACKS:99:0" */
	struct opr_words images; /* names of those in the tree, some more than once */
	size_t nr_put_off;       /* images whose symbols there was no time to read */
};

/*
 * Leaves the counts of the view, in its unit: all others become 0. Adds what the store has to
 * `sums`, which may be NULL. 0 or -ENOMEM after a message.
 */
int opr_view_take(enum opr_view view, struct op_stack_tree *tree, struct opr_stack_sums *sums) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/* Adds the losses and the switches of a session to `sums`. */
void opr_view_add_ledger(enum opr_view view, struct opr_stack_sums *sums, const struct op_session_ledger *ledger) OP_NONNULL;

/* Whether stacks of the event are in the view. `event` is "NAME:COUNT:UNIT-MASK". */
bool opr_view_has(enum opr_view view, const char *event) OP_NONNULL;

/* The event of a report: all of --stacks=wall are one. */
static inline const char *opr_view_event(enum opr_view view, const char *event)
{
	return view == OPR_VIEW_WALL ? "wall" : event;
}

/* Adds lines about times, records, and what became of switches. */
void opr_view_describe(enum opr_view view, const struct opr_stack_sums *sums, struct op_text *text) OP_NONNULL;

/* The same as members of a JSON object, with a comma behind. */
void opr_view_write_json(const struct opr_stack_sums *sums, FILE *out) OP_NONNULL;

#endif
