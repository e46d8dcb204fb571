/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The files of a session's stats/: the ledger as the genuine tools read it, one number in each file
 * (doc/format.md). Any thread.
 */
#ifndef OP_SESSION_STATS_H
#define OP_SESSION_STATS_H

#include "libop/base/compiler.h"

struct op_session_ledger;

/* oprofile's daemon had more reasons of losses; their files stay 0. */
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

/* Adds the numbers of a ledger. */
void op_stats_add(const struct op_session_ledger *ledger, uint64_t numbers[OP_STATS_NR]) OP_NONNULL;

/*
 * Reads the file at `path` below dir_fd without following a link. 0; -EINVAL: no number; another
 * -errno.
 */
int op_stats_read(int dir_fd, const char *path, uint64_t *ret_value) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens stats/ of a session without following a link, and makes it if `make`. A descriptor or
 * -errno.
 */
int op_stats_open(int dir_fd, bool make) OP_MUST_CHECK;

/* Writes one number and syncs it. 0 or -errno. */
int op_stats_write(int stats_fd, enum op_stats_number number, uint64_t value) OP_MUST_CHECK;

/* Writes the numbers of a session that are missing or below those of the ledger. 0 or -errno. */
int op_stats_raise(int dir_fd, const struct op_session_ledger *ledger) OP_NONNULL OP_MUST_CHECK;

#endif
