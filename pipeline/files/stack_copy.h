/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The top of the stack of a thread that waits, copied by a looker (lookers.h). Sync thread only. */
#ifndef OPD_STACK_COPY_H
#define OPD_STACK_COPY_H

#include "libop/base/compiler.h"
#include "libop/base/text.h"

struct opd_lookers;

#define OPD_STACK_COPY_MAX (64u * 1024)

struct opd_stack_copy_wanted {
	uint32_t pid, tid;
	uint64_t from; /* its stack pointer */
	uint64_t nr_bytes; /* OPD_STACK_COPY_MAX at most */
};

/* Asks. The copy is shorter where the stack ends. 0 or -errno; the caller frees ret_copy. */
int opd_stack_copy_ask(struct opd_lookers *lookers, const struct opd_stack_copy_wanted *wanted,
		       struct op_text *ret_copy) OP_NONNULL OP_MUST_CHECK;

/* In the looker. */
int opd_stack_copy_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL;

#endif
