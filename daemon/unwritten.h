/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Closed sessions that could not be written to the disk: tried again, 5 seconds later, then 10, and so on up to 10 minutes. A file whose writing
 * has failed may be clean for the kernel all the same, so every file is written anew, with what it has, before it counts as being on the disk. What
 * is left when the daemon ends is still marked as closing, and the next daemon looks at it.
 */
#ifndef OPD_UNWRITTEN_H
#define OPD_UNWRITTEN_H

#include "libop/base/compiler.h"

struct opd_sync;

/* Tries those again that are due, each in a thread of its own. Sync thread. */
void opd_unwritten_retry(struct opd_sync *sync, uint64_t now_ns) OP_NONNULL;

/* How many there are, those included that are being written. Any thread; sync->lock is free. */
uint64_t opd_unwritten_count(struct opd_sync *sync) OP_NONNULL OP_MUST_CHECK;

/* Leaves them to the next start. No thread is under way. */
void opd_unwritten_free(struct opd_sync *sync) OP_NONNULL;

#endif
