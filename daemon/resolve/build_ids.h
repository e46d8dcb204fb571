/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Build-ids of mapped files, as the kernel reports them through PROCMAP_QUERY on /proc/PID/maps
 * (ioctl, Linux 6.11, struct procmap_query in include/uapi/linux/fs.h). perf_event_attr.build_id
 * would put them into the records of mappings. But then the kernel sets
 * PERF_RECORD_MISC_MMAP_BUILD_ID in the records of other profilers as well, which break
 * (perf_event_mmap_output() in kernel/events/core.c, since Linux 5.12).
 *
 * The kernel reads the file to answer. A file on a block device is queried directly. Any other file
 * may depend on a server, or on anybody's program with FUSE, and the query may hang. Therefore a
 * thread queries those. opd waits for it a quarter of a second at most, and a tenth of the time in
 * all. While the thread hangs, such files have no answer.
 *
 * Sync thread only, except the query thread itself.
 */
#ifndef OPD_BUILD_IDS_H
#define OPD_BUILD_IDS_H

#include "daemon/resolve/locate.h"
#include "libop/base/build_id.h"
#include "libop/base/compiler.h"

struct opd_build_ids;

/* Starts no thread yet. 0 or -ENOMEM. */
int opd_build_ids_new(struct opd_build_ids **ret_ids) OP_NONNULL OP_MUST_CHECK;

/*
 * Gets the build-id of a mapped file. seen_inode is the inode that stat reports, which differs from
 * the recorded one on an overlay; 0: unknown. 0: this is the build-id, or the file has none
 * (nr_bytes 0). Else it is unknown: -ENOENT, -ESRCH: the process is gone; -ESTALE: it has another
 * file there; -EACCES: it may not be read; -ENOTTY: the kernel has no PROCMAP_QUERY; -ETIMEDOUT,
 * then -EBUSY: the thread hangs.
 */
int opd_build_ids_ask(struct opd_build_ids *ids, const struct opd_mapped *mapped, uint64_t seen_inode,
		      struct op_build_id *ret_id) OP_NONNULL OP_MUST_CHECK;

/* Does not wait for a thread that hangs. NULL is allowed. */
void opd_build_ids_free(struct opd_build_ids *ids);

#endif
