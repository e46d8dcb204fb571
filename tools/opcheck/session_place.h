/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a session lies that is checked, whether a daemon may be writing it, and keeping daemons out while it is repaired. By what is there, whatever the path is called. */
#ifndef OPK_CHECK_PLACE_H
#define OPK_CHECK_PLACE_H

#include "libop/base/compiler.h"

struct opk_place {
	int top_fd;      /* the session directory; -1: it lies in none, as a copy may */
	int lock_fd;     /* -1: not taken */
	bool is_current; /* it is samples/current */
	bool is_written; /* by a daemon, if there is one: current, or closed and not on the disk as a whole */
};

/* dir_fd is the directory of the session. 0 and a place that opk_place_free frees, or -errno. */
int opk_place_find(int dir_fd, struct opk_place *ret_place) OP_NONNULL OP_MUST_CHECK;

/* Whether a daemon is writing it. */
bool opk_place_is_live(const struct opk_place *place) OP_NONNULL OP_MUST_CHECK;

/* Whether whoever wrote it did not end in order, so that the next daemon looks at it; for whoever has not taken the lock. */
bool opk_place_is_unclean(const struct opk_place *place) OP_NONNULL OP_MUST_CHECK;

/*
 * For a repair: keeps daemons out, and has the files that grew and are pending decided upon, of all sessions there: a repair would make them unknown. *ret_nr_put_back of
 * them were replaced by what had been kept. 0, also without a lock where a daemon has it and is through with this session; -EBUSY: it is not; another -errno.
 */
int opk_place_begin_repair(struct opk_place *place, uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

/* Lets go of the lock. */
void opk_place_free(const struct opk_place *place) OP_NONNULL;

#endif
