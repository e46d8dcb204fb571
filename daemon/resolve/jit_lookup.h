/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which JIT spaces (daemon/jit/space.h) an address space has. It has its own space when its process
 * describes its code in a file. After a fork the child uses its parent's space, until it has a file
 * itself. Code that no space knows is counted under its region of memory.
 *
 * The files of a process are read once per visit, before the first sample in such memory is
 * resolved. A process without files is asked again at intervals, and nothing is kept for it.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_LOOKUP_H
#define OPD_JIT_LOOKUP_H

#include "daemon/resolve/image.h"
#include "daemon/resolve/process.h"
#include "libop/base/compiler.h"
#include "libop/perf/record.h"

/* True for the names of mappings that may hold JIT code. */
bool opd_jit_may_be_in(const char *mapping_name) OP_NONNULL;

/* Opens the mapped file when it is the process's jitdump. */
void opd_jit_saw_mapping(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
			 const struct opd_mapped *mapped) OP_NONNULL;

/* Finds the function that a sample in such memory lies in. False: none is known there. */
bool opd_jit_resolve(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		     const struct op_sample *sample, uint64_t now_ns, struct op_location *ret_location) OP_NONNULL OP_MUST_CHECK;

#endif
