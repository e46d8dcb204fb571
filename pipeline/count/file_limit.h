/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Limits of a session: its sample files (MaxSampleFiles=) and their bytes (SessionMaxUse=). Samples
 * that may have no file of their own are not lost but kept less apart:
 *
 *   files of                     new ones up to    then the samples go to
 *   calls between two images     5/8 of the limit  nowhere: calls become arcs_lost_no_room
 *   a thread, process or CPU     3/4 of the limit  the file of all of them, `all` in its name
 *   a process name or user       3/4 of the limit  the file of the application
 *   a cgroup                     7/8               the ordinary file alone
 *   an image in an application   the limit         too-many-images, which is always allowed
 *
 * So a storm of threads or cgroups leaves room for new images. Room for too-many-images, one file
 * for each event, is always kept. A file that may not grow within SessionMaxUse= stays as it is;
 * samples at new addresses go where those of a new file would go.
 *
 * Sync thread, or before it starts.
 */
#ifndef OPD_FILE_LIMIT_H
#define OPD_FILE_LIMIT_H

#include "libop/base/compiler.h"
#include "libop/odb/odb.h"

enum opd_file_kind {
	OPD_FILE_OF_LAST, /* too-many-images */
	OPD_FILE_OF_IMAGE,
	OPD_FILE_OF_CGROUP,
	OPD_FILE_OF_CLASS,
	OPD_FILE_OF_CALLS,
	OPD_NR_FILE_KINDS
};

struct opd_file_limit {
	uint64_t max;                           /* MaxSampleFiles=; 0: no limit */
	uint64_t nr;                            /* files in the session's directory */
	uint64_t nr_begun;                      /* sessions, by now */
	/* files of too-many-images: how many there may be, and are */
	uint64_t nr_last_max, nr_last;
	/* the daemon does not know all files: some are of an earlier one, or forgotten */
	bool strangers;
	/* of the session's directory when the files were counted; inode 0: unknown */
	uint64_t dir_inode, dir_made_ns;
	/* max_bytes is SessionMaxUse=; the same parts hold for it */
	struct op_odb_space space;
	/* the key that max_bytes comes from, for the log; NULL: SessionMaxUse */
	const char *bytes_of;
	/* space.taken_bytes when the session was weighed last */
	uint64_t weighed_bytes;
	bool is_reported[OPD_NR_FILE_KINDS];    /* in the log, for this session */
	/* samples that went elsewhere for want of a file of this kind */
	uint64_t nr_samples[OPD_NR_FILE_KINDS];
};

/* Bytes of the session on the disk: the last weight, and new and grown files since. */
static inline uint64_t opd_file_limit_bytes(const struct opd_file_limit *limit)
{
	return limit->space.taken_bytes;
}

/* Sets how many bytes the session may take; 0: no limit. */
void opd_file_limit_give(struct opd_file_limit *limit, uint64_t max_bytes) OP_NONNULL;

/*
 * Corrects the bytes by a weight. taken_bytes is opd_file_limit_bytes when the weighing began. A
 * weight between that and the present bytes corrects nothing: the session grew meanwhile.
 */
void opd_file_limit_weigh(struct opd_file_limit *limit, uint64_t weighed_bytes, uint64_t taken_bytes) OP_NONNULL;

/* True when a file of this kind may be made. */
bool opd_file_limit_allows(const struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* True when files of this kind may grow, by the limit on bytes. */
bool opd_file_limit_may_grow(const struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* A file of this kind was opened for the first time in this session; is_new: it was made. */
void opd_file_limit_note(struct opd_file_limit *limit, enum opd_file_kind kind, bool is_new) OP_NONNULL;

/* Logs that there is no room for more files of this kind, once for each session. */
void opd_file_limit_report(struct opd_file_limit *limit, enum opd_file_kind kind) OP_NONNULL;

/* Begins a session without files. */
void opd_file_limit_begin(struct opd_file_limit *limit) OP_NONNULL;

/*
 * True when unknown files (strangers) are missing: the session's directory was replaced or removed,
 * or, if `thorough`, it has fewer files than it should. The latter takes as long as listing them.
 */
bool opd_file_limit_misses(const struct opd_file_limit *limit, int session_fd, bool thorough) OP_NONNULL OP_MUST_CHECK;

/* Counts and weighs the files of the current session. 0, or -errno and nothing has changed. */
int opd_file_limit_recount(struct opd_file_limit *limit, int session_fd) OP_NONNULL OP_MUST_CHECK;

#endif
