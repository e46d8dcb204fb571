/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads what `perf record` wrote, on any machine: perf.data of version 2, as a file or through a pipe, in either byte order, with
 * attributes of any size, compressed records too, and a directory of `perf record --threads`. Source: perf.data-file-format.txt in the kernel's tools/perf/Documentation.
 *
 * Nothing in the file is trusted. What is damaged is told with its offset (op_perf_data_trouble), and as long as it is known
 * where the next record begins reading goes on.
 *
 *   op_perf_data_open, op_perf_data_next until it is not 1, op_perf_data_trouble, op_perf_data_close
 *
 * One thread.
 */
#ifndef OP_PERF_DATA_H
#define OP_PERF_DATA_H

#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"
#include "libop/perf/data_feature.h"
#include "libop/perf/data_record.h"
#include "libop/base/stop.h"

struct op_perf_data;

struct op_perf_counts {
	uint64_t nr_records; /* those within compressed ones, too */
	uint64_t nr_samples;
	uint64_t nr_passed_over;
	uint64_t nr_bad;            /* records that do not hold what they should */
	uint64_t nr_compressed;     /* compressed records */
	uint64_t nr_aux, aux_bytes; /* AUX area traces, which are passed over */
};

/* The first thing that was wrong. */
struct op_perf_trouble {
	const char *what; /* in words; NULL: nothing */
	uint64_t offset;  /* in the file; of the compressed record when it was in one */
	int err;          /* of reading the file; 0: the file is damaged */
	uint64_t nr_more; /* things that were wrong behind it */
	char file[16];	  /* the one of a directory; empty: it is none */
};

/*
 * Reads the header, the events and the features. The descriptor is the caller's and may be a pipe or a directory; a file that comes
 * through a pipe is copied to a file without a name in $TMPDIR first. The records of a directory's files come in the order of time as far
 * as each file has them so. `stop`, the caller's, ends the waiting for a pipe, now and later; NULL: nothing does. 0 and the reader; -EBADMSG and *ret_why, a constant text: this is no
 * such file, or nothing of it can be used; -ENOMEM; -EINTR: stopped; -errno, and *ret_why when more is known than that, else as it was.
 */
int op_perf_data_open(int fd, const struct op_stop *stop, struct op_perf_data **ret_data, const char **ret_why) OP_NONNULL_ARGS(3, 4) OP_MUST_CHECK;

/* 1 and the next record, also one that was passed over; 0 at the end, or where reading cannot go on; -ENOMEM; -EINTR: stopped. Without a record *ret_record is of no use. */
int op_perf_data_next(struct op_perf_data *data, struct op_perf_record *ret_record) OP_NONNULL OP_MUST_CHECK;

/*
 * Events and features, as far as they are known; with a pipe they come with the first records. The events of a record stay where
 * they are, more may come behind them.
 */
const struct op_perf_events *op_perf_data_events(const struct op_perf_data *data) OP_NONNULL;
const struct op_perf_features *op_perf_data_features(const struct op_perf_data *data) OP_NONNULL;

const struct op_perf_counts *op_perf_data_counts(const struct op_perf_data *data) OP_NONNULL;
const struct op_perf_trouble *op_perf_data_trouble(const struct op_perf_data *data) OP_NONNULL;

/* Where the reader is, and the end of the records; 0: not known, as in a pipe. Bytes, of all files. */
void op_perf_data_progress(const struct op_perf_data *data, uint64_t *ret_offset, uint64_t *ret_end) OP_NONNULL;

/* Samples of that perf_event_attr.type are registers of that kind, whatever the file does not say. Before the first record is read. */
void op_perf_data_assume_ibs(struct op_perf_data *data, enum op_ibs_kind kind, uint32_t type) OP_NONNULL;

bool op_perf_data_is_swapped(const struct op_perf_data *data) OP_NONNULL;
bool op_perf_data_is_pipe(const struct op_perf_data *data) OP_NONNULL;

/* Files with records: more than one in a directory only. */
size_t op_perf_data_nr_files(const struct op_perf_data *data) OP_NONNULL;

/* NULL is allowed. */
void op_perf_data_close(struct op_perf_data *data);

#endif
