/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Repairs what an unclean stop left, before anything is counted. Main thread, at the start, unless
 * a function says otherwise.
 */
#ifndef OPD_RECOVER_H
#define OPD_RECOVER_H

#include "libop/base/compiler.h"

/*
 * Finishes or removes what tmp/ has. After an unclean stop, and when there is no ledger, it also
 * checks every sample file of the current session: drops torn nodes, converts files of oprofile
 * 0.9, puts other files aside. Closed sessions that are not on the disk are checked in the same
 * way. Logs all failures.
 */
void opd_recover(int session_fd, bool was_unclean);

#define OPD_NO_SAMPLE_FILE "is not a sample file"

/*
 * Moves a file to damaged/ and logs its path and the fault. 0 or -errno. Sync thread, or before it
 * starts.
 */
int opd_put_aside(int session_fd, const char *path, const char *fault) OP_NONNULL OP_MUST_CHECK;

/*
 * Corrects the ledger of a closed session by its sample files, and stats/ by the ledger, and logs
 * what the files lack. dir_fd is the session. Without a ledger it does nothing. 0 or -errno. Any
 * thread.
 */
int opd_correct_ledger(int dir_fd) OP_MUST_CHECK;

/* Whether an error of op_odb_open or op_odb_repair means that the file should be put aside. */
bool opd_is_damage(int err) OP_MUST_CHECK;

#endif
