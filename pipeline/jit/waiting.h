/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samples of JIT code that wait for a name. A process may name its code late: V8 writes its buffer
 * when it is full or at exit, and a Java agent writes a map when it is asked to.
 *
 * Nothing is kept back and nothing is moved later. A sample without a name is counted at once at
 * its own address, under a label that no other process and no other opd ever uses. When the name
 * comes, the object beside the sample files gets a symbol at that address. So a kill or a dump
 * finds all counts in the files, and a reader that does not know the name shows the region. To move
 * counts from one file to another would be visible to readers, and after a power cut one of the
 * files could be missing the change.
 *
 * Code can be replaced by other code at the same address, and a count has no time. So this table
 * remembers for each line of code, while it waits, when the first and the last sample was there. A
 * function gets the name of its lines only if no other code was there meanwhile. Else they keep no
 * name rather than a wrong one.
 *
 * Later samples of such a late function are counted at its address, too: a report has one row.
 *
 * The table is limited by process, by user and in all. A sample beyond a limit is counted in the
 * region as if the process had no JIT code, and never gets a name. Many processes never describe
 * their code. At the limit of a user, those of them that waited longest make room for a process
 * that has a file.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_WAITING_H
#define OPD_JIT_WAITING_H

#include <sys/types.h>

#include "libop/base/compiler.h"
#include "libop/base/htable.h"
#include "libop/session/dcookie.h"
#include "pipeline/jit/address_map.h"
#include "pipeline/jit/budget.h"

#define OPD_JIT_LINE_BYTES     64u
#define OPD_JIT_LINES_MAX      8192u       /* of a process; 64 bytes of memory each */
#define OPD_JIT_LINES_USER_MAX (32u << 10) /* of a user */
#define OPD_JIT_LINES_ALL_MAX  (128u << 10)
#define OPD_JIT_LABEL_BYTES    32u

struct opd_jit_waiting;

/* All tables. All zero at first, but for the pointers. */
struct opd_jit_waits {
	struct op_dcookie_table *table;
	uint64_t *counters; /* OP_NR_JIT */
	struct opd_jit_waiting *first;
	struct opd_jit_uses users; /* also of functions (space.c) */
};

/* One for each address space. */
struct opd_jit_waiting {
	struct opd_jit_waits *waits;
	struct opd_jit_waiting *next, **link;
	struct opd_jit_use *user;
	uint32_t pid;
	char label[OPD_JIT_LABEL_BYTES];
	uint64_t label_cookie;
	uint64_t first_ns; /* no sample that waits is older */
	uint64_t asked_ns; /* when the files of the process were looked at for it */
	bool has_file;     /* the process describes its code: names will come */
	struct op_htable lines;
};

/* Makes the name of an image of JIT code, which is never used again. */
void opd_jit_make_label(char label[OPD_JIT_LABEL_BYTES]) OP_NONNULL;

/* Makes an empty table for a process of a user. NULL: no memory. */
struct opd_jit_waiting *opd_jit_waiting_new(struct opd_jit_waits *waits, uint32_t pid, uid_t uid,
					    const char *label) OP_NONNULL OP_MUST_CHECK;

/* Frees a table; the samples in it stay unnamed. NULL is allowed. */
void opd_jit_waiting_free(struct opd_jit_waiting *waiting);

/*
 * Notes a sample, or the place of a caller of one, which is no sample in the counters. False: there
 * is no room, and it must not be counted under the label.
 */
bool opd_jit_waiting_add(struct opd_jit_waiting *waiting, uint64_t address, uint64_t time_ns,
			 bool is_caller) OP_NONNULL OP_MUST_CHECK;

/*
 * Gives names to what waits, after the files were read to their end: looks at the functions that
 * were added since. The next call goes on where the allowance ended.
 */
void opd_jit_waiting_name(struct opd_jit_waiting *waiting, struct opd_jit_map *map, struct opd_jit_allowance *allowance) OP_NONNULL;

/* Calls `visit` for the cookie of each label. */
void opd_jit_waits_visit_cookies(const struct opd_jit_waits *waits, void (*visit)(uint64_t cookie, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2);

#endif
