/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inside of libop/perf/data.h: data_open.c reads what stands before the records, data.c the records. */
#ifndef OP_PERF_READER_H
#define OP_PERF_READER_H

#include "libop/perf/data.h"
#include "libop/perf/data_input.h"
#include "libop/perf/data_zstd.h"

#define OP_PERF_PIPE_HEADER_BYTES 16u
#define OP_PERF_PARTS_MAX         4096u

/* A file with records. A directory has several, each with records, compressed or not, of its own; everything else is in the first. */
struct op_perf_part {
	struct op_perf_input input;
	int own_fd; /* the copy of a pipe, a file of a directory; -1: none */
	char name[16]; /* in a directory; empty: it is none */
	bool ended;
	uint64_t data_end; /* 0: not known */
	uint64_t record_offset;
	uint64_t newest_ns; /* of the records that were read */
	struct op_perf_zstd zstd;
	uint8_t compressed[UINT16_MAX + 1]; /* the content of the compressed record that is being read */
};

struct op_perf_data {
	const struct op_stop *stop;
	struct op_perf_part **parts; /* the first has the header */
	size_t nr_parts, parts_capacity;
	struct op_perf_part *part; /* the one that is being read, and */
	uint32_t nr_turn;	   /* how many records of it come before it is asked which is next */
	bool swapped, is_pipe;
	bool unfinished; /* perf did not come to write how long the records are */
	struct op_perf_events events;
	struct op_perf_features features;
	struct op_perf_translator translator;
	struct op_perf_counts counts;
	struct op_perf_trouble trouble;
};

/* Remembers the first trouble, of the part that is being read. */
void op_perf_reader_trouble(struct op_perf_data *data, uint64_t offset, const char *what, int err) OP_NONNULL;

/* Adds a part; own_fd is closed with it, or when it cannot be added. 0 or -ENOMEM. */
int op_perf_part_add(struct op_perf_data *data, int fd, int own_fd, const char *name) OP_NONNULL OP_MUST_CHECK;

/* Adds the files data.0, data.1, ... of a directory. 0; -E2BIG: more than OP_PERF_PARTS_MAX; -ENOMEM; -errno. */
int op_perf_parts_open(struct op_perf_data *data, int dir_fd) OP_NONNULL OP_MUST_CHECK;
void op_perf_parts_close(struct op_perf_data *data) OP_NONNULL;

#endif
