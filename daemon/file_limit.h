/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How many sample files a session has: MaxSampleFiles=, and what they take: SessionMaxUse=. What cannot have a file of its own any more is not lost but kept less apart:
 *
 *   files of                     new ones up to            then the samples go to
 *   one thread, process or CPU   3/4 of the limit          the file of all of them, `all` in its name
 *   a cgroup                     7/8                       the ordinary file alone
 *   an image in an application   the limit                 too-many-images, which is always allowed
 *
 * so that a storm of threads or cgroups leaves room for what is new otherwise.
 *
 * Sync thread, or before it starts.
 */
#ifndef OPD_FILE_LIMIT_H
#define OPD_FILE_LIMIT_H

#include "libop/compiler.h"

enum opd_file_kind { OPD_FILE_OF_LAST, OPD_FILE_OF_IMAGE, OPD_FILE_OF_CGROUP, OPD_FILE_OF_CLASS, OPD_NR_FILE_KINDS };

struct opd_file_limit {
	uint64_t max;                           /* MaxSampleFiles=; 0: no limit */
	uint64_t nr;                            /* files in the session's directory */
	uint64_t nr_begun;                      /* sessions */
	bool strangers;                         /* some of them are not known to the daemon: of an earlier one, or forgotten */
	uint64_t max_bytes;                     /* SessionMaxUse=; 0: no limit; the parts above hold for it as well */
	uint64_t weighed_bytes, weighed_nr;     /* what the session took when it was weighed last, and the files then */
	bool told[OPD_NR_FILE_KINDS];           /* in the log, in this session */
	uint64_t nr_samples[OPD_NR_FILE_KINDS]; /* that went elsewhere since there was no room for a file of this kind */
};

#define OPD_FILE_BYTES 4096u /* that a new file takes at least */

/* What the session takes on the disk: what it weighed, and the least that the files have that are new since. */
uint64_t opd_file_limit_bytes(const struct opd_file_limit *limit) OP_NONNULL;

/* True when a file of this kind may be made. */
bool opd_file_limit_allows(const struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* Says in the log that there is no room for more of this kind, once for each session. */
void opd_file_limit_tell(struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* Another session, without files, begins. */
void opd_file_limit_begin(struct opd_file_limit *limit) OP_NONNULL;

/* Counts the files that the current session has. 0 or -errno, and then nothing has changed. */
int opd_file_limit_recount(struct opd_file_limit *limit, int session_fd) OP_NONNULL OP_MUST_CHECK;

#endif
