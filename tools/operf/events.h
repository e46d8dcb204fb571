/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The events of a run, as far as this user may sample them. */
#ifndef OPF_EVENTS_H
#define OPF_EVENTS_H

#include "libop/events/event_list.h"
#include "tools/operf/options.h"

/*
 * Makes the list of --events, or of the default event. Where the user may not sample the kernel,
 * the events are of user-space code alone; *ret_user_only: that is the case.
 * 0, freed with op_event_list_free; or -errno.
 */
int opf_events_make(const struct opf_options *options, struct op_event_list *ret_list,
		    bool *ret_user_only) OP_NONNULL OP_MUST_CHECK;

/* The line for that case. */
void opf_note_user_only(void);

#endif
