/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads the recordings of `perf record` from any machine: perf.data of version 2, as a file,
 * through a pipe or as a directory of `perf record --threads`, in either byte order, with
 * attributes of any size, with compressed records. Source: perf.data-file-format.txt in
 * tools/perf/Documentation of the kernel.
 *
 * The file is not trusted. op_perf_data_trouble returns where it is damaged. Reading goes on as
 * long as the start of the next record is known.
 *
 *   op_perf_data_open (data_open.h), op_perf_data_next until it is not 1, op_perf_data_trouble,
 *   op_perf_data_close
 *
 * One thread.
 */
#ifndef OP_PERF_DATA_H
#define OP_PERF_DATA_H

#include "libop/perf/data_parts.h"
#include "libop/perf/data_record.h"

struct op_perf_counts {
	uint64_t nr_records; /* with those inside compressed ones */
	uint64_t nr_samples;
	uint64_t nr_passed_over;
	uint64_t nr_bad; /* damaged records */
	uint64_t nr_compressed;
	uint64_t text_bytes; /* behind the records of a pipe */
	uint64_t nr_aux, aux_bytes; /* AUX area traces, which are skipped */
};

/* data_open.c fills it in, data.c reads the records. */
struct op_perf_data {
	struct op_perf_parts parts;
	struct op_perf_part *part; /* the current one, and */
	uint32_t nr_turn;	   /* the records to read before choosing the next one */
	bool swapped, is_pipe;
	bool unfinished; /* perf was killed before it wrote the length of the records */
	struct op_perf_events events;
	struct op_perf_features features;
	struct op_perf_translator translator;
	struct op_perf_counts counts;
	struct op_perf_trouble trouble;
};

/*
 * 1 and the next record, also one that was skipped; 0 at the end, or where reading cannot go on;
 * -ENOMEM; -EINTR: stopped. *ret_record is valid only with 1.
 */
int op_perf_data_next(struct op_perf_data *data, struct op_perf_record *ret_record) OP_NONNULL OP_MUST_CHECK;

/*
 * Known so far: with a pipe, events and features come with the first records. More events are
 * appended.
 */
const struct op_perf_events *op_perf_data_events(const struct op_perf_data *data) OP_NONNULL;
const struct op_perf_features *op_perf_data_features(const struct op_perf_data *data) OP_NONNULL;

const struct op_perf_counts *op_perf_data_counts(const struct op_perf_data *data) OP_NONNULL;
const struct op_perf_trouble *op_perf_data_trouble(const struct op_perf_data *data) OP_NONNULL;

/*
 * The position of the reader and the end of the records, summed over all files. The end is 0 for a
 * pipe.
 */
void op_perf_data_progress(const struct op_perf_data *data, uint64_t *ret_offset, uint64_t *ret_end) OP_NONNULL;

/*
 * Declares samples of a perf_event_attr.type to be registers of that kind. To be called before the
 * first record.
 */
void op_perf_data_assume_ibs(struct op_perf_data *data, enum op_ibs_kind kind, uint32_t type) OP_NONNULL;

bool op_perf_data_is_swapped(const struct op_perf_data *data) OP_NONNULL;
bool op_perf_data_is_pipe(const struct op_perf_data *data) OP_NONNULL;

/* Files with records: more than one only in a directory. */
size_t op_perf_data_nr_files(const struct op_perf_data *data) OP_NONNULL;

/* NULL is allowed. */
void op_perf_data_close(struct op_perf_data *data);

#endif
