/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Merges the minutes of a session that is closed into longer spans: what is old is asked for by the
 * hour. All weights, and the ledger, stay. Names that are too many for a span go to the `rest` of
 * what is above them, as in a minute. One thread at a time for a file; readers beside it keep the
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
 * 0; -EALREADY: the first block was merged before; -ENOENT: there is no timeline; -EBADMSG: it is
 * none, or of a later version; -E2BIG: too many names for one span; -EAGAIN: the file got another
 * block meanwhile; -ENOSPC, -ENOMEM and others.
 * After an error the file is as before.
 */
int op_timeline_thin(int dir_fd, const char *path, const char *tmp_path, uint64_t grain_ns,
		     const struct op_encode_limits *limits) OP_NONNULL OP_MUST_CHECK;

#endif
