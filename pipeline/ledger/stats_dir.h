/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * samples/current/stats/: the ledger in the form that the genuine tools read, so that they warn of
 * lost samples (doc/format.md).
 *
 * Sync thread, or before it starts, unless said otherwise.
 */
#ifndef OPD_STATS_DIR_H
#define OPD_STATS_DIR_H

#include "libop/base/compiler.h"
#include "libop/session/layout.h"
#include "libop/session/stats_files.h"

#define OPD_STATS_DIR OP_SESSION_CURRENT "/stats"
#define OPD_STATS_TMP OP_SESSION_TMP "/stats" /* a file of it before it is renamed into place */

/* Reads the numbers; 0 for a missing or damaged one. */
void opd_stats_dir_read(int session_fd, uint64_t ret_numbers[OP_STATS_NR]);

/*
 * Replaces the files, each by a complete one. hides_kernel: the addresses of kernel symbols are
 * unknown, and the reports should say so. 0 or -errno.
 */
int opd_stats_dir_write(int session_fd, const uint64_t numbers[OP_STATS_NR], bool throttled, bool hides_kernel) OP_MUST_CHECK;

/* Brings these files to the disk. Any thread. 0, also when there are none, or -errno. */
int opd_stats_dir_sync(int current_fd) OP_MUST_CHECK;

#endif
