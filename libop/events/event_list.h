/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The events of a capture: first those that the kernel samples, IBS samplers among them, then those
 * that are derived from the samples of a sampler.
 */
#ifndef OP_EVENT_LIST_H
#define OP_EVENT_LIST_H

#include "libop/events/event.h"
#include "libop/events/event_ibs.h"

struct op_event_list {
	struct op_event *events;
	size_t nr_events, capacity;
	size_t nr_opened; /* the first of them are sampled by the kernel */
};

/*
 * Makes the list for PLAIN and DERIVED events in any order. Adds a sampler for each kind and, for
 * ops, the event of the memory view. op_event_list_free frees it. 0; -EINVAL and *ret_why, a
 * message that the caller frees: two derived events of a kind need different settings; -ENOMEM.
 */
int op_event_list_make(const struct op_event *wanted, size_t nr_wanted, struct op_event_list *ret_list,
		       char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * The same step by step: first all events that the kernel samples, then the derived events of one
 * sampler after the other. 0 or -ENOMEM.
 */
int op_event_list_open(struct op_event_list *list, const struct op_event *event) OP_NONNULL OP_MUST_CHECK;
int op_event_list_derive(struct op_event_list *list, size_t sampler, const struct op_event *derived) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds the MEMORY event of a sampler. Samplers of the same count and unit mask share one, because
 * they share its files. 0 or -ENOMEM.
 */
int op_event_list_add_memory(struct op_event_list *list, size_t sampler) OP_NONNULL OP_MUST_CHECK;

void op_event_list_free(struct op_event_list *list) OP_NONNULL;

/* The number of leading events that the kernel samples. */
size_t op_event_nr_opened(const struct op_event *events, size_t nr_events) OP_NONNULL;

/* True when the samples of one of the events have their cgroup. `events` may be NULL: none. */
bool op_events_have_cgroup(const struct op_event *events, size_t nr_events);

/*
 * True for events that the kernel samples. Ledgers add only these: derived events count the same
 * samples again.
 */
bool op_event_is_taken(enum op_event_role role);

/*
 * True for events with sample files. The stored samples of the others are found in those of derived
 * events, and in the stack store.
 */
bool op_event_has_files(enum op_event_role role);

#endif
