/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Closed sessions that could not be written to the disk. Each is tried again after 5 seconds, then
 * 10, and so on up to 10 minutes. After a failed write the kernel may treat the page as clean, so
 * every file is written again. A session that is left when the daemon ends keeps its mark
 * "closing", and the next daemon checks it.
 */
#ifndef OPD_UNWRITTEN_H
#define OPD_UNWRITTEN_H

#include <pthread.h>

#include "daemon/jobs/background.h"
#include "libop/base/compiler.h"

struct opd_write_out;

struct opd_unwritten {
	struct opd_background *background;
	pthread_mutex_t lock; /* protects waiting and nr */
	struct opd_write_out *waiting;
	uint64_t nr; /* waiting and being written */
};

void opd_unwritten_init(struct opd_unwritten *unwritten, struct opd_background *background) OP_NONNULL;

/* Frees the list; the next daemon checks these sessions. No thread may run in the background. */
void opd_unwritten_free(struct opd_unwritten *unwritten) OP_NONNULL;

/* Takes over a closed session. False: there are too many, it stays the caller's. Any thread. */
bool opd_unwritten_keep(struct opd_unwritten *unwritten, struct opd_write_out *out) OP_NONNULL OP_MUST_CHECK;

/* Tries those again that are due, each in a thread of its own. Sync thread. */
void opd_unwritten_retry(struct opd_unwritten *unwritten, uint64_t now_ns) OP_NONNULL;

/* Sessions that are waiting or being written. Any thread. */
uint64_t opd_unwritten_count(struct opd_unwritten *unwritten) OP_NONNULL OP_MUST_CHECK;

#endif
