/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Specifications of events as a user writes them: by the names that opd has, and by libpfm4's. */
#ifndef OPR_EVENT_SPEC_H
#define OPR_EVENT_SPEC_H

#include "libop/events/event.h"

/* As op_event_parse; what opd does not know may be a name that libpfm4 knows for this CPU. */
int opr_event_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

#endif
