/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The derived events of IBS as events of a session, and the list that a capture works with: events that the kernel takes samples
 * of first, samplers among them, what is derived from their samples behind.
 */
#ifndef OP_EVENT_IBS_H
#define OP_EVENT_IBS_H

#include "libop/events/event.h"

struct op_event_list {
	struct op_event *events;
	size_t nr_events, capacity;
	size_t nr_opened; /* the first of them: the kernel takes their samples */
};

/* One specification, for this host. 0; -EINVAL and *ret_why as op_event_parse; -ENOENT: the name is none of IBS; -ENOMEM. */
int op_event_ibs_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* A derived event of a sampler that is set like this, on that CPU. */
void op_event_derive(const struct op_ibs_event *from, const struct op_ibs_sampler *sampler, const struct op_ibs_host *host,
		     struct op_event *ret_event) OP_NONNULL;

/*
 * The list for the events that are wanted: PLAIN ones and DERIVED ones in any order, which a sampler for each kind is added to and,
 * for one of ops, the event of the memory view. To be freed with op_event_list_free. 0; -EINVAL and *ret_why, to be freed by the
 * caller: two derived events of a kind do not agree; -ENOMEM.
 */
int op_event_list_make(const struct op_event *wanted, size_t nr_wanted, struct op_event_list *ret_list,
		       char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * The same step by step: first all events that are opened, in the order of their indices, then for one sampler after another what is
 * derived from it. 0 or -ENOMEM.
 */
int op_event_list_open(struct op_event_list *list, const struct op_event *event) OP_NONNULL OP_MUST_CHECK;
int op_event_list_derive(struct op_event_list *list, size_t sampler, const struct op_event *derived) OP_NONNULL OP_MUST_CHECK;

/* The MEMORY event of a sampler: that of another one with the same count and unit mask, since it has the same files, or one more. 0 or -ENOMEM. */
int op_event_list_remember(struct op_event_list *list, size_t sampler) OP_NONNULL OP_MUST_CHECK;

void op_event_list_free(struct op_event_list *list) OP_NONNULL;

/* How many events at the front of a list the kernel takes samples of. */
size_t op_event_nr_opened(const struct op_event *events, size_t nr_events) OP_NONNULL;

/* True for an event whose samples are all of it, so that ledgers may add it up with others: not what is derived from them. */
bool op_event_is_taken(enum op_event_role role);

#endif
