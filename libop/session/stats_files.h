/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The numbers in a session's stats/, each in a file of its own: the ledger in the form that the genuine tools look at (doc/format.md). Any thread. */
#ifndef OP_SESSION_STATS_H
#define OP_SESSION_STATS_H

#include "libop/base/compiler.h"

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

/* The directory stats/ of a session, dir_fd being its own; a link is not followed. `make`: it is made where there is none. A descriptor or -errno. */
int op_stats_open(int dir_fd, bool make) OP_MUST_CHECK;

/* Writes one number, and to the disk. 0 or -errno. */
int op_stats_write(int stats_fd, enum op_stats_number number, uint64_t value) OP_MUST_CHECK;

/* Writes the numbers that are missing in a session, or less than what the ledger says; dir_fd is its directory. 0 or -errno. */
int op_stats_raise(int dir_fd, const struct op_session_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

#endif
