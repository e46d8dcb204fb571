/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads address spaces of running processes from /proc/PID/maps. Called after the side band is
 * open: later changes are reported there, and time stamps tell which of the two is newer.
 *
 * Sync thread only.
 */
#ifndef OPD_PROC_SCAN_H
#define OPD_PROC_SCAN_H

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "pipeline/resolve/process.h"

/*
 * Reads the maps of one process, known or not. 0; -ENOENT: no such process; -EBUSY: a file system
 * keeps the answer back; -ENOSPC: too many processes; -ENOMEM.
 */
int opd_proc_scan_pid(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid,
		      uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the maps of a known process again, because the kernel does not report mremap. New mappings
 * hold since since_ns. Results as above.
 */
int opd_proc_scan_again(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid, uint64_t now_ns,
			uint64_t since_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * After a loss of side-band records: reads an unknown process, or one that is in doubt (process.h);
 * leaves all others alone. A process that is gone is not in doubt any more. Results as above.
 */
int opd_proc_scan_doubtful(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid,
			   uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/* Addresses, and the file that was mapped there: its inode, 0 if it is unknown, and the offset. */
struct opd_proc_covered {
	uint64_t start, end, inode, offset;
};

/*
 * True when the process has mapped segments of one file directly below and above these addresses,
 * in the order of the file. What lies between belongs to that file, whose inode is *ret_inode. Text
 * from the first page of a file on has none below: then the file above must be the one that was
 * there.
 */
bool opd_proc_is_inside_image(struct opd_lookers *lookers, const struct opd_mount_view *view, uint32_t tid,
			      const struct opd_proc_covered *covered, uint64_t *ret_inode) OP_NONNULL_ARGS(4, 5) OP_MUST_CHECK;

struct opd_proc_expected {
	uint64_t address;
	uint64_t inode;   /* 0: any */
	const char *path; /* the last component counts; NULL: any */
	uint64_t offset;  /* of the address in the file */
};

/*
 * True when the process has mapped something else at the address. False when nothing is mapped
 * there, or it cannot be read.
 */
bool opd_proc_has_other(struct opd_lookers *lookers, const struct opd_mount_view *view, uint32_t pid,
			const struct opd_proc_expected *expected) OP_NONNULL_ARGS(4) OP_MUST_CHECK;

/* A time by which the process was gone; 0: it exists, or its parent has not waited for it. */
uint64_t opd_proc_gone_ns(uint32_t pid) OP_MUST_CHECK;

/*
 * Reads the maps of every process in /proc. A process that ends meanwhile is no error. 0 or -errno
 * of reading /proc.
 */
int opd_proc_scan_all(struct opd_processes *processes, struct op_dcookie_table *table, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

#endif
