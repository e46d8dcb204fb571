/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where and when the samples of a profile were taken, what they stand for, and what was lost. */
#ifndef OPR_RECORDED_H
#define OPR_RECORDED_H

#include "libop/session/stack_ends.h"
#include "tools/profile/classes.h"
#include "tools/profile/profile.h"

struct opr_recorded {
	struct opr_words hosts; /* each once; empty: not known */
	/* of all sessions together, since 1970; 0: not known, as in an import */
	uint64_t begin_ns, end_ns;
	uint64_t recorded_ns; /* the lengths of the sessions without pauses, added up */
	bool has_pauses;
	size_t nr_sessions;
};

/* Reads the ledgers of the profile's sessions. Freed with opr_recorded_free. 0 or -ENOMEM. */
int opr_recorded_make(struct opr_recorded *recorded, const struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

void opr_recorded_free(struct opr_recorded *recorded);

/*
 * The CPU time that one sample of a class stands for, in seconds. *ret_about: it depends on the
 * speed of the CPU. 0: the event does not count time.
 */
double opr_seconds_of_sample(const struct opr_classes *classes, const struct opr_class *class, bool *ret_about) OP_NONNULL;

/* The share of the event of a class that was lost, from 0 to 1; negative: not known. */
double opr_lost_share(const struct opr_profile *profile, const struct opr_class *class) OP_NONNULL;

/* "Host: db1", "Time: 2026-11-21 03:00:00 to 04:00:00 CET, 1 h": lines, each with a newline. */
void opr_recorded_describe(const struct opr_recorded *recorded, struct op_text *text) OP_NONNULL;

/* The line of the time alone. */
void opr_recorded_time_describe(const struct opr_recorded *recorded, struct op_text *text) OP_NONNULL;

/* "Samples: 4750 of TIMER:1000000, 4.75 CPU seconds, 0.002 % lost": a line for each event. */
void opr_samples_describe(const struct opr_profile *profile, const struct opr_classes *classes, const uint64_t *totals,
			  struct op_text *text) OP_NONNULL;

/* "Stacks: 990 of STACKS:10101010, 98.7 % complete, 1.3 % cut": a line for each such event. */
void opr_ledger_stacks_describe(const struct opr_profile *profile, struct op_text *text) OP_NONNULL;

/* ", 98.7 % complete, 0.9 % cut" */
void opr_stack_ends_describe(const uint64_t ends[OP_NR_STACK_ENDS], struct op_text *text) OP_NONNULL;

/* "2026-11-21T03:00:00Z", for programs. */
#define OPR_UTC_BYTES 40
void opr_format_utc(uint64_t ns, char text[OPR_UTC_BYTES]) OP_NONNULL;

#endif
