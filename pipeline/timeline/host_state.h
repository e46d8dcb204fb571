/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the host is like: counters of CPUs and stalls, load, memory. Read from /proc; what the host
 * does not have is left out. Any thread, one at a time for each object.
 */
#ifndef OPD_HOST_STATE_H
#define OPD_HOST_STATE_H

#include "libop/timeline/minute.h"

#define OPD_PSI_LINES 8u /* of OP_CONTEXT_PSI */

struct opd_host_state {
	uint64_t *busy_us; /* of each CPU by its number; UINT64_MAX: it is offline */
	size_t nr_cpus, cpu_capacity;
	uint64_t stall_us[OPD_PSI_LINES];
	bool has_stalls[OPD_PSI_LINES];
};

/*
 * Reads the counters, and adds to `minute` how much they grew since the last call; NULL: adds
 * nothing. Memory may be short: then rows are missing.
 */
void opd_host_state_read(struct opd_host_state *state, struct op_minute *minute) OP_NONNULL_ARGS(1);

void opd_host_state_free(struct opd_host_state *state) OP_NONNULL;

#endif
