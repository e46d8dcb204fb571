/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The kernel's own map: its text, modules, and code that was made at run time (BPF programs and trampolines, by
 * PERF_RECORD_KSYMBOL; what was there before, by /proc/kallsyms and, where it may be asked, bpf(2)).
 *
 *   kernel text    keys relative to _text, filed as vmlinux when there is one, else as /proc/kallsyms
 *   module         keys relative to its load address, filed under its name
 *                  (both are known by their build-ids: another kernel, or a module that was built anew, is another image)
 *   BPF, ftrace    keys relative to its start, filed under its name
 *                  (what has no known length reaches to the next one in the list, and a page at most)
 *   anything else, or all of it while addresses are hidden (kernel.kptr_restrict): absolute addresses, filed as no-vmlinux
 *
 * Sync thread only, but for opd_kernel_map_init before it starts.
 */
#ifndef OPD_KERNEL_MAP_H
#define OPD_KERNEL_MAP_H

#include "daemon/resolve/kernel_code.h"
#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "libop/perf/record.h"

struct opd_kernel_range {
	uint64_t start, end;
	uint64_t cookie;
	uint64_t from_ns; /* holds since; 0: always */
	uint64_t to_ns;   /* UINT64_MAX while it holds */
	uint64_t inode;   /* of the module's directory in /sys, another one when it is loaded again; 0: unknown */
	bool is_module;   /* from /proc/modules */
	bool is_listed;   /* the last reading of /proc/modules had it, or of /proc/kallsyms */
};

struct opd_kernel_map {
	struct op_dcookie_table *table;
	uint64_t text_start, text_end; /* 0, 0: hidden */
	uint64_t text_cookie;
	uint64_t no_vmlinux_cookie;
	struct opd_kernel_range *ranges; /* modules and run-time code, newest last */
	size_t nr_ranges, capacity;
	const char *proc_path, *sys_path;
	uint64_t modules_read_ns; /* when /proc/modules was read last */
	struct op_build_id build_id; /* of the kernel */
	const char *note;         /* how kernel samples are filed, in words */
};

/*
 * Reads kallsyms and modules below proc_path ("/proc") and build-ids below sys_path ("/sys"); both must outlive the map. `vmlinux` may be NULL. 0
 * or -ENOMEM; a kernel that hides its addresses or has no build-id is no error.
 */
int opd_kernel_map_init(struct opd_kernel_map *map, struct op_dcookie_table *table, const char *proc_path, const char *sys_path,
			const char *vmlinux) OP_NONNULL_ARGS(1, 2, 3, 4) OP_MUST_CHECK;

/*
 * An empty map, of a kernel that is not this host's: filed as `vmlinux`, or where that is NULL as "[kernel.kallsyms]". 0 or
 * -ENOMEM.
 */
int opd_kernel_map_init_foreign(struct opd_kernel_map *map, struct op_dcookie_table *table, const char *vmlinux)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* Such a map files its kernel as this from now on; before the first part is told. 0 or -ENOMEM. */
int opd_kernel_map_name_foreign(struct opd_kernel_map *map, const char *vmlinux) OP_NONNULL OP_MUST_CHECK;

/*
 * A part of such a kernel by the name that perf gives it: [kernel.kallsyms]_text the text, anything else a module, [NAME] or the
 * path of its file. The build-id is that of the image, 0 bytes when it is not known. 0 or -ENOMEM.
 */
int opd_kernel_map_part(struct opd_kernel_map *map, const struct op_mmap_record *part) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads /proc/modules again: what was loaded since the last time holds since then, what is gone ends now. No record tells
 * of modules, so this is asked for now and then, and when an address lies nowhere. 0 or -ENOMEM.
 */
int opd_kernel_map_refresh(struct opd_kernel_map *map, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/* Gives run-time code of the list its length where `code` has it. Before there are samples. */
void opd_kernel_map_learn(struct opd_kernel_map *map, const struct opd_bpf_code *code) OP_NONNULL;

/*
 * Records of the time since from_ns were lost: reads the list of run-time code again. What it has and nobody told of holds since then; what it has no more
 * ends now, unless it has no BPF program at all, as net.core.bpf_jit_harden or a new kernel.kptr_restrict make it. Does nothing where addresses are hidden. 0 or -ENOMEM.
 */
int opd_kernel_map_mend(struct opd_kernel_map *map, uint64_t from_ns, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/* Code that the kernel made or removed at run time. 0 or -ENOMEM. */
int opd_kernel_map_ksymbol(struct opd_kernel_map *map, const struct op_ksymbol_record *ksymbol) OP_NONNULL OP_MUST_CHECK;

/* Where a kernel address lay at that time; there is always an answer. */
struct op_location opd_kernel_map_find(const struct opd_kernel_map *map, uint64_t address, uint64_t time_ns) OP_NONNULL;

/* Calls `visit` for the cookie of every image that the map has. */
void opd_kernel_map_visit_cookies(const struct opd_kernel_map *map, void (*visit)(uint64_t cookie, void *arg),
				  void *arg) OP_NONNULL_ARGS(1, 2);

/* Forgets run-time code that was removed before horizon_ns. */
void opd_kernel_map_prune(struct opd_kernel_map *map, uint64_t horizon_ns) OP_NONNULL;

void opd_kernel_map_free(struct opd_kernel_map *map);

#endif
