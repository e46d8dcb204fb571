/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inside of libop/perf_data.h: perf_open.c reads what stands before the records, perf_data.c the records. */
#ifndef OP_PERF_READER_H
#define OP_PERF_READER_H

#include "libop/perf_data.h"
#include "libop/perf_input.h"
#include "libop/perf_zstd.h"

#define OP_PERF_PIPE_HEADER_BYTES 16u

struct op_perf_data {
	struct op_perf_input input;
	int own_fd; /* the copy of a pipe; -1: none */
	bool swapped, is_pipe;
	bool unfinished; /* perf did not come to write how long the records are */
	bool ended;
	uint64_t data_end; /* 0: not known */
	struct op_perf_events events;
	struct op_perf_features features;
	struct op_perf_translator translator;
	struct op_perf_zstd zstd;
	uint64_t record_offset;
	struct op_perf_counts counts;
	struct op_perf_trouble trouble;
	uint8_t compressed[UINT16_MAX + 1]; /* the content of the compressed record that is being read */
};

/* Remembers the first trouble. */
void op_perf_reader_trouble(struct op_perf_data *data, uint64_t offset, const char *what, int err) OP_NONNULL;

#endif
