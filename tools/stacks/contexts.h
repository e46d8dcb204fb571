/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the stores of sessions keep apart beside the calls (opd-stacks(5)), with its names. */
#ifndef OPR_CONTEXTS_H
#define OPR_CONTEXTS_H

#include <stddef.h>

#include "libop/base/compiler.h"
#include "libop/session/stack_ends.h"

struct opr_stack_context {
	size_t session; /* index in the profile */
	char *event;    /* "STACKS:99:0x0" */
	char *app, *comm, *cgroup, *user, *thread, *cpu; /* "(no process)" etc.: there is none */
	enum op_stack_end end;
};

/* Zeroed at first; opr_stack_contexts_free in any case. */
struct opr_stack_contexts {
	struct opr_stack_context *rows;
	size_t nr_rows, capacity;
};

/* Frees the names of one. */
void opr_stack_context_free(struct opr_stack_context *row) OP_NONNULL;

void opr_stack_contexts_free(struct opr_stack_contexts *contexts) OP_NONNULL;

#endif
