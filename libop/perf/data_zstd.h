/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compressed records of a perf.data file (perf record -z). One Zstandard stream runs through all of
 * them, and a record may begin in one and end in the next. One thread.
 */
#ifndef OP_PERF_ZSTD_H
#define OP_PERF_ZSTD_H

#include "libop/base/compiler.h"

struct op_perf_zstd {
	void *stream;    /* libzstd's; NULL until the first compressed record */
	uint8_t *buffer; /* records; the last one may be incomplete */
	size_t begin, end, capacity;
	const uint8_t *input; /* the rest of the current compressed record; the caller's */
	size_t input_bytes;
	bool flushed;     /* the stream has no output left of this input */
	uint64_t nr_left; /* bytes that this compressed record may still expand to */
};

/*
 * Starts the contents of the next compressed record. They stay valid until op_perf_zstd_more has
 * decompressed all of them, to at most max_bytes. 0 or -ENOMEM.
 */
int op_perf_zstd_feed(struct op_perf_zstd *zstd, const uint8_t *bytes, size_t nr_bytes,
		      uint64_t max_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * Decompresses until the buffer has nr_wanted bytes behind `begin`, if the input has them. 0, also
 * when it has fewer; -EBADMSG: not a Zstandard stream, or too large.
 */
int op_perf_zstd_more(struct op_perf_zstd *zstd, size_t nr_wanted) OP_NONNULL OP_MUST_CHECK;

/* True when the input has output left. */
static inline bool op_perf_zstd_is_busy(const struct op_perf_zstd *zstd)
{
	return zstd->input_bytes || (zstd->input && !zstd->flushed);
}

void op_perf_zstd_free(struct op_perf_zstd *zstd) OP_NONNULL;

#endif
