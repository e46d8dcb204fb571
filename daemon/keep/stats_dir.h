/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * samples/current/stats/: the ledger in the form that the genuine tools look at, so that they warn of what was lost
 * (doc/format.md).
 *
 * Sync thread, or before it starts, unless said otherwise.
 */
#ifndef OPD_STATS_DIR_H
#define OPD_STATS_DIR_H

#include "libop/base/compiler.h"
#include "libop/session/layout.h"
#include "libop/session/stats_files.h"

#define OPD_STATS_DIR OP_SESSION_CURRENT "/stats"
#define OPD_STATS_TMP OP_SESSION_TMP "/stats" /* a file of it in the making */

/* What stands there; 0 for what is missing or no number. */
void opd_stats_dir_read(int session_fd, uint64_t ret_numbers[OP_STATS_NR]);

/*
 * Writes the files anew, each whole; hides_kernel: the addresses of kernel symbols are not known, which the reports should say.
 * 0 or -errno.
 */
int opd_stats_dir_write(int session_fd, const uint64_t numbers[OP_STATS_NR], bool throttled, bool hides_kernel) OP_MUST_CHECK;

/* Writes these files of the session with this directory to the disk. Any thread; waits for it. 0, also when there are none, or -errno. */
int opd_stats_dir_sync(int current_fd) OP_MUST_CHECK;

#endif
