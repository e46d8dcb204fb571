/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of a reader of perf.data: data_open.c fills it in, data.c reads the records. */
#ifndef OP_PERF_READER_H
#define OP_PERF_READER_H

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

#endif
