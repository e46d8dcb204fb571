/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Deep stacks: the program in the kernel writes the rest of a stack that is larger than the copy of
 * the kernel into notes, which the pipeline joins to the sample (pipeline/drive/notes.h). Here are
 * the budget, the direction of notes to the rings, and the counters.
 *
 * Sync thread only.
 */
#ifndef OPD_WAITS_DEEP_H
#define OPD_WAITS_DEEP_H

#include "libop/base/compiler.h"
#include "libop/control/deep_stats.h"
#include "pipeline/drive/pipeline.h"
#include "pipeline/waits/program.h"

struct opd_deep;

/*
 * The program stays the caller's, and the capture runs it (opd_capture_run_before_stacks). The
 * pipeline is open, takes stacks, and gets a source more and its notes. budget: bytes of stacks in
 * a second, on all CPUs. 0 or -errno.
 */
int opd_deep_new(struct opd_pipeline *pipeline, struct opd_wait_program *program, uint64_t budget, struct opd_deep **ret_deep)
	OP_NONNULL OP_MUST_CHECK;
void opd_deep_free(struct opd_deep *deep);

/* What the program, the notes and the walks have counted since opd was started. */
void opd_deep_sum(const struct opd_deep *deep, uint64_t ret_stats[OP_NR_DEEP_STATS]) OP_NONNULL;

#endif
