/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/perf/data_zstd.h"

#include <errno.h>
#include <zstd.h>

#define BUFFER_BYTES (256u * 1024) /* larger than a record */

int op_perf_zstd_feed(struct op_perf_zstd *zstd, const uint8_t *bytes, size_t nr_bytes, uint64_t max_bytes)
{
	if (!zstd->buffer) {
		zstd->buffer = malloc(BUFFER_BYTES);
		zstd->capacity = zstd->buffer ? BUFFER_BYTES : 0;
	}
	if (!zstd->stream)
		zstd->stream = ZSTD_createDStream();
	if (!zstd->buffer || !zstd->stream)
		return -ENOMEM;
	zstd->input = bytes;
	zstd->input_bytes = nr_bytes;
	zstd->flushed = false;
	zstd->nr_left = max_bytes;
	return 0;
}

/* One step. When it does not fill the output, the input is used up. */
static int step(struct op_perf_zstd *zstd)
{
	ZSTD_inBuffer in = { .src = zstd->input, .size = zstd->input_bytes };
	ZSTD_outBuffer out = { .dst = zstd->buffer, .size = zstd->capacity, .pos = zstd->end };
	size_t result = ZSTD_decompressStream(zstd->stream, &out, &in);

	if (ZSTD_isError(result) || out.pos - zstd->end > zstd->nr_left || (!in.pos && out.pos == zstd->end && zstd->input_bytes))
		return -EBADMSG;
	zstd->nr_left -= out.pos - zstd->end;
	zstd->end = out.pos;
	zstd->input += in.pos;
	zstd->input_bytes -= in.pos;
	zstd->flushed = !zstd->input_bytes && out.pos < out.size;
	return 0;
}

int op_perf_zstd_more(struct op_perf_zstd *zstd, size_t nr_wanted)
{
	int err = 0;

	while (!err && zstd->end - zstd->begin < nr_wanted && op_perf_zstd_is_busy(zstd)) {
		if (zstd->begin) {
			memmove(zstd->buffer, zstd->buffer + zstd->begin, zstd->end - zstd->begin);
			zstd->end -= zstd->begin;
			zstd->begin = 0;
		}
		err = step(zstd);
	}
	return err;
}

void op_perf_zstd_free(struct op_perf_zstd *zstd)
{
	ZSTD_freeDStream(zstd->stream);
	free(zstd->buffer);
	*zstd = (struct op_perf_zstd){ 0 };
}
