/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A span of time of a session: what was added to it, as a tree in memory. A minute as a rule; the
 * same struct is an hour, or a window of many minutes that a report adds up.
 *
 *   writer  op_minute_init, op_minute_event, op_minute_add..., op_minute_clear, op_minute_free
 *   reader  op_minute_init, op_timeline_next (read.h) fills it; or op_minute_merge into another
 *
 * The tree: node 0 is the root, and a parent comes before its children. Each node has two weights,
 * both in the unit of its event: `self`, of samples that end exactly here; and `rest`, of samples
 * that belong somewhere below, where small entries were merged or had no room. So the weights of
 * all nodes below a node of kind SAMPLES or STACKS add up to what the event has stored.
 *
 * One thread at a time.
 */
#ifndef OP_TIMELINE_MINUTE_H
#define OP_TIMELINE_MINUTE_H

#include "libop/timeline/format.h"

struct op_minute_node {
	uint32_t parent;
	uint16_t kind;  /* enum op_minute_kind */
	uint16_t records; /* of waits: how many are in self and rest; UINT16_MAX: or more */
	uint64_t value; /* format.h says what value and image are; else 0 */
	uint64_t image; /* a dcookie of the session */
	uint64_t self, rest;
};

struct op_minute_event {
	uint32_t text;   /* "NAME:COUNT:0xMASK" */
	uint32_t unit;   /* enum op_timeline_unit, or a later one */
	uint32_t role;   /* enum op_event_role */
};

/*
 * A number of the ledger: how much it grew, and less than 0 if it shrank. The name is that of the
 * ledger of the session: "received", "stored", "filtered", "unattributed", "lost_kernel",
 * "lost_no_space", "end_complete" and so on. "before" is no difference: what the session had
 * stored when the span began.
 */
struct op_minute_row {
	uint32_t event; /* its number */
	uint32_t text;
	int64_t amount;
};

struct op_minute_context {
	uint32_t kind; /* enum op_context_kind, or a later one */
	uint32_t index;
	uint64_t value;
};

struct op_minute {
	struct op_timeline_clocks begin, end;
	uint32_t gap;   /* enum op_timeline_gap, or a later reason */
	uint32_t flags; /* OP_TIMELINE_IS_LATE, ... */

	struct op_minute_node *nodes;
	char **texts; /* 0: "" */
	struct op_minute_event *events;
	struct op_minute_row *rows;
	struct op_minute_context *context;
	uint32_t nr_nodes, nr_texts, nr_events, nr_rows, nr_context;

	/* what follows is minute.c's */
	size_t node_capacity, text_capacity, event_capacity, row_capacity, context_capacity;
	struct op_minute_slot *slots, *text_slots;
	size_t nr_slots, nr_text_slots;
	uint64_t seed; /* random: processes cannot choose what shares a slot */
	uint32_t max_nodes, nr_indexed, nr_indexed_texts;
	size_t text_bytes;
};

/* A step from the root to a node. */
struct op_minute_step {
	uint16_t kind;
	uint64_t value, image;
};

/*
 * An empty span of at most max_nodes nodes, 0: OP_TIMELINE_NODES_MAX. Without memory for more
 * nodes, too, weights go to the `rest` of nodes above. 0 or -ENOMEM.
 */
int op_minute_init(struct op_minute *minute, uint32_t max_nodes) OP_NONNULL OP_MUST_CHECK;

/* Empties it, and keeps its memory for the next span. */
void op_minute_clear(struct op_minute *minute) OP_NONNULL;

/* Also of a zeroed one. */
void op_minute_free(struct op_minute *minute) OP_NONNULL;

/*
 * The number of a text, at most OP_TIMELINE_TEXT_BYTES of which are kept. 0, which is "", for NULL,
 * without memory, or when there are too many.
 */
uint32_t op_minute_text(struct op_minute *minute, const char *text) OP_NONNULL_ARGS(1);

/* Finds or adds an event by its name. Its number or -ENOMEM, -E2BIG. */
int op_minute_event(struct op_minute *minute, const char *name, uint32_t unit, uint32_t role, uint32_t *ret_event)
	OP_NONNULL OP_MUST_CHECK;

/*
 * The node where the steps lead. It is made if it is missing, and is valid until the span is
 * cleared or freed. With *ret_is_whole false there was no room for the whole way, and it is the
 * last node that there is.
 */
uint32_t op_minute_way(struct op_minute *minute, const struct op_minute_step *steps, size_t nr_steps, bool *ret_is_whole)
	OP_NONNULL;

/* Adds `amount` to the child of such a node, or to its rest when there is no room for the child. */
void op_minute_add_below(struct op_minute *minute, uint32_t node, const struct op_minute_step *step, uint64_t amount) OP_NONNULL;

/*
 * Adds `amount` to the node where the steps lead. The first one is SAMPLES or STACKS with the
 * number of an event. False: there was no room for the whole way, and the amount is the rest of a
 * node above.
 */
bool op_minute_add(struct op_minute *minute, const struct op_minute_step *steps, size_t nr_steps, uint64_t amount) OP_NONNULL;

/* The same for nr_records waits that last `amount` microseconds together. */
bool op_minute_add_waits(struct op_minute *minute, const struct op_minute_step *steps, size_t nr_steps, uint64_t amount,
			 uint16_t nr_records) OP_NONNULL;

/* Adds a row of the ledger to the row of the same event and name. 0 or -ENOMEM. */
int op_minute_add_row(struct op_minute *minute, uint32_t event, const char *name, int64_t amount) OP_NONNULL OP_MUST_CHECK;

/* 0 or -ENOMEM */
int op_minute_add_context(struct op_minute *minute, uint32_t kind, uint32_t index, uint64_t value) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds all of `other`, a later span of the same session: nodes, ledger (of "before" the first one
 * stays), and the end of its time. The context of `minute` becomes the sum for CPUs and PSI, and
 * the last one for the rest. An empty `minute` takes the begin, too. 0 or -ENOMEM, -E2BIG,
 * and then `minute` is good for op_minute_free and op_minute_clear alone.
 */
int op_minute_merge(struct op_minute *minute, const struct op_minute *other) OP_NONNULL OP_MUST_CHECK;

/*
 * The sum of all weights below the node of a kind, SAMPLES or STACKS, of an event. 0 or -ENOMEM.
 */
int op_minute_total(const struct op_minute *minute, uint32_t kind, uint32_t event, uint64_t *ret_total) OP_NONNULL OP_MUST_CHECK;

#endif
