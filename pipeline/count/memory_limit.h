/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The limit of the memory view (libop/session/memory_view.h): the number of nodes in all of its
 * files in a session. A node is counted once, when it is made, also when its file is closed,
 * forgotten and opened again. opd_memory_recount counts the nodes of an earlier daemon. Sync
 * thread, or before it starts.
 */
#ifndef OPD_MEMORY_LIMIT_H
#define OPD_MEMORY_LIMIT_H

#include "pipeline/count/state.h"

#define OPD_MEMORY_NODES_MAX (1u << 20) /* in a session: at most 40 MiB */

/* Updates the count from an open file. is_stranger: its nodes are counted already. */
void opd_memory_note(struct opd_count *count, struct opd_file *file, bool is_stranger) OP_NONNULL;

/* The file is gone, with its nodes. */
void opd_memory_note_gone(struct opd_count *count, struct opd_file *file) OP_NONNULL;

/* Counts the nodes of the current session. 0, or -errno and nothing has changed. */
int opd_memory_recount(struct opd_count *count) OP_NONNULL OP_MUST_CHECK;

#endif
