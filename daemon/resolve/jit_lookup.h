/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which JIT spaces (daemon/jit/space.h) an address space has. One whose process tells of its code has a space of its own. A
 * child goes on with its parent's space after a fork, and gets its own when it tells something itself. Code that no space knows
 * stays with the region that it lies in.
 *
 * The files of a process are looked at once per visit, before the first sample of that visit in such memory is resolved. A
 * process that tells nothing is asked again now and then, and nothing is kept for it meanwhile.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_LOOKUP_H
#define OPD_JIT_LOOKUP_H

#include "daemon/resolve/image.h"
#include "daemon/resolve/process.h"
#include "libop/base/compiler.h"
#include "libop/perf/record.h"

/* True for memory that may hold JIT code, by the name that the kernel gives its mapping. */
bool opd_jit_may_be_in(const char *mapping_name) OP_NONNULL;

/* A process mapped something: opens the file when it is the process's jitdump. */
void opd_jit_saw_mapping(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
			 const struct opd_mapped *mapped) OP_NONNULL;

/* Finds the function that a sample in such memory lies in. False when none is known there. */
bool opd_jit_resolve(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		     const struct op_sample *sample, uint64_t now_ns, struct op_location *ret_location) OP_NONNULL OP_MUST_CHECK;

#endif
