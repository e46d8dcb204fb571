/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JIT code: samples in memory without a file are looked up in what the process itself says of its code, /tmp/perf-PID.map and
 * jitdump. Each address space that says anything has what was read for it, a space; a child goes on with its parent's after a
 * fork, and has another one when it says something itself. What is known is counted in the synthetic range of the space
 * (daemon/jit/address_map.h), under an anonymous image of its own whose symbols are in TGID.jo beside it. What is not known stays with
 * the region it lies in.
 *
 * Files are looked at once for each visit to the rings, before the first sample of that visit in such memory is resolved; a
 * process that says nothing is asked now and then, and nothing is kept for it meanwhile.
 *
 * Sync thread only.
 */
#ifndef OPD_JIT_H
#define OPD_JIT_H

#include "daemon/resolve/image.h"
#include "daemon/resolve/process.h"
#include "libop/base/compiler.h"
#include "libop/control/jit_stats.h"
#include "libop/perf/record.h"

#define OPD_JIT_PROCESSES_MAX   1024u                        /* spaces at a time */
#define OPD_JIT_DESCRIPTORS_MAX (2u * OPD_JIT_PROCESSES_MAX) /* of all of them: a directory in /proc and a dump */

struct opd_jit_space;

/* Of objects, below the session directory. */
struct opd_jit_paths {
	char **paths;
	size_t nr;
};

struct opd_jit {
	struct op_dcookie_table *table;
	struct opd_jit_space *spaces;
	size_t nr_spaces;
	int max_fd; /* descriptors from here on are left to others: a process that would need one is refused */
	uint64_t counters[OP_NR_JIT];
	uint64_t visit_ns, budget; /* bytes that may still be read in this visit */
	uint64_t next_write_ns;
	struct opd_jit_paths changed; /* were written and not synced */
	struct opd_jit_paths failed;  /* could not be written the last time */
};

void opd_jit_init(struct opd_jit *jit, struct op_dcookie_table *table) OP_NONNULL;
void opd_jit_free(struct opd_jit *jit) OP_NONNULL;

/* True for memory that may hold JIT code, by the name that the kernel gives its mapping. */
bool opd_jit_may_be_in(const char *mapping_name) OP_NONNULL;

/* One reference more, NULL is allowed, and one less; the last one lets it go once its object is written. */
struct opd_jit_space *opd_jit_space_get(struct opd_jit_space *space);
void opd_jit_space_put(struct opd_jit_space *space);

/* A process mapped something: when that is its jitdump, the dump is opened before it can go away. */
void opd_jit_saw_mapping(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm,
			 const struct opd_mapped *mapped) OP_NONNULL;

/* Where an address in such memory lay. False when no function is known there. */
bool opd_jit_resolve(struct opd_processes *processes, struct opd_process *process, struct opd_mm *mm,
		     const struct op_sample *sample, uint64_t now_ns, struct op_location *ret_location) OP_NONNULL;

/* Calls `visit` for the cookie of each space; OP_DCOOKIE_NONE among them. */
void opd_jit_visit_cookies(const struct opd_jit *jit, void (*visit)(uint64_t cookie, void *arg), void *arg) OP_NONNULL_ARGS(1, 2);

#endif
