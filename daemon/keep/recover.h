/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an unclean stop left: looked at before anything is counted, so that every reader takes the session. Main thread, at the start, unless said otherwise. */
#ifndef OPD_RECOVER_H
#define OPD_RECOVER_H

#include "libop/base/compiler.h"

/*
 * Ends what was under way in tmp/; after an unclean stop, and where there is no ledger, every sample file of the current session is looked at as well: nodes that are torn are
 * dropped, a file of oprofile 0.9 is made one of ours, what is no sample file is put aside. The log says what was done and what failed.
 */
void opd_recover(int session_fd, bool was_unclean);

/* Moves a sample file, or what stands where one belongs, out of the way; the log says so. 0 or -errno. Sync thread, or before it starts. */
int opd_put_sample_file_aside(int session_fd, const char *path) OP_NONNULL OP_MUST_CHECK;

/*
 * Lets the ledger of a closed session, dir_fd being its directory, follow what the files have, and stats/ follow the ledger; the log says what they lack. Where there is no ledger nothing
 * is done. 0 or -errno. Any thread.
 */
int opd_correct_ledger(int dir_fd) OP_MUST_CHECK;

/* Whether this error of op_odb_open or op_odb_repair is one that putting aside helps against. */
bool opd_is_damage(int err) OP_MUST_CHECK;

#endif
