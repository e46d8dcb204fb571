/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads a timeline, also beside its writer:
 *
 *	err = op_timeline_open(session_fd, OP_SESSION_TIMELINE, &timeline);
 *	if (!err)
 *		err = op_timeline_select(timeline, since_ns, until_ns);
 *	while (!err && !(err = op_timeline_next(timeline, &minute)))
 *		...                                     // or op_minute_merge(&window, &minute)
 *	op_timeline_close(timeline);                    // err == -ENODATA: these were all
 *
 * Times are nanoseconds since 1970, UTC. Images are dcookies of the session's table; weights are in
 * the unit of their event (minute.h). Blocks come in the order in which they were written, which is
 * that of the monotonic clock. A clock that was set back gives spans that overlap: each is one
 * block, so nothing is missing or double.
 *
 * The file may be anybody's: every number is checked, and the memory is bounded by the limits in
 * format.h. One thread at a time for each object. Nothing is printed.
 */
#ifndef OP_TIMELINE_READ_H
#define OP_TIMELINE_READ_H

#include "libop/timeline/block.h"
#include "libop/timeline/minute.h"

struct op_timeline;

/*
 * Opens `path` below dir_fd. 0 and a handle for op_timeline_close; -ENOENT; -EBADMSG: another file,
 * or of a later version; -ENOMEM; another -errno.
 */
int op_timeline_open(int dir_fd, const char *path, struct op_timeline **ret_timeline) OP_NONNULL OP_MUST_CHECK;

/*
 * Selects the blocks that overlap [since_ns, until_ns), also in part; 0 and UINT64_MAX: all. Reads
 * few bytes: the index leads to them. 0; -EFBIG: too many blocks; -ENOMEM; another -errno.
 */
int op_timeline_select(struct op_timeline *timeline, uint64_t since_ns, uint64_t until_ns) OP_NONNULL OP_MUST_CHECK;

/* The number of selected blocks, and what is around the payload of one, without reading more. */
size_t op_timeline_nr_selected(const struct op_timeline *timeline) OP_NONNULL;
int op_timeline_block(const struct op_timeline *timeline, size_t index, struct op_block *ret_block) OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the span of a selected block, or its payload as it is in the file. 0; -ENODATA: there is no
 * such block; -EBADMSG: it is damaged; -ENOMEM; another -errno.
 */
int op_timeline_load(const struct op_timeline *timeline, size_t index, struct op_minute *minute) OP_NONNULL OP_MUST_CHECK;
int op_timeline_packed(const struct op_timeline *timeline, size_t index, struct op_block *ret_block, struct op_bytes *ret_packed)
	OP_NONNULL OP_MUST_CHECK;

/*
 * Reads the next selected block into a span that op_minute_init made; what was in it is gone. 0;
 * -ENODATA: there is no other one. A block that is damaged is left out, and counted.
 */
int op_timeline_next(struct op_timeline *timeline, struct op_minute *minute) OP_NONNULL OP_MUST_CHECK;

/*
 * Damaged places so far: blocks that op_timeline_next left out, and gaps between blocks. A torn end
 * is none: a writer may be at it. And where the first one is.
 */
uint64_t op_timeline_nr_damaged(const struct op_timeline *timeline, uint64_t *ret_offset) OP_NONNULL;

/* The bytes of the file when it was opened. */
uint64_t op_timeline_bytes(const struct op_timeline *timeline) OP_NONNULL;

/*
 * The first and the last block, without a look at the others. 0; -ENODATA: there is none; -EBADMSG:
 * they are damaged or torn; another -errno.
 */
int op_timeline_ends(const struct op_timeline *timeline, struct op_block *ret_first, struct op_block *ret_last)
	OP_NONNULL OP_MUST_CHECK;

/* NULL is allowed. */
void op_timeline_close(struct op_timeline *timeline);

/*
 * For the writer, and for files whose index is damaged: finds all blocks of a file from its begin
 * on, and behind damage from its end on. *ret_end: the end of the last block; what follows is torn.
 */
struct op_block_place {
	uint64_t offset, end;
	uint64_t wall_first_ns, wall_last_ns; /* of a damaged place: from 0 to UINT64_MAX */
	bool is_damaged;
};

int op_timeline_scan(int fd, uint64_t file_bytes, struct op_block_place **ret_places, size_t *ret_nr_places, uint64_t *ret_end)
	OP_NONNULL OP_MUST_CHECK;

#endif
