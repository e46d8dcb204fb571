/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The writer of a timeline: appends spans to a file, one block each. A block is on the disk when
 * op_timeline_append has returned. A kill or a power cut in the middle leaves a torn end, which the
 * next op_timeline_append_open cuts off.
 *
 * A file has one writer, with one thread at a time. Its calls wait for the disk.
 */
#ifndef OP_TIMELINE_APPEND_H
#define OP_TIMELINE_APPEND_H

#include "libop/timeline/block.h"
#include "libop/timeline/encode.h"
#include "libop/timeline/minute.h"

struct op_timeline_writer;

/*
 * Opens `path` below dir_fd, and makes it if there is none. What is damaged in the middle stays.
 * *ret_nr_cut, which may be NULL: bytes of a torn end that were cut off. 0 and a writer for
 * op_timeline_append_close; -EBADMSG: another file, or of a later version; -EFBIG: as many blocks
 * as the format allows; another -errno.
 */
int op_timeline_append_open(int dir_fd, const char *path, struct op_timeline_writer **ret_writer, uint64_t *ret_nr_cut)
	OP_NONNULL_ARGS(2, 3) OP_MUST_CHECK;

/*
 * Writes a span as a block, with fsync(2). `limits`: what is merged first. 0; -ENOSPC, -EDQUOT,
 * -EIO and others: the file is as before; -EFBIG: it is full; -E2BIG; -ENOMEM.
 */
int op_timeline_append(struct op_timeline_writer *writer, const struct op_minute *minute, const struct op_encode_limits *limits)
	OP_NONNULL OP_MUST_CHECK;

/*
 * Writes a block of another file (op_timeline_packed) with another gap, and without a look at what
 * is in it. The errors are the same.
 */
int op_timeline_append_packed(struct op_timeline_writer *writer, const struct op_block *block, uint32_t gap,
			      const struct op_bytes *packed) OP_NONNULL OP_MUST_CHECK;

/*
 * For a file that is made anew: from now on op_timeline_append leaves out fsync(2), and
 * op_timeline_append_sync does it. 0 or -errno.
 */
void op_timeline_append_together(struct op_timeline_writer *writer) OP_NONNULL;
int op_timeline_append_sync(const struct op_timeline_writer *writer) OP_NONNULL OP_MUST_CHECK;

/* False: the file was removed from its directory, so what is appended is lost. */
bool op_timeline_append_is_linked(const struct op_timeline_writer *writer) OP_NONNULL;

/* The bytes of the file, and its blocks. */
uint64_t op_timeline_append_bytes(const struct op_timeline_writer *writer) OP_NONNULL;
uint32_t op_timeline_append_nr_blocks(const struct op_timeline_writer *writer) OP_NONNULL;

/* The end of the last block in the file. False: there is none. */
bool op_timeline_append_last(const struct op_timeline_writer *writer, struct op_timeline_clocks *ret_end) OP_NONNULL;

/* NULL is allowed. */
void op_timeline_append_close(struct op_timeline_writer *writer);

#endif
