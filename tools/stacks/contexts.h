/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the stores of sessions keep apart beside the calls (opd-stacks(5)), with its names. */
#ifndef OPR_CONTEXTS_H
#define OPR_CONTEXTS_H

#include <stddef.h>
#include <stdint.h>

#include "libop/base/compiler.h"
#include "libop/session/stack_ends.h"
#include "libop/session/wait_states.h"

struct opr_stack_context {
	size_t session; /* index in the profile */
	char *event;    /* "STACKS:99:0x0" */
	char *app, *comm, *cgroup, *user, *thread, *cpu; /* "(no process)" etc.: there is none */
	enum op_stack_end end;
	bool is_wait; /* of the event WAIT: counts are microseconds */
	enum op_wait_state state;
	bool is_idle; /* it waits for work (idle.h); the reader does not set it */
};

struct opr_call_node;

/* A span of time, of the timelines of the sessions. */
struct opr_stack_span {
	uint64_t begin_ns, end_ns; /* since 1970 */
	uint64_t nr_lost;
};

/* What a span added at a node of the tree, in a context. */
struct opr_stack_time {
	const struct opr_call_node *node;
	size_t context, span;
	uint64_t count, nr_records;
};

/*
 * Zeroed at first; opr_stack_contexts_free in any case. The caller sets max_spans; 0: the time is
 * not kept apart. Spans are there only if all sessions with stacks have some; they are sorted.
 */
struct opr_stack_contexts {
	struct opr_stack_context *rows;
	size_t nr_rows, capacity;
	size_t max_spans;
	struct opr_stack_span *spans;
	size_t nr_spans;
	struct opr_stack_time *times;
	size_t nr_times, times_capacity;
};

/* Frees the names of one. */
void opr_stack_context_free(struct opr_stack_context *row) OP_NONNULL;

void opr_stack_contexts_free(struct opr_stack_contexts *contexts) OP_NONNULL;

#endif
