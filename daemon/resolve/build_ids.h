/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The build-ids of files that processes have mapped, as the kernel tells them. PROCMAP_QUERY is asked of /proc/PID/maps: ioctl, Linux 6.11, struct
 * procmap_query in include/uapi/linux/fs.h. perf_event_attr.build_id would tell them in the records of mappings, but the kernel then puts
 * PERF_RECORD_MISC_MMAP_BUILD_ID into the records of other profilers as well (perf_event_mmap_output() in kernel/events/core.c, since Linux 5.12), which break.
 *
 * The kernel reads the file for its answer. That of a block device is asked directly. Any other may have to wait for a server, FUSE's may be anybody's
 * program, and so a thread of its own asks, that is waited for a quarter of a second at most and for a tenth of the time in all; while it hangs, no such
 * file has an answer.
 *
 * Sync thread only, but for the one that is inside.
 */
#ifndef OPD_BUILD_IDS_H
#define OPD_BUILD_IDS_H

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

struct opd_build_ids;

/* A file in the address space of a process. */
struct opd_mapped_file {
	uint32_t pid;           /* or the number of a thread that lives */
	uint64_t address;       /* in the mapping */
	uint64_t device, inode; /* as the record of the mapping or its line in /proc/PID/maps says */
	uint64_t seen_inode;    /* as stat says it where that is another one, on an overlay; 0: unknown */
};

/* 0 or -ENOMEM. A thread is not started before it is needed. */
int opd_build_ids_new(struct opd_build_ids **ret_ids) OP_NONNULL OP_MUST_CHECK;

/*
 * 0: the file has this build-id, or none (nr_bytes 0). Else -errno, and nothing is known: the process is gone (-ENOENT, -ESRCH) or has another file there
 * (-ESTALE), may not be looked at (-EACCES), the kernel cannot tell of any (-ENOTTY), or who asks hangs (-ETIMEDOUT, then -EBUSY).
 */
int opd_build_ids_ask(struct opd_build_ids *ids, const struct opd_mapped_file *file,
		      struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

/* Does not wait for a thread that hangs. NULL is allowed. */
void opd_build_ids_free(struct opd_build_ids *ids);

#endif
