/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A visit to CPUs. First the rings of all CPUs with data are swapped, several at a time. Then the
 * side band of all CPUs is read, up to a moment after the last swap. Then the rings that the swaps
 * froze are drained. So the mapping of each frozen sample is known before the sample is resolved,
 * with one look at the side band for all CPUs. An idle CPU is not touched.
 *
 * Sync thread only; it waits while the swapping threads use a pair (pipeline/capture/swappers.h).
 */
#ifndef OPD_VISIT_H
#define OPD_VISIT_H

#include "libop/base/compiler.h"
#include "pipeline/capture/swappers.h"
#include "pipeline/drive/drain.h"
#include "pipeline/resolve/rescan.h"

struct opd_visits {
	struct opd_pipeline *pipeline;
	struct opd_swappers *swappers;
	struct opd_cpu **due;   /* CPUs to be visited, each once; room for all CPUs */
	struct opd_swap *swaps; /* room for both pairs of all CPUs */
	size_t nr_due;
	struct opd_rescan rescan;
	uint64_t sideband_ns; /* the side band has been read up to here */
	struct opd_visit_counts {
		uint64_t nr_visits, visits_ns; /* each of one or several CPUs that are not idle */
		uint64_t swapping_ns;          /* the part of it until the last swap */
		uint64_t nr_turns, last_turn_ns, longest_turn_ns; /* visits to all CPUs */
	} counts;
};

/* The capture is open and stays open. nr_threads as in opd_swappers_new. 0 or -ENOMEM. */
int opd_visits_init(struct opd_visits *visits, struct opd_pipeline *pipeline, unsigned int nr_threads) OP_NONNULL OP_MUST_CHECK;

/* Puts a CPU on the list of those to be visited, unless it is offline, idle or there already. */
void opd_visits_add(struct opd_visits *visits, struct opd_cpu *cpu) OP_NONNULL;

/*
 * The same for a CPU whose ring woke its reader. The kernel does that after each watermark of bytes
 * that it writes, read or not: unless Watermark= or WakeupRecords= say when opd reads, a ring with
 * less is left to the next turn.
 */
void opd_visits_add_woken(struct opd_visits *visits, struct opd_cpu *cpu) OP_NONNULL;

/* Visits the CPUs on the list, and empties it. */
void opd_visits_run(struct opd_visits *visits) OP_NONNULL;

/* Visits all CPUs that are not idle, and reads the side band in any case. */
void opd_visit_all(struct opd_visits *visits) OP_NONNULL;

/*
 * True when a visit finds nothing that is urgent: no process did anything that the side band tells,
 * no stack waits for a table, nothing in /proc has to be read again, and rings are nearly empty.
 */
bool opd_visits_can_wait(const struct opd_visits *visits) OP_NONNULL;

/* After sampling was switched off: visits until both rings of every CPU stay empty. */
void opd_visit_until_quiet(struct opd_visits *visits) OP_NONNULL;

/* Reads both rings of a CPU that went offline. The kernel does not write to them any more. */
void opd_visit_offline_cpu(struct opd_visits *visits, struct opd_cpu *cpu) OP_NONNULL;

/* Side-band records since from_ns are missing. The next visits read /proc instead. */
void opd_visits_missed(struct opd_visits *visits, uint64_t from_ns) OP_NONNULL;

/* Reads the side band alone, up to now. */
void opd_visit_sideband(struct opd_visits *visits) OP_NONNULL;

/*
 * Looks at the files of all processes whose JIT code has samples without a name, and writes the
 * objects of JIT code that lack functions. Takes its time, and visits the CPUs in between.
 */
void opd_visits_write_objects(struct opd_visits *visits) OP_NONNULL;

/* Ends the swapping threads. Allowed on zeroed visits. */
void opd_visits_free(struct opd_visits *visits) OP_NONNULL;

#endif
