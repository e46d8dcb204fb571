/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the session directory of the session under check by its contents, not by its name; tells
 * whether a daemon may be writing the session, and keeps daemons out during a repair.
 */
#ifndef OPK_LOCATION_H
#define OPK_LOCATION_H

#include "libop/base/compiler.h"

struct opk_location {
	int top_fd;      /* the session directory; -1: there is none, as for a copy */
	int lock_fd;     /* -1: not locked */
	bool is_current; /* the session is samples/current */
	bool is_written; /* by a daemon, if one runs: current, or not on the disk yet */
};

/* dir_fd is the directory of the session. 0 and a location for opk_location_free, or -errno. */
int opk_location_find(int dir_fd, struct opk_location *ret_location) OP_NONNULL OP_MUST_CHECK;

/* Whether a daemon is writing the session. */
bool opk_location_is_live(const struct opk_location *location) OP_NONNULL OP_MUST_CHECK;

/*
 * Whether the last writer was killed, so that the next daemon recovers the session. Not for the
 * holder of the lock.
 */
bool opk_location_is_unclean(const struct opk_location *location) OP_NONNULL OP_MUST_CHECK;

/*
 * Locks the session directory for a repair and finishes the replacements of files in all its
 * sessions (op_session_recover_pending), which a repair would make impossible. *ret_nr_put_back:
 * old files that took their place again. 0, also without the lock when a daemon has it and does
 * not write this session; -EBUSY: a daemon writes it; another -errno.
 */
int opk_location_begin_repair(struct opk_location *location, uint64_t *ret_nr_put_back) OP_NONNULL OP_MUST_CHECK;

/* Unlocks. */
void opk_location_free(const struct opk_location *location) OP_NONNULL;

#endif
