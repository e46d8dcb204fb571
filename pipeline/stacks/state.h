/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is kept between the stacks of samples (stacks.h). Sync thread only. */
#ifndef OPD_STACK_STATE_H
#define OPD_STACK_STATE_H

#include "libop/base/compiler.h"
#include "pipeline/stacks/frames.h"
#include "pipeline/stacks/queue.h"

#define OPD_STACKS_STOPS_MAX 8u

/* An image in which walks end that are not complete, about: those with few make room for others. */
struct opd_stacks_stop {
	uint64_t cookie;
	enum op_stack_end end;
	uint64_t nr;
};

struct opd_stacks_counts {
	uint64_t nr_walks, nr_frames, walk_ns; /* walks that were begun again count again */
	uint64_t nr_waited, nr_queue_full, nr_not_stored;
	uint64_t nr_cut, cut_bytes, cut_most_bytes; /* copies that were too short by a known size */
};

struct opd_stacks {
	struct opd_tables *tables;  /* the caller's; NULL: none */
	struct opd_runtimes *runtimes; /* owned; NULL: none are known */
	/* records of a file wait for their tables so long, all together; 0: a turn comes later */
	uint64_t block_ns;
	const struct op_stop *stop; /* ends that waiting; NULL: nothing does */
	struct opd_interpreters *interpreters; /* the caller's; NULL: they are not read */
	uint16_t machine;           /* whose registers the samples have */
	uint64_t registers;         /* perf_event_attr.sample_regs_user */
	struct opd_stack_queue queue;
	struct opd_stacks_stop stops[OPD_STACKS_STOPS_MAX];
	struct opd_stacks_counts counts;
	struct opd_stack_walk walk; /* of the last one */
};

/* The tables stay the caller's; NULL: there are none. 0 or -ENOMEM. */
int opd_stacks_new(struct opd_tables *tables, struct opd_stacks **ret_stacks) OP_NONNULL_ARGS(2) OP_MUST_CHECK;

/* Forgets waiting samples. NULL is allowed. */
void opd_stacks_free(struct opd_stacks *stacks);

/* For epoll(7): readable when a table may be finished. -1: there are no tables. */
int opd_stacks_fd(const struct opd_stacks *stacks) OP_NONNULL;

/* Another session begins: the counts are of it. Waiting samples will be in it. */
void opd_stacks_begin_session(struct opd_stacks *stacks) OP_NONNULL;

/* The session is emptied: waiting samples and counts belong to nothing any more. */
void opd_stacks_reset(struct opd_stacks *stacks) OP_NONNULL;

#endif
