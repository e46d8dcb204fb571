/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether files of the host are as they were when they were looked at. One question is about many
 * files, because a question costs ten times what a look at a file costs.
 *
 * Sync thread only, except the answer, which runs in the looker.
 */
#ifndef OPD_UNCHANGED_H
#define OPD_UNCHANGED_H

#include "libop/base/compiler.h"
#include "pipeline/files/lookers.h"

/* A file of the host as it was. */
struct opd_known_file {
	char *path;
	uint64_t device, inode, inode_generation;
	uint64_t mtime_ns, nr_bytes;
};

#define OPD_UNCHANGED_MAX 128u /* files of a question, whose paths fit into its 1 MiB */

/*
 * Asks about files of a user, at most OPD_UNCHANGED_MAX. 0, and a file is unchanged when its path
 * leads to the same inode, with the same size and time. -EBUSY: there is no answer; -ENOMEM.
 */
int opd_unchanged_ask(struct opd_lookers *lookers, uint32_t uid, const struct opd_known_file *files, size_t nr_files,
		      bool *ret_unchanged) OP_NONNULL OP_MUST_CHECK;

/* The answer of a looker to OPD_LOOK_UNCHANGED. */
int opd_unchanged_answer(const char *question, size_t nr_bytes, struct op_text *answer) OP_NONNULL OP_MUST_CHECK;

#endif
