/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel's address space: its text, modules, and code that is made at run time (BPF programs
 * and trampolines). PERF_RECORD_KSYMBOL reports such code; kernel_code.h has what existed before.
 *
 *   kernel text    offsets from _text, filed as the vmlinux file, or else as /proc/kallsyms
 *   module         offsets from its load address, filed under its name
 *   BPF, ftrace    offsets from its start, filed under its name
 *   other          absolute addresses, filed as no-vmlinux; so is everything while addresses are
 *                  hidden (kernel.kptr_restrict)
 *
 * Another build-id of the text or of a module makes another image. Run-time code without a known
 * length reaches to the next listed code, and a page at most.
 *
 * Sync thread only, except opd_kernel_map_init before it starts.
 */
#ifndef OPD_KERNEL_MAP_H
#define OPD_KERNEL_MAP_H

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
#include "libop/perf/record.h"
#include "libop/session/dcookie.h"
#include "pipeline/jit/spans.h"
#include "pipeline/resolve/kernel_code.h"

/* that hold, and as many past ones; what is beyond has no name */
#define OPD_KERNEL_RANGES_MAX 32768u

struct opd_kernel_range {
	OPD_SPAN_FIELDS(offset); /* from_ns 0: always */
	uint64_t bytes;          /* of the whole module or code */
	uint64_t cookie;
	/*
	 * of the module's directory in /sys, which is new when the module is loaded again; 0:
	 * unknown
	 */
	uint64_t inode;
	bool is_module; /* from /proc/modules */
	uint32_t round; /* of the last reading that found it */
};

struct opd_kernel_map {
	struct op_dcookie_table *table;
	uint64_t text_start, text_end; /* 0, 0: hidden */
	uint64_t text_cookie;
	uint64_t no_vmlinux_cookie;
	struct opd_spans ranges; /* modules and run-time code */
	struct opd_span_account account;
	uint32_t round; /* of readings of /proc/modules or /proc/kallsyms */
	struct opd_memory_end memory_ends[OPD_MEMORY_ENDS_MAX];
	size_t nr_memory_ends;
	const char *proc_path, *sys_path;
	uint64_t modules_read_ns;    /* last reading of /proc/modules */
	struct op_build_id build_id; /* of the kernel */
	const char *note;            /* tells users how kernel samples are filed */
};

/*
 * Reads kallsyms and modules below proc_path ("/proc") and build-ids below sys_path ("/sys"); both
 * strings must outlive the map. `vmlinux` may be NULL. Hidden addresses and a missing build-id are
 * no errors. 0 or -ENOMEM.
 */
int opd_kernel_map_init(struct opd_kernel_map *map, struct op_dcookie_table *table, const char *proc_path, const char *sys_path,
			const char *vmlinux) OP_NONNULL_ARGS(1, 2, 3, 4) OP_MUST_CHECK;

/*
 * Makes an empty map for the kernel of another machine, filed as `vmlinux`, or as
 * "[kernel.kallsyms]" when that is NULL. 0 or -ENOMEM.
 */
int opd_kernel_map_init_foreign(struct opd_kernel_map *map, struct op_dcookie_table *table, const char *vmlinux)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/*
 * Changes the name under which a foreign kernel is filed. Must come before the first part. 0 or
 * -ENOMEM.
 */
int opd_kernel_map_name_foreign(struct opd_kernel_map *map, const char *vmlinux) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds a part of a foreign kernel by its name in perf.data: [kernel.kallsyms]_text is the text;
 * anything else is a module, as [NAME] or as the path of its file. 0 bytes of build-id: unknown. 0
 * or -ENOMEM.
 */
int opd_kernel_map_part(struct opd_kernel_map *map, const struct op_mmap_record *part) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads /proc/modules again. New modules hold since the last reading, missing ones end now. No
 * record reports modules, so this is called at intervals, and when an address is unknown. 0 or
 * -ENOMEM.
 */
int opd_kernel_map_refresh(struct opd_kernel_map *map, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/* Sets the lengths of listed run-time code. Called before the first sample. */
void opd_kernel_map_learn(struct opd_kernel_map *map, const struct opd_bpf_code *code) OP_NONNULL;

/*
 * Reads /proc/kallsyms again after records since from_ns were lost. Unknown run-time code holds
 * since from_ns; missing code ends now. When the list has no BPF program at all
 * (net.core.bpf_jit_harden, or a new kernel.kptr_restrict), nothing ends. Does nothing while
 * addresses are hidden. 0 or -ENOMEM.
 */
int opd_kernel_map_mend(struct opd_kernel_map *map, uint64_t from_ns, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/* The kernel made or removed run-time code. 0 or -ENOMEM. */
int opd_kernel_map_ksymbol(struct opd_kernel_map *map, const struct op_ksymbol_record *ksymbol) OP_NONNULL OP_MUST_CHECK;

/* Finds what was at a kernel address at that time. There is always an answer. */
struct op_location opd_kernel_map_find(const struct opd_kernel_map *map, uint64_t address, uint64_t time_ns) OP_NONNULL;

/* The function at an address, if memory of processes goes away in it. NULL: not, or not known. */
const struct opd_memory_end *opd_kernel_map_memory_end(const struct opd_kernel_map *map, uint64_t address) OP_NONNULL;

/* Calls `visit` for the cookie of every image of the map. */
void opd_kernel_map_visit_cookies(const struct opd_kernel_map *map, void (*visit)(uint64_t cookie, void *arg), void *arg)
	OP_NONNULL_ARGS(1, 2);

/* Forgets code that was removed before horizon_ns. */
void opd_kernel_map_prune(struct opd_kernel_map *map, uint64_t horizon_ns) OP_NONNULL;

void opd_kernel_map_free(struct opd_kernel_map *map);

#endif
