/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stacks of the current session: one file (libop/stacks), which lives as sample files do. It
 * takes at most a quarter of the bytes that the session may have. Sync thread only.
 */
#ifndef OPD_STACK_FILE_H
#define OPD_STACK_FILE_H

#include "libop/base/compiler.h"
#include "libop/session/layout.h"
#include "libop/stacks/store.h"
#include "pipeline/count/state.h"

#define OPD_STACKS_PATH OP_SESSION_CURRENT "/" OP_SESSION_STACKS

/*
 * Adds `amount` to a stack, whose frames begin with the outermost one. 0; *ret_has_room is false
 * when there was no room for the whole stack and it is counted at one of its callers. -errno: it
 * could not be stored at all; the next calls return it for 100 ms without another attempt.
 */
int opd_count_stack(struct opd_count *count, const struct op_stack_path *path, const struct op_stack_frame *frames,
		    size_t nr_frames, uint64_t amount, bool *ret_has_room) OP_NONNULL_ARGS(1, 2, 6) OP_MUST_CHECK;

/* The file as a sink: adds a stack; closes the file for good. */
void opd_stack_file_take(void *host, struct opd_stack *stack) OP_NONNULL;
void opd_stack_file_end(void *host) OP_NONNULL;

/* Closes the file but remembers it. The next stack opens it again. */
void opd_stack_file_close(struct opd_count *count) OP_NONNULL;

/* Closes the file for good: the session is another one. */
void opd_stack_file_forget(struct opd_count *count) OP_NONNULL;

/* Whether the file was removed or overwritten; its stacks are then booked as lost. */
bool opd_stack_file_check(struct opd_count *count) OP_NONNULL;

/* Forgets a file that is gone, and that it has to be written. */
void opd_stack_file_forget_missing(struct opd_count *count) OP_NONNULL;

/* Replaces the file by a copy, which the kernel must write as a whole. 0 or -errno. */
int opd_stack_file_renew(struct opd_count *count) OP_NONNULL OP_MUST_CHECK;

/* Drops the file's pages from the process's memory. */
void opd_stack_file_drop_pages(struct opd_count *count) OP_NONNULL;

#endif
