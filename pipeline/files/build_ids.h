/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Build-ids of mapped files, as the kernel reports them through PROCMAP_QUERY on /proc/PID/maps
 * (ioctl, Linux 6.11, struct procmap_query in include/uapi/linux/fs.h). perf_event_attr.build_id
 * would put them into the records of mappings. But then the kernel sets
 * PERF_RECORD_MISC_MMAP_BUILD_ID in the records of other profilers as well, which break
 * (perf_event_mmap_output() in kernel/events/core.c, since Linux 5.12).
 *
 * The kernel reads the file to answer, which may wait for a user's server. So a looker asks.
 *
 * Sync thread only, except opd_build_ids_answer.
 */
#ifndef OPD_BUILD_IDS_H
#define OPD_BUILD_IDS_H

#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
#include "pipeline/files/locate.h"

struct opd_build_ids {
	bool is_unknown; /* the kernel does not know PROCMAP_QUERY */
};

/*
 * Gets the build-id of a mapped file. The process may have mapped another file there meanwhile. So
 * the answer counts only with the recorded device and inode, or with those that the mapping led to
 * when it was located, which differ on an overlay; NULL: it was not located now. 0: this is the
 * build-id, or the file has none (nr_bytes 0). Else it is unknown: -ENOENT, -ESRCH: the process is
 * gone; -ESTALE: it has another file there; -EACCES: it may not be read; -ENOTTY: the kernel has no
 * PROCMAP_QUERY; -EBUSY: there is no answer.
 */
int opd_build_ids_ask(struct opd_build_ids *ids, const struct opd_mapped *mapped, const struct opd_located *located,
		      struct op_build_id *ret_id) OP_NONNULL_ARGS(1, 2, 4) OP_MUST_CHECK;

/* The answer of a looker to OPD_LOOK_BUILD_ID. */
int opd_build_ids_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;

#endif
