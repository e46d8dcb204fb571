/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Symbols that outlive a report, for a tool that makes one report after the other (optop). Those of
 * a file that is as it was need not be read again. After OPR_KEPT_NS they are read again in any
 * case: a debug file may have come, and the kernel's list of symbols shows no change. All reports
 * have the same options. One thread.
 */
#ifndef OPR_KEPT_H
#define OPR_KEPT_H

#include "libop/base/clock.h"
#include "tools/symbols/symbols.h"

#define OPR_KEPT_NS (30u * (uint64_t)OP_NS_PER_S)

struct opr_file_state {
	uint64_t device, inode, size, mtime_ns, ctime_ns;
	uint64_t read_ns; /* when the symbols were read, CLOCK_MONOTONIC */
};

/* Zeroed at first; opr_kept_free in any case. */
struct opr_kept_symbols {
	struct opr_kept {
		char *path;
		uint64_t hash; /* of the path */
		struct opr_file_state state;
		struct opr_symbols symbols;
	} *rows;
	size_t nr_rows, capacity;
};

/* Moves the symbols of a file out of the store. False: there are none, and *state is set. */
bool opr_kept_take(struct opr_kept_symbols *kept, const char *path, struct opr_symbols *symbols,
		   struct opr_file_state *state) OP_NONNULL OP_MUST_CHECK;

/* Moves the symbols of a file into the store; `state` is that of opr_kept_take. */
void opr_kept_give(struct opr_kept_symbols *kept, const char *path, struct opr_symbols *symbols,
		   const struct opr_file_state *state) OP_NONNULL;

void opr_kept_free(struct opr_kept_symbols *kept) OP_NONNULL;

#endif
