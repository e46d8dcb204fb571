/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which JIT spaces (pipeline/jit/space.h) an address space has. It has its own space when its
 * process describes its code in a file. After a fork the child uses its parent's space, until it
 * has a file itself. Code that no space knows is counted under its region of memory.
 *
 * The files of a process are read once per visit, before the first sample in such memory is
 * resolved. A process without files is asked again at intervals, and nothing is kept for it.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_LOOKUP_H
#define OPD_JIT_LOOKUP_H

#include "libop/base/clock.h"
#include "libop/base/compiler.h"
#include "libop/perf/record.h"
#include "pipeline/resolve/image.h"
#include "pipeline/resolve/process.h"

/* the files of a process whose samples wait are looked at after this time, also without a sample */
#define OPD_JIT_LOOK_NS (10u * (uint64_t)OP_NS_PER_S)

/* True for the names of mappings that may hold JIT code. */
bool opd_jit_may_be_in(const char *mapping_name) OP_NONNULL;

/* Opens the mapped file when it is the process's jitdump. */
void opd_jit_saw_mapping(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
			 const struct opd_mapped *mapped) OP_NONNULL;

/* Finds the function that a sample in such memory, the mapping, lies in. False: none is known. */
bool opd_jit_resolve(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		     const struct opd_mapping *mapping, const struct op_sample *sample, uint64_t now_ns,
		     struct op_location *ret_location) OP_NONNULL OP_MUST_CHECK;

/*
 * The place of a sample that has no name yet and may get one later (pipeline/jit/waiting.h). False:
 * it does not wait, and is counted in its region. is_caller: of a sample. After opd_jit_resolve.
 */
bool opd_jit_wait(struct opd_processes *processes, const struct opd_process *process, struct opd_mm *mm,
		  const struct opd_mapping *mapping, const struct op_sample *sample, bool is_caller,
		  struct op_location *ret_location) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the files of processes that have ended and are forgotten next: a compiler may write its
 * last names at exit. Called before opd_processes_prune.
 */
void opd_jit_look_at_ended(struct opd_processes *processes, uint64_t now_ns, opd_gone_check gone_ns) OP_NONNULL;

/*
 * Reads the files of processes whose samples wait and that were not looked at since since_ns: a map
 * may have been written after the last sample. False: some are left, and the caller calls again
 * after the samples had their turn.
 */
bool opd_jit_look_at_waiting(struct opd_processes *processes, uint64_t now_ns, uint64_t since_ns) OP_NONNULL;

#endif
