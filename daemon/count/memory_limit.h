/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How much the memory view (libop/session/memory_view.h) may keep of a session: so many nodes in all of its files. A node is counted when it comes to be, and once, whatever is closed, forgotten and
 * opened again; those that an earlier daemon left are counted where opd_memory_recount looks. Sync thread, or before it starts.
 */
#ifndef OPD_MEMORY_LIMIT_H
#define OPD_MEMORY_LIMIT_H

#include "daemon/count/state.h"

#define OPD_MEMORY_NODES_MAX (1u << 20) /* in a session: at most 40 MiB */

/* The file of the memory view is open: the count follows what it has now. is_stranger: it was there, unknown, and what it had is counted. */
void opd_memory_note(struct opd_count *count, struct opd_file *file, bool is_stranger) OP_NONNULL;

/* The file is gone, and what it had with it. */
void opd_memory_note_gone(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Counts what the current session has. 0 or -errno, and then nothing has changed. */
int opd_memory_recount(struct opd_count *count) OP_NONNULL OP_MUST_CHECK;

#endif
