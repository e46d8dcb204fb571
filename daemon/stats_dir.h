/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * samples/current/stats/: the ledger in the form that the genuine tools look at, so that they warn of what was lost
 * (doc/format.md). Numbers go on from those of an earlier daemon on the same session.
 *
 * Sync thread only, unless said otherwise.
 */
#ifndef OPD_STATS_DIR_H
#define OPD_STATS_DIR_H

#include "daemon/capture.h"
#include "libop/compiler.h"

/* The numbers; the oprofile daemon had more reasons than opd has, those stay 0. */
enum opd_stats_number { OPD_STATS_TOTAL, OPD_STATS_LOST_BY_KERNEL, OPD_STATS_LOST_SAMPLEFILE, OPD_STATS_NR };

/* What the session had before this daemon; zeroed at the start, read at the first write. */
struct opd_stats {
	uint64_t base[OPD_STATS_NR];
	bool base_known;
};

/*
 * Writes the files anew, each whole; hides_kernel: the addresses of kernel symbols are not known, which the reports should say.
 * 0 or -errno.
 */
int opd_stats_dir_write(struct opd_stats *stats, const struct opd_capture *capture, int session_fd, bool hides_kernel) OP_NONNULL OP_MUST_CHECK;

/* Writes the files of the last opd_stats_dir_write to the disk. Any thread; waits for it. 0, also when there are none, or -errno. */
int opd_stats_dir_sync(int session_fd) OP_MUST_CHECK;

/* Empties samples/current, and counting begins anew. 0 or -errno; nothing to empty is no error. */
int opd_stats_dir_clear_session(struct opd_stats *stats, int session_fd) OP_NONNULL OP_MUST_CHECK;

#endif
