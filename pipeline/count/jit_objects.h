/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The objects of JIT code, TGID.jo, beside the sample files whose functions they name. An object is
 * written anew when there are more functions to name: now and then, and before a dump or a stop
 * returns.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_OBJECTS_H
#define OPD_JIT_OBJECTS_H

#include "libop/base/compiler.h"
#include "pipeline/count/state.h"
#include "pipeline/jit/space.h"

/*
 * Writes missing and outdated objects for a short time, those of processes that were not tried
 * since since_ns, OP_CLOCK. False: some are left, and the caller calls again after the samples
 * had their turn. A failure is tried again with another since_ns.
 */
bool opd_jit_write(struct opd_jit *jit, struct opd_count *count, uint64_t since_ns) OP_NONNULL;

/* The same when it is time. */
void opd_jit_write_if_due(struct opd_jit *jit, struct opd_count *count, uint64_t now_ns) OP_NONNULL;

/*
 * Appends the paths of objects that were written since the last call to an array of strings. Array
 * and strings are the caller's. 0 or -ENOMEM.
 */
int opd_jit_take_changed(struct opd_jit *jit, char ***paths, size_t *nr_paths) OP_NONNULL OP_MUST_CHECK;

/* The session was emptied, with the objects that were written. */
void opd_jit_forget_changed(struct opd_jit *jit) OP_NONNULL;

#endif
