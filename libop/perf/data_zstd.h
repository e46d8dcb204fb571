/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compressed records of a perf.data file (perf record -z): one Zstandard stream over all of them, with records that may begin in
 * one and end in the next. One thread.
 */
#ifndef OP_PERF_ZSTD_H
#define OP_PERF_ZSTD_H

#include "libop/base/compiler.h"

struct op_perf_zstd {
	void *stream;    /* libzstd's; NULL until the first compressed record */
	uint8_t *buffer; /* records, the last one maybe not whole */
	size_t begin, end, capacity;
	const uint8_t *input; /* of the compressed record that is being read, the caller's */
	size_t input_bytes;
	bool flushed;     /* the stream has given what it has of the input */
	uint64_t nr_left; /* bytes that this compressed record may still become */
};

/*
 * The content of the next compressed record, which stays where it is until op_perf_zstd_more has given all of it; max_bytes is what
 * it may become at most. 0 or -ENOMEM.
 */
int op_perf_zstd_feed(struct op_perf_zstd *zstd, const uint8_t *bytes, size_t nr_bytes,
		      uint64_t max_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Decompresses until `nr_wanted` bytes are there from buffer + begin on, if the input has them. 0, also when it has not; -EBADMSG:
 * not such a stream, or larger than it may be.
 */
int op_perf_zstd_more(struct op_perf_zstd *zstd, size_t nr_wanted) OP_NONNULL OP_MUST_CHECK;

/* True when something of the input is still to come out. */
static inline bool op_perf_zstd_is_busy(const struct op_perf_zstd *zstd)
{
	return zstd->input_bytes || (zstd->input && !zstd->flushed);
}

void op_perf_zstd_free(struct op_perf_zstd *zstd) OP_NONNULL;

#endif
