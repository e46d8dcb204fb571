/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbers in a session's stats/, each in a file of its own: the ledger in the form that the genuine tools look at (doc/format.md). Any thread. */
#ifndef OP_SESSION_STATS_H
#define OP_SESSION_STATS_H

#include "libop/compiler.h"

struct op_session_ledger;

/* The oprofile daemon had more reasons than opd has, those stay 0. */
#define OP_STATS_NUMBERS(X)                                                                                                        \
	X(total_samples)                                                                                                           \
	X(lost_records_by_kernel)                                                                                                  \
	X(lost_samplefile)

enum op_stats_number {
#define X(name) OP_STATS_##name,
	OP_STATS_NUMBERS(X)
#undef X
		OP_STATS_NR,
};

/* The name of the file. */
const char *op_stats_name(enum op_stats_number number);

/* Adds what a ledger says. */
void op_stats_add(const struct op_session_ledger *ledger, uint64_t numbers[OP_STATS_NR]) OP_NONNULL;

/* The number in the file at `path` below dir_fd; a link is not followed. 0, -EINVAL when it is none, another -errno. */
int op_stats_read(int dir_fd, const char *path, uint64_t *ret_value) OP_NONNULL OP_MUST_CHECK;

#endif
