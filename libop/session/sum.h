/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sums of a session's sample files, and the ledger that follows from them. */
#ifndef OP_SESSION_SUM_H
#define OP_SESSION_SUM_H

#include "libop/session/ledger_file.h"

/*
 * Adds the sample files and the stacks of a session to `stored` of each event, in new rows where an
 * event has none. Files that cannot be read are skipped and counted in *ret_nr_bad. 0 or -errno;
 * -EBADMSG: a file in {root} or {kern} has no name of a sample file.
 */
int op_session_ledger_add_files(struct op_session_ledger *ledger, int dir_fd, uint64_t *ret_nr_bad) OP_NONNULL OP_MUST_CHECK;

/*
 * Sets `stored` of each event to that of `sums`, and `received` and `unattributed` accordingly; of
 * stacks also `ends`. Samples that were stored and are in no file any more become lost_io_error, in
 * rows that added up. 0 or -ENOMEM.
 */
int op_session_ledger_correct(struct op_session_ledger *ledger, const struct op_session_ledger *sums) OP_NONNULL OP_MUST_CHECK;

/*
 * op_session_ledger_correct with the sums of the sample files below dir_fd. 0 or -errno as
 * op_session_ledger_add_files.
 */
int op_session_ledger_recount(struct op_session_ledger *ledger, int dir_fd) OP_NONNULL OP_MUST_CHECK;

/*
 * The number and the fingerprint of the sample files of a session. Files by cgroup are left out,
 * because no ledger counts them. It calls stat(2) for each file and reads none. No daemon may write
 * the files meanwhile. 0 or -errno.
 */
int op_session_files_look(int dir_fd, struct op_session_files *ret_files) OP_NONNULL OP_MUST_CHECK;

/* Adds one sample file, by its path below dir_fd; a missing one adds nothing. 0 or -errno. */
int op_session_files_add(int dir_fd, const char *path, struct op_session_files *files) OP_NONNULL OP_MUST_CHECK;

#endif
