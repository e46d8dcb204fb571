/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread that writes replaced files to the disk (op_odb_sync_pending), since a disk may take
 * seconds and the thread that counts must not wait. Any thread may call these functions.
 */
#ifndef OPD_SYNCER_H
#define OPD_SYNCER_H

#include "libop/base/compiler.h"
#include "libop/odb/replace.h"

struct opd_syncer;

/* Starts the thread; session_fd is the caller's until opd_syncer_free. 0 or -errno. */
int opd_syncer_new(int session_fd, struct opd_syncer **ret_syncer) OP_NONNULL OP_MUST_CHECK;

/* Takes a list over. Does not wait. */
void opd_syncer_add(struct opd_syncer *syncer, struct op_odb_pending *pending) OP_NONNULL;

/*
 * Removes the files that the thread has not begun from its queue and returns them; NULL: none. For
 * a caller that closes the session and syncs its files itself. *ret_session is the number of that
 * session for opd_syncer_take_failed; files that are added later belong to the next session. Does
 * not wait.
 */
struct op_odb_pending *opd_syncer_take(struct opd_syncer *syncer, uint64_t *ret_session) OP_NONNULL OP_MUST_CHECK;

/*
 * How many files could not be written, ever. A dump compares it with the last one: the kernel
 * reports a write error only once, and here it reported it to the syncer. `wait`: until the file
 * that is being written is done.
 */
uint64_t opd_syncer_nr_failed(struct opd_syncer *syncer, bool wait) OP_NONNULL;

/*
 * Takes the files of a closed session that could not be written, NULL for none. The caller writes
 * them anew and syncs them; nobody may count in them.
 */
struct op_odb_pending *opd_syncer_take_failed(struct opd_syncer *syncer, uint64_t session) OP_NONNULL OP_MUST_CHECK;

/* Whether there are such files of any session. */
bool opd_syncer_has_failed(struct opd_syncer *syncer) OP_NONNULL OP_MUST_CHECK;

/* Syncs what is left and ends the thread; NULL is allowed. */
void opd_syncer_free(struct opd_syncer *syncer);

#endif
