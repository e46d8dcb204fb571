/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much CPU time the sync thread may spend on files of JIT code: a little in each visit, and a
 * small part of the time in the long run. Anybody can write such files, so the time is shared by
 * user, not by process: a user who starts one process after the other gains nothing.
 *
 * A user whose reading was put off gets an equal share of each visit from then on. All others draw
 * on a part that is kept for them. Within the share of a user, his processes have their turn one
 * after the other.
 *
 * Memory is shared by user as well: a user may use as much as is left for all others.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_BUDGET_H
#define OPD_JIT_BUDGET_H

#include <sys/types.h>

#include "libop/base/clock.h"
#include "libop/base/compiler.h"

#define OPD_JIT_VISIT_NS    (10u * (uint64_t)OP_NS_PER_MS) /* CPU time in one visit */
#define OPD_JIT_WAIT_PART   16u /* waiting for a file counts as this part of the time */
#define OPD_JIT_TIME_PART   16u /* at most this part of the time in the long run */
#define OPD_JIT_COMMON_PART 4u  /* this part is for users without a share of their own */
#define OPD_JIT_VISIT_BYTES ((uint64_t)8 << 20) /* read in one visit */
#define OPD_JIT_USERS_MAX   64u                 /* with a share of their own */
#define OPD_JIT_FIRST_MAX   8u /* first questions in a visit for users without time */
#define OPD_JIT_NOBODY      ((uid_t)-1) /* of a process whose user is unknown */

/* A user whose reading was put off lately. */
struct opd_jit_user {
	uid_t uid;
	int64_t left_ns;  /* in this visit; negative: more was spent, and is paid back later */
	uint64_t last_ns; /* the visit in which a reading was put off last */
	/* in a round each process has one turn; it goes on while one waits for its turn */
	uint32_t round;
	bool round_goes_on;
};

/* All zero at first. */
struct opd_jit_budget {
	uint64_t visit_ns; /* time of the visit */
	int64_t left_ns;   /* for all in this visit */
	int64_t common_ns; /* for users without a share of their own */
	uint64_t left_bytes;
	uint64_t spent_ns; /* CPU time in this visit */
	uint32_t nr_first; /* first questions in this visit for users without time */
	struct opd_jit_user users[OPD_JIT_USERS_MAX];
	size_t nr_users;
	uint32_t last_round;
};

/* One reading: what it may spend, and what it has. */
struct opd_jit_allowance {
	uint64_t bytes;        /* that may still be read */
	uint64_t granted_ns;   /* what was left for the user */
	uint64_t limit_ns;     /* that may be spent; more than granted_ns when opening took long */
	uint64_t begin_ns;     /* OP_CLOCK */
	uint64_t begin_cpu_ns; /* CPU time of the thread */
	uint64_t next_step;    /* at this step the clock is read again */
	bool is_spent;         /* the reading stopped before its end */
};

/* Begins a visit, when now_ns is of another one than before. */
void opd_jit_budget_begin(struct opd_jit_budget *budget, uint64_t now_ns) OP_NONNULL;

/* What is left of the visit, from now on. */
struct opd_jit_allowance opd_jit_budget_allowance(const struct opd_jit_budget *budget) OP_NONNULL OP_MUST_CHECK;

/*
 * True when the user of a process has time for a first question about it, or when it is one of the
 * few in a visit that need no time. False: it is put off, and the samples of this visit get no
 * name, because they wait for names only in what the question makes.
 */
bool opd_jit_budget_has_time(struct opd_jit_budget *budget, uid_t uid) OP_NONNULL OP_MUST_CHECK;

/*
 * Grants a reading to a process of a user. *round is the process's own: the round of its last
 * turn, 0 at first. False: the reading is put off.
 */
bool opd_jit_budget_grant(struct opd_jit_budget *budget, uid_t uid, uint32_t *round,
			  struct opd_jit_allowance *ret_allowance) OP_NONNULL OP_MUST_CHECK;

/*
 * True when a reading must stop. nr_steps is the work that it has done so far; a step takes a
 * microsecond or less. Each reading has time for some steps: as much again as it has cost when this
 * is asked for the first time, but no more than OPD_JIT_VISIT_NS.
 */
bool opd_jit_allowance_ends(struct opd_jit_allowance *allowance, uint64_t nr_steps) OP_NONNULL OP_MUST_CHECK;

/* To be called before more of a file is read: it ends a reading that has waited for too long. */
void opd_jit_allowance_check_wait(struct opd_jit_allowance *allowance) OP_NONNULL;

/*
 * Charges a reading to its user. What is beyond the granted time is his debt in later visits.
 * Returns the CPU time that it took.
 */
uint64_t opd_jit_budget_charge(struct opd_jit_budget *budget, uid_t uid, const struct opd_jit_allowance *allowance) OP_NONNULL;

#define OPD_JIT_MEMORY_USERS_MAX 64u /* that are told apart; the others share the last row */

/* What the JIT code of a user's processes takes. */
struct opd_jit_use {
	uid_t uid;
	uint32_t nr_refs;  /* 0: the row is free */
	uint32_t nr_lines; /* waiting.h */
	uint64_t nr_bytes; /* of functions, address_map.h */
};

/* All zero at first. */
struct opd_jit_uses {
	struct opd_jit_use rows[OPD_JIT_MEMORY_USERS_MAX];
};

/* Adds a reference to the row of a user; drops one. */
struct opd_jit_use *opd_jit_use_get(struct opd_jit_uses *uses, uid_t uid) OP_NONNULL;
void opd_jit_use_put(struct opd_jit_use *use) OP_NONNULL;

#endif
