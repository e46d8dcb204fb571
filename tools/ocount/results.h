/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The counts as ocount of oprofile 1.4 writes them. */
#ifndef OCN_RESULTS_H
#define OCN_RESULTS_H

#include "tools/ocount/counters.h"

struct ocn_results {
	FILE *out;
	const struct ocn_options *options;
	const struct ocn_counters *counters;
	const char *command; /* the path of its file; NULL: none */
};

/* Writes what was counted in `ns`, which is left out with intervals. */
void ocn_results_write(const struct ocn_results *results, uint64_t ns) OP_NONNULL;

/* Writes the time that stands above the counts of an interval: seconds since 1970. */
void ocn_results_write_time(const struct ocn_results *results, uint64_t realtime_ns) OP_NONNULL;

#endif
