/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What ran before opd looked: address spaces from /proc/PID/maps. Read once the side band is open, so that what changes in
 * between is reported there; which of the two is older is decided by time stamps.
 *
 * Sync thread only.
 */
#ifndef OPD_PROC_SCAN_H
#define OPD_PROC_SCAN_H

#include "daemon/resolve/process.h"
#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"

/*
 * Takes one process in, or takes its address space anew. 0; -ENOENT: there is no such process; -ENOMEM.
 */
int opd_proc_scan_pid(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid,
		      uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the mappings of a process that is known once more, since a sample of since_ns lies outside of them: the kernel does not report
 * mremap. What is found new holds from since_ns. The same results.
 */
int opd_proc_scan_again(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid, uint64_t now_ns,
			uint64_t since_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * After side-band records were lost: takes in a process that is not known, reads one again that is in doubt (process.h) or that ended as far
 * as was told, and leaves the others alone. The same results; a process that is gone is not in doubt any more.
 */
int opd_proc_scan_doubtful(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid,
			   uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

/*
 * True when the process of a thread has segments of one file mapped next below and next above these addresses, in the order of the file: what is mapped
 * between is a part of the image. Its inode is *ret_inode.
 */
bool opd_proc_is_inside_image(uint32_t tid, uint64_t start, uint64_t end, uint64_t *ret_inode) OP_NONNULL OP_MUST_CHECK;

/*
 * True when the process has something else mapped at an address than this offset of a file with this inode (0: any) and the last component of this path
 * (NULL: any). What is not mapped, or cannot be asked, is nothing else.
 */
bool opd_proc_has_other(uint32_t pid, uint64_t address, uint64_t inode, const char *path, uint64_t offset) OP_MUST_CHECK;

/* The moment, when the process is gone by now; 0: it is there, or was not waited for. */
uint64_t opd_proc_gone_ns(uint32_t pid) OP_MUST_CHECK;

/* Takes in every process that /proc shows. 0 or -errno of reading /proc; a process that ends meanwhile is no error. */
int opd_proc_scan_all(struct opd_processes *processes, struct op_dcookie_table *table, uint64_t now_ns) OP_NONNULL OP_MUST_CHECK;

#endif
