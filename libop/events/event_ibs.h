/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The derived events of IBS as events of a session. */
#ifndef OP_EVENT_IBS_H
#define OP_EVENT_IBS_H

#include "libop/events/event_def.h"
#include "libop/events/ibs_host.h"

/*
 * Parses one specification for this host. 0; -EINVAL and *ret_why as op_event_parse; -ENOENT: not
 * an event of IBS; -ENOMEM.
 */
int op_event_ibs_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* Makes a derived event of a sampler with these settings, on that CPU. */
void op_event_derive(const struct op_ibs_event *from, const struct op_ibs_sampler *sampler, const struct op_ibs_host *host,
		     struct op_event *ret_event) OP_NONNULL;

#endif
