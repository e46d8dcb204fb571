/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Specifications of events as a user writes them: with names of opd or of libpfm4. */
#ifndef OPR_EVENT_SPEC_H
#define OPR_EVENT_SPEC_H

#include "libop/events/event.h"

/* Like op_event_parse. A name that opd does not know may be one of libpfm4 for this CPU. */
int opr_event_parse(const char *spec, struct op_event *ret_event, char **ret_why) OP_NONNULL OP_MUST_CHECK;

#endif
