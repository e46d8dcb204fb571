/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How many sample files a session has: MaxSampleFiles=, and what they take: SessionMaxUse=. What cannot have a file of its own any more is not lost but kept less apart:
 *
 *   files of                     new ones up to            then the samples go to
 *   calls between two images     5/8 of the limit          nowhere: a call is no sample, and is counted as arcs_lost_no_room
 *   one thread, process or CPU   3/4 of the limit          the file of all of them, `all` in its name
 *   a cgroup                     7/8                       the ordinary file alone
 *   an image in an application   the limit                 too-many-images, which is always allowed
 *
 * so that a storm of threads or cgroups leaves room for what is new otherwise. Room for too-many-images, one file for each event, is kept. A file that cannot grow within
 * SessionMaxUse= stays as it is, and its new addresses go where a new file's samples would.
 *
 * Sync thread, or before it starts.
 */
#ifndef OPD_FILE_LIMIT_H
#define OPD_FILE_LIMIT_H

#include "libop/base/compiler.h"
#include "libop/odb/odb.h"

enum opd_file_kind { OPD_FILE_OF_LAST, OPD_FILE_OF_IMAGE, OPD_FILE_OF_CGROUP, OPD_FILE_OF_CLASS, OPD_FILE_OF_CALLS, OPD_NR_FILE_KINDS };

struct opd_file_limit {
	uint64_t max;                           /* MaxSampleFiles=; 0: no limit */
	uint64_t nr;                            /* files in the session's directory */
	uint64_t nr_begun;                      /* sessions */
	uint64_t nr_last_max, nr_last;          /* files that are always allowed: how many there may be, and are */
	bool strangers;                         /* some of them are not known to the daemon: of an earlier one, or forgotten */
	uint64_t dir_inode, dir_made_ns;        /* of the session's directory when the files were counted; inode 0: not known */
	struct op_odb_space space;              /* max_bytes: of SessionMaxUse=, opd_file_limit_give; the parts above hold for it as well */
	const char *bytes_of;                   /* the key that they come from, for the log; NULL: SessionMaxUse */
	uint64_t weighed_bytes;                 /* taken of it when the session was weighed last */
	bool told[OPD_NR_FILE_KINDS];           /* in the log, in this session */
	uint64_t nr_samples[OPD_NR_FILE_KINDS]; /* that went elsewhere since there was no room for a file of this kind */
};

/* What the session takes on the disk: what it weighed, and the blocks of files and directories that are new since, or grew. */
static inline uint64_t opd_file_limit_bytes(const struct opd_file_limit *limit)
{
	return limit->space.taken_bytes;
}

/* How many bytes the session may take from now on; 0: no limit. */
void opd_file_limit_give(struct opd_file_limit *limit, uint64_t max_bytes) OP_NONNULL;

/* A weight that was taken of the session, which had taken_bytes by its own account when that began. */
void opd_file_limit_weigh(struct opd_file_limit *limit, uint64_t weighed_bytes, uint64_t taken_bytes) OP_NONNULL;

/* True when a file of this kind may be made. */
bool opd_file_limit_allows(const struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* True when files of this kind may have more nodes, as far as the bytes go: what a file of calls may not take of the samples' room. */
bool opd_file_limit_may_grow(const struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* A file of this kind is there that was not open before in this session; it is_new: it was made. */
void opd_file_limit_note(struct opd_file_limit *limit, enum opd_file_kind kind, bool is_new) OP_NONNULL;

/* Says in the log that there is no room for more of this kind, once for each session. */
void opd_file_limit_tell(struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* Another session, without files, begins. */
void opd_file_limit_begin(struct opd_file_limit *limit) OP_NONNULL;

/*
 * True when strangers are missing: the session's directory is another one, or none; `thorough`: or it has less files than it should, which takes as long as listing them.
 */
bool opd_file_limit_misses(const struct opd_file_limit *limit, int session_fd, bool thorough) OP_NONNULL OP_MUST_CHECK;

/* Counts the files that the current session has, and weighs it. 0 or -errno, and then nothing has changed. */
int opd_file_limit_recount(struct opd_file_limit *limit, int session_fd) OP_NONNULL OP_MUST_CHECK;

#endif
