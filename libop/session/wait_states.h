/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a thread that does not run waits for: the states of the event WAIT. The numbers are in the
 * file of stacks and in the timeline, so they never change.
 */
#ifndef OP_WAIT_STATES_H
#define OP_WAIT_STATES_H

#include "libop/base/compiler.h"

/* Name, number and meaning. The name in brackets is a frame of the reports. */
#define OP_WAIT_STATES(X) \
	X(blocked, 1, "it sleeps until something happens: a lock, a pipe, a socket, a timer") \
	X(disk, 2, "it waits for the disk (iowait)") \
	X(uninterruptible, 3, "it sleeps, and no signal wakes it") \
	X(runnable, 4, "it was woken and waits for a CPU") \
	X(preempted, 5, "it wants to go on, and another thread has its CPU") \
	X(frozen, 6, "its cgroup is frozen, or a debugger stopped it")

enum op_wait_state {
	OP_WAIT_NONE, /* no wait: the thread ran */
#define X(name, number, meaning) OP_WAIT_##name = (number),
	OP_WAIT_STATES(X)
#undef X
	OP_NR_WAIT_STATES,
};

/* The name of a state; of OP_WAIT_NONE "running". */
const char *op_wait_state_name(enum op_wait_state state);
const char *op_wait_state_meaning(enum op_wait_state state);

/*
 * What became of the switches of a session: times at which a thread left a CPU. Once all records
 * are read
 *
 *   switches = idle + kernel + emitted + skipped + lost
 *
 * The struct crosses the control socket.
 */
struct op_wait_ledger {
	uint64_t switches;
	uint64_t idle;    /* the thread was the idle one of the CPU */
	uint64_t kernel;  /* a thread of the kernel, which has no stack of a program */
	uint64_t emitted; /* a record was written */
	uint64_t skipped; /* the sampling left it out; the weights of others stand for it */
	uint64_t lost;    /* the ring was full */
	uint64_t records; /* waits that are stored */
	/* exact, by state: from a sum at each switch, not from samples. [OP_WAIT_NONE] is 0 */
	uint64_t total_us[OP_NR_WAIT_STATES];
};

/* Whether the session has counted switches. */
static inline bool op_wait_ledger_is_used(const struct op_wait_ledger *waits)
{
	return waits->switches || waits->records;
}

/*
 * The number of an index, from 0 on, and its name: "switches", "lost", "blocked_us". NULL: there
 * are no more.
 */
#define OP_WAIT_NUMBER_BYTES 32
uint64_t *op_wait_ledger_number(struct op_wait_ledger *waits, size_t index, char name[OP_WAIT_NUMBER_BYTES]) OP_NONNULL;

/* The exact time of all states. */
uint64_t op_wait_ledger_total_us(const struct op_wait_ledger *waits) OP_NONNULL;

/* Adds `more`, minus `before` when that is given. */
void op_wait_ledger_add(struct op_wait_ledger *waits, const struct op_wait_ledger *more, const struct op_wait_ledger *before)
	OP_NONNULL_ARGS(1, 2);

#endif
