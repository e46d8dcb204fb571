/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The runtimes of processes: which process has which one, what is known of it, the names of its
 * functions, and how often they were found. A new runtime is a file of its own (host.h) and a
 * row of the table in runtimes.c.
 *
 * Sync thread only.
 */
#ifndef OPD_RUNTIMES_H
#define OPD_RUNTIMES_H

#include "libop/base/compiler.h"
#include "libop/control/runtime_stats.h"
#include "pipeline/resolve/resolver.h"
#include "pipeline/runtimes/host.h"

#define OPD_RUNTIME_PROCESSES_MAX 1024u /* that are known at a time */

struct opd_runtimes;

/* The lookers stay the caller's. 0 or -ENOMEM. */
int opd_runtimes_new(struct opd_lookers *lookers, uint64_t wanted, struct opd_runtimes **ret_runtimes) OP_NONNULL OP_MUST_CHECK;
void opd_runtimes_free(struct opd_runtimes *runtimes); /* NULL is allowed */

struct opd_runtime_names *opd_runtimes_names(struct opd_runtimes *runtimes) OP_NONNULL;

/* A walk begins; what the one before noted is forgotten. */
void opd_runtimes_begin_walk(struct opd_runtimes *runtimes) OP_NONNULL;

/*
 * Asks the runtime of the process. OPD_RUNTIME_GUESS without functions: the process has none, or
 * the code is not the runtime's.
 */
enum opd_runtime_how opd_runtimes_ask(struct opd_runtimes *runtimes, const struct opd_resolver *resolver,
				      const struct opd_runtime_frame *frame, struct opd_runtime_answer *ret_answer) OP_NONNULL;

/* The stack of the last walk is booked: counts it. is_complete, is_cut: how it ends. */
void opd_runtimes_count(struct opd_runtimes *runtimes, bool is_complete, bool is_cut) OP_NONNULL;

/* Adds what was seen since opd was started (libop/control/runtime_stats.h). */
void opd_runtimes_add_counts(const struct opd_runtimes *runtimes, uint64_t stats[OP_NR_RUNTIMES][OP_NR_RUNTIME_STATS]) OP_NONNULL;

/*
 * False: asking about a process again is in vain in this turn. One whose owner has no budget left
 * keeps no other one waiting.
 */
bool opd_runtimes_can_ask(const struct opd_runtimes *runtimes, uint32_t pid) OP_NONNULL;

/* In each turn: forgets processes that are gone. True: an answer was OPD_RUNTIME_WAIT meanwhile. */
bool opd_runtimes_turn(struct opd_runtimes *runtimes, const struct opd_resolver *resolver) OP_NONNULL;

#endif
