/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One block of a timeline: its frame, and the compression of its payload. format.h has the layout.
 * Each object has one user at a time.
 */
#ifndef OP_TIMELINE_BLOCK_H
#define OP_TIMELINE_BLOCK_H

#include "libop/timeline/bytes.h"
#include "libop/timeline/minute.h"

/* A block, in the byte order of this machine. */
struct op_block {
	uint64_t offset, end; /* in the file; end exclusive */
	struct op_timeline_tail tail;
	struct op_timeline_level levels[OP_TIMELINE_LEVELS_MAX];
};

/* The time from the first moment of a block to the last one, whatever its clock did. */
static inline uint64_t op_block_first_ns(const struct op_timeline_tail *tail)
{
	return op_min_u64(tail->begin.wall_ns, tail->end.wall_ns);
}

static inline uint64_t op_block_last_ns(const struct op_timeline_tail *tail)
{
	return op_max_u64(tail->begin.wall_ns, tail->end.wall_ns);
}

/*
 * Makes the bytes of a block from a payload. `tail` has the times, number, gap, flags and
 * nr_levels; the rest is set here. 0 or -ENOMEM.
 */
int op_block_make(const struct op_bytes *payload, const struct op_timeline_tail *tail, const struct op_timeline_level *levels,
		  struct op_bytes *block) OP_NONNULL OP_MUST_CHECK;

/* The same for a payload that is packed already; tail->raw_bytes is set. */
int op_block_frame(const struct op_bytes *packed, const struct op_timeline_tail *tail, const struct op_timeline_level *levels,
		   struct op_bytes *block) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads and checks what is around the payload of the block that ends at `end`; it begins at `begin`
 * or later. 0; -EBADMSG: no block ends there; another -errno.
 */
int op_block_read_back(int fd, uint64_t begin, uint64_t end, struct op_block *ret_block) OP_NONNULL OP_MUST_CHECK;

/* The same for the block that begins at `begin` and ends at `end` or before. */
int op_block_read(int fd, uint64_t begin, uint64_t end, struct op_block *ret_block) OP_NONNULL OP_MUST_CHECK;

/* Reads the payload as it is in the file, and checks its sum. 0; -EBADMSG; another -errno. */
int op_block_read_packed(int fd, const struct op_block *block, struct op_bytes *ret_packed) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads, checks and decodes the payload into a span that op_minute_init made. 0; -EBADMSG: damaged;
 * -ENOMEM; another -errno.
 */
int op_block_load(int fd, const struct op_block *block, struct op_minute *minute) OP_NONNULL OP_MUST_CHECK;

#endif
