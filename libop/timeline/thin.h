/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Merges the minutes of a session into longer spans: what is old is asked for by the hour. All
 * weights, and the ledger, stay. Names that are too many for a span go to the `rest` of what is
 * above them, as in a minute. One thread at a time for a file; readers beside it keep the
 * file that they have open.
 */
#ifndef OP_TIMELINE_THIN_H
#define OP_TIMELINE_THIN_H

#include "libop/timeline/encode.h"

/*
 * Makes spans that end at multiples of grain_ns of the wall clock; one with a gap before it begins
 * a new one, so that gaps stay visible. The new file is made at tmp_path, on the same file system,
 * and takes the place of `path` when it is on the disk; both are below dir_fd. A kill leaves the
 * old or the new file, and perhaps a file at tmp_path, which the next call replaces.
 *
 * 0; -EALREADY: all blocks were merged before; -ENOENT: there is no timeline; -EBADMSG: it is
 * none, or of a later version; -E2BIG: too many names for one span; -EAGAIN: the file got another
 * block meanwhile; -ENOSPC, -ENOMEM and others.
 * After an error the file is as before.
 */
int op_timeline_thin(int dir_fd, const char *path, const char *tmp_path, uint64_t grain_ns,
		     const struct op_encode_limits *limits) OP_NONNULL OP_MUST_CHECK;

/*
 * What the file of a session that goes on may keep. Ages are the time that the host ran since, so
 * no step of the wall clock makes a block old.
 */
struct op_timeline_keep {
	uint64_t minutes_ns; /* minutes that are older become hours; 0: nothing is too old */
	uint64_t hours_ns;   /* blocks that are older than this and minutes_ns are removed */
	uint64_t grain_ns;   /* of an hour */
	uint64_t max_bytes;  /* of the file; 0: no limit */
};

/*
 * Makes a file at tmp_path with what is kept, for the writer, who puts it into its place. Of a file
 * that is too large, the minutes beyond half of max_bytes become hours; when there are none, the
 * oldest blocks are removed until it fits. The first block that stays has the gap OP_GAP_REMOVED.
 *
 * 0; -EALREADY: nothing is too old or too much, and no file was made; others as above.
 */
int op_timeline_shorten(int dir_fd, const char *path, const struct op_timeline_keep *keep, const struct op_encode_limits *limits,
			int tmp_dir_fd, const char *tmp_path) OP_NONNULL OP_MUST_CHECK;

#endif
