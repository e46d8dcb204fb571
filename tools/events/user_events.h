/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events as a user writes them, with names of opd or of libpfm4, and what this user may do. */
#ifndef OPR_EVENT_SPEC_H
#define OPR_EVENT_SPEC_H

#include <errno.h>

#include "libop/events/event.h"

/* Like op_event_parse. A name that opd does not know may be one of libpfm4 for this CPU. */
int opr_event_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/*
 * -EINVAL after a message when one of the events would have the same sample files. The message
 * begins with `title`, as "--event=", and `shown`.
 */
int opr_event_check_new(const struct op_event *events, size_t nr_events, const struct op_event *event, const char *title,
			const char *shown) OP_NONNULL_ARGS(3, 4, 5) OP_MUST_CHECK;

/* Opens an event on this process for a moment; `attr` becomes disabled. 0 or -errno. */
int opr_event_try(struct perf_event_attr *attr) OP_NONNULL OP_MUST_CHECK;

/* True for an event that only the kernel's own code has, or that is wanted there only. */
bool opr_event_is_of_kernel(const struct op_event *event) OP_NONNULL;

/* True when an error of perf_event_open(2) means: this user may not. */
static inline bool opr_event_is_refusal(int err)
{
	return err == -EACCES || err == -EPERM;
}

#endif
