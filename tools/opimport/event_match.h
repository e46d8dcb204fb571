/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The events of a recording as events of a session. */
#ifndef OPI_EVENT_MATCH_H
#define OPI_EVENT_MATCH_H

#include "libop/process/stop.h"
#include "libop/events/event_list.h"
#include "libop/perf/data.h"

/*
 * Makes the events of a session from those of the file: names as opi_event_name makes them, the
 * period as count. Behind them come the derived events of IBS for the CPU of the file, as long as
 * the ledger of a session has room; without room an event of IBS is a plain event, and only its
 * samples are counted. `stop` may be NULL. 0, -EINTR (by `stop`) or -ENOMEM; the list is freed with
 * op_event_list_free in any case.
 */
int opi_events_match(const struct op_perf_events *from, const struct op_perf_features *features, const struct op_stop *stop,
		     struct op_ibs_cpu *ret_cpu, struct op_event_list *ret_list) OP_NONNULL_ARGS(1, 2, 4, 5) OP_MUST_CHECK;

/* The CPU of the file. False: none is named, or one without IBS. */
bool opi_events_find_cpu(const struct op_perf_features *features, struct op_ibs_cpu *ret_cpu) OP_NONNULL;

/*
 * Makes one event. In its name, characters that file names do not allow become '_'. An event
 * without a name has opd's name, else rCONFIG for a raw event, else type-TYPE-config-CONFIG. A
 * frequency has no period: then the count of a clock is 10^9 / frequency, and that of another event
 * 1.
 */
void opi_event_name(const struct op_perf_event *from, struct op_event *ret_event) OP_NONNULL;

#endif
