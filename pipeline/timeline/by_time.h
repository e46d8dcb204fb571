/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A timeline of a session that is written at once, of a recording or of operf: a sink adds what is
 * stored to the span of its time, whatever order it comes in. All spans are in memory, at most
 * OPD_SPANS_MAX. Where the session lasts longer, two neighbours become one, and spans are twice as
 * long from then on. The ledger of a span has what was stored: when samples were lost is not known.
 *
 * One thread.
 */
#ifndef OPD_BY_TIME_H
#define OPD_BY_TIME_H

#include "pipeline/timeline/collect.h"

#define OPD_SPANS_MAX 120u

struct opd_by_time {
	/* count, tables and steps: how samples become nodes; ledger: what was there before */
	struct opd_timeline nodes;
	struct op_minute *spans;        /* OPD_SPANS_MAX; those without samples are zeroed */
	uint64_t first_ns, newest_ns;   /* of samples, by their clock */
	uint64_t length_ns;             /* of a span; 0: there was no sample */
	bool failed;                    /* no memory: there will be no timeline */
};

/*
 * Adds the sink to count->sinks. `tables`: NULL, function starts are not known. `ledger`: its base
 * is what a session that goes on has stored. 0 or -ENOMEM.
 */
int opd_by_time_open(struct opd_by_time *by_time, struct opd_count *count, struct opd_tables *tables, struct opd_ledger *ledger)
	OP_NONNULL_ARGS(1, 2, 4) OP_MUST_CHECK;

/*
 * Writes the spans as the timeline of samples/current below session_fd. newest_wall_ns: what the
 * wall clock showed at newest_ns, or about then. 0, also without samples that have a time; -errno:
 * the session has no timeline then.
 */
int opd_by_time_write(struct opd_by_time *by_time, int session_fd, uint64_t newest_wall_ns) OP_NONNULL OP_MUST_CHECK;

/* Allowed on a zeroed one. */
void opd_by_time_close(struct opd_by_time *by_time) OP_NONNULL;

#endif
