/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Settling: sample files that took the place of others are written to the disk by a thread of its own, since a disk may take
 * seconds and whoever counts does not wait (op_odb_settle).
 */
#ifndef OPD_SYNCER_H
#define OPD_SYNCER_H

#include "libop/base/compiler.h"
#include "libop/odb/odb.h"

struct opd_syncer;

/* Starts the thread; session_fd is the caller's until opd_syncer_free. 0 or -errno. */
int opd_syncer_new(int session_fd, struct opd_syncer **ret_settler) OP_NONNULL OP_MUST_CHECK;

/* Takes a list over. Any thread; does not wait. */
void opd_syncer_add(struct opd_syncer *settler, struct op_odb_pending *pending) OP_NONNULL;

/*
 * Takes back what has not been begun, NULL for nothing: the session that it is of is closed, and whoever does it goes on with it. What was begun is written
 * wherever it is. *ret_session is the session's number for opd_syncer_take_failed; what is added from now on is of the next one. Any thread; does not wait.
 */
struct op_odb_pending *opd_syncer_take(struct opd_syncer *settler, uint64_t *ret_session) OP_NONNULL OP_MUST_CHECK;

/*
 * How many could not be written. The kernel tells an error of writing to one who asks, and nobody who asks later: what the settler was told, a dump must know. `wait`: until what is
 * being written now has ended. Any thread.
 */
uint64_t opd_syncer_nr_failed(struct opd_syncer *settler, bool wait) OP_NONNULL;

/*
 * What could not be written, NULL for nothing: it is to be written anew, which only who knows that nobody counts in it can do, and settled then. The first form
 * takes what is of a session that was closed, the second says whether there is anything. Any thread.
 */
struct op_odb_pending *opd_syncer_take_failed(struct opd_syncer *settler, uint64_t session) OP_NONNULL OP_MUST_CHECK;
bool opd_syncer_has_failed(struct opd_syncer *settler) OP_NONNULL OP_MUST_CHECK;

/* Settles what is left and ends the thread; NULL is allowed. */
void opd_syncer_free(struct opd_syncer *settler);

#endif
