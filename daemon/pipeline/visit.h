/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Visiting CPUs: first those that have something are swapped, several at a time; then the side band of all CPUs is drained, up to a
 * moment after the last swap; then what the swaps froze. So whatever a frozen sample lies in is known before the sample is
 * resolved, with one look at the side band for all of them. An idle CPU is not touched.
 *
 * Sync thread only; while the swapping threads have a pair, the sync thread waits for them (daemon/capture/swappers.h).
 */
#ifndef OPD_VISIT_H
#define OPD_VISIT_H

#include "daemon/pipeline/drain.h"
#include "daemon/resolve/rescan.h"
#include "daemon/capture/swappers.h"
#include "libop/base/compiler.h"

struct opd_visits {
	struct opd_pipeline *pipeline;
	struct opd_swappers *swappers;
	struct opd_cpu **due;   /* to be visited, each once; room for all CPUs */
	struct opd_swap *swaps; /* the same */
	size_t nr_due;
	struct opd_rescan rescan;
	uint64_t sideband_ns; /* until when the side band has been read */
	struct opd_visit_counts {
		uint64_t nr_visits, visits_ns; /* of one CPU or of several; idle ones are none */
		uint64_t swapping_ns;          /* of that, until the last swap */
		uint64_t nr_turns, last_turn_ns, longest_turn_ns; /* of those visits, to all CPUs */
	} counts;
};

/* The pipeline's capture is open, and remains so. nr_threads as in opd_swappers_new. 0 or -ENOMEM. */
int opd_visits_init(struct opd_visits *visits, struct opd_pipeline *pipeline, unsigned int nr_threads) OP_NONNULL OP_MUST_CHECK;

/* Puts a CPU on the list of those to be visited, unless it is offline, idle or there already. */
void opd_visits_add(struct opd_visits *visits, struct opd_cpu *cpu) OP_NONNULL;

/* Visits what is on the list, and empties it. */
void opd_visits_run(struct opd_visits *visits) OP_NONNULL;

/* A turn: all CPUs that are not idle, and the side band in any case. */
void opd_visit_all(struct opd_visits *visits) OP_NONNULL;

/* Sampling is off: until both rings of every CPU stay empty. */
void opd_visit_until_quiet(struct opd_visits *visits) OP_NONNULL;

/* What a CPU that went offline left behind: the kernel has stopped writing, both rings are read as they are. */
void opd_visit_rest(struct opd_visits *visits, struct opd_cpu *cpu) OP_NONNULL;

/* Processes did what the side band could not tell, since from_ns: a CPU was online and not open. /proc is asked at the next visits. */
void opd_visits_missed(struct opd_visits *visits, uint64_t from_ns) OP_NONNULL;

/* The side band alone, up to now. */
void opd_visit_sideband(struct opd_visits *visits) OP_NONNULL;

/* Ends the swapping threads; allowed on zeroed visits. */
void opd_visits_free(struct opd_visits *visits) OP_NONNULL;

#endif
